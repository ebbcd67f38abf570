//! The other reasons to stop, from the command line: single questions, subagents, stepped programs, time, pauses, grants.

use std::{thread::sleep, time::Duration};

use serde_json::{Value, json};

use crate::support::{World, pending, tool_contents};

const TWICE: &str = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}, {tool: act, args: {n: 2}}]\n  - say: done\n";
const ONCE_EACH_TURN: &str = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - when: {turn: 2}\n    call: [{tool: act, args: {n: 2}}]\n  - when: {turn: 3}\n    call: [{tool: act, args: {n: 3}}]\n  - say: done\n";

fn run(file: &str) -> [&str; 6] {
    ["run", file, "--input", "go", "--thread", "t"]
}

fn with(world: &World, file: &str, more: &str) {
    let text = std::fs::read_to_string(world.path().join(file)).unwrap();
    world.write(file, &format!("{text}{more}"));
}

fn ids(object: &Value) -> Vec<String> {
    let pending = object["__interrupt__"].as_array().unwrap().iter();
    let id = |interrupt: &Value| interrupt["id"].as_str().unwrap().to_owned();
    pending.map(id).collect()
}

#[test]
fn several_questions_are_answered_by_a_map_some_now_and_the_rest_later() {
    let world = World::new();
    let file = world.agent("per", "true", TWICE);
    with(&world, &file, "  interrupt_mode: per_call\n");
    let stopped = world.json(3, &run(&file));
    let [one, two]: [String; 2] = ids(&stopped).try_into().unwrap();

    let plain = world.json(4, &["resume", "t", "--approve"]);
    assert_eq!(plain["code"], "ambiguous");
    let unknown = "int_00000000000000000000000000000009";
    let bad = format!(r#"{{"{one}":{{"type":"approve"}},"{unknown}":{{"type":"approve"}}}}"#);
    let refused = world.json(4, &["resume", "t", "--decisions", &bad]);
    assert_eq!(refused["code"], "not_pending");
    assert_eq!(world.effects(), 0);

    let now = format!(r#"{{"{one}":{{"decisions":[{{"type":"approve"}}]}}}}"#);
    let rest = world.json(3, &["resume", "t", "--decisions", &now]);
    assert_eq!((ids(&rest), world.effects()), (vec![two.clone()], 1));
    let later = format!(r#"{{"{two}":[{{"type":"reject"}}]}}"#);
    let done = world.json(0, &["resume", "t", "--decisions", &later]);
    assert_eq!(
        (done["status"].as_str(), world.effects()),
        (Some("finished"), 1)
    );
}

#[test]
fn a_subagents_question_shows_who_asks() {
    let world = World::new();
    let boss = "  - when: {turn: 1}\n    call: [{tool: task, args: {subagent_type: worker, description: please act}}]\n  - say: 'It says {result}.'\n";
    let file = world.agent("boss", "false", boss);
    let worker = "apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n  - when: {turn: 1}\n    call: [{tool: act, args: {n: 7}}]\n  - say: acted\n";
    world.write("boss/worker.yaml", worker);
    with(
        &world,
        &file,
        "  subagents:\n    - {name: worker, description: acts, system_prompt: act, model: {primary: 'scripted:worker.yaml'}, interrupt_on: {act: true}}\n",
    );
    let stopped = world.json(3, &run(&file));
    assert_eq!(stopped["__interrupt__"][0]["frame"], "worker#1");
    let shown = world.hold(&["show", "t"]).ends(3).stdout;
    assert!(shown.contains("asked by worker#1"), "{shown}");
    let done = world.json(0, &["resume", "t", "--approve"]);
    assert_eq!(done["output"], "It says acted.");
    assert_eq!(world.effects(), 1);
}

const STEPPED: &str = r#"#!/bin/sh
read -r opening
echo '{"step":{"name":"first","effect":"write","args":{}}}'
read -r told
case $told in '{"run":'*) echo first >>acts; echo '{"done":{"name":"first","result":1}}' ;; esac
echo '{"interrupt":{"name":"ok","question":{"title":"Go on?"}}}'
read -r told
case $told in *'"approved":true'*) ;; *) echo '{"result":"stopped"}'; exit 0 ;; esac
echo '{"sleep":{"name":"nap","for":"300ms"}}'
read -r told
echo '{"step":{"name":"second","effect":"write","args":{}}}'
read -r told
case $told in '{"run":'*) echo second >>acts; echo '{"done":{"name":"second","result":2}}' ;; esac
echo '{"result":"all done"}'
"#;

