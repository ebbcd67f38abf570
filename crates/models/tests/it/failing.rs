//! How a scripted model fails.

use std::time::Duration;

use holdpoint_core::Span;
use holdpoint_models::Failure;
use tokio::time::Instant;

use crate::conversation::{ask, scripted, user};

#[tokio::test]
async fn the_first_attempts_fail_and_the_next_one_answers() {
    let model = scripted(
        "  - {say: ok, fail: {with: rate_limited, times: 2, retry_after: 1500ms, reason: busy}}\n",
    );
    let failure = Failure::RateLimited {
        retry_after: Some(Span::from_millis(1500)),
        reason: "busy".to_owned(),
    };
    for attempt in [1, 2] {
        assert_eq!(
            ask(&model, &[user("x")], attempt).await,
            (Err(failure.clone()), vec![])
        );
    }
    for attempt in [3, 4] {
        assert_eq!(
            ask(&model, &[user("x")], attempt).await.0.unwrap().text,
            "ok"
        );
    }
}

#[tokio::test]
async fn every_kind_of_failure_can_be_played_at_every_attempt() {
    let reason = || "the scenario says so".to_owned();
    let cases = [
        ("timeout", Failure::Timeout),
        ("unavailable", Failure::Unavailable { reason: reason() }),
        (
            "rate_limited",
            Failure::RateLimited {
                retry_after: None,
                reason: reason(),
            },
        ),
        ("rejected", Failure::Rejected { reason: reason() }),
    ];
    for (with, failure) in cases {
        let model = scripted(&format!("  - fail: {{with: {with}}}\n"));
        for attempt in [1, 50] {
            assert_eq!(
                ask(&model, &[user("x")], attempt).await,
                (Err(failure.clone()), vec![])
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_takes_as_long_as_its_delay() {
    let model = scripted("  - {delay: 1m, fail: {with: timeout}}\n");
    let begin = Instant::now();
    assert_eq!(ask(&model, &[user("x")], 1).await.0, Err(Failure::Timeout));
    assert_eq!(begin.elapsed(), Duration::from_secs(60));
}
