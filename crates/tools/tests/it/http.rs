//! Tools that are HTTP requests: what they send, and to whom.

pub(crate) mod endings;
pub(crate) mod secrets;

use std::{collections::BTreeMap, sync::Arc};

use holdpoint_core::{
    Effect, HttpBody, HttpHeader, HttpMethod, HttpRequest, Lookup, Outcome, Runner, Template,
    ToolSpec, UrlTemplate,
};
use holdpoint_tools::{NoSuchTool, Registry, Tool, Watchdog, instantiate};
use serde_json::{Value, json};

use crate::{
    bench::{PLENTY, block_on, call, done, failed, params, spec},
    server::{Act, Server, response},
};

crate::trials!(
    a_request_is_what_the_definition_says,
    the_key_goes_into_its_header_and_with_it_the_epoch,
    a_compensation_has_a_key_of_its_own_and_names_what_it_undoes,
    arguments_stay_in_their_place,
    arguments_that_do_not_fit_are_never_sent,
    private_addresses_are_not_talked_to_unless_that_is_allowed,
    each_answer_to_a_lookup_has_its_meaning,
    a_request_that_can_never_be_sent_is_refused_at_once,
);

/// A request to this server, which is at home.
pub(crate) fn request(server: &Server, path: &str) -> HttpRequest {
    HttpRequest {
        method: HttpMethod::Post,
        url: UrlTemplate::parse(&format!("http://127.0.0.1:{}{path}", server.port)).unwrap(),
        query: BTreeMap::new(),
        headers: BTreeMap::new(),
        body: HttpBody::Args,
        idempotency_header: None,
        allow_private: vec!["127.0.0.1".to_owned()],
    }
}

fn http_spec(
    request: HttpRequest,
    lookup: Option<HttpRequest>,
    compensate: Option<HttpRequest>,
) -> ToolSpec {
    spec(Runner::Http {
        request: Box::new(request),
        lookup: lookup.map(Box::new),
        compensate: compensate.map(Box::new),
    })
}

fn made(spec: &ToolSpec) -> Arc<dyn Tool> {
    instantiate(spec, &[], &Registry::new(), &Watchdog::default()).unwrap()
}

pub(crate) fn tool(request: HttpRequest) -> Arc<dyn Tool> {
    made(&http_spec(request, None, None))
}

pub(crate) fn tool_with(effect: Effect, request: HttpRequest) -> Arc<dyn Tool> {
    made(&ToolSpec {
        effect,
        ..http_spec(request, None, None)
    })
}

pub(crate) fn ok() -> Act {
    Act::Say(response("200 OK", "fine"))
}

/// The headers of a request, without those that say nothing about a tool.
fn headers(request: &str) -> BTreeMap<&str, &str> {
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let pairs = head
        .lines()
        .skip(1)
        .map(|line| line.split_once(": ").unwrap());
    pairs.collect()
}