fn stepped(world: &World) -> String {
    let rules = "  - when: {turn: 1}\n    call: [{tool: act}]\n  - say: 'It says {result}.'\n";
    let file = world.agent("steps", "false", rules);
    world.write("steps/tool.sh", STEPPED);
    let text = std::fs::read_to_string(world.path().join(&file)).unwrap();
    let text = text
        .replace("effect: idempotent", "stepped: true")
        .replace("[holdpoint-example-ledger, pay-once]", "[sh, ./tool.sh]")
        .replace("timeout: 2s", "timeout: 20s");
    world.write(&file, &text);
    file
}

#[test]
fn a_stepped_program_asks_sleeps_and_does_nothing_twice() {
    let world = World::new();
    let file = stepped(&world);
    let acts = || std::fs::read_to_string(world.path().join("steps/acts")).unwrap_or_default();
    let stopped = world.json(3, &run(&file));
    assert_eq!(
        stopped["__interrupt__"][0]["value"]["question"]["title"],
        "Go on?"
    );
    assert_eq!(acts(), "first\n");
    let asleep = world.json(3, &["resume", "t", "--approve"]);
    assert_eq!(asleep["status"], "sleeping");
    sleep(Duration::from_millis(400));
    let woken = world.hold(&["recover", "--json"]).ends(0).lines();
    assert_eq!(woken[0]["output"], "It says all done.");
    assert_eq!(acts(), "first\nsecond\n");
    assert_eq!(world.hold(&["recover", "--json"]).ends(0).lines().len(), 0);
}

