//! Models with others behind them. Time is the tests' own.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_core::Span;
use holdpoint_models::{Delta, Failure, Model, Providers, Reply, Request};
use tokio::time::{Instant, advance};

use super::Ask;

/// What a model does once.
#[derive(Debug, Clone)]
enum Act {
    Say,
    Fail(Failure),
    FailAfterText(Failure),
    Hang,
}

#[derive(Debug)]
struct Fake {
    name: &'static str,
    acts: Mutex<VecDeque<Act>>,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

#[async_trait]
impl Model for Fake {
    async fn turn(
        &self,
        _: Request<'_>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        self.asked.lock().unwrap().push(self.name);
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Say);
        match act {
            Act::Say => {}
            Act::Fail(failure) => return Err(failure),
            Act::FailAfterText(failure) => {
                deltas(Delta::Text("well".to_owned()));
                return Err(failure);
            }
            Act::Hang => std::future::pending().await,
        }
        Ok(Reply {
            text: self.name.to_owned(),
            ..Reply::default()
        })
    }

    fn silence(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }
}

struct Stage {
    model: Arc<dyn Model>,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

impl Stage {
    fn new(acts: &[(&'static str, Vec<Act>)]) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let candidates = acts.iter().map(|(name, acts)| {
            let fake = Fake {
                name,
                acts: Mutex::new(acts.clone().into()),
                asked: Arc::clone(&asked),
            };
            ((*name).to_owned(), Arc::new(fake) as Arc<dyn Model>)
        });
        let model = Providers::default().route(candidates.collect());
        Self { model, asked }
    }

    /// Who was asked in a turn, and what came of it.
    async fn turn(&self) -> (Vec<&'static str>, Result<String, Failure>) {
        let (reply, _) = Ask::default().of(&*self.model).await;
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        (asked, reply.map(|reply| reply.text))
    }
}

fn unavailable() -> Failure {
    Failure::Unavailable {
        reason: "down".to_owned(),
    }
}

fn limited(seconds: Option<u64>) -> Failure {
    Failure::RateLimited {
        retry_after: seconds.map(Span::from_secs),
        reason: "busy".to_owned(),
    }
}

fn barred() -> Failure {
    Failure::Barred {
        reason: "no key".to_owned(),
    }
}

fn rejected() -> Failure {
    Failure::Rejected {
        reason: "too long".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_one_answers_where_one_cannot() {
    let withheld = Failure::Withheld {
        reason: "filter".to_owned(),
    };
    for failure in [
        unavailable(),
        limited(None),
        barred(),
        withheld,
        Failure::Timeout,
    ] {
        let stage = Stage::new(&[("a", vec![Act::Fail(failure)]), ("b", vec![])]);
        assert_eq!(stage.turn().await, (vec!["a", "b"], Ok("b".to_owned())));
        assert_eq!(stage.turn().await, (vec!["a"], Ok("a".to_owned())));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_silent_is_given_up_and_the_next_one_answers() {
    let stage = Stage::new(&[("a", vec![Act::Hang]), ("b", vec![])]);
    let begin = Instant::now();
    assert_eq!(stage.turn().await, (vec!["a", "b"], Ok("b".to_owned())));
    assert_eq!(begin.elapsed(), Duration::from_secs(60));
    assert_eq!(stage.model.silence(), Some(Duration::from_secs(60)));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_wrong_is_wrong_everywhere_and_what_was_begun_is_not_gone_on_with_by_another()
 {
    let stage = Stage::new(&[("a", vec![Act::Fail(rejected())]), ("b", vec![])]);
    assert_eq!(stage.turn().await, (vec!["a"], Err(rejected())));
    let stage = Stage::new(&[
        ("a", vec![Act::FailAfterText(unavailable())]),
        ("b", vec![]),
    ]);
    assert_eq!(stage.turn().await, (vec!["a"], Err(unavailable())));
}

#[tokio::test(start_paused = true)]
async fn three_failures_in_a_row_make_a_pause_and_one_tries_after_it() {
    let down = || Act::Fail(unavailable());
    let stage = Stage::new(&[
        (
            "a",
            vec![down(), down(), Act::Say, down(), down(), down(), down()],
        ),
        ("b", vec![]),
    ]);
    // Two are not three in a row.
    for expected in [vec!["a", "b"], vec!["a", "b"], vec!["a"]] {
        assert_eq!(stage.turn().await.0, expected);
    }
    for _ in 0..3 {
        assert_eq!(stage.turn().await.0, ["a", "b"]);
    }
    // Passed over.
    assert_eq!(stage.turn().await.0, ["b"]);
    advance(Duration::from_secs(29)).await;
    assert_eq!(stage.turn().await.0, ["b"]);
    // One tries it, in vain.
    advance(Duration::from_secs(1)).await;
    assert_eq!(stage.turn().await.0, ["a", "b"]);
    assert_eq!(stage.turn().await.0, ["b"]);
    // And once more: it is well again.
    advance(Duration::from_secs(30)).await;
    assert_eq!(stage.turn().await.0, ["a"]);
    assert_eq!(stage.turn().await.0, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn who_says_when_to_come_again_is_passed_over_until_then() {
    let stage = Stage::new(&[("a", vec![Act::Fail(limited(Some(90)))]), ("b", vec![])]);
    assert_eq!(stage.turn().await.0, ["a", "b"]);
    advance(Duration::from_secs(89)).await;
    assert_eq!(stage.turn().await.0, ["b"]);
    advance(Duration::from_secs(1)).await;
    assert_eq!(stage.turn().await.0, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_passed_over_is_asked_after_all_where_the_others_fail() {
    let stage = Stage::new(&[
        ("a", vec![Act::Fail(limited(Some(90)))]),
        ("b", vec![Act::Say, Act::Fail(unavailable())]),
    ]);
    assert_eq!(stage.turn().await.0, ["a", "b"]);
    assert_eq!(stage.turn().await, (vec!["b", "a"], Ok("a".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn where_all_fail_it_is_told_what_helps_soonest() {
    let of = |failures: [Failure; 2]| {
        let [a, b] = failures.map(|failure| vec![Act::Fail(failure)]);
        Stage::new(&[("a", a), ("b", b)])
    };
    for (failures, expected) in [
        ([limited(Some(90)), limited(Some(30))], limited(Some(30))),
        ([limited(Some(30)), limited(Some(90))], limited(Some(30))),
        ([limited(Some(30)), unavailable()], limited(Some(30))),
        ([unavailable(), barred()], unavailable()),
        ([barred(), Failure::Timeout], Failure::Timeout),
        ([unavailable(), Failure::Timeout], Failure::Timeout),
    ] {
        assert_eq!(of(failures).turn().await, (vec!["a", "b"], Err(expected)));
    }
}

#[tokio::test(start_paused = true)]
async fn one_alone_is_asked_whenever_it_is_asked() {
    let stage = Stage::new(&[("a", vec![Act::Fail(unavailable()); 9])]);
    for _ in 0..9 {
        assert_eq!(stage.turn().await, (vec!["a"], Err(unavailable())));
    }
    assert_eq!(stage.turn().await.1, Ok("a".to_owned()));
}
