//! Results that are kept apart, in events, in the conversation and in the stored format.

use std::{fs, path::PathBuf};

use holdpoint_core::{
    ActionId, AfterLate, AfterLookup, Artifact, ArtifactAddress, Command, Digest, Effect, Event,
    Finish, Lookup, Outcome, ThreadId, Transcript, keep_artifact,
};
use serde_json::json;

use crate::thread::{Thread, done, driver, failed, lost, plain, with_lookup};

fn some_artifact(action: ActionId, attempt: u32, text: &str) -> Artifact {
    let address = ArtifactAddress::of_result("grep", action, attempt);
    let thread = ThreadId::from_bytes([2; 16]);
    keep_artifact(thread, address, text).unwrap().0
}

fn events() -> Vec<Event> {
    let action = ActionId::from_bytes([1; 16]);
    let artifact = || Some(Box::new(some_artifact(action, 1, "all of it")));
    let ends = || "head\n[… a note …]\ntail".to_owned();
    let receipt = Artifact {
        address: ArtifactAddress::of_receipt("grep", action, 1),
        ..some_artifact(action, 1, "all of it")
    };
    let finished = |outcome| Event::ActionFinished {
        action,
        attempt: 1,
        outcome,
        artifact: artifact(),
    };
    vec![
        finished(Finish::Done { content: ends() }),
        finished(Finish::Failed { error: ends() }),
        Event::ActionLookedUp {
            action,
            lookup: Lookup::Committed {
                receipt: json!(ends()),
            },
            artifact: Some(Box::new(receipt)),
            then: AfterLookup::Settled,
        },
        Event::LateOutcome {
            action,
            attempt: 1,
            outcome: Outcome::done(ends()),
            artifact: artifact(),
            then: AfterLate::Recorded,
        },
    ]
}

/// `HOLDPOINT_BLESS=v3` rewrites the file, as it does those of `golden`.
#[test]
fn what_refers_to_a_result_kept_apart_is_stored_so() {
    let path = "tests/golden/v3/artifacts.json";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    let written = serde_json::to_string_pretty(&events()).unwrap() + "\n";
    if std::env::var_os("HOLDPOINT_BLESS").is_some_and(|it| it == "v3") {
        fs::write(&path, &written).unwrap();
    }
    let stored = fs::read_to_string(path).unwrap();
    assert_eq!(stored, written);
    assert_eq!(
        serde_json::from_str::<Vec<Event>>(&stored).unwrap(),
        events()
    );
}

#[test]
fn the_bytes_that_are_kept_are_those_of_one_thread() {
    let address = ArtifactAddress::of_result("grep", ActionId::from_bytes([1; 16]), 1);
    let keep = |thread: u8| {
        let thread = ThreadId::from_bytes([thread; 16]);
        keep_artifact(thread, address.clone(), "a\"b\n").unwrap()
    };
    let (artifact, payload) = keep(2);
    assert_eq!(
        String::from_utf8(payload.bytes.clone()).unwrap(),
        r#"{"thread":"thr_02020202020202020202020202020202","text":"a\"b\n"}"#
    );
    assert_eq!(artifact.kept, Digest::of(&payload.bytes));
    assert_eq!(artifact.digest, Digest::of(b"a\"b\n"));
    let (other, _) = keep(3);
    assert_eq!((other.digest, other.size), (artifact.digest, artifact.size));
    assert_ne!(other.kept, artifact.kept);
}

/// Tells how an attempt ended, with something kept apart.
fn end_with(thread: &mut Thread, action: ActionId, attempt: u32, outcome: Outcome) -> Vec<Event> {
    let mut command = thread.ended(action, attempt, outcome);
    if let Command::ActionEnded { artifact, .. } = &mut command {
        *artifact = Some(Box::new(some_artifact(action, attempt, "all of it")));
    }
    thread.tell(driver(), command).unwrap()
}

