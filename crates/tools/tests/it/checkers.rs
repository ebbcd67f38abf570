//! Checkers of guardrails: what they are given, and that nothing passes but by an answer that says so.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use holdpoint_core::{Case, CheckedBy, Finding, Guardrail, HttpHeader, Span};
use holdpoint_tools::{Checker, NoSuchChecker, Registry, Watchdog, checker, checker_of};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, block_on, shell},
    server::{Act, Server, response},
    surroundings::TOKEN,
};

crate::trials!(
    a_program_is_given_one_document_and_answers_with_one,
    whatever_else_a_program_does_is_a_failure,
    a_program_that_hangs_is_killed_at_its_deadline,
    a_server_is_asked_with_the_same_document,
    whatever_else_a_server_does_is_a_failure,
    a_secret_is_sent_and_never_told,
    who_may_not_be_asked_is_refused_at_once,
    code_is_found_by_its_name,
    words_need_nobody,
);

const PASS: &str = r#"{"verdict":"pass"}"#;
const REVIEW: &str = r#"{"verdict":"review","reason":"a card"}"#;

fn ready(guardrail: &Guardrail, registry: &Registry) -> Arc<dyn Checker> {
    checker_of(guardrail, registry, &Watchdog::default()).unwrap()
}

fn program(bench: &Bench, script: &str) -> Arc<dyn Checker> {
    let guardrail = Guardrail::command(shell(script), bench.cwd()).within(Span::from_secs(5));
    ready(&guardrail, &Registry::new())
}

fn read(bench: &Bench, name: &str) -> String {
    std::fs::read_to_string(bench.path(name)).unwrap()
}

fn found(checker: &dyn Checker) -> Result<Finding, String> {
    let case = Case::call("clerk", "mail", json!({"to": "ä"}));
    block_on(checker.check(&case))
}

fn a_program_is_given_one_document_and_answers_with_one() {
    let bench = Bench::new();
    let script = |answer: &str| format!("cat > given; env > env; echo '{answer}'");
    assert_eq!(found(&*program(&bench, &script(PASS))), Ok(Finding::Pass));
    let given: Value = serde_json::from_str(&read(&bench, "given")).unwrap();
    let user = json!({"name": "", "roles": [], "permissions": []});
    assert_eq!(
        given,
        json!({"on": "call", "agent": "clerk", "frame": "", "tool": "mail", "args": {"to": "ä"}, "user": user})
    );
    let env = read(&bench, "env");
    assert!(!env.contains("HOLDPOINT_IDEMPOTENCY_KEY"), "{env}");
    assert_eq!(
        found(&*program(&bench, &script(REVIEW))),
        Ok(Finding::review("a card"))
    );
}

fn whatever_else_a_program_does_is_a_failure() {
    let bench = Bench::new();
    let pass = format!("echo '{PASS}'");
    for (script, why) in [
        (format!("{pass}; exit 1"), "it ended with exit code 1"),
        (
            format!("{pass}; echo 'no database' >&2; exit 3"),
            "it ended with exit code 3; stderr: no database",
        ),
        (format!("{pass}; kill -9 $$"), "it ended with signal 9"),
        ("true".to_owned(), "its answer is neither"),
        ("echo pass".to_owned(), "its answer is neither"),
        (format!("{pass}; {pass}"), "its answer is neither"),
        (
            "echo '{\"verdict\":\"fine\"}'".to_owned(),
            "its answer is neither",
        ),
        ("printf '\\377'".to_owned(), "its answer is not UTF-8"),
        (
            format!("{pass}; head -c 70000 /dev/zero | tr '\\0' ' '"),
            "its answer is longer than 65536 bytes",
        ),
        (
            format!("{pass}; head -c 2000000 /dev/zero | tr '\\0' ' '"),
            "its answer is far too long",
        ),
    ] {
        let error = found(&*program(&bench, &script)).unwrap_err();
        assert!(error.starts_with(why), "{script}: {error}");
    }
    let missing = Guardrail::command(["./not-there"], bench.cwd());
    let error = found(&*ready(&missing, &Registry::new())).unwrap_err();
    assert!(error.starts_with("it was not started"), "{error}");
}

