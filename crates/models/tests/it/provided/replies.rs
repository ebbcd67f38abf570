//! Streams that are answers.

use holdpoint_core::{Carried, ToolCall, Usage};
use holdpoint_models::{End, Failure, Reply};
use holdpoint_test_provider::{Answer, Api, Gate, Said, Server, said};
use serde_json::Value;

use super::{Ask, answered, model, provider};
use crate::conversation::call;

fn usage() -> Usage {
    Usage {
        input_tokens: 100,
        output_tokens: 20,
        cached_tokens: 40,
        cost_nano_usd: 0,
    }
}

fn reply(text: &str, calls: &[ToolCall]) -> Reply {
    Reply {
        text: text.to_owned(),
        calls: calls.to_vec(),
        end: End::Said,
        usage: usage(),
        model: "it:test-1".to_owned(),
        carried: None,
    }
}

/// What is said, and what must come of it.
fn cases() -> Vec<(&'static str, Said, Reply)> {
    let odd = "{\"amount\" : 1e2,\n \"note\":\"ü🙂\\u00fc\"}";
    vec![
        (
            "text",
            said("Grüße, 🙂 Welt."),
            reply("Grüße, 🙂 Welt.", &[]),
        ),
        (
            "a call",
            said("").calling(
                "call_a",
                "refund",
                &["{\"amount\" ", ": 1e2,\n \"note\":\"ü🙂\\u0", "0fc\"}"],
            ),
            reply("", &[call("call_a", "refund", odd)]),
        ),
        (
            "calls at once, after a text",
            said("Let me see.")
                .calling("call_a", "find", &["{}"])
                .calling("call_b", "find", &["{\"id\":", "2}"])
                .calling("call_c", "list", &[]),
            reply(
                "Let me see.",
                &[
                    call("call_a", "find", "{}"),
                    call("call_b", "find", "{\"id\":2}"),
                    call("call_c", "list", ""),
                ],
            ),
        ),
        (
            "arguments that are no JSON",
            said("").calling("call_a", "find", &["{\"id\":", " oops"]),
            reply("", &[call("call_a", "find", "{\"id\": oops")]),
        ),
        (
            "two calls with one id",
            said("")
                .calling("call_a", "find", &["{}"])
                .calling("", "list", &["{}"]),
            reply(
                "",
                &[call("call_a", "find", "{}"), call("call_1", "list", "{}")],
            ),
        ),
    ]
}

#[tokio::test]
async fn every_api_says_the_same_however_its_stream_is_cut() {
    for api in Api::ALL {
        for (name, said, expected) in cases() {
            let stream = said.in_api(api);
            let spellings = [
                stream.clone(),
                stream.replace('\n', "\r\n"),
                stream.replace('🙂', "\\ud83d\\ude42"),
                format!(
                    "\u{feff}: hello\n\n{}",
                    stream.replace("\n\n", "\n\n: ping\n\nevent: ping\n\n")
                ),
            ];
            for stream in spellings {
                for bytes in [usize::MAX, 7, 1] {
                    let answer = Answer::stream(stream.clone()).in_pieces_of(bytes);
                    let (reply, heard) = answered(api, answer).await;
                    assert_eq!(reply.as_ref(), Ok(&expected), "{api:?} {name} {bytes}");
                    assert_eq!(heard, expected.text, "{api:?} {name} {bytes}");
                }
            }
        }
    }
}

#[tokio::test]
async fn what_is_cut_off_says_so() {
    for api in Api::ALL {
        let cut = said("So be")
            .calling("call_a", "refund", &["{\"amo"])
            .cut_off();
        let (found, _) = answered(api, Answer::stream(cut.in_api(api))).await;
        let expected = Reply {
            end: End::CutOff,
            ..reply("So be", &[call("call_a", "refund", "{\"amo")])
        };
        assert_eq!(found, Ok(expected), "{api:?}");
    }
}

#[tokio::test]
async fn text_is_heard_while_the_rest_is_still_to_come() {
    for api in Api::ALL {
        let stream = said("early late").in_api(api);
        let at = stream.find("late").unwrap();
        let at = stream[..at].rfind("\n\n").unwrap() + 2;
        let gate = Gate::new();
        let server = Server::playing(vec![Answer::stream(stream).waiting_after(at, &gate)]);
        let model = model(provider(api, &server));
        let (ask, opener) = (Ask::default(), gate.clone());
        let request = holdpoint_models::Request {
            system: None,
            messages: &ask.messages,
            tools: &[],
            sampling: &ask.sampling,
            attempt: 1,
        };
        let mut heard = String::new();
        // The gate is opened by the first words: were these held back, nothing would ever come.
        let mut hear = |delta| {
            if let holdpoint_models::Delta::Text(text) = delta {
                heard.push_str(&text);
                opener.open();
            }
        };
        let reply = model.turn(request, &mut hear).await.unwrap();
        assert_eq!(
            (reply.text.as_str(), heard.as_str()),
            ("early late", "early late")
        );
    }
}

fn chat(chunks: &[&str]) -> Answer {
    let events = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    Answer::stream(events.collect::<String>())
}

