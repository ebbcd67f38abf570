//! A process that dies around the keeping of a long result loses nothing of it, and does nothing twice.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use crate::{
    point::{CALL_AFTER, COMMIT_AFTER, COMMIT_BEFORE, KEPT, SIDE_AFTER, SIDE_BEFORE},
    process::Ended,
    programs::{Build, Effort},
    report::Tally,
    scenario::Scenario,
    world::{SESSION, Setting, World},
};

/// Of each effect class a tool that returns more than a conversation has room for.
const CLASSES: [&str; 4] = ["read", "idempotent", "findable", "write"];

fn report() -> String {
    let lines: Vec<_> = (1..=5_000)
        .map(|at| format!("line {at} of the report"))
        .collect();
    lines.join("\n")
}

fn receipt() -> String {
    let numbers: Vec<_> = (1..=20_000).map(|at: u32| at.to_string()).collect();
    numbers.join(" ")
}

/// Makes the agent one whose model calls one tool of this class, which notes its call.
fn write_agent(world: &World, class: &str) {
    let made = world.path("made");
    let made = made.display();
    let act = format!(
        "echo $HOLDPOINT_IDEMPOTENCY_KEY >> {made}; seq -f 'line %.0f of the report' 1 5000"
    );
    let find = format!(
        "grep -q $HOLDPOINT_IDEMPOTENCY_KEY {made} || {{ echo '{{\"status\":\"not_found\"}}'; exit; }}; \
         printf '{{\"status\":\"committed\",\"receipt\":\"'; seq -s ' ' 1 20000 | tr -d '\\n'; printf '\"}}'"
    );
    let effect = if class == "findable" { "write" } else { class };
    let mut tool = json!({
        "name": "act",
        "effect": effect,
        "command": ["sh", "-c", act],
        "timeout": "2s",
        "settle": "100ms",
    });
    if class == "findable" {
        tool["lookup"] = json!(["sh", "-c", find]);
    }
    let agent = json!({
        "apiVersion": "holdpoint/v1",
        "kind": "Agent",
        "metadata": {"name": "clerk", "version": "1"},
        "spec": {"model": {"primary": "scripted:scenario.yaml"}, "tools": [tool]},
    });
    let scenario = json!({
        "apiVersion": "holdpoint/v1",
        "kind": "Scenario",
        "rules": [{"when": {"turn": 1}, "call": [{"tool": "act", "args": {}}]}, {"say": "end"}],
    });
    fs::write(world.path("agent.yaml"), agent.to_string()).unwrap();
    fs::write(world.path("scenario.yaml"), scenario.to_string()).unwrap();
}

fn made(world: &World) -> Vec<String> {
    let text = fs::read_to_string(world.path("made")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn run(world: &World, setting: &Setting) -> Ended {
    let agent = world.path("agent.yaml");
    let agent = agent.to_str().unwrap();
    let words = ["run", agent, "--input", "go", "--thread", SESSION];
    world.call(&words, setting)
}

/// Goes on until the run is over; whoever is asked knows what was done. Says how often somebody was.
fn go_on(world: &World) -> (Value, usize) {
    let mut asked = 0;
    let call = |words: &[&str]| world.call(words, &Setting::PLAIN);
    for _ in 0..10 {
        call(&["recover"]);
        let shown = call(&["show", SESSION]);
        match shown.code() {
            Some(0) => return (shown.only_line(), asked),
            // It died before anything was recorded.
            Some(2 | 4) => {
                run(world, &Setting::PLAIN);
            }
            Some(3) => {
                let decision = if made(world).is_empty() {
                    json!([{"type": "not_committed"}])
                } else {
                    json!([{"type": "committed", "result": "a person says so"}])
                };
                let shown = shown.only_line();
                if shown["__interrupt__"].is_array() {
                    asked += 1;
                    call(&["resume", SESSION, "--decisions", &decision.to_string()]);
                }
            }
            _ => panic!("{}", shown.explain()),
        }
    }
    panic!("it does not come to its end");
}

/// What is wrong in the end.
fn violation(world: &World, class: &str, shown: &Value) -> Option<String> {
    let made = made(world);
    let keys: BTreeSet<&String> = made.iter().collect();
    let (most, repeatable) = match class {
        "read" | "idempotent" => (2, true),
        _ => (1, false),
    };
    if made.is_empty() || made.len() > most || (repeatable && keys.len() > 1) {
        return Some(format!("it was called by {made:?}"));
    }
    let messages = shown["messages"].as_array().into_iter().flatten();
    let told: Vec<&Value> = messages
        .filter(|it| it["type"] == "tool")
        .map(|it| &it["content"])
        .collect();
    let [Value::String(told)] = told.as_slice() else {
        return Some(format!("the model was told {told:?}"));
    };
    let listed = world.call(&["artifacts", SESSION], &Setting::PLAIN);
    let Some(address) = listed.lines.first().and_then(|it| it["address"].as_str()) else {
        let by_a_person = told == "a person says so";
        return (!by_a_person)
            .then(|| format!("nothing is kept apart, and the model was told {told}"));
    };
    if listed.lines.len() != 1 || !told.contains(address) || told.len() > 13_000 {
        return Some(format!("{}: {told}", listed.explain()));
    }
    let one = world.call(&["artifacts", SESSION, address], &Setting::PLAIN);
    let one = one.only_line();
    let expected = if address.contains("-receipt/") {
        receipt()
    } else {
        report()
    };
    if one["text"] != expected {
        return Some(format!("`{address}` is not what was returned"));
    }
    let checked = world.call(&["store", "check"], &Setting::PLAIN);
    (checked.code() != Some(0)).then(|| checked.explain())
}

fn survives(scenario: &Scenario, shelf: &str) {
    let effort = Effort::asked_for();
    for class in CLASSES {
        let mut tally = Tally::new("kill matrix", format!("long result, {class}, {shelf}"));
        for point in [
            KEPT,
            CALL_AFTER,
            SIDE_BEFORE,
            SIDE_AFTER,
            COMMIT_BEFORE,
            COMMIT_AFTER,
        ] {
            // What comes after the call is tried always; everything before it is tried by the kill matrix, too.
            let most = if point == KEPT { 9 } else { effort.pick(1, 99) };
            for nth in 1..=most {
                let world = World::new(Build::Sound, scenario);
                write_agent(&world, class);
                let setting = Setting {
                    kill_at: Some((point, nth)),
                    ..Setting::PLAIN
                };
                if !run(&world, &setting).was_killed() {
                    assert!(nth > 1, "nobody passes {point}");
                    break;
                }
                let (shown, asked) = go_on(&world);
                tally.effects += made(&world).len();
                let wrong: Vec<_> = violation(&world, class, &shown).into_iter().collect();
                tally.judge(&format!("{point}:{nth}"), asked, &wrong);
            }
        }
        tally.conclude();
    }
}

#[test]
fn a_death_around_the_keeping_of_a_long_result_loses_and_doubles_nothing() {
    survives(&Scenario::approve(), "SQLite");
}

#[test]
fn nor_does_it_on_postgres() {
    survives(&Scenario::approve().on_postgres(), "PostgreSQL");
}
