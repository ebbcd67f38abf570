//! Streams that break off, at every single byte.

use holdpoint_models::{Failure, Model, Reply};
use holdpoint_test_provider::{Answer, Api, Server, said};
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use super::{Ask, model, provider};
use crate::conversation::call;

async fn whole_or_nothing(api: Api, cut: fn(Answer, usize) -> Answer) {
    let said = said("Ja, ü. ").calling("call_a", "refund", &["{\"amount\":", "100}"]);
    let stream = said.in_api(api);
    let length = stream.len();
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Answer::stream(stream));
    let server = Server::start(move |_| {
        let at = next.fetch_add(1, Ordering::SeqCst);
        cut(answers.lock().unwrap().clone(), at)
    });
    let model = model(provider(api, &server));
    let mut wholes = 0;
    for at in 0..=length {
        let (found, _) = Ask::default().of(&*model as &dyn Model).await;
        match found {
            Ok(Reply { text, calls, .. }) => {
                assert_eq!(text, "Ja, ü. ", "{api:?} {at}");
                assert_eq!(
                    calls,
                    [call("call_a", "refund", "{\"amount\":100}")],
                    "{api:?} {at}"
                );
                wholes += 1;
            }
            Err(Failure::Unavailable { .. }) => {
                assert_eq!(wholes, 0, "{api:?} {at}: it was whole before");
            }
            Err(other) => panic!("{api:?} {at}: {other}"),
        }
    }
    assert!(wholes > 0, "{api:?}");
}

#[tokio::test]
async fn a_connection_that_is_lost_after_any_byte_gives_the_whole_answer_or_none() {
    for api in Api::ALL {
        whole_or_nothing(api, Answer::broken_after).await;
    }
}

#[tokio::test]
async fn a_stream_that_ends_after_any_byte_gives_the_whole_answer_or_none() {
    for api in Api::ALL {
        whole_or_nothing(api, Answer::ended_after).await;
    }
}