/// Has the stepped program ask this instead.
fn asking(question: &str) -> (World, String) {
    let world = World::new();
    let file = stepped(&world);
    let text = STEPPED.replace(r#"{"title":"Go on?"}"#, question);
    world.write("steps/tool.sh", &text);
    (world, file)
}

#[test]
fn whoever_answers_a_question_sees_all_of_it() {
    let question = r#"{"title":"Which?","data":{"order":4711},"options":[{"id":"now","label":"At once"},{"id":"later","label":"Tomorrow"}]}"#;
    let (world, file) = asking(question);
    let ran = world.hold(&run(&file)).ends(3).stdout;
    let shown = world.hold(&["show", "t"]).ends(3).stdout;
    for said in [ran, shown] {
        for part in [
            "Which?",
            "\"order\": 4711",
            "choose now: At once",
            "choose later: Tomorrow",
            r#"--decisions '[{"type":"answer","value":{"option_id":"…"}}]'"#,
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let before = world.picture("t");
    for value in [r#""now""#, r#"{"option_id":"never"}"#, "{}"] {
        let answer = format!(r#"[{{"type":"answer","value":{value}}}]"#);
        let refused = world.json(4, &["resume", "t", "--decisions", &answer]);
        assert_eq!(refused["code"], "misfit", "{value}");
        assert!(refused["error"].as_str().unwrap().contains("now, later"));
    }
    assert_eq!(world.picture("t"), before);
    let answer = r#"[{"type":"answer","value":{"option_id":"now"}}]"#;
    let done = world.json(0, &["resume", "t", "--decisions", answer]);
    assert_eq!(done["output"], "It says stopped.");
}

#[test]
fn a_question_without_a_title_is_shown_as_it_is_and_takes_only_yes_or_no() {
    let (world, file) = asking(r#"{"message":"请批准"}"#);
    let ran = world.hold(&run(&file)).ends(3).stdout;
    assert!(ran.contains("\"message\": \"请批准\""), "{ran}");
    for value in [r#"{"approved":"no"}"#, "5", "null"] {
        let answer = format!(r#"[{{"type":"answer","value":{value}}}]"#);
        let refused = world.json(4, &["resume", "t", "--decisions", &answer]);
        assert_eq!(refused["code"], "misfit", "{value}");
    }
    let answer = r#"[{"type":"answer","value":{"approved":false}}]"#;
    let done = world.json(0, &["resume", "t", "--decisions", answer]);
    assert_eq!(done["output"], "It says stopped.");
}

#[test]
fn a_question_that_nobody_could_answer_is_not_asked() {
    for (question, reason) in [
        (
            r#"{"title":"t","options":[{"id":"a","label":"A"},{"id":"a","label":"B"}]}"#,
            "two options",
        ),
        (
            r#"{"title":"t","input_schema":{"type":"foo"}}"#,
            "not a JSON Schema",
        ),
        (
            r#"{"title":"t","timeout":"1h","on_timeout":"escalate"}"#,
            "`escalate`",
        ),
    ] {
        let (world, file) = asking(question);
        let ran = world.json(0, &run(&file));
        assert!(tool_contents(&ran)[0].contains(reason), "{ran}");
    }
}

#[test]
fn a_rejected_question_reaches_the_program() {
    let world = World::new();
    let file = stepped(&world);
    world.json(3, &run(&file));
    let done = world.json(0, &["resume", "t", "--reject", "no"]);
    assert_eq!(done["output"], "It says stopped.");
}

#[test]
fn what_nobody_answers_in_time_is_closed_by_whoever_looks() {
    for (then, status, exit) in [("expire", "cancelled", 1), ("reject", "finished", 0)] {
        let world = World::new();
        let gate = format!("{{allowed_decisions: [approve], timeout: 200ms, on_timeout: {then}}}");
        let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: done\n";
        let file = world.agent("late", &gate, rules);
        world.json(3, &run(&file));
        sleep(Duration::from_millis(300));
        let late = world.json(4, &["resume", "t", "--approve"]);
        assert_eq!(late["code"], "expired");
        world.hold(&["recover"]);
        let over = world.json(exit, &["show", "t"]);
        assert_eq!(over["status"], status);
        assert!(tool_contents(&over)[0].contains("nobody answered in time"));
        assert_eq!(world.effects(), 0);
    }
}

#[test]
fn a_time_that_is_over_says_what_it_means() {
    let world = World::new();
    let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: done\n";
    let gate =
        |then| format!("{{allowed_decisions: [approve], timeout: 50ms, on_timeout: {then}}}");
    let kept = world.agent("kept", &gate("keep"), rules);
    let stopped = world.hold(&run(&kept)).ends(3).stdout;
    assert!(stopped.contains("and open after it as well"), "{stopped}");
    sleep(Duration::from_millis(100));
    world.json(0, &["resume", "kept/t", "--approve"]);

    let late = world.agent("late", &gate("reject"), rules);
    world.hold(&run(&late)).ends(3);
    sleep(Duration::from_millis(100));
    let refused = world
        .hold(&["resume", "late/t", "--approve"])
        .ends(4)
        .stderr;
    assert!(refused.contains("`holdpoint recover` goes on"), "{refused}");
}

#[test]
fn a_paused_run_says_how_it_goes_on() {
    let world = World::new();
    let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: done\n";
    let file = world.agent("calm", "true", rules);
    world.json(3, &run(&file));
    let paused = world.hold(&["pause", "t"]).ends(0).stdout;
    assert!(paused.contains("calm/t is paused; go on with: holdpoint continue calm/t"));
    let answered = world.json(3, &["resume", "t", "--approve"]);
    assert_eq!(
        (&answered["status"], &answered["cause"]),
        (&json!("paused"), &json!("user_pause"))
    );
    assert_eq!(world.effects(), 0);
    world.json(0, &["continue", "t"]);
    assert_eq!(world.effects(), 1);
    assert_eq!(world.json(4, &["pause", "t"])["code"], "run_over");
}

#[test]
fn a_grant_is_given_listed_used_and_revoked() {
    let world = World::new();
    let file = world.agent("trusty", "true", ONCE_EACH_TURN);
    world.json(3, &run(&file));
    let grant = r#"[{"type":"approve","grant":{"scope":"thread","match":"tool","uses":1}}]"#;
    let stopped = world.json(3, &["resume", "t", "--decisions", grant]);
    assert_eq!(
        world.effects(),
        2,
        "one was approved, one passed by the grant"
    );
    pending(&stopped);
    let listed = world.hold(&["grants", "--json"]).ends(0).lines();
    assert_eq!(listed[0]["grant"]["used"], 1);
    assert_eq!(listed[0]["good"], false);
    let id = listed[0]["grant"]["id"].as_str().unwrap();
    let told = world.hold(&["grants", "--revoke", id]).ends(0).stdout;
    assert_eq!(told.trim(), format!("{id} is revoked"));
    let trace = world.hold(&["trace", "t"]).ends(0).stdout;
    assert!(trace.contains("allowed by grt_"), "{trace}");
    let bad = r#"[{"type":"approve","grant":{"scope":"world","match":"tool"}}]"#;
    let refused = world.json(4, &["resume", "t", "--decisions", bad]);
    assert_eq!(refused["code"], "bad_answer");
}

#[test]
fn a_breakpoint_stops_before_a_tool() {
    let world = World::new();
    let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: done\n";
    let file = world.agent("look", "false", rules);
    with(&world, &file, "  breakpoints: {before: [act]}\n");
    let stopped = world.json(3, &run(&file));
    assert_eq!(stopped["cause"], "breakpoint");
    assert_eq!(world.effects(), 0);
    world.json(0, &["resume", "t", "--approve"]);
    assert_eq!(world.effects(), 1);
}
