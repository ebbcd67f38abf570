//! Which rule is played.

use holdpoint_models::Failure;

use crate::conversation::{ask, assistant, call, scripted, text_of, tool, user};

#[tokio::test]
async fn the_first_rule_whose_conditions_all_hold_is_played() {
    let model = scripted(
        r#"
  - {when: {user: "two words", turn: 1}, say: a}
  - {when: {user: other, turn: {from: 2, to: 3}}, say: b}
  - {when: {tool: pay, result: declined}, say: c}
  - {when: {tool: pay}, say: d}
  - {when: {turn: {from: 5}}, say: e}
  - {when: {turn: {to: 1}, user: plain}, say: f}
  - {say: z}
"#,
    );
    let turns = |count: usize| [vec![user("plain other")], vec![assistant(""); count]].concat();
    let cases = [
        ("first turn and text", vec![user("say two words here")], "a"),
        (
            "text of an older user message",
            vec![user("two words"), assistant(""), user("x")],
            "z",
        ),
        (
            "second turn of the text",
            vec![user("two words"), assistant("")],
            "z",
        ),
        ("within the range", turns(1), "b"),
        ("at the range's end", turns(2), "b"),
        ("after the range", turns(3), "z"),
        ("open end", turns(4), "e"),
        ("open end, far", turns(400), "e"),
        ("open beginning", turns(0), "f"),
        (
            "turns count from the last user message",
            [turns(9), vec![user("y")]].concat(),
            "z",
        ),
        (
            "tool's result",
            vec![user("x"), assistant(""), tool("pay", "ok")],
            "d",
        ),
        (
            "result of the last message",
            vec![user("x"), assistant(""), tool("pay", "was declined.")],
            "c",
        ),
        (
            "result of an earlier message",
            vec![
                user("x"),
                assistant(""),
                tool("see", "declined"),
                assistant(""),
                tool("pay", "ok"),
            ],
            "c",
        ),
        (
            "result before the last user message does not count",
            vec![
                tool("see", "declined"),
                user("x"),
                assistant(""),
                tool("pay", "ok"),
            ],
            "d",
        ),
        (
            "the tool must be the last message",
            vec![user("x"), tool("pay", "ok"), assistant("")],
            "z",
        ),
        (
            "another tool was last",
            vec![user("x"), tool("pay", "declined"), tool("see", "")],
            "z",
        ),
        ("nothing was said", vec![], "z"),
    ];
    for (name, messages, expected) in cases {
        assert_eq!(text_of(&model, &messages).await, expected, "{name}");
    }
}

#[tokio::test]
async fn an_answer_is_told_apart_by_the_question_that_the_model_asked_last() {
    let model = scripted(
        r#"
  - {when: {user: "yes", said: "delete"}, say: deleted}
  - {when: {user: "yes", said: "deploy"}, say: deployed}
  - {say: z}
"#,
    );
    let asked = |question: &str| vec![user("x"), assistant(question), user("yes")];
    let cases = [
        ("the question", asked("delete it?"), "deleted"),
        ("another question", asked("deploy it?"), "deployed"),
        (
            "only the last one counts",
            [asked("delete it?"), vec![assistant("so?"), user("yes")]].concat(),
            "z",
        ),
        (
            "a result does not hide it",
            [asked("delete it?"), vec![tool("pay", "ok")]].concat(),
            "deleted",
        ),
        (
            "what the user said is no question",
            vec![user("yes, delete")],
            "z",
        ),
    ];
    for (name, messages, expected) in cases {
        assert_eq!(text_of(&model, &messages).await, expected, "{name}");
    }
}

#[tokio::test]
async fn where_no_rule_fits_the_turn_is_rejected_with_what_was_last_said() {
    let model = scripted("  - {when: {user: never}, say: x}\n");
    let long = "é".repeat(300);
    let cases = [
        (
            vec![],
            "no rule of s.yaml fits turn 1, where nothing was said yet".to_owned(),
        ),
        (
            vec![user("hi\n`you`")],
            r"no rule of s.yaml fits turn 1, where the user said `hi\n`you``".to_owned(),
        ),
        (
            vec![user("x"), assistant("y")],
            "no rule of s.yaml fits turn 2, where the model said `y`".to_owned(),
        ),
        (
            vec![user("x"), assistant(""), tool("pay", &long)],
            format!(
                "no rule of s.yaml fits turn 2, where the tool `pay` returned `{}` …",
                "é".repeat(200)
            ),
        ),
    ];
    for (messages, reason) in cases {
        let (reply, deltas) = ask(&model, &messages, 1).await;
        assert_eq!((reply, deltas), (Err(Failure::Rejected { reason }), vec![]));
    }
}

#[tokio::test]
async fn a_loop_of_two_thousand_turns_calls_with_an_id_of_its_own_each_time() {
    let model = scripted(
        r#"
  - {when: {turn: {from: 1, to: 2000}}, call: [{tool: step, args: {}}]}
  - {say: done}
"#,
    );
    let mut messages = vec![user("earlier"), assistant("hello"), user("go")];
    for turn in 1..=2000 {
        let reply = ask(&model, &messages, 1).await.0.unwrap();
        // One turn more than since the user spoke: the ids count over the whole conversation.
        assert_eq!(
            reply.calls,
            [call(&format!("call_{}_1", turn + 1), "step", "{}")]
        );
        messages.push(assistant(""));
        messages.push(tool("step", "some result"));
    }
    assert_eq!(text_of(&model, &messages).await, "done");
}
