//! Bare `data:` lines give the text back, and nothing in it is more than text.

use holdpoint_server::frames::{InterruptState, Legacy, beat, is_wide_break};
use proptest::prelude::*;

use crate::{golden, sse, sse::Received, texts};

/// A whole chat: these tokens, maybe a question, the end.
fn stream(tokens: &[String], question: Option<&InterruptState>) -> Vec<u8> {
    let (mut legacy, mut out) = (Legacy::default(), Vec::new());
    for token in tokens {
        legacy.text(&mut out, token);
    }
    if let Some(state) = question {
        legacy.interrupt(&mut out, state);
    }
    legacy.done(&mut out);
    out
}

fn sent(tokens: &[&str]) -> String {
    let tokens: Vec<String> = tokens.iter().map(|token| (*token).to_owned()).collect();
    let out = String::from_utf8(stream(&tokens, None)).unwrap();
    out.strip_suffix("data: [DONE]\n\n").unwrap().to_owned()
}

/// What a text becomes: the format cannot say NUL in text, nor which line break it was.
fn plain(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace('\0', "\u{FFFD}")
}

#[test]
fn line_breaks_make_several_lines_of_one_frame() {
    let cases: [(&[&str], &str); 14] = [
        (&[""], ""),
        (&["", "a", ""], "data: a\n\n"),
        (&[" a"], "data:  a\n\n"),
        (&[" "], "data:  \n\n"),
        (&["a\nb"], "data: a\ndata: b\n\n"),
        (&["a\rb\r\nc"], "data: a\ndata: b\ndata: c\n\n"),
        (&["a\n"], "data: a\ndata: \n\n"),
        (&["\n"], "data: \ndata: \n\n"),
        (&["\n\n"], "data: \ndata: \ndata: \n\n"),
        (&["a\r", "\nb"], "data: a\n\ndata: \ndata: b\n\n"),
        (
            &["a\r", "", "\n", "b"],
            "data: a\n\ndata: \ndata: \n\ndata: b\n\n",
        ),
        (&["a\r", "b"], "data: a\n\ndata: \ndata: b\n\n"),
        (&["\r"], "data: \ndata: \n\n"),
        (&["\r", "\r", "\n"], "data: \ndata: \n\ndata: \ndata: \n\n"),
    ];
    for (tokens, expected) in cases {
        assert_eq!(sent(tokens), expected, "{tokens:?}");
    }
}

#[test]
fn text_that_would_end_the_stream_is_sent_in_two_frames() {
    assert_eq!(sent(&["[DONE]"]), "data: [DON\n\ndata: E]\n\n");
    assert_eq!(
        sent(&["a\n [DONE]\t\nb[DONE]"]),
        "data: a\ndata:  [DON\n\ndata: E]\t\ndata: b[DON\n\ndata: E]\n\n"
    );
    assert_eq!(sent(&["[DO", "NE]"]), "data: [DO\n\ndata: NE]\n\n");
}

#[test]
fn text_that_looks_like_an_interrupt_has_no_nul() {
    assert_eq!(sent(&["\0INTERRUPT:{}"]), "data: \u{FFFD}INTERRUPT:{}\n\n");
}

#[test]
fn a_byte_order_mark_at_the_very_begin_is_text() {
    let out = stream(&["\u{FEFF}a".to_owned()], None);
    assert_eq!(
        sse::read(&out),
        [Received::message("\u{FEFF}a"), Received::message("[DONE]")]
    );
}

#[test]
fn a_held_line_break_is_sent_before_anything_else_but_a_beat() {
    let (mut legacy, mut out) = (Legacy::default(), Vec::new());
    legacy.text(&mut out, "a\r");
    beat(&mut out);
    legacy.error(&mut out, "e");
    legacy.text(&mut out, "b\r");
    legacy.interrupt(&mut out, &golden::question());
    let data: Vec<String> = sse::read(&out)
        .into_iter()
        .map(|event| event.data)
        .collect();
    assert_eq!(data[..5], ["a", "\n", "[error] e", "b", "\n"]);
    assert!(data[5].starts_with("\0INTERRUPT:"), "{data:?}");
    assert!(
        str::from_utf8(&out)
            .unwrap()
            .starts_with("data: a\n\n: \n\ndata: \ndata: \n\n")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_receiver_gets_the_text_the_question_and_the_end(tokens in texts::tokens(), asks: bool) {
        let text = tokens.concat();
        let state = InterruptState { reason: text.clone(), session_id: text.clone(), ..golden::question() };
        let out = stream(&tokens, asks.then_some(&state));
        let mut events = sse::read(&out);

        prop_assert_eq!(events.pop(), Some(Received::message("[DONE]")));
        if asks {
            let last = events.pop().unwrap();
            let json = last.data.strip_prefix("\0INTERRUPT:").unwrap();
            prop_assert_eq!(&serde_json::from_str::<InterruptState>(json).unwrap(), &state);
            prop_assert_eq!(&last, &Received::message(last.data.clone()));
        }
        for event in &events {
            prop_assert_eq!(event, &Received::message(event.data.clone()));
            prop_assert!(!event.data.is_empty() && !event.data.contains('\0'));
        }
        let received: String = events.into_iter().map(|event| event.data).collect();
        prop_assert_eq!(received, plain(&text));
    }

    #[test]
    fn no_client_stops_before_the_end(tokens in texts::tokens(), asks: bool) {
        let state = InterruptState { reason: tokens.concat(), ..golden::question() };
        let out = String::from_utf8(stream(&tokens, asks.then_some(&state))).unwrap();
        let body = out.strip_suffix("data: [DONE]\n\n").unwrap();

        prop_assert!(!body.contains("[DONE]"));
        // A client that looks at lines, and trims them as generously as any language does.
        for line in body.split(['\n', '\r']) {
            let trimmed = |text: &str| {
                text.trim_matches(|char: char| char.is_whitespace() || char.is_control() || "\u{FEFF}\u{200B}\u{180E}".contains(char))
                    .to_owned()
            };
            prop_assert_ne!(trimmed(line), "data: [DONE]");
            prop_assert_ne!(trimmed(line.strip_prefix("data:").unwrap_or(line)), "[DONE]");
        }
    }

    #[test]
    fn text_begins_no_field_even_if_more_characters_end_lines(tokens in texts::tokens(), asks: bool) {
        let state = InterruptState { reason: tokens.concat(), ..golden::question() };
        let out = String::from_utf8(stream(&tokens, asks.then_some(&state))).unwrap();
        for line in out.split(|char| matches!(char, '\r' | '\n') || is_wide_break(char)) {
            prop_assert!(line.is_empty() || line.starts_with("data: "), "{line:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_error_is_received_as_the_text_it_is(tokens in texts::tokens(), message in texts::tokens()) {
        let (mut legacy, mut out) = (Legacy::default(), Vec::new());
        for token in &tokens {
            legacy.text(&mut out, token);
        }
        legacy.error(&mut out, &message.concat());
        legacy.done(&mut out);
        let mut events = sse::read(&out);
        prop_assert_eq!(events.pop(), Some(Received::message("[DONE]")));
        let received: String = events.into_iter().map(|event| event.data).collect();
        // Apart, because the text's last CR and the error's first character are not one line break.
        let expected = plain(&tokens.concat()) + &plain(&format!("[error] {}", message.concat()));
        prop_assert_eq!(received, expected);
    }
}
