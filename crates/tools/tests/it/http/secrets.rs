//! Secrets are sent, and seen nowhere else.

use std::collections::BTreeMap;

use holdpoint_core::{HttpHeader, HttpRequest, Outcome};
use serde_json::json;

use super::{headers, ok, request, tool};
use crate::{
    bench::{PLENTY, block_on, call, done, failed, params, unknown},
    server::{Act, Server, response},
    surroundings::TOKEN,
};

crate::trials!(
    a_secret_is_sent_with_its_prefix,
    a_secret_that_comes_back_is_taken_out,
    a_request_without_its_secret_is_not_sent,
);

fn with_secret(server: &Server, name: &str, prefix: &str) -> HttpRequest {
    let secret = HttpHeader::Secret {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
    };
    HttpRequest {
        headers: BTreeMap::from([("Authorization".to_owned(), secret)]),
        ..request(server, "/")
    }
}

fn a_secret_is_sent_with_its_prefix() {
    block_on(async {
        let server = Server::play(vec![ok(), ok()]).await;
        for prefix in ["Bearer ", ""] {
            let tool = tool(with_secret(&server, "PAY_TOKEN", prefix));
            assert_eq!(tool.call(call(&params("{}"), PLENTY)).await, done("fine"));
            let shown = format!("{tool:?}");
            assert!(
                shown.contains("PAY_TOKEN") && !shown.contains("4711"),
                "{shown}"
            );
        }
        let seen = server.seen();
        assert_eq!(
            headers(&seen[0])["authorization"],
            format!("Bearer {TOKEN}")
        );
        assert_eq!(headers(&seen[1])["authorization"], TOKEN);
    });
}

fn a_secret_that_comes_back_is_taken_out() {
    let echo = json!({"got": format!("Bearer {TOKEN}")}).to_string();
    let clean = r#"{"got":"Bearer [secret]"}"#;
    // Across the end of what is kept.
    let edge = format!("{}{TOKEN}", "x".repeat((1 << 20) - 4));
    block_on(async {
        let acts = [
            response("200 OK", &echo),
            response("403 Forbidden", TOKEN),
            response("500 Internal Server Error", &echo),
            response("200 OK", &edge),
        ];
        let server = Server::play(acts.map(Act::Say).to_vec()).await;
        let tool = tool(with_secret(&server, "PAY_TOKEN", "Bearer "));
        let mut outcomes = Vec::new();
        for _ in 0..4 {
            outcomes.push(tool.call(call(&params("{}"), PLENTY)).await);
        }
        assert_eq!(outcomes[0], done(clean));
        assert_eq!(outcomes[1], failed("HTTP 403 Forbidden: [secret]"));
        assert_eq!(
            outcomes[2],
            unknown(&format!("HTTP 500 Internal Server Error; body: {clean}"))
        );
        let Outcome::Done { content } = &outcomes[3] else {
            panic!("not done")
        };
        assert!(!content.contains("tok"), "a part of it is left");
    });
}

fn a_request_without_its_secret_is_not_sent() {
    block_on(async {
        let server = Server::play(vec![ok()]).await;
        for (name, why) in [
            (
                "NO_TOKEN",
                "the secret `NO_TOKEN` is not set in the environment of this process",
            ),
            (
                "EMPTY_TOKEN",
                "the secret `EMPTY_TOKEN` is not set in the environment of this process",
            ),
            (
                "BROKEN_TOKEN",
                "the secret `BROKEN_TOKEN` has a character that a header cannot hold",
            ),
        ] {
            let tool = tool(with_secret(&server, name, "Bearer "));
            let outcome = tool.call(call(&params("{}"), PLENTY)).await;
            assert_eq!(outcome, failed(&format!("not sent: {why}")));
        }
        assert_eq!(server.seen(), Vec::<String>::new());
    });
}
