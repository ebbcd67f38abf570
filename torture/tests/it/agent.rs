//! The agent that is tortured: one tool of every effect class, and a model that asks for what a scenario plans.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::scenario::{Call, Member, Mode, Scenario};

/// A call may take this long. Far more than it needs even on a busy machine, since what is slow is not what is tested.
const TIMEOUT: &str = "2s";
const SETTLE: &str = "200ms";

/// Read: repeat freely.
pub(crate) const LOOK: &str = "look";
/// Idempotent: acts once per key.
pub(crate) const PAY: &str = "pay";
/// A write with a lookup and a compensation.
pub(crate) const REFUND: &str = "refund";
/// A write with a lookup, without a compensation.
pub(crate) const GRANT: &str = "grant";
/// A write with neither.
pub(crate) const WIRE: &str = "wire";
/// As `grant`, but its program escapes the watchdog.
pub(crate) const STRAY: &str = "stray";
/// As `wire`, but its program escapes the watchdog.
pub(crate) const BLIND_STRAY: &str = "blind_stray";

/// A stepped tool with a lookup, of a read, an idempotent step and a write.
pub(crate) const TRANSFER: &str = "transfer";
/// As `transfer`, without the lookup.
pub(crate) const BLIND_TRANSFER: &str = "blind_transfer";

/// Writes the agent and its models' parts into a folder.
pub(crate) fn write(folder: &Path, scenario: &Scenario) {
    // JSON is YAML too.
    fs::write(folder.join("agent.yaml"), definition(scenario).to_string()).unwrap();
    write_part(folder, "scenario", &scenario.turns);
    write_parts(folder, &scenario.team);
}

fn write_parts(folder: &Path, team: &[Member]) {
    for member in team {
        write_part(folder, member.name, &member.turns);
        write_parts(folder, &member.team);
    }
}

fn write_part(folder: &Path, name: &str, turns: &[Vec<Call>]) {
    let path = folder.join(format!("{name}.yaml"));
    fs::write(path, part(turns).to_string()).unwrap();
}

fn definition(scenario: &Scenario) -> Value {
    let mut spec = json!({
        "model": {"primary": "scripted:scenario.yaml"},
        "tools": tools(scenario.timeout.unwrap_or(TIMEOUT)),
        "limits": {"turns": 20, "calls": 40, "time": "10m"},
    });
    if !scenario.gates.is_empty() {
        spec["interrupt_on"] = scenario.gates.iter().cloned().collect();
    }
    if scenario.mode == Mode::PerCall {
        spec["interrupt_mode"] = json!("per_call");
    }
    if !scenario.team.is_empty() {
        spec["subagents"] = subagents(&scenario.team);
    }
    json!({
        "apiVersion": "holdpoint/v1",
        "kind": "Agent",
        "metadata": {"name": "clerk", "version": "1"},
        "spec": spec,
    })
}

fn subagents(team: &[Member]) -> Value {
    let subagent = |member: &Member| {
        let Member { name, team, .. } = member;
        let mut subagent = json!({
            "name": name,
            "description": "Sees to it.",
            "system_prompt": "You see to it.",
            "model": {"primary": format!("scripted:{name}.yaml")},
        });
        if !team.is_empty() {
            subagent["subagents"] = subagents(team);
        }
        subagent
    };
    team.iter().map(subagent).collect()
}

fn tools(timeout: &str) -> Value {
    let ledger = "holdpoint-example-ledger";
    let outlive = env!("CARGO_BIN_EXE_holdpoint-torture-outlive");
    let steps = env!("CARGO_BIN_EXE_holdpoint-torture-steps");
    let tool = |name: &str, effect: &str, command: Value| {
        json!({
            "name": name,
            "effect": effect,
            "command": command,
            "timeout": timeout,
            "settle": SETTLE,
            "input_schema": {
                "type": "object",
                "properties": {"order_id": {"type": "string"}, "amount": {"type": "string"}},
                "required": ["order_id"],
                "additionalProperties": false,
            },
        })
    };
    let with = |mut tool: Value, hook: &str, word: &str| {
        tool[hook] = json!([ledger, word]);
        tool
    };
    let stepped = |name: &str| {
        let mut tool = tool(name, "write", json!([steps]));
        tool["stepped"] = json!(true);
        tool
    };
    let refund = json!([ledger, "refund"]);
    let stray = json!([outlive, ledger, "refund"]);
    let findable = |tool| with(tool, "lookup", "lookup");
    let undoable = |tool| with(tool, "compensate", "compensate");
    json!([
        tool(LOOK, "read", json!([ledger, "read"])),
        tool(PAY, "idempotent", json!([ledger, "pay-once"])),
        undoable(findable(tool(REFUND, "write", refund.clone()))),
        findable(tool(GRANT, "write", refund.clone())),
        tool(WIRE, "write", refund),
        findable(tool(STRAY, "write", stray.clone())),
        tool(BLIND_STRAY, "write", stray),
        findable(stepped(TRANSFER)),
        stepped(BLIND_TRANSFER),
    ])
}

/// Every turn asks for what is planned; the last says what came of it, so that the output shows a difference.
fn part(turns: &[Vec<Call>]) -> Value {
    let mut rules = Vec::new();
    for (turn, calls) in turns.iter().enumerate() {
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| json!({"tool": call.tool, "args": call.args}))
            .collect();
        rules.push(json!({"when": {"turn": turn + 1}, "say": "I shall see to it.", "call": calls}));
    }
    rules.push(json!({"say": "That is that: {result}"}));
    json!({"apiVersion": "holdpoint/v1", "kind": "Scenario", "rules": rules})
}
