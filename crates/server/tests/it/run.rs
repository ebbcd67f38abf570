//! The stream of a run.

use std::{collections::BTreeMap, time::Duration};

use holdpoint_core::{FramePath, RunId};
use holdpoint_server::frames::run;
use serde_json::json;

use crate::{sse, sse::Received};

fn written(act: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    act(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn events_of_the_journal_carry_their_sequence() {
    let sent = written(|out| {
        run::record(out, 7, "run_started", &json!({"text": "a\n\u{2028}id: 9"})).unwrap();
    });
    assert_eq!(
        sent,
        "id: 7\nevent: run_started\ndata: {\"text\":\"a\\n\\u2028id: 9\"}\n\n"
    );
}

#[test]
fn what_is_said_between_them_has_no_id_of_its_own() {
    let root = FramePath::root();
    let spoken = run::Spoken {
        run_id: RunId::from_bytes([2; 16]),
        frame: &root,
        attempt: 1,
        text: "Hel\nlo",
    };
    let data = format!(
        r#"{{"run_id":"run_{}","frame":"","attempt":1,"text":"Hel\nlo"}}"#,
        "02".repeat(16)
    );
    let sent = written(|out| run::delta(out, &spoken));
    assert_eq!(sent, format!("event: delta\ndata: {data}\n\n"));
    let sent = written(|out| run::message_reset(out, &spoken));
    assert_eq!(sent, format!("event: message_reset\ndata: {data}\n\n"));
}

#[test]
fn signs_of_life_and_of_leaving_are_events() {
    assert_eq!(written(run::heartbeat), "event: heartbeat\ndata: {}\n\n");
    assert_eq!(written(run::closing), "event: closing\ndata: {}\n\n");
    assert_eq!(
        written(|out| run::retry(out, Duration::from_secs(3))),
        "retry: 3000\n\n"
    );
}

#[test]
fn a_client_that_comes_back_names_the_last_event_of_the_journal() {
    let sent = written(|out| {
        run::retry(out, Duration::from_millis(1_500));
        run::record(out, 8, "a", &json!({})).unwrap();
        run::heartbeat(out);
    });
    let received = |event: &str| Received {
        event: event.to_owned(),
        data: "{}".to_owned(),
        id: "8".to_owned(),
    };
    assert_eq!(
        sse::read(sent.as_bytes()),
        [received("a"), received("heartbeat")]
    );
}

#[test]
fn an_event_without_json_leaves_nothing_behind() {
    let sent = written(|out| {
        let keys = BTreeMap::from([((1, 2), 3)]);
        assert!(run::record(out, 1, "a", &keys).is_err());
    });
    assert_eq!(sent, "");
}

#[test]
fn a_name_stays_on_its_line() {
    let sent = written(|out| run::record(out, 1, "a\r\nid: 5\n", &json!(1)).unwrap());
    assert_eq!(sent, "id: 1\nevent: aid: 5\ndata: 1\n\n");
}
