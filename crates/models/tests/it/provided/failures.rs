//! Answers that are none.

use holdpoint_core::{HttpHeader, Provider, Span};
use holdpoint_models::Failure;
use holdpoint_test_provider::{Answer, Api, Server, said};

use super::{Ask, answered, impatient, model, provider, with_key};

const KEY: &str = "sk-very-secret";

async fn failure(api: Api, answer: Answer) -> Failure {
    answered(api, answer).await.0.unwrap_err()
}

#[tokio::test]
async fn a_provider_that_is_asked_too_often_says_when_to_come_again() {
    let body = r#"{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}"#;
    for api in Api::ALL {
        for status in [429, 529] {
            for (header, value, expected) in [
                ("x-nothing", "", None),
                ("retry-after", "3600", Some(3_600_000)),
                ("retry-after", "0.25", Some(250)),
                ("retry-after-ms", "1500", Some(1_500)),
                ("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
                ("retry-after", "later", None),
            ] {
                let answer = Answer::error(status, body).with_header(header, value);
                let expected = Failure::RateLimited {
                    retry_after: expected.map(Span::from_millis),
                    reason: format!("`it:test`: HTTP {status}: slow down"),
                };
                assert_eq!(failure(api, answer).await, expected, "{api:?} {value}");
            }
            let dated = Answer::error(status, body)
                .with_header("date", "Wed, 18 Nov 2026 10:00:00 GMT")
                .with_header("retry-after", "Wed, 18 Nov 2026 11:00:00 GMT");
            let hour = Some(Span::from_secs(3_600));
            let found = failure(api, dated).await;
            assert!(
                matches!(found, Failure::RateLimited { retry_after, .. } if retry_after == hour)
            );
        }
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_what_it_would_be_before() {
    let chat = |error: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"so\"}}}}]}}\n\ndata: {{\"error\":{error}}}\n\n"
        )
    };
    let responses = |error: &str| {
        format!(
            "event: response.failed\ndata: {{\"type\":\"response.failed\",\"response\":{{\"error\":{error}}}}}\n\n"
        )
    };
    let anthropic =
        |error: &str| format!("event: error\ndata: {{\"type\":\"error\",\"error\":{error}}}\n\n");
    for (api, stream, expected) in [
        (Api::Chat, chat(r#"{"message":"m","code":503}"#), "unavailable: `it:test`: HTTP 503: m"),
        (Api::Chat, chat(r#"{"message":"m","type":"server_error"}"#), "unavailable: `it:test`: m"),
        (Api::Chat, chat(r#"{"message":"m","code":"rate_limit_exceeded"}"#), "asked too often: `it:test`: m"),
        (Api::Chat, "event: error\ndata: {\"message\":\"m\"}\n\n".to_owned(), "unavailable: `it:test`: m"),
        (Api::Responses, responses(r#"{"code":"server_error","message":"m"}"#), "unavailable: `it:test`: m"),
        (Api::Responses, responses(r#"{"code":"rate_limit_exceeded","message":"m"}"#), "asked too often: `it:test`: m"),
        (Api::Responses, responses(r#"{"code":"insufficient_quota","message":"m"}"#), "cannot be asked: `it:test`: m"),
        (Api::Responses, "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"m\"}\n\n".to_owned(), "asked too often: `it:test`: m"),
        (Api::Anthropic, anthropic(r#"{"type":"overloaded_error","message":"m"}"#), "unavailable: `it:test`: m"),
        (Api::Anthropic, anthropic(r#"{"type":"rate_limit_error","message":"m"}"#), "asked too often: `it:test`: m"),
        (Api::Anthropic, anthropic(r#"{"type":"invalid_request_error","message":"m"}"#), "refused the request: `it:test`: m"),
    ] {
        let found = failure(api, Answer::stream(stream)).await.to_string();
        assert!(found.ends_with(expected), "{api:?}: {found}");
    }
}

#[tokio::test]
async fn what_is_no_stream_at_all_is_no_answer() {
    let body = r#"{"choices":[{"message":{"content":"whole"}}]}"#;
    for (answer, expected) in [
        (
            Answer::stream(body).with_header("content-type", "application/json; charset=utf-8"),
            "the model is unavailable: `it:test`: the answer is no stream of events but `application/json`",
        ),
        (
            Answer::stream("<html>").with_header("content-type", "text/html"),
            "the model is unavailable: `it:test`: the answer is no stream of events but `text/html`",
        ),
        (
            Answer::stream("data: {\n\n"),
            "the model is unavailable: `it:test`: the stream has an event that cannot be read: EOF while parsing an object at line 1 column 1",
        ),
        (
            Answer::stream("hello"),
            "the model is unavailable: `it:test`: the stream ended before the answer did",
        ),
        (
            Answer::stream(vec![0xff, b'\n']),
            "the model is unavailable: `it:test`: the stream is not UTF-8",
        ),
        (
            Answer::error(307, "").with_header("location", "http://127.0.0.1:1/"),
            "the model cannot be asked: `it:test`: HTTP 307 (redirects are not followed)",
        ),
    ] {
        assert_eq!(failure(Api::Chat, answer).await.to_string(), expected);
    }
}

#[tokio::test]
async fn only_silence_is_a_time_out() {
    for api in Api::ALL {
        let stream = said("some words to be said").in_api(api);
        let half = stream.len() / 2;
        for silent in [0, half] {
            let server = Server::playing(vec![Answer::stream(stream.clone()).silent_after(silent)]);
            let model = model(impatient(provider(api, &server)));
            let (found, _) = Ask::default().of(&*model).await;
            assert_eq!(found, Err(Failure::Timeout), "{api:?} {silent}");
        }
        // All of it is there, and only the end of the stream is not.
        let server = Server::playing(vec![
            Answer::stream(stream.clone()).silent_after(stream.len()),
        ]);
        let model = model(impatient(provider(api, &server)));
        assert!(Ask::default().of(&*model).await.0.is_ok(), "{api:?}");
    }
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let nobody = Provider::new(
        holdpoint_core::Api::OpenAiChat,
        format!("http://127.0.0.1:{port}"),
    );
    let found = Ask::default().of(&*model(nobody)).await.0.unwrap_err();
    let Failure::Unavailable { reason } = &found else {
        panic!("{found:?}");
    };
    assert!(reason.starts_with("`it:test`: no connection: "), "{reason}");
}

#[tokio::test]
async fn a_key_is_shown_to_nobody_whatever_its_provider_does() {
    let folder = tempfile::tempdir().unwrap();
    let error = format!(r#"{{"error":{{"message":"Incorrect key {KEY}, I say {KEY}"}}}}"#);
    let answers = [
        Answer::error(401, &error),
        Answer::error(429, &error),
        Answer::error(500, &format!("key={KEY} {}", "x".repeat(100_000))),
        Answer::error(400, &error),
        Answer::stream(format!("data: {error}\n\n")),
        Answer::stream(format!("event: error\ndata: {error}\n\n")),
        Answer::stream(format!(
            "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{KEY}\"}}]}}\n\n"
        )),
        Answer::stream(String::new()).with_header("content-type", "text/html"),
        Answer::stream("data: {").broken_after(3),
    ];
    for api in Api::ALL {
        for answer in &answers {
            let server = Server::playing(vec![answer.clone()]);
            let model = model(with_key(provider(api, &server), folder.path()));
            let shown = format!("{model:?}");
            let found = Ask::default().of(&*model).await.0.unwrap_err();
            let shown = format!("{shown} {model:?} {found:?} {found}");
            assert!(!shown.contains(KEY), "{api:?}: {shown}");
            assert!(shown.len() < 6_000, "{}", shown.len());
            let sent = &server.asked()[0].headers;
            let carries = sent.values().any(|value| value.contains(KEY));
            assert!(carries, "{api:?}: {sent:?}");
        }
    }
}

#[tokio::test]
async fn without_its_key_nobody_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::playing(vec![Answer::stream("")]);
    let keyless = with_key(provider(Api::Chat, &server), folder.path());
    std::fs::remove_file(folder.path().join("key")).unwrap();
    let variable = provider(Api::Chat, &server).with_key_variable("HOLDPOINT_NO_SUCH_KEY");
    let mut header = provider(Api::Chat, &server);
    let secret = HttpHeader::Secret {
        name: "HOLDPOINT_NO_SUCH_HEADER".to_owned(),
        prefix: String::new(),
    };
    header.headers.insert("X-Tenant".to_owned(), secret);
    let elsewhere = Provider {
        base_url: "http://models.example.com/v1".to_owned(),
        ..provider(Api::Chat, &server)
    };
    for (provider, expected) in [
        (keyless, "cannot be read"),
        (
            variable,
            "`HOLDPOINT_NO_SUCH_KEY`, which should hold the key, is not set",
        ),
        (
            header,
            "`HOLDPOINT_NO_SUCH_HEADER`, which should hold a header's value, is not set",
        ),
        (
            elsewhere,
            "`models.example.com` would be spoken to without encryption",
        ),
    ] {
        let found = Ask::default().of(&*model(provider)).await.0.unwrap_err();
        let Failure::Barred { reason } = found else {
            panic!("{found:?}");
        };
        assert!(reason.contains(expected), "{reason}");
    }
    assert!(server.asked().is_empty());
}
