//! How a request ends, and what is known then.

use std::time::Duration;

use holdpoint_core::{Effect, HttpRequest, Outcome, UrlTemplate};

use super::{request, tool, tool_with};
use crate::{
    bench::{PLENTY, block_on, call, done, failed, params, unknown},
    server::{Act, Server, broken_response, response},
};

crate::trials!(
    a_2xx_is_done_and_its_body_is_the_result,
    a_body_that_is_too_long_is_cut_and_says_so,
    a_refusal_is_told_to_the_model,
    a_server_that_has_no_time_is_asked_again_only_where_that_does_no_harm,
    redirects_are_not_followed,
    after_any_other_status_nobody_knows,
    a_response_that_never_comes_leaves_nobody_knowing,
    a_response_that_breaks_off_leaves_a_2xx_in_doubt_and_a_refusal_a_refusal,
    what_was_never_sent_failed_without_an_effect,
    nothing_is_sent_twice,
);

/// Calls a tool of this effect, and plays this act to it.
fn ended_for(effect: Effect, act: Act, remaining: Duration) -> Outcome {
    block_on(async {
        let server = Server::play(vec![act]).await;
        let tool = tool_with(effect, request(&server, "/"));
        tool.call(call(&params("{}"), remaining)).await
    })
}

fn ended(act: Act) -> Outcome {
    ended_for(Effect::Write, act, PLENTY)
}

fn said(status: &str, body: impl AsRef<[u8]>) -> Outcome {
    ended(Act::Say(response(status, body)))
}

fn a_2xx_is_done_and_its_body_is_the_result() {
    for status in ["200 OK", "201 Created", "202 Accepted", "299 Odd"] {
        assert_eq!(said(status, "{\"id\": 4}\n"), done("{\"id\": 4}\n"));
    }
    assert_eq!(said("204 No Content", ""), done(""));
    assert_eq!(said("200 OK", b"a\xffb"), done("a\u{fffd}b"));
    let chunked =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    assert_eq!(ended(Act::Say(chunked.into())), done("abc"));
}

fn a_body_that_is_too_long_is_cut_and_says_so() {
    let most = "é".repeat(1 << 19);
    assert_eq!(said("200 OK", &most), done(&most));
    let note = "[cut off here: the response is longer than 1048576 bytes]";
    let expected = format!("x{}\n{note}", "é".repeat((1 << 19) - 1));
    assert_eq!(said("200 OK", format!("x{most}yyy")), done(&expected));
    // Endless, and yet it ends.
    let endless = [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &vec![b'a'; 3 << 20]].concat();
    let Outcome::Done { content } = ended(Act::Say(endless)) else {
        panic!("not done")
    };
    assert_eq!(content.len(), (1 << 20) + 1 + note.len());
}

fn a_refusal_is_told_to_the_model() {
    assert_eq!(
        said(
            "422 Unprocessable Entity",
            "{\"error\": \"no such order\"}\n"
        ),
        failed("HTTP 422 Unprocessable Entity: {\"error\": \"no such order\"}")
    );
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "410 Gone",
        "451 Unavailable For Legal Reasons",
    ] {
        assert_eq!(said(status, ""), failed(&format!("HTTP {status}")));
    }
    assert_eq!(
        said("400 Bad Request", "é".repeat(4_001)),
        failed(&format!("HTTP 400 Bad Request: {} …", "é".repeat(4_000)))
    );
}

fn a_server_that_has_no_time_is_asked_again_only_where_that_does_no_harm() {
    for status in ["429 Too Many Requests", "425 Too Early"] {
        let of = |effect| ended_for(effect, Act::Say(response(status, "later")), PLENTY);
        assert_eq!(of(Effect::Write), failed(&format!("HTTP {status}: later")));
        for effect in [Effect::Read, Effect::Idempotent] {
            assert_eq!(of(effect), unknown(&format!("HTTP {status}; body: later")));
        }
    }
}

fn redirects_are_not_followed() {
    block_on(async {
        let statuses = [
            ("301 Moved Permanently", true),
            ("307 Temporary Redirect", true),
            ("308 Permanent Redirect", true),
            ("302 Found", false),
            ("303 See Other", false),
        ];
        for (status, certain) in statuses {
            let elsewhere = Server::play(vec![Act::Say(response("200 OK", "caught"))]).await;
            let words = format!(
                "HTTP/1.1 {status}\r\nlocation: http://127.0.0.1:{}/\r\ncontent-length: 0\r\n\r\n",
                elsewhere.port
            );
            let server = Server::play(vec![Act::Say(words.into())]).await;
            let outcome = tool(request(&server, "/"))
                .call(call(&params("{}"), PLENTY))
                .await;
            let expected = if certain {
                failed(&format!(
                    "HTTP {status}: the server sends the request elsewhere, and redirects are not followed"
                ))
            } else {
                unknown(&format!("HTTP {status}: redirects are not followed"))
            };
            assert_eq!(outcome, expected);
            assert_eq!(elsewhere.seen(), Vec::<String>::new());
        }
    });
}