fn a_program_that_hangs_is_killed_at_its_deadline() {
    let bench = Bench::new();
    let script = format!("echo $$ > pid; echo '{PASS}'; exec sleep 60");
    let guardrail = Guardrail::command(shell(&script), bench.cwd()).within(Span::from_millis(300));
    let error = found(&*ready(&guardrail, &Registry::new())).unwrap_err();
    assert!(error.starts_with("it ended with a time-out"), "{error}");
    bench.must_die("pid", Duration::from_secs(2));
}

fn asking(server: &Server, headers: BTreeMap<String, HttpHeader>) -> Guardrail {
    Guardrail::new(CheckedBy::Http {
        url: format!("http://127.0.0.1:{}/look?strict=1", server.port),
        headers,
        allow_private: vec!["127.0.0.1".to_owned()],
    })
    .within(Span::from_secs(2))
}

fn a_server_is_asked_with_the_same_document() {
    block_on(async {
        let acts = [response("200 OK", PASS), response("200 OK", REVIEW)];
        let server = Server::play(acts.map(Act::Say).to_vec()).await;
        let checker = ready(&asking(&server, BTreeMap::new()), &Registry::new());
        let case = Case::output("clerk", "hello");
        assert_eq!(checker.check(&case).await, Ok(Finding::Pass));
        assert_eq!(checker.check(&case).await, Ok(Finding::review("a card")));
        let seen = &server.seen()[0];
        assert!(seen.starts_with("POST /look?strict=1 HTTP/1.1"), "{seen}");
        assert!(seen.contains("content-type: application/json"), "{seen}");
        let (_, body) = seen.split_once("\r\n\r\n").unwrap();
        let given: Value = serde_json::from_str(body).unwrap();
        assert_eq!(given["on"], "output");
        assert_eq!(given["text"], "hello");
    });
}

fn whatever_else_a_server_does_is_a_failure() {
    block_on(async {
        let long = format!("{PASS}{}", " ".repeat(70_000));
        let acts = vec![
            (Act::Say(response("500 Oh", PASS)), "HTTP 500"),
            (Act::Say(response("204 No Content", "")), "HTTP 204"),
            (
                Act::Say(response("302 Found\r\nlocation: /there", PASS)),
                "HTTP 302: redirects are not followed",
            ),
            (
                Act::Say(response("200 OK", "fine")),
                "its answer is neither",
            ),
            (
                Act::Say(response("200 OK", long)),
                "the answer is longer than",
            ),
            (
                Act::Say(response("200 OK", b"\xff")),
                "the answer is no UTF-8",
            ),
            (Act::Say(crate::server::broken_response("200 OK", PASS)), ""),
            (Act::HangUp, ""),
            (Act::Stall(vec![]), "no whole answer within"),
        ];
        let whys: Vec<&str> = acts.iter().map(|(_, why)| *why).collect();
        let server = Server::play(acts.into_iter().map(|(act, _)| act).collect()).await;
        let checker = ready(&asking(&server, BTreeMap::new()), &Registry::new());
        for why in whys {
            let error = checker
                .check(&Case::output("clerk", "hello"))
                .await
                .unwrap_err();
            assert!(error.starts_with(why), "{why}: {error}");
        }
        // Nobody listens there any more.
        let checker = ready(
            &Guardrail::new(CheckedBy::Http {
                url: "http://127.0.0.1:1/".to_owned(),
                headers: BTreeMap::new(),
                allow_private: vec!["127.0.0.1".to_owned()],
            }),
            &Registry::new(),
        );
        assert!(checker.check(&Case::output("clerk", "x")).await.is_err());
    });
}

