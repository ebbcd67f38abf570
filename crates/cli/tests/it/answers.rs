//! Answers that do not fit: a precise error, nothing changed, and the right answer works after.

use serde_json::{Value, json};

use crate::support::{World, asked, pending};

const TWO: [&str; 4] = [
    "run",
    "file-manager/agent.yaml",
    "--input",
    "同时处理两件事",
];

/// One bad answer: its arguments after the thread, its code, and a part of its message.
struct Bad(Vec<String>, &'static str, String);

fn decisions(value: &Value, code: &'static str, says: impl Into<String>) -> Bad {
    Bad(
        vec!["--decisions".to_owned(), value.to_string()],
        code,
        says.into(),
    )
}

fn text(text: &str, code: &'static str, says: &str) -> Bad {
    Bad(
        vec!["--decisions".to_owned(), text.to_owned()],
        code,
        says.to_owned(),
    )
}

#[test]
fn a_bad_answer_changes_nothing_and_the_right_one_works_after() {
    let world = World::new();
    let other = pending(&world.json(3, &[&TWO[..], &["--thread", "other"]].concat()));
    let stopped = world.json(3, &[&TWO[..], &["--thread", "a"]].concat());
    let ids = asked(&stopped);
    let nobody = "act_00000000000000000000000000000000";
    let approve = json!({"type": "approve"});
    let edit = |args: Value| json!({"type": "edit", "edited_action": {"name": "delete_file", "args": args}});
    let cases = [
        decisions(
            &json!([]),
            "misfit",
            "asks about 2 actions (1. `write_file`, 2. `delete_file`), the answer has 0 decisions",
        ),
        decisions(
            &json!([approve]),
            "misfit",
            "asks about 2 actions (1. `write_file`, 2. `delete_file`), the answer has 1 decision",
        ),
        decisions(
            &json!([approve, approve, approve]),
            "misfit",
            "the answer has 3 decisions",
        ),
        decisions(
            &json!([{"type": "respond", "message": "x"}, approve]),
            "misfit",
            format!(
                "action 1, `write_file` ({}): `respond` is not allowed; allowed: approve, reject",
                ids[0]
            ),
        ),
        decisions(
            &json!([{"type": "committed"}, approve]),
            "misfit",
            "`committed` is not allowed",
        ),
        decisions(
            &json!([{"type": "approve", "action_id": ids[0]}, {"type": "approve", "action_id": nobody}]),
            "misfit",
            format!("decision 2: the interrupt does not ask about `{nobody}`"),
        ),
        decisions(
            &json!([{"type": "approve", "action_id": ids[0]}, {"type": "reject", "action_id": ids[0]}]),
            "misfit",
            format!(
                "decision 2: action 1, `write_file` ({}) is decided twice",
                ids[0]
            ),
        ),
        decisions(
            &json!([{"type": "approve", "action_id": ids[0]}, approve]),
            "bad_answer",
            "give an `action_id` with every decision or with none",
        ),
        decisions(
            &json!([approve, edit(json!({"path": ""}))]),
            "misfit",
            "/path",
        ),
        decisions(
            &json!([approve, edit(json!({"file": "temp.txt"}))]),
            "misfit",
            "path",
        ),
        decisions(
            &json!([approve, {"type": "edit", "edited_action": {"name": "write_file", "args": {"path": "x"}}}]),
            "misfit",
            "write_file",
        ),
        decisions(
            &json!([approve, edit(json!([1]))]),
            "bad_answer",
            "must be a JSON object",
        ),
        decisions(
            &json!([approve, {"type": "aprove"}]),
            "bad_answer",
            "decision 2: `aprove` is not a decision",
        ),
        decisions(
            &json!([approve, {"type": "approve", "why": 1}]),
            "bad_answer",
            "`why` does not belong",
        ),
        decisions(
            &json!("approve"),
            "bad_answer",
            "expected a list of decisions",
        ),
        decisions(
            &json!({"decision": [approve, approve]}),
            "bad_answer",
            "expected a list of decisions",
        ),
        text("yes", "bad_answer", "not valid JSON"),
        text("[{\"type\":\"approve\"}", "bad_answer", "not valid JSON"),
        text("", "bad_answer", "not valid JSON"),
        text(
            r#"[{"type":"approve","type":"reject"},{"type":"approve"}]"#,
            "bad_answer",
            "appears twice",
        ),
        Bad(
            vec![
                "--approve".to_owned(),
                "--interrupt".to_owned(),
                other.clone(),
            ],
            "not_pending",
            format!("interrupt `{other}` is not pending"),
        ),
        Bad(
            vec![
                "--approve".to_owned(),
                "--interrupt".to_owned(),
                "int_00000000000000000000000000000000".to_owned(),
            ],
            "not_pending",
            "is not pending".to_owned(),
        ),
    ];
    let before = world.picture("a");
    for Bad(arguments, code, says) in &cases {
        let mut all = vec!["resume", "a"];
        all.extend(arguments.iter().map(String::as_str));
        let refused = world.json(4, &all);
        let keys: Vec<&String> = refused.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["code", "details", "error"]);
        assert_eq!(refused["code"], *code, "{arguments:?}: {refused}");
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains(says), "{arguments:?}: {error}");
        assert!(!error.contains('\n') && !error.ends_with('.'), "{error}");
        assert_eq!(world.picture("a"), before, "{arguments:?}");
    }
    let done = world.json(
        0,
        &[
            "resume",
            "a",
            "--decisions",
            &json!([approve, approve]).to_string(),
        ],
    );
    assert_eq!(done["status"], "finished");
    // The other thread's question is untouched by all of this.
    world.json(0, &["resume", "other", "--interrupt", &other, "--reject"]);
}