fn after_any_other_status_nobody_knows() {
    for status in [
        "500 Internal Server Error",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
        "408 Request Timeout",
        "409 Conflict",
        "304 Not Modified",
    ] {
        let outcome = said(status, "");
        let Outcome::Unknown { reason } = &outcome else {
            panic!("{outcome:?}")
        };
        assert!(reason.starts_with(&format!("HTTP {status}")), "{reason}");
    }
    assert_eq!(
        said("503 Service Unavailable", "down\u{1b}[31m"),
        unknown("HTTP 503 Service Unavailable; body: down\\u{1b}[31m")
    );
}

fn a_response_that_never_comes_leaves_nobody_knowing() {
    let short = Duration::from_millis(200);
    let outcome = ended_for(Effect::Write, Act::Stall(vec![]), short);
    let timed_out = "a time-out: there was no response by the deadline";
    assert_eq!(outcome, unknown(timed_out));
    // Long enough for the first half to arrive, however busy the machine.
    let longer = Duration::from_secs(3);
    let half = Act::Stall(broken_response("200 OK", "abc"));
    assert_eq!(
        ended_for(Effect::Write, half, longer),
        unknown(&format!(
            "HTTP 200 OK, but the response broke off: {timed_out}"
        ))
    );
    // The request was read, and then the connection was lost.
    for words in ["", "HTTP/1.1 200", "SSH-2.0-OpenSSH_9.2\r\n"] {
        let outcome = ended(Act::Say(words.into()));
        let Outcome::Unknown { reason } = &outcome else {
            panic!("{outcome:?}")
        };
        assert!(reason.starts_with("the connection was lost: "), "{reason}");
    }
}

fn a_response_that_breaks_off_leaves_a_2xx_in_doubt_and_a_refusal_a_refusal() {
    let outcome = ended(Act::Say(broken_response("200 OK", "abc")));
    let Outcome::Unknown { reason } = &outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        reason.starts_with("HTTP 200 OK, but the response broke off: "),
        "{reason}"
    );
    assert_eq!(
        ended(Act::Say(broken_response("403 Forbidden", "no"))),
        failed("HTTP 403 Forbidden: no")
    );
}

fn what_was_never_sent_failed_without_an_effect() {
    let not_sent = |outcome: &Outcome| {
        let Outcome::Failed { error } = outcome else {
            panic!("{outcome:?}")
        };
        assert!(error.starts_with("not sent: "), "{error}");
        error.clone()
    };
    block_on(async {
        let nobody = Server::play(vec![]).await;
        // Its listener is gone as soon as its task has run.
        tokio::task::yield_now().await;
        let args = params("{}");
        let outcome = tool(request(&nobody, "/")).call(call(&args, PLENTY)).await;
        assert!(
            not_sent(&outcome).contains("Connection refused"),
            "{outcome:?}"
        );
        let to = |url: &str, server: &Server| {
            tool(HttpRequest {
                url: UrlTemplate::parse(url).unwrap(),
                ..request(server, "/")
            })
        };
        let outcome = to("http://no-such-host.invalid/", &nobody)
            .call(call(&args, PLENTY))
            .await;
        not_sent(&outcome);
        // Who hangs up before TLS is agreed upon has not seen the request.
        let hangs_up = Server::play(vec![Act::HangUp]).await;
        let url = format!("https://127.0.0.1:{}/", hangs_up.port);
        let outcome = to(&url, &hangs_up).call(call(&args, PLENTY)).await;
        not_sent(&outcome);
    });
}

fn nothing_is_sent_twice() {
    block_on(async {
        let acts = vec![
            Act::Say(vec![]),
            Act::Say(response("503 Service Unavailable", "")),
            Act::Say(response("200 OK", "one")),
            Act::Say(response("200 OK", "two")),
        ];
        let server = Server::play(acts).await;
        let tool = tool_with(Effect::Idempotent, request(&server, "/{n}"));
        for n in 0..4 {
            let args = params(&format!("{{\"n\":{n}}}"));
            tool.call(call(&args, PLENTY)).await;
        }
        let seen: Vec<_> = server
            .seen()
            .iter()
            .map(|request| request.split(' ').nth(1).unwrap().to_owned())
            .collect();
        assert_eq!(seen, ["/0", "/1", "/2", "/3"]);
    });
}
