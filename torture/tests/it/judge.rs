//! The oracle: what must hold at the end of every play, however often a process died.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    play::{Cancel, Play},
    scenario::{Asks, End, Phase, Undo},
    trace::Trace,
    world::Setting,
};

/// Adds to a play's problems whatever it must not have come to.
pub(crate) fn judge(play: &mut Play<'_>, end: &Value, trace: &Trace, reference: Option<&Value>) {
    for (interrupt, times) in trace.answers() {
        if times > 1 {
            play.complain(format!("{interrupt} was answered {times} times"));
        }
    }
    match play.scenario.end.clone() {
        End::Effects(expected) => {
            effects_are(play, &expected);
            if let Some(reference) = reference.filter(|reference| *reference != end) {
                play.complain(format!(
                    "it ended otherwise than undisturbed:\n{end}\n{reference}"
                ));
            }
        }
        End::CancelledInFlight(undo) => cancelled_in_flight(play, end, trace, undo),
    }
    questions_are(play, trace);
    let pauses = |phase: &Phase| matches!(phase, Phase::Pause | Phase::PauseInFlight(_));
    if play.plan.kill.is_none() && play.scenario.phases.iter().any(pauses) && !trace.was_paused() {
        play.complain("undisturbed, the pause came too late");
    }
    let last = play.world.call(&["recover"], &Setting::PLAIN);
    if last.code() != Some(0) || !last.lines.is_empty() {
        play.complain(format!(
            "something was left to be driven: {}",
            last.explain()
        ));
    }
}

/// Exactly what was to be done is done, exactly once.
fn effects_are(play: &mut Play<'_>, expected: &[(&str, &str)]) {
    let done = play.world.ledger().effects();
    let expected: BTreeMap<(String, String), usize> = expected
        .iter()
        .map(|(order, amount)| (((*order).to_owned(), (*amount).to_owned()), 1))
        .collect();
    for (effect, times) in &done {
        let wanted = expected.get(effect).copied().unwrap_or(0);
        if *times > wanted {
            let (order, amount) = effect;
            play.complain(format!(
                "doubled: `{order}` of {amount} was done {times} times instead of {wanted}"
            ));
        }
    }
    for (order, amount) in expected.keys().filter(|effect| !done.contains_key(*effect)) {
        play.complain(format!("missing: `{order}` of {amount} was not done"));
    }
    if play.world.ledger().reversal_count() > 0 {
        play.complain("something was undone that nobody wanted undone");
    }
}

/// People were asked as often as they had to be. A question that was lost with its process does not count.
fn questions_are(play: &mut Play<'_>, trace: &Trace) {
    let asked = trace.approvals();
    let (least, most) = match play.scenario.asks {
        Asks::Unsaid => return,
        Asks::Exactly(times) => (times, times),
        Asks::OnceMorePerDeath(times) => (times, times + play.deaths),
    };
    if !(least..=most).contains(&asked) {
        play.complain(format!(
            "asked for leave {asked} times instead of {least} to {most}"
        ));
    }
}

/// The run is cancelled, and what it says of its call is what the ledger says.
fn cancelled_in_flight(play: &mut Play<'_>, end: &Value, trace: &Trace, undo: Undo) {
    let ledger = play.world.ledger();
    let (done, undone) = (ledger.effect_count(), ledger.reversal_count());
    if done > 1 || undone > done {
        play.complain(format!("doubled: done {done} times, undone {undone} times"));
    }
    let told = end["messages"][2]["content"].as_str().unwrap_or_default();
    let status = end["status"].as_str().unwrap_or_default();
    let right = match (status, done, undone) {
        // It never happened.
        ("cancelled", 0, 0) => told.contains("was not executed"),
        ("cancelled", 1, 1) => undo == Undo::Compensated && told.contains("was undone"),
        // Without a death, the cancel must not have come too late: neither for the call, nor for the run.
        ("cancelled", 1, 0) if trace.stopped_too_late() => {
            play.plan.kill.is_some() && told.contains("recorded")
        }
        // It stands, and a person has seen that.
        ("cancelled", 1, 0) => {
            undo == Undo::Asked && told.contains("recorded") && trace.has_committed()
        }
        ("finished", 1, 0) => play.plan.kill.is_some() && play.cancel == Cancel::TooLate,
        (_, _, _) => false,
    };
    if !right {
        play.complain(format!("done {done} times, undone {undone} times: {end}"));
    }
    if play.plan.kill.is_none() && done == 0 {
        play.complain("undisturbed, the cancel came before the effect");
    }
}

/// How a run ended, without what differs from run to run.
pub(crate) fn essence(view: &Value) -> Value {
    match view {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "run_id" | "action_id" | "checkpoint"))
            .map(|(key, value)| (key.clone(), essence(value)))
            .collect(),
        Value::Array(items) => items.iter().map(essence).collect(),
        Value::String(text) => Value::String(without_ids(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => view.clone(),
    }
}

/// Ids are a short prefix, an underscore and 32 hex digits.
fn without_ids(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = ["act_", "int_", "run_", "hpk_"]
        .iter()
        .filter_map(|prefix| rest.find(prefix))
        .min()
    {
        let (before, id) = rest.split_at(at + 4);
        let digits = id
            .find(|digit: char| !digit.is_ascii_hexdigit())
            .unwrap_or(id.len());
        clean.push_str(before);
        rest = id.get(digits..).unwrap_or_default();
    }
    clean + rest
}

#[test]
fn what_differs_from_run_to_run_is_left_out() {
    let view = serde_json::json!({
        "run_id": "run_01",
        "messages": [{"content": "undone (act_01a1e12b) by hpk_ff", "action_id": "act_01a1e12b"}],
        "output": null,
    });
    let rest = serde_json::json!({
        "messages": [{"content": "undone (act_) by hpk_"}],
        "output": null,
    });
    assert_eq!(essence(&view), rest);
}