#[tokio::test]
async fn chat_completions_of_others_are_understood() {
    let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    for (name, chunks, text, calls) in [
        (
            "a new id at the same index is another call",
            vec![
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}"#,
                stop,
            ],
            "",
            vec![call("a", "f", "{}"), call("b", "g", "{}")],
        ),
        (
            "pieces without an index, and with their id and name again",
            vec![
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"}"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":" "}}]}}]}"#,
                stop,
            ],
            "",
            vec![call("a", "f", "{} ")],
        ),
        (
            "calls that are interleaved",
            vec![
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"name":"g"}}]}}]}"#,
                r#"{"choices":[{"delta":{"content":"text","tool_calls":[{"index":1,"function":{"arguments":"{\"b\""}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":":2}"}}]}}]}"#,
                stop,
            ],
            "text",
            vec![call("a", "f", r#"{"a":1}"#), call("b", "g", r#"{"b":2}"#)],
        ),
        (
            "chunks without choices, empty reasons, other choices, and thoughts",
            vec![
                r#"{"choices":[],"prompt_filter_results":[]}"#,
                r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm","content":"yes"},"finish_reason":""}]}"#,
                r#"{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":null}}]}"#,
                stop,
            ],
            "yes",
            vec![],
        ),
        (
            "a refusal in words",
            vec![r#"{"choices":[{"delta":{"refusal":"I will not."}}]}"#, stop],
            "I will not.",
            vec![],
        ),
    ] {
        let (found, heard) = answered(Api::Chat, chat(&chunks)).await;
        let expected = Reply {
            usage: Usage::default(),
            model: "it:test".to_owned(),
            ..reply(text, &calls)
        };
        assert_eq!(found, Ok(expected), "{name}");
        assert_eq!(heard, text, "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_a_provider_keeps_back_is_none() {
    let withheld = |api, events: &str| {
        let answer = Answer::stream(events.to_owned());
        async move {
            let (found, _) = answered(api, answer).await;
            assert!(matches!(found, Err(Failure::Withheld { .. })), "{found:?}");
        }
    };
    withheld(
        Api::Chat,
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n",
    )
    .await;
    withheld(
        Api::Responses,
        "data: {\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"content_filter\"}}}\n\n",
    )
    .await;
    let refused = said("no")
        .in_api(Api::Anthropic)
        .replace("end_turn", "refusal");
    withheld(Api::Anthropic, &refused).await;
}

#[tokio::test]
async fn how_an_answer_ended_must_be_known() {
    let calls = || said("").calling("a", "refund", &["{}"]);
    for (api, from, to) in [
        (
            Api::Chat,
            "\"finish_reason\":\"tool_calls\"",
            "\"finish_reason\":\"error\"",
        ),
        (
            Api::Anthropic,
            "\"stop_reason\":\"tool_use\"",
            "\"stop_reason\":\"pause_turn\"",
        ),
        (
            Api::Anthropic,
            "\"stop_reason\":\"tool_use\"",
            "\"stop_reason\":null",
        ),
        (
            Api::Anthropic,
            "\"type\":\"message_stop\"",
            "\"type\":\"other\"",
        ),
        (
            Api::Anthropic,
            "\"type\":\"content_block_stop\"",
            "\"type\":\"other\"",
        ),
        (
            Api::Responses,
            "\"type\":\"response.completed\"",
            "\"type\":\"other\"",
        ),
        (Api::Chat, "\"name\":\"refund\"", "\"name\":\"\""),
    ] {
        let stream = calls().in_api(api);
        assert!(stream.contains(from), "{api:?} {from}");
        let (found, _) = answered(api, Answer::stream(stream.replace(from, to))).await;
        assert!(
            matches!(found, Err(Failure::Unavailable { .. })),
            "{api:?} {to}: {found:?}"
        );
    }
}

#[tokio::test]
async fn thoughts_are_carried_as_they_were_and_where_they_were() {
    let stream = [
        r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm, "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"ü"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"eA=="}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Fine."}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let (found, _) = answered(Api::Anthropic, chat(&stream)).await;
    let found = found.unwrap();
    assert_eq!(found.calls, [call("toolu_1", "f", r#"{"a":1}"#)]);
    let Carried { by, items } = found.carried.unwrap();
    assert_eq!(by, "it:test");
    let items: Vec<Value> = serde_json::from_str(&items).unwrap();
    let thinking =
        serde_json::json!({"type": "thinking", "thinking": "hm, ü", "signature": "c2ln"});
    let redacted = serde_json::json!({"type": "redacted_thinking", "data": "eA=="});
    assert_eq!(items[..2], [thinking, redacted]);
    assert_eq!(items.len(), 4);
}

#[tokio::test]
async fn an_emoji_that_was_cut_in_two_is_one_again() {
    for api in Api::ALL {
        let cut = said("<H> <L>")
            .calling("call_a", "f", &["{\"a\":\"<H>", "<L>\"}"])
            .in_api(api);
        // Whole texts are not cut, pieces are.
        let whole = cut.replace("<H> <L>", "🙂").replace("<H><L>", "🙂");
        let cut = whole
            .replace("<H> ", "\\ud83d")
            .replace("<H>", "\\ud83d")
            .replace("<L>", "\\ude42");
        let (found, heard) = answered(api, Answer::stream(cut)).await;
        let found = found.unwrap();
        assert_eq!(
            (found.text.as_str(), heard.as_str()),
            ("🙂", "🙂"),
            "{api:?}"
        );
        assert_eq!(
            found.calls,
            [call("call_a", "f", "{\"a\":\"🙂\"}")],
            "{api:?}"
        );
    }
}
