//! What is sent.

use holdpoint_core::{
    Carried, Effect, HttpHeader, LimitField, Message, Price, Provider, Sampling, ToolSpec,
    ToolStatus,
};
use holdpoint_test_provider::{Answer, Api, Asked, Server, said};
use insta::assert_json_snapshot;
use serde_json::{Value, json};

use super::{Ask, model, provider, with_key};
use crate::conversation::{assistant, call, user};

fn result(id: &str, content: &str, status: ToolStatus) -> Message {
    Message::Tool {
        tool_call_id: id.to_owned(),
        name: "refund".to_owned(),
        content: content.to_owned(),
        status,
        action_id: None,
    }
}

fn spoken(text: &str, calls: &[holdpoint_core::ToolCall], carried: Option<Carried>) -> Message {
    Message::Assistant {
        content: text.to_owned(),
        tool_calls: calls.to_vec(),
        carried: carried.map(Box::new),
    }
}

fn conversation() -> Ask {
    Ask {
        system: Some("Be kind."),
        messages: vec![
            user("refund 1001"),
            user("and 1002"),
            spoken(
                "At once.",
                &[
                    call("call_a", "refund", "{\"order\" : 1001}"),
                    call("call/b", "refund", "{\"order\":"),
                ],
                None,
            ),
            result("call_a", "done", ToolStatus::Success),
            result("call/b", "no JSON", ToolStatus::Error),
            assistant("Only the first."),
            user("thanks"),
        ],
        tools: vec![
            ToolSpec::code("refund", Effect::Write)
                .with_description("Pays back.")
                .with_schema(json!({"properties": {"order": {"type": "integer"}}})),
            ToolSpec::code("list", Effect::Read).with_schema(json!(true)),
        ],
        sampling: Sampling {
            max_output_tokens: Some(4_096),
            temperature_milli: Some(700),
            effort: None,
        },
    }
}

async fn sent(api: Api, ask: &Ask, change: impl FnOnce(Provider) -> Provider) -> Asked {
    let server = Server::playing(vec![Answer::stream(said("ok").in_api(api))]);
    let model = model(change(provider(api, &server)));
    ask.of(&*model).await.0.unwrap();
    server.asked().remove(0)
}

#[tokio::test]
async fn a_conversation_is_sent_as_each_api_has_it() {
    for api in Api::ALL {
        let asked = sent(api, &conversation(), |it| it).await;
        assert_json_snapshot!(
            format!("sent_{api:?}"),
            json!({"path": asked.path, "body": asked.body})
        );
    }
}

#[tokio::test]
async fn little_is_sent_where_little_is_said() {
    for api in Api::ALL {
        let asked = sent(api, &Ask::default(), |it| it).await;
        assert_json_snapshot!(format!("little_{api:?}"), asked.body);
    }
}

#[tokio::test]
async fn a_key_goes_where_the_api_has_it_or_where_it_is_said_to() {
    let folder = tempfile::tempdir().unwrap();
    for (api, header, value) in [
        (Api::Chat, "authorization", "Bearer sk-very-secret"),
        (Api::Responses, "authorization", "Bearer sk-very-secret"),
        (Api::Anthropic, "x-api-key", "sk-very-secret"),
    ] {
        let asked = sent(api, &Ask::default(), |it| with_key(it, folder.path())).await;
        assert_eq!(asked.headers[header], value);
        let asked = sent(api, &Ask::default(), |it| Provider {
            key_header: Some("api-key".to_owned()),
            headers: [("X-Team".to_owned(), HttpHeader::Text("shop".to_owned()))].into(),
            query: [("api-version".to_owned(), "2024-10-21".to_owned())].into(),
            ..with_key(it, folder.path())
        })
        .await;
        assert_eq!(asked.headers["api-key"], "sk-very-secret");
        assert_eq!(asked.headers["x-team"], "shop");
        assert!(!asked.headers.contains_key("authorization"));
        assert!(
            asked.path.ends_with("?api-version=2024-10-21"),
            "{}",
            asked.path
        );
    }
    let asked = sent(Api::Chat, &Ask::default(), |it| it).await;
    assert!(!asked.headers.contains_key("authorization"));
}

#[tokio::test]
async fn others_than_openai_are_told_the_limit_in_the_word_that_they_know() {
    for (limit_field, word, other) in [
        (LimitField::MaxTokens, "max_tokens", "max_completion_tokens"),
        (
            LimitField::MaxCompletionTokens,
            "max_completion_tokens",
            "max_tokens",
        ),
    ] {
        let asked = sent(Api::Chat, &conversation(), |it| Provider {
            limit_field,
            ..it
        })
        .await;
        assert_eq!(
            (&asked.body[word], &asked.body[other]),
            (&json!(4_096), &Value::Null)
        );
    }
}

fn effort(effort: &str) -> Sampling {
    Sampling {
        effort: Some(effort.to_owned()),
        temperature_milli: Some(500),
        max_output_tokens: None,
    }
}

