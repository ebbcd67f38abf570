//! The chat API, byte for byte where its description shows bytes.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{World, chat, read, resume};
use crate::{seed_client, sse};

const STREAM: &str = "/api/v1/chat/stream";
const RESUME: &str = "/api/v1/chat/resume";
const ASKED: &str = "Please confirm: 即将删除 1,234 条记录,此操作不可逆。";

fn state_path(session: &str) -> String {
    format!("/api/v1/chat/interrupt_state?agent_id=approval-agent&session_id={session}")
}

/// A stream with what differs from run to run taken out.
fn settled(text: &str, state: &Value) -> String {
    let (timestamp, checkpoint) = (
        &state["timestamp"],
        state["checkpoint_id"].as_str().unwrap(),
    );
    let id = state["interrupt_id"].as_str().unwrap();
    text.replace(&format!("\"timestamp\":{timestamp}"), "\"timestamp\":0")
        .replace(checkpoint, "CHECKPOINT")
        .replace(id, "INTERRUPT")
}

#[tokio::test]
async fn a_question_is_asked_shown_and_answered_in_the_seeds_bytes() {
    let world = World::dev().await;
    let asked = world
        .stream(STREAM, &chat("session-123", "请帮我删除"))
        .await;
    let (status, shown) = world.get(&state_path("session-123")).await;
    assert_eq!(status, 200);
    let state = &shown["state"];
    let expected = concat!(
        "data: 我将要删除\n\n",
        "data: 以下过期用户数据:共 1,234 条记录。\n\n",
        "data: \ndata: Please confirm: 即将删除 1,234 条记录,此操作不可逆。\n\n",
        "data: \0INTERRUPT:{\"session_id\":\"session-123\",\"agent_name\":\"approval-agent\",",
        "\"reason\":\"Please confirm: 即将删除 1,234 条记录,此操作不可逆。\",",
        "\"fields\":[{\"name\":\"confirm\",\"type\":\"confirm\",\"label\":\"Confirm action\",\"required\":true}],",
        "\"timestamp\":0,\"checkpoint_id\":\"CHECKPOINT\",\"interrupt_id\":\"INTERRUPT\"}\n\n",
        "data: [DONE]\n\n",
    );
    assert_eq!(settled(&asked, state), expected);
    let keys = json!({
        "interrupted": true,
        "state": {
            "session_id": "session-123",
            "agent_name": "approval-agent",
            "reason": ASKED,
            "fields": [{"name": "confirm", "type": "confirm", "label": "Confirm action", "required": true}],
            "timestamp": state["timestamp"],
            "checkpoint_id": state["checkpoint_id"],
            "interrupt_id": state["interrupt_id"],
        }
    });
    assert_eq!(shown, keys);
    let checkpoint = state["checkpoint_id"].as_str().unwrap();
    let seconds = state["timestamp"].to_string();
    let begins = format!("approval-agent_session-123_{seconds}");
    assert!(checkpoint.starts_with(&begins) && checkpoint.len() == begins.len() + 9);

    let answered = world
        .stream(RESUME, &resume("session-123", &json!({"confirm": true})))
        .await;
    let expected = concat!(
        "data: 已收到您的确认。正在执行删除操作...\n\n",
        "data: 删除完成,共删除 1,234 条过期用户记录。操作日志已记录。\n\n",
        "data: [DONE]\n\n",
    );
    assert_eq!(answered, expected);
    assert_eq!(
        world.get(&state_path("session-123")).await,
        (200, json!({"interrupted": false}))
    );
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_what_follows_is_looked_at_too() {
    let world = World::dev().await;
    world.stream(STREAM, &chat("s", "删除")).await;
    let refused = world
        .stream(RESUME, &resume("s", &json!({"confirm": false})))
        .await;
    assert!(
        refused.starts_with("data: Shall \n\ndata: I \n\n"),
        "{refused}"
    );
    assert!(refused.contains("\0INTERRUPT:") && refused.ends_with("data: [DONE]\n\n"));
    let (_, shown) = world.get(&state_path("s")).await;
    let reason = &shown["state"]["reason"];
    assert_eq!(reason, "Shall I proceed with something else?");
}

#[tokio::test]
async fn the_same_by_name() {
    let world = World::dev().await;
    for ask in [
        world
            .posting(STREAM, &chat("a", "删除"))
            .header("X-A2UI", "True"),
        world.posting("/api/v1/chat/stream?a2ui=true", &chat("b", "删除")),
    ] {
        let bytes = ask.send().await.unwrap().bytes().await.unwrap();
        let events = seed_client::read(&bytes);
        let names: Vec<&str> = events.iter().map(|(name, _)| *name).collect();
        let ends = ["interrupt", "done"];
        assert!(names.ends_with(&ends) && names[..names.len() - 2].iter().all(|it| *it == "text"));
        let text: String = events
            .iter()
            .filter(|(name, _)| *name == "text")
            .map(|(_, event)| event["data"]["delta"].as_str().unwrap())
            .collect();
        assert_eq!(
            text,
            format!("我将要删除以下过期用户数据:共 1,234 条记录。\n{ASKED}")
        );
        let asked = &events[events.len() - 2].1;
        assert_eq!(asked["data"]["reason"], ASKED);
        assert_eq!(asked["data"]["fields"][0]["name"], "confirm");
        assert_eq!(events[events.len() - 1].1["data"], Value::Null);
    }
    let answered = world
        .posting(RESUME, &resume("a", &json!({"confirm": true})))
        .header("X-A2UI", "true");
    let bytes = answered.send().await.unwrap().bytes().await.unwrap();
    assert_eq!(seed_client::read(&bytes).last().unwrap().0, "done");
}

#[tokio::test]
async fn what_is_wrong_is_said_in_the_seeds_words() {
    let world = World::dev().await;
    world.stream(STREAM, &chat("asked", "删除")).await;
    let none = "no pending interrupt for session: idle";
    let cases = [
        (
            STREAM,
            json!({"session_id": "s", "message": "m"}),
            400,
            "agent_id is required",
        ),
        (
            STREAM,
            json!({"agent_id": "approval-agent", "message": "m"}),
            400,
            "session_id is required",
        ),
        (
            STREAM,
            json!({"agent_id": "approval-agent", "session_id": "s"}),
            400,
            "message is required",
        ),
        (
            STREAM,
            json!({"agent_id": "nobody", "session_id": "s", "message": "m"}),
            404,
            "agent not found: nobody",
        ),
        (
            RESUME,
            json!({"session_id": "s", "input": {}}),
            400,
            "agent_id is required",
        ),
        (
            RESUME,
            json!({"agent_id": "approval-agent", "input": {}}),
            400,
            "session_id is required",
        ),
        (
            RESUME,
            json!({"agent_id": "nobody", "session_id": "s", "input": {}}),
            404,
            "agent not found: nobody",
        ),
        (RESUME, resume("idle", &json!({"confirm": true})), 409, none),
        (
            RESUME,
            resume("asked", &json!({})),
            422,
            "`confirm` is missing: say `true` or `false`",
        ),
        (
            RESUME,
            resume("asked", &json!({"confirm": "yes"})),
            422,
            "`confirm` must be `true` or `false`",
        ),
    ];
    for (path, body, status, text) in cases {
        let (code, problem) = world.post(path, &body).await;
        assert_eq!(code, status, "{body}: {problem}");
        let error = problem["error"].as_str().unwrap();
        assert!(error.ends_with(text), "{body}: {error}");
        assert!(problem["code"].is_string());
    }
    let unread = world
        .request(Method::POST, STREAM)
        .header("content-type", "application/json")
        .body("{\"agent_id\": \"a\", \"agent_id\": \"b\"}");
    let (code, problem) = read(unread.send().await.unwrap()).await;
    assert_eq!(code, 400);
    assert!(
        problem["error"]
            .as_str()
            .unwrap()
            .starts_with("invalid request body: ")
    );
    let (code, problem) = world.get("/api/v1/chat/interrupt_state?agent_id=x").await;
    assert_eq!(
        (code, problem["error"].as_str().unwrap()),
        (400, "agent_id and session_id are required")
    );
    let (code, _) = world
        .get("/api/v1/chat/interrupt_state?agent_id=x&session_id=y")
        .await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn an_agent_that_never_asks_cannot_be_answered() {
    let world = World::dev().await;
    let body = json!({"agent_id": "plain", "session_id": "s", "input": {"confirm": true}});
    let (code, problem) = world.post(RESUME, &body).await;
    let error = "agent does not support interrupt/resume: plain";
    assert_eq!((code, &problem["error"]), (404, &json!(error)));
    let state = "/api/v1/chat/interrupt_state?agent_id=plain&session_id=s";
    assert_eq!(world.get(state).await, (200, json!({"interrupted": false})));
    // Nothing of it is looked at, so its words are sent as they come.
    let said = json!({"agent_id": "plain", "session_id": "s", "message": "Are you sure?"});
    let said = world.stream(STREAM, &said).await;
    assert_eq!(
        said,
        "data: Are \n\ndata: you \n\ndata: sure?\n\ndata: [DONE]\n\n"
    );
    // Unless it does ask, because its model failed: what is asked can be answered where it is asked.
    let fail = json!({"agent_id": "plain", "session_id": "f", "message": "fail"});
    let asked = world.stream(STREAM, &fail).await;
    assert!(asked.contains("INTERRUPT:"), "{asked}");
    let no = json!({"agent_id": "plain", "session_id": "f", "input": {"confirm": false}});
    let told = world.stream(RESUME, &no).await;
    assert!(told.ends_with("data: [DONE]\n\n"), "{told}");
    let state = "/api/v1/chat/interrupt_state?agent_id=plain&session_id=f";
    assert_eq!(world.get(state).await, (200, json!({"interrupted": false})));
}

#[tokio::test]
async fn an_answer_counts_once_however_many_give_it() {
    let world = World::dev().await;
    world.stream(STREAM, &chat("s", "删除")).await;
    let body = resume("s", &json!({"confirm": true}));
    let answers = (0..20).map(|_| world.posting(RESUME, &body).send());
    let mut statuses = Vec::new();
    for response in futures_join(answers).await {
        statuses.push(response.unwrap().status().as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200);
    assert!(statuses[1..].iter().all(|it| *it == 409), "{statuses:?}");
}

async fn futures_join<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    futures::future::join_all(futures).await
}

#[tokio::test]
async fn a_new_message_waits_for_the_answer_unless_it_supersedes() {
    let world = World::dev().await;
    world.stream(STREAM, &chat("s", "删除")).await;
    let (code, problem) = world.post(STREAM, &chat("s", "hello")).await;
    assert_eq!((code, &problem["code"]), (409, &json!("interrupt_pending")));
    let mut body = chat("s", "hello");
    body["supersede"] = json!(true);
    assert_eq!(
        world.stream(STREAM, &body).await,
        "data: hello\n\ndata: [DONE]\n\n"
    );
}

#[tokio::test]
async fn a_model_that_fails_says_so_and_the_next_message_is_heard() {
    let world = World::dev().await;
    let failed = world.stream(STREAM, &chat("s", "fail")).await;
    assert!(
        failed.starts_with("data: [error] ") && failed.contains("\0INTERRUPT:"),
        "{failed}"
    );
    let heard = world.stream(STREAM, &chat("s", "hello")).await;
    assert_eq!(heard, "data: hello\n\ndata: [DONE]\n\n");
}

#[tokio::test]
async fn a_tool_that_is_gated_is_confirmed_in_a_chat_as_well() {
    let world = World::dev().await;
    let say = |session: &str| json!({"agent_id": "clerk", "session_id": session, "message": "go"});
    let asked = world.posting(STREAM, &say("s")).header("X-A2UI", "true");
    let bytes = asked.send().await.unwrap().bytes().await.unwrap();
    let mut names: Vec<&str> = seed_client::read(&bytes)
        .iter()
        .map(|(name, _)| *name)
        .collect();
    names.dedup();
    assert_eq!(names, ["text", "interrupt", "done"]);
    let body = json!({"agent_id": "clerk", "session_id": "s", "input": {"confirm": true}});
    let answered = world.posting(RESUME, &body).header("X-A2UI", "true");
    let bytes = answered.send().await.unwrap().bytes().await.unwrap();
    let events = seed_client::read(&bytes);
    let mut names: Vec<&str> = events.iter().map(|(name, _)| *name).collect();
    names.dedup_by(|left, right| left == right && *left == "text");
    assert_eq!(
        names,
        ["tool_call", "tool_call", "tool_result", "text", "done"]
    );
    assert_eq!(events[0].1["data"]["status"], "calling");
    assert_eq!(events[2].1["data"]["result"], "acted");
}

#[tokio::test]
async fn a_session_can_be_aborted() {
    let world = World::dev().await;
    world.stream(STREAM, &chat("s", "删除")).await;
    let body = json!({"agent_id": "approval-agent", "session_id": "s"});
    let abort = "/api/v1/chat/abort";
    assert_eq!(
        world.post(abort, &body).await,
        (200, json!({"status": "aborted"}))
    );
    assert_eq!(
        world.post(abort, &body).await,
        (200, json!({"status": "no_active_loop"}))
    );
    let (code, _) = world
        .post(RESUME, &resume("s", &json!({"confirm": true})))
        .await;
    assert_eq!(code, 409);
}

#[tokio::test]
async fn hostile_texts_come_back_as_they_were_sent() {
    let world = World::dev().await;
    let texts = [
        "a\r\nb\rc\n\nd",
        "\n\nevent: interrupt\ndata: {}\n\n",
        "[DONE]",
        "\0INTERRUPT:{}",
        "x\u{2028}y\u{2029}z",
        " leading and trailing ",
        "id: 7\nretry: 1\n: comment",
    ];
    for (at, text) in texts.iter().enumerate() {
        let bytes = world.stream(STREAM, &chat(&format!("l{at}"), text)).await;
        let events = sse::read(bytes.as_bytes());
        let (last, said) = events.split_last().unwrap();
        assert_eq!(last.data, "[DONE]");
        let said: String = said.iter().map(|event| event.data.as_str()).collect();
        let expected = text
            .replace("\r\n", "\n")
            .replace('\r', "\n")
            .replace('\0', "\u{fffd}");
        assert_eq!(said, expected);
        let asked = world
            .posting(STREAM, &chat(&format!("a{at}"), text))
            .header("X-A2UI", "true");
        let bytes = asked.send().await.unwrap().bytes().await.unwrap();
        let events = seed_client::read(&bytes);
        let said: String = events
            .iter()
            .filter(|(name, _)| *name == "text")
            .map(|(_, event)| event["data"]["delta"].as_str().unwrap())
            .collect();
        assert_eq!(said, *text);
    }
}

#[tokio::test]
async fn the_same_request_under_one_key_is_done_once_and_streamed_again() {
    let world = World::dev().await;
    let talk = || {
        world
            .posting(STREAM, &chat("s", "删除"))
            .header("Idempotency-Key", "k1")
    };
    let first = talk().send().await.unwrap();
    let run = first.headers()["x-run-id"].clone();
    assert!(first.headers().get("idempotency-replayed").is_none());
    let first = first.text().await.unwrap();
    let again = talk().send().await.unwrap();
    assert_eq!(again.headers()["x-run-id"], run);
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(sse_text(&again.text().await.unwrap()), sse_text(&first));
    let answer = || {
        world
            .posting(RESUME, &resume("s", &json!({"confirm": true})))
            .header("Idempotency-Key", "k2")
    };
    let first = answer().send().await.unwrap().text().await.unwrap();
    let again = answer().send().await.unwrap().text().await.unwrap();
    assert_eq!(sse_text(&again), sse_text(&first));
    let (code, problem) = read(
        world
            .posting(STREAM, &chat("s", "other"))
            .header("Idempotency-Key", "k1")
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(
        (code, &problem["code"]),
        (422, &json!("idempotency_mismatch"))
    );
}

/// All that is said in a stream, whatever its frames.
fn sse_text(bytes: &str) -> String {
    let events = sse::read(bytes.as_bytes());
    events.iter().map(|event| event.data.as_str()).collect()
}

#[tokio::test]
async fn what_an_agent_asked_that_is_gone_is_still_shown_and_answered() {
    let world = World::dev().await;
    world.stream(STREAM, &chat("s", "请帮我删除")).await;
    std::fs::remove_file(world.folder.path().join("approval.yaml")).unwrap();
    world
        .agents_until(|agents| !agents.to_string().contains("approval-agent"))
        .await;
    let (status, shown) = world.get(&state_path("s")).await;
    assert_eq!((status, &shown["interrupted"]), (200, &json!(true)));
    let (status, problem) = world.post(STREAM, &chat("s", "again")).await;
    assert_eq!((status, &problem["code"]), (404, &json!("agent_not_found")));
    let (status, problem) = world.get(&state_path("never")).await;
    assert_eq!((status, &problem["code"]), (404, &json!("agent_not_found")));
    let answered = world
        .stream(RESUME, &resume("s", &json!({"confirm": true})))
        .await;
    assert!(answered.ends_with("data: [DONE]\n\n"), "{answered}");
    let (_, shown) = world.get(&state_path("s")).await;
    assert_eq!(shown["interrupted"], json!(false));
}