#[test]
fn however_a_result_comes_what_is_kept_of_it_is_in_the_event_and_then_in_the_conversation() {
    type Life = fn() -> (Thread, ActionId, u32);
    let in_flight: Life = in_flight_write;
    let in_doubt: Life = || {
        let (mut thread, action, _) = in_flight_write();
        thread.end(action, 1, lost());
        (thread, action, 1)
    };
    let unknown_read: Life = || {
        let (mut thread, action) = Thread::started(Effect::Read, plain());
        thread.end(action, 1, lost());
        (thread, action, 1)
    };
    let started_again: Life = || {
        let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
        thread.wait(1_000);
        thread.orphan(action, 1);
        thread.look_up(action, Lookup::NotFound);
        thread.start(action);
        (thread, action, 1)
    };
    let settled: Life = || {
        let (mut thread, action, _) = in_flight_write();
        thread.end(action, 1, done("short"));
        (thread, action, 1)
    };
    let contradicted: Life = || {
        let (mut thread, action, _) = in_flight_write();
        thread.end(action, 1, failed("no"));
        (thread, action, 1)
    };
    let lives = [
        (in_flight, "action_finished"),
        (in_doubt, "late_outcome"),
        (unknown_read, "late_outcome"),
        (started_again, "late_outcome"),
        (settled, "late_outcome"),
        (contradicted, "late_outcome"),
    ];
    for (at, (life, name)) in lives.into_iter().enumerate() {
        for outcome in [done("both ends"), failed("both ends")] {
            let (mut thread, action, attempt) = life();
            let events = end_with(&mut thread, action, attempt, outcome.clone());
            let found: Vec<_> = events
                .iter()
                .filter_map(|event| Some((event.name(), event.artifact()?)))
                .collect();
            let artifact = some_artifact(action, attempt, "all of it");
            assert_eq!(found, [(name, &artifact)], "life {at}, {outcome:?}");
            let known = thread.transcript.artifact(&artifact.address);
            assert_eq!(known, Some(&artifact), "life {at}, {outcome:?}");
        }
    }
}

fn in_flight_write() -> (Thread, ActionId, u32) {
    let (thread, action) = Thread::started(Effect::Write, plain());
    (thread, action, 1)
}

#[test]
fn what_is_kept_of_a_receipt_is_in_the_event() {
    for (lookup, told) in [
        (
            Lookup::Committed {
                receipt: json!("both ends"),
            },
            Some("both ends"),
        ),
        (
            Lookup::Partial {
                receipt: json!("both ends"),
            },
            None,
        ),
    ] {
        let (mut thread, action) = Thread::started(Effect::Write, with_lookup());
        thread.end(action, 1, lost());
        thread.wait(1_000);
        let artifact = Artifact {
            address: ArtifactAddress::of_receipt("work", action, 1),
            ..some_artifact(action, 1, "all of it")
        };
        let command = Command::LookedUp {
            action,
            lookup,
            artifact: Some(Box::new(artifact.clone())),
        };
        let events = thread.tell(driver(), command).unwrap();
        assert_eq!(events[0].artifact(), Some(&artifact));
        let last = thread.told().into_iter().map(|(_, told)| told).next();
        assert_eq!(last.as_deref(), told);
        assert_eq!(
            thread.transcript.artifact(&artifact.address),
            Some(&artifact)
        );
    }
}

#[test]
fn an_address_names_for_good_what_it_named_first() {
    let action = ActionId::from_bytes([1; 16]);
    let mut transcript = Transcript::default();
    for text in ["first", "second"] {
        transcript.apply(&Event::LateOutcome {
            action,
            attempt: 1,
            outcome: done("ends"),
            artifact: Some(Box::new(some_artifact(action, 1, text))),
            then: AfterLate::Recorded,
        });
    }
    let first = some_artifact(action, 1, "first");
    assert_eq!(transcript.artifacts(), [first]);
}