fn a_request_is_what_the_definition_says() {
    block_on(async {
        let server = Server::play(vec![ok(), ok(), ok()]).await;
        let full = HttpRequest {
            method: HttpMethod::Put,
            query: BTreeMap::from([("dry".to_owned(), Template::parse("{dry}").unwrap())]),
            headers: BTreeMap::from([(
                "X-Team".to_owned(),
                HttpHeader::Text("billing".to_owned()),
            )]),
            body: HttpBody::Rest,
            ..request(&server, "/orders/{id}?e={$epoch}&k={$key}")
        };
        let args = params(r#"{"id":7,"dry":true,"why":"ä","amount":"5.00"}"#);
        let sent = tool(full.clone()).call(call(&args, PLENTY)).await;
        assert_eq!(sent, done("fine"));
        let plain = HttpRequest {
            method: HttpMethod::Get,
            body: HttpBody::None,
            ..request(&server, "")
        };
        tool(plain).call(call(&args, PLENTY)).await;
        let typed = HttpRequest {
            headers: BTreeMap::from([(
                "content-type".to_owned(),
                HttpHeader::Text("application/merge-patch+json".to_owned()),
            )]),
            ..full
        };
        tool(typed).call(call(&args, PLENTY)).await;

        let seen = server.seen();
        let host = format!("127.0.0.1:{}", server.port);
        assert!(
            seen[0].starts_with("PUT /orders/7?e=7&k=key-1&dry=true HTTP/1.1\r\n"),
            "{}",
            seen[0]
        );
        assert!(
            seen[0].ends_with("\r\n\r\n{\"amount\":\"5.00\",\"why\":\"ä\"}"),
            "{}",
            seen[0]
        );
        let expected = BTreeMap::from([
            ("accept", "*/*"),
            ("content-length", "28"),
            ("content-type", "application/json"),
            ("host", host.as_str()),
            (
                "user-agent",
                concat!("holdpoint/", env!("CARGO_PKG_VERSION")),
            ),
            ("x-team", "billing"),
        ]);
        assert_eq!(headers(&seen[0]), expected);
        assert!(seen[1].starts_with("GET / HTTP/1.1\r\n"), "{}", seen[1]);
        assert!(seen[1].ends_with("\r\n\r\n"), "{}", seen[1]);
        assert!(!headers(&seen[1]).contains_key("content-type"));
        assert_eq!(
            headers(&seen[2])["content-type"],
            "application/merge-patch+json"
        );
    });
}

fn the_key_goes_into_its_header_and_with_it_the_epoch() {
    block_on(async {
        let server = Server::play(vec![ok(), ok()]).await;
        let keyed = HttpRequest {
            idempotency_header: Some("Idempotency-Key".to_owned()),
            ..request(&server, "/")
        };
        tool(keyed).call(call(&params("{}"), PLENTY)).await;
        tool(request(&server, "/"))
            .call(call(&params("{}"), PLENTY))
            .await;
        let seen = server.seen();
        let with = headers(&seen[0]);
        assert_eq!(
            (with["idempotency-key"], with["holdpoint-epoch"]),
            ("key-1", "7")
        );
        let without = headers(&seen[1]);
        assert!(
            !without.contains_key("idempotency-key") && !without.contains_key("holdpoint-epoch")
        );
    });
}

fn a_compensation_has_a_key_of_its_own_and_names_what_it_undoes() {
    block_on(async {
        let server = Server::play(vec![ok()]).await;
        let undo = HttpRequest {
            method: HttpMethod::Delete,
            idempotency_header: Some("Idempotency-Key".to_owned()),
            body: HttpBody::None,
            ..request(&server, "/refunds/{$key}")
        };
        let tool = made(&http_spec(request(&server, "/"), None, Some(undo)));
        let undone = tool.compensate(call(&params("{}"), PLENTY)).await;
        assert_eq!(undone, done("fine"));
        let seen = server.seen();
        assert!(seen[0].starts_with("DELETE /refunds/key-1 HTTP/1.1\r\n"));
        assert_eq!(headers(&seen[0])["idempotency-key"], "key-1-undo");
    });
}

fn arguments_stay_in_their_place() {
    block_on(async {
        let cases = [
            ("../../admin", "..%2F..%2Fadmin"),
            ("a?b#c", "a%3Fb%23c"),
            ("%2F", "%252F"),
            ("ü 😀", "%C3%BC%20%F0%9F%98%80"),
            ("@evil.example", "%40evil.example"),
            ("a\r\nHost: evil", "a%0D%0AHost%3A%20evil"),
        ];
        let server = Server::play(vec![ok(); cases.len()]).await;
        let tool = tool(request(&server, "/x/{a}/y?q={a}"));
        for (value, _) in cases {
            let args = params(&json!({"a": value}).to_string());
            assert_eq!(tool.call(call(&args, PLENTY)).await, done("fine"));
        }
        for ((_, encoded), seen) in cases.iter().zip(server.seen()) {
            let expected = format!("POST /x/{encoded}/y?q={encoded} HTTP/1.1\r\n");
            assert!(seen.starts_with(&expected), "{seen}");
        }
    });
}

fn arguments_that_do_not_fit_are_never_sent() {
    block_on(async {
        let server = Server::play(vec![ok()]).await;
        let tool = tool(request(&server, "/x/{a}"));
        let cases = [
            ("{}", "the argument `a` is missing, and the URL needs it"),
            (
                r#"{"a":null}"#,
                "the argument `a` must be text, a number, true or false, because it is part of the URL",
            ),
            (
                r#"{"a":""}"#,
                "the argument `a` must not be empty, because it is part of the URL's path",
            ),
            (
                r#"{"a":".."}"#,
                "an argument must not make a part of the URL's path `.` or `..`",
            ),
        ];
        for (args, why) in cases {
            let outcome = tool.call(call(&params(args), PLENTY)).await;
            assert_eq!(outcome, failed(&format!("not sent: {why}")));
        }
        let endless = json!({"a": "x".repeat(100_000)}).to_string();
        let outcome = tool.call(call(&params(&endless), PLENTY)).await;
        assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
        assert_eq!(server.seen(), Vec::<String>::new());
    });
}

fn private_addresses_are_not_talked_to_unless_that_is_allowed() {
    block_on(async {
        let server = Server::play(vec![ok(); 3]).await;
        let to = |host: &str, allow: &[&str]| {
            tool(HttpRequest {
                url: UrlTemplate::parse(&format!("http://{host}:{}/", server.port)).unwrap(),
                allow_private: allow.iter().map(|host| (*host).to_owned()).collect(),
                ..request(&server, "/")
            })
        };
        let args = params("{}");
        let private = |host: &str, address: &str| {
            format!(
                "not sent: `{host}` has the private address {address}, and `allow_private` names neither"
            )
        };
        for host in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1"] {
            let outcome = to(host, &["10.0.0.1", "localhost"])
                .call(call(&args, PLENTY))
                .await;
            assert_eq!(outcome, failed(&private("127.0.0.1", "127.0.0.1")));
        }
        for host in ["localhost", "LOCALHOST"] {
            let outcome = to(host, &["example.com"]).call(call(&args, PLENTY)).await;
            let Outcome::Failed { error } = &outcome else {
                panic!("{outcome:?}")
            };
            assert!(
                error.starts_with("not sent: `localhost` has the private address"),
                "{error}"
            );
        }
        let outcome = to("169.254.169.254", &["metadata.internal"])
            .call(call(&args, PLENTY))
            .await;
        let Outcome::Failed { error } = &outcome else {
            panic!("{outcome:?}")
        };
        assert!(error.contains("which is not for tools"), "{error}");
        assert_eq!(server.seen(), Vec::<String>::new());
        for (host, allow) in [
            ("127.0.0.1", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("localhost", "localhost"),
        ] {
            let outcome = to(host, &[allow]).call(call(&args, PLENTY)).await;
            assert_eq!(outcome, done("fine"), "{host}");
        }
    });
}

fn each_answer_to_a_lookup_has_its_meaning() {
    let not_known = |reason: &str| Lookup::Unknown {
        reason: format!("the lookup was answered with {reason}"),
    };
    let say = |status: &str, body: Value| Act::Say(response(status, body.to_string()));
    let cases = [
        (
            say(
                "200 OK",
                json!({"status": "committed", "receipt": {"id": 4}}),
            ),
            Lookup::Committed {
                receipt: json!({"id": 4}),
            },
        ),
        (
            say("200 OK", json!({"status": "partial", "receipt": "half"})),
            Lookup::Partial {
                receipt: json!("half"),
            },
        ),
        (
            say("200 OK", json!({"status": "not_found"})),
            Lookup::NotFound,
        ),
        (say("404 Not Found", json!("no such key")), Lookup::NotFound),
        (
            say("200 OK", json!({"status": "unknown"})),
            not_known("HTTP 200 OK, and says that it does not know"),
        ),
        (
            Act::Say(response("200 OK", "[]")),
            not_known(
                "HTTP 200 OK, and the body is not `{\"status\": \"committed|not_found|partial|unknown\"}`: invalid length 0, \
                 expected struct Finding with 2 elements at line 1 column 2",
            ),
        ),
        (
            say("410 Gone", json!("x")),
            not_known("HTTP 410 Gone; body: \"x\""),
        ),
        (
            say("500 Internal Server Error", json!({"status": "not_found"})),
            not_known("HTTP 500 Internal Server Error; body: {\"status\":\"not_found\"}"),
        ),
        (
            Act::Say(response("200 OK", vec![b' '; (1 << 20) + 1])),
            not_known("HTTP 200 OK, and the body is longer than 1048576 bytes"),
        ),
    ];
    block_on(async {
        for (act, expected) in cases {
            let server = Server::play(vec![act]).await;
            let look = HttpRequest {
                method: HttpMethod::Get,
                body: HttpBody::None,
                ..request(&server, "/by-key/{$key}")
            };
            let tool = made(&http_spec(request(&server, "/never"), Some(look), None));
            let found = tool.lookup(call(&params("{}"), PLENTY)).await;
            assert_eq!(found, expected);
            assert!(server.seen()[0].starts_with("GET /by-key/key-1 HTTP/1.1\r\n"));
        }
        let server = Server::play(vec![]).await;
        let tool = made(&http_spec(
            request(&server, "/"),
            Some(HttpRequest {
                allow_private: vec![],
                ..request(&server, "/")
            }),
            None,
        ));
        let Lookup::Unknown { reason } = tool.lookup(call(&params("{}"), PLENTY)).await else {
            panic!("found")
        };
        assert!(
            reason.starts_with("the lookup was not sent: `127.0.0.1` has the private address"),
            "{reason}"
        );
    });
}

fn a_request_that_can_never_be_sent_is_refused_at_once() {
    let fine = HttpRequest {
        method: HttpMethod::Post,
        url: UrlTemplate::parse("https://example.com/").unwrap(),
        query: BTreeMap::new(),
        headers: BTreeMap::new(),
        body: HttpBody::None,
        idempotency_header: None,
        allow_private: vec![],
    };
    let header = |name: &str, value: &str| HttpRequest {
        headers: BTreeMap::from([(name.to_owned(), HttpHeader::Text(value.to_owned()))]),
        ..fine.clone()
    };
    let cases = [
        (
            http_spec(header("a b", "x"), None, None),
            "the `http` of the tool `t` cannot be sent: `a b` is not the name of a header",
        ),
        (
            http_spec(fine.clone(), Some(header("x", "a\r\nb: c")), None),
            "the `lookup` of the tool `t` cannot be sent: the header `x` cannot have this value",
        ),
        (
            http_spec(
                fine.clone(),
                None,
                Some(HttpRequest {
                    allow_private: vec!["10.0.0.0/8".to_owned()],
                    ..fine.clone()
                }),
            ),
            "the `compensate` of the tool `t` cannot be sent: `10.0.0.0/8` in `allow_private` is not a host",
        ),
        (
            http_spec(
                HttpRequest {
                    url: UrlTemplate::parse("https://1.2.3.4.5/").unwrap(),
                    ..fine.clone()
                },
                None,
                None,
            ),
            "the `http` of the tool `t` cannot be sent: `https://1.2.3.4.5/`: invalid IPv4 address",
        ),
    ];
    for (spec, expected) in cases {
        let error: NoSuchTool =
            instantiate(&spec, &[], &Registry::new(), &Watchdog::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