#[tokio::test]
async fn how_much_is_thought_is_said_in_the_words_of_each_api() {
    let ask = Ask {
        sampling: effort("high"),
        ..Ask::default()
    };
    let chat = sent(Api::Chat, &ask, |it| it).await.body;
    assert_eq!(chat["reasoning_effort"], "high");
    let responses = sent(Api::Responses, &ask, |it| it).await.body;
    assert_eq!(responses["reasoning"], json!({"effort": "high"}));
    assert_eq!(responses["include"], json!(["reasoning.encrypted_content"]));
    let anthropic = sent(Api::Anthropic, &ask, |it| it).await.body;
    let thinking = json!({"type": "enabled", "budget_tokens": 6_144});
    assert_eq!(anthropic["thinking"], thinking);
    // Whoever thinks has no say in it.
    assert_eq!(anthropic["temperature"], Value::Null);
    let little = Ask {
        sampling: Sampling {
            max_output_tokens: Some(1_024),
            ..effort("low")
        },
        ..Ask::default()
    };
    let anthropic = sent(Api::Anthropic, &little, |it| it).await.body;
    assert_eq!(
        anthropic["thinking"],
        Value::Null,
        "no budget is small enough"
    );
}

/// A model that thinks, calls, and is asked again with the result.
async fn asked_again(api: Api, first: String, change: impl FnOnce(&mut Vec<Message>)) -> Value {
    let answers = vec![
        Answer::stream(first),
        Answer::stream(said("ok").in_api(api)),
    ];
    let server = Server::playing(answers);
    let model = model(provider(api, &server));
    let mut ask = Ask {
        sampling: effort("medium"),
        ..Ask::default()
    };
    let reply = ask.of(&*model).await.0.unwrap();
    ask.messages
        .push(spoken(&reply.text, &reply.calls, reply.carried));
    ask.messages
        .push(result(&reply.calls[0].id, "7", ToolStatus::Success));
    change(&mut ask.messages);
    ask.of(&*model).await.0.unwrap();
    server.asked().remove(1).body
}

fn thinking() -> String {
    let block = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":9,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"sig\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":9}\n\n";
    let said = said("Well.").calling("toolu_1", "list", &["{}"]);
    // Thoughts stand where they stood: here behind everything else.
    said.in_api(Api::Anthropic).replace(
        "event: message_delta",
        &format!("{block}event: message_delta"),
    )
}

#[tokio::test]
async fn thoughts_go_back_to_the_model_that_had_them() {
    let body = asked_again(Api::Anthropic, thinking(), |_| {}).await;
    let expected = json!([
        {"type": "text", "text": "Well."},
        {"type": "tool_use", "id": "toolu_1", "name": "list", "input": {}},
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
    ]);
    assert_eq!(body["messages"][1]["content"], expected);
    assert!(body["thinking"].is_object());
    // What somebody else said in between has none, so this turn goes on without.
    let body = asked_again(Api::Anthropic, thinking(), |messages| {
        messages.push(spoken("", &[call("x", "list", "{}")], None));
    })
    .await;
    assert_eq!(body["thinking"], Value::Null);
    assert!(!body.to_string().contains("sig"), "{body}");
    let body = asked_again(Api::Anthropic, thinking(), |messages| {
        if let Message::Assistant {
            carried: Some(carried),
            ..
        } = &mut messages[1]
        {
            carried.by = "anthropic:other".to_owned();
        }
    })
    .await;
    assert!(!body.to_string().contains("sig"), "{body}");
}

#[tokio::test]
async fn encrypted_reasoning_goes_back_in_its_place() {
    let reasoning =
        r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"enc","status":null}"#;
    let calls = said("")
        .calling("call_1", "list", &["{}"])
        .in_api(Api::Responses);
    let first = calls.replace(r#""output":[{"#, &format!(r#""output":[{reasoning},{{"#));
    assert_ne!(first, calls);
    let body = asked_again(Api::Responses, first, |_| {}).await;
    let expected = json!([
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "enc"},
        {"type": "function_call", "call_id": "call_1", "name": "list", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "7"},
    ]);
    assert_eq!(
        body["input"].as_array().unwrap()[1..],
        *expected.as_array().unwrap()
    );
}

#[tokio::test]
async fn what_an_answer_costs_is_counted_where_prices_are_known() {
    for api in Api::ALL {
        let server = Server::playing(vec![Answer::stream(said("ok").in_api(api))]);
        let price = Price {
            input: 2_500_000,
            output: 10_000_000,
            cached_input: 1_250_000,
        };
        let provider = Provider {
            prices: [("test".to_owned(), price)].into(),
            ..provider(api, &server)
        };
        let reply = Ask::default().of(&*model(provider)).await.0.unwrap();
        // 60 · $2.5 + 40 · $1.25 + 20 · $10, a million each.
        assert_eq!(reply.usage.cost_nano_usd, 400_000, "{api:?}");
    }
}

#[tokio::test]
async fn where_the_beginning_was_left_out_the_user_comes_first_all_the_same() {
    let ask = Ask {
        messages: vec![
            result("gone", "7", ToolStatus::Success),
            spoken("Seven.", &[], None),
            user(" "),
        ],
        ..Ask::default()
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let body = sent(Api::Anthropic, &ask, |it| it).await.body;
    let expected = json!([
        {"role": "user", "content": text("Result of `refund`:\n7")},
        {"role": "assistant", "content": text("Seven.")},
        {"role": "user", "content": text("(empty)")},
    ]);
    assert_eq!(body["messages"], expected);
    let ask = Ask {
        messages: ask.messages[1..].to_vec(),
        ..Ask::default()
    };
    let body = sent(Api::Anthropic, &ask, |it| it).await.body;
    assert_eq!(body["messages"][0]["role"], "user");
    assert_eq!(body["messages"][1], expected[1]);
}