fn a_secret_is_sent_and_never_told() {
    let secret = |name: &str| {
        let header = HttpHeader::Secret {
            name: name.to_owned(),
            prefix: "Bearer ".to_owned(),
        };
        BTreeMap::from([("authorization".to_owned(), header)])
    };
    block_on(async {
        let echo = json!({"verdict": "review", "reason": format!("you sent {TOKEN}")}).to_string();
        // JSON has many spellings for one text.
        let respelt = echo.replace("4711", "\\u0034711");
        assert_ne!(respelt, echo);
        let wrong = r#"{"verdict": "tok\"en-\u0034711"}"#.to_owned();
        let acts = [echo, respelt, wrong, TOKEN.to_owned()];
        let acts = acts.map(|text| Act::Say(response("200 OK", text)));
        let server = Server::play(acts.to_vec()).await;
        let checker = ready(&asking(&server, secret("PAY_TOKEN")), &Registry::new());
        let case = Case::output("clerk", "hello");
        for _ in 0..2 {
            let said = checker.check(&case).await;
            assert_eq!(said, Ok(Finding::review("you sent [secret]")));
        }
        let error = checker.check(&case).await.unwrap_err();
        assert!(
            error.contains("[secret]") && !error.contains(TOKEN),
            "{error}"
        );
        let error = checker.check(&case).await.unwrap_err();
        assert!(!error.contains(TOKEN), "{error}");
        assert!(server.seen()[0].contains(&format!("authorization: Bearer {TOKEN}")));
        assert!(!format!("{checker:?}").contains(TOKEN));
        let unset = ready(&asking(&server, secret("NOT_SET_AT_ALL")), &Registry::new());
        let error = unset.check(&case).await.unwrap_err();
        assert!(error.contains("`NOT_SET_AT_ALL` is not set"), "{error}");
    });
}

fn who_may_not_be_asked_is_refused_at_once() {
    for (url, why) in [
        ("http://checks.example.com/", "without encryption"),
        ("https://127.0.0.1/", "private address"),
        ("https://169.254.169.254/latest", "not for tools"),
        ("ftp://checks.example.com/", "is not `https:`"),
        ("https://a:b@checks.example.com/", "name or password"),
        ("nonsense", "not a URL"),
    ] {
        let guardrail = Guardrail::new(CheckedBy::Http {
            url: url.to_owned(),
            headers: BTreeMap::new(),
            allow_private: vec![],
        });
        let refused = checker_of(&guardrail, &Registry::new(), &Watchdog::default());
        let Err(NoSuchChecker::Unsendable { reason }) = refused else {
            panic!("{url} could be asked");
        };
        assert!(reason.contains(why), "{url}: {reason}");
    }
}

fn code_is_found_by_its_name() {
    let long = checker(|case| async move {
        match case {
            Case::Call { .. } => Err("it cannot say".to_owned()),
            Case::Output { text, .. } if text.len() > 3 => Ok(Finding::review("long")),
            Case::Output { .. } => Ok(Finding::Pass),
        }
    });
    let registry = Registry::new().with_checker("long", long);
    let checker = ready(&Guardrail::code("long"), &registry);
    let check = |case| block_on(checker.check(&case));
    assert_eq!(check(Case::output("a", "abc")), Ok(Finding::Pass));
    assert_eq!(
        check(Case::output("a", "abcd")),
        Ok(Finding::review("long"))
    );
    assert!(found(&*checker).is_err());
    let refused = checker_of(&Guardrail::code("lnog"), &registry, &Watchdog::default());
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the checker `lnog` is not registered; registered are: long"
    );
}

fn words_need_nobody() {
    let checker = ready(&Guardrail::keywords(["Wire"]), &Registry::new());
    let check = |text: &str| block_on(checker.check(&Case::output("a", text)));
    assert_eq!(check("by  WIRE"), Ok(Finding::review("it says `Wire`")));
    assert_eq!(check("by mail"), Ok(Finding::Pass));
}
