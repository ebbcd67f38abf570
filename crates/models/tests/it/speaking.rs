//! What is said, streamed and called.

use std::time::Duration;

use holdpoint_models::{Failure, Reply};
use tokio::time::Instant;

use crate::conversation::{ask, assistant, call, scripted, text_of, tool, user};

#[tokio::test]
async fn say_is_streamed_word_by_word_and_chunks_as_given() {
    let model = scripted(
        r#"
  - {when: {user: say}, say: "two words\nand  more"}
  - {chunks: ["te", "xt", "", " {user}"]}
"#,
    );
    let said = Reply {
        text: "two words\nand  more".to_owned(),
        calls: vec![],
        ..Reply::default()
    };
    let words = ["two ", "words\n", "and ", " ", "more"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(ask(&model, &[user("say")], 1).await, (Ok(said), words));
    let chunked = Reply {
        text: "text x".to_owned(),
        calls: vec![],
        ..Reply::default()
    };
    let chunks = ["te", "xt", "", " x"].map(str::to_owned).to_vec();
    assert_eq!(ask(&model, &[user("x")], 1).await, (Ok(chunked), chunks));
}

#[tokio::test]
async fn places_stand_for_the_last_user_message_and_the_last_result() {
    let model = scripted("  - say: '{user}: {result}, {result} {other} {'\n");
    let messages = [
        user("first"),
        tool("a", "1"),
        user("hi {result}"),
        assistant(""),
        tool("b", "{user}"),
        assistant(""),
    ];
    assert_eq!(
        text_of(&model, &messages).await,
        "hi {result}: {user}, {user} {other} {"
    );
    let reason = "s.yaml:4: there is nothing yet that `{result}` could stand for".to_owned();
    assert_eq!(
        ask(&model, &[user("x")], 1).await.0,
        Err(Failure::Rejected { reason })
    );
}

#[tokio::test]
async fn calls_have_ids_and_their_arguments_verbatim() {
    let model = scripted(
        r#"
  - call:
      - {tool: a, args: {z: 1, text: no, list: [1.5, null, true], big: 9007199254740993}}
      - {tool: b, raw: '{"n": 9007199254740993, "n": 1}'}
      - {tool: c, raw: 'no json', id: mine}
      - {tool: d}
"#,
    );
    let reply = ask(&model, &[user("x"), assistant("y"), user("z")], 1)
        .await
        .0
        .unwrap();
    let expected = [
        call(
            "call_2_1",
            "a",
            r#"{"big":9007199254740993,"list":[1.5,null,true],"text":"no","z":1}"#,
        ),
        call("call_2_2", "b", r#"{"n": 9007199254740993, "n": 1}"#),
        call("mine", "c", "no json"),
        call("call_2_4", "d", "{}"),
    ];
    assert_eq!(reply.calls, expected);
    assert_eq!(reply.text, "");
}

#[tokio::test(start_paused = true)]
async fn delay_comes_before_the_first_chunk_and_pace_between_chunks() {
    let model = scripted("  - {chunks: [a, b, c], delay: 2s, pace: 250ms}\n");
    let begin = Instant::now();
    ask(&model, &[user("x")], 1).await.0.unwrap();
    assert_eq!(begin.elapsed(), Duration::from_millis(2_500));
}