#[test]
fn a_second_answer_is_told_who_was_first() {
    let world = World::new();
    let stopped = world.json(3, &[&TWO[..], &["--thread", "a"]].concat());
    let interrupt = pending(&stopped);
    world.json(0, &["resume", "a", "--reject"]);
    let before = world.picture("a");
    let refused = world.json(4, &["resume", "a", "--interrupt", &interrupt, "--approve"]);
    assert_eq!(refused["code"], "already_decided");
    assert_eq!(refused["details"]["status"], "rejected");
    assert!(
        refused["details"]["by"]
            .as_str()
            .unwrap()
            .starts_with("local:")
    );
    let refused = world.json(4, &["resume", "a", "--approve"]);
    assert_eq!(refused["code"], "not_pending");
    let refused = world.json(4, &["resume", "a"]);
    assert_eq!(refused["code"], "not_pending");
    assert_eq!(world.picture("a"), before);
}

#[test]
fn a_question_about_a_tool_that_changed_is_asked_again_with_the_difference() {
    let world = World::new();
    let run = [
        "run",
        "refund/agent.yaml",
        "--input",
        "Please refund order 1001",
        "--thread",
    ];
    let old = pending(&world.json(3, &[&run[..], &["a"]].concat()));
    let yaml = std::fs::read_to_string(world.path().join("refund/agent.yaml")).unwrap();
    let changed = yaml.replace(
        "    - name: issue_refund\n",
        "    - name: issue_refund\n      version: \"2\"\n",
    );
    assert_ne!(changed, yaml);
    world.write("refund/agent.yaml", &changed);
    // Refused input must not make the new definition the current one.
    assert_eq!(
        world.json(4, &[&run[..], &["a"]].concat())["code"],
        "interrupt_pending"
    );
    world.json(3, &[&run[..], &["b"]].concat());
    let refused = world.json(4, &["resume", "a", "--approve"]);
    assert_eq!(refused["code"], "stale_question");
    assert_eq!(refused["details"]["old"], old);
    let shown = world.json(3, &["show", "a"]);
    let new = pending(&shown);
    assert_eq!(refused["details"]["new"], new);
    let interrupt = &shown["__interrupt__"][0];
    assert_eq!(interrupt["supersedes"], old);
    assert!(
        interrupt["changes"].to_string().contains('2'),
        "{interrupt}"
    );
    let refused = world.json(4, &["resume", "a", "--interrupt", &old, "--approve"]);
    assert_eq!(refused["code"], "already_decided");
    assert_eq!(world.effects(), 0);
    world.json(0, &["resume", "a", "--interrupt", &new, "--approve"]);
    assert_eq!(world.effects(), 1);
}

#[test]
fn a_misfit_tells_a_program_what_would_fit() {
    let world = World::new();
    let stopped = world.json(3, &[&TWO[..], &["--thread", "a"]].concat());
    let ids = asked(&stopped);
    let nobody = "act_00000000000000000000000000000000";
    let configs = &stopped["__interrupt__"][0]["value"]["review_configs"];
    let allowed = |at: usize| configs[at]["allowed_decisions"].clone();
    let action = |at: usize, tool: &str| {
        json!({
            "position": at + 1,
            "action_id": ids[at],
            "tool": tool,
            "allowed_decisions": allowed(at),
        })
    };
    let (write, delete) = (action(0, "write_file"), action(1, "delete_file"));
    let with = |object: &Value, more: Value| {
        let mut object = object.clone();
        let fields = object.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        object
    };
    let approve = json!({"type": "approve"});
    let cases = [
        (
            json!([approve]),
            json!({"reason": "count", "expected": 2, "given": 1, "actions": [write, delete]}),
        ),
        (
            json!([approve, {"type": "respond", "message": "x"}]),
            with(
                &delete,
                json!({"reason": "not_allowed", "decision": "respond"}),
            ),
        ),
        (
            json!([{"type": "approve", "action_id": ids[0]}, {"type": "approve", "action_id": nobody}]),
            json!({
                "reason": "not_asked",
                "number": 2,
                "action_id": nobody,
                "actions": [write, delete],
            }),
        ),
        (
            json!([{"type": "approve", "action_id": ids[0]}, {"type": "reject", "action_id": ids[0]}]),
            with(&write, json!({"reason": "twice", "number": 2})),
        ),
        (
            json!([approve, {"type": "edit", "edited_action": {"name": "rm", "args": {}}}]),
            with(&delete, json!({"reason": "other_tool", "named": "rm"})),
        ),
    ];
    for (decisions, details) in cases {
        let refused = world.json(4, &["resume", "a", "--decisions", &decisions.to_string()]);
        assert_eq!(refused["code"], "misfit");
        assert_eq!(refused["details"], details, "{decisions}");
    }
    let edit = json!([approve, {"type": "edit", "edited_action": {"name": "delete_file", "args": {"file": "x"}}}]);
    let refused = world.json(4, &["resume", "a", "--decisions", &edit.to_string()]);
    let details = &refused["details"];
    assert_eq!(details["reason"], "arguments");
    assert_eq!(details["tool"], "delete_file");
    assert!(
        details["problem"].as_str().unwrap().contains("path"),
        "{details}"
    );
}
