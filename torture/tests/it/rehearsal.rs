//! A scenario without a death: how it ends, and where its processes could die.

use std::time::Duration;

use serde_json::Value;

use crate::{
    play::{Plan, play},
    point::{CALL_RUNNING, Kill, LEDGER_ATTEMPTED, LEDGER_WRITTEN, sample},
    pool,
    programs::{Build, Effort},
    scenario::Scenario,
    world::Timing,
};

/// How a scenario ends if nobody dies, and the deaths that are possible in it.
#[derive(Debug)]
pub(crate) struct Undisturbed {
    pub(crate) end: Value,
    pub(crate) kills: Vec<Kill>,
    /// How long each phase takes where tools act late.
    pub(crate) times: Vec<Duration>,
}

/// Plays a scenario undisturbed, in every timing, to learn where its processes can die.
pub(crate) fn undisturbed(scenario: &Scenario) -> Undisturbed {
    let timings = [Timing::Prompt, Timing::ACTS_LATE, Timing::ENDS_LATE];
    // A cancel or a pause in flight needs a call that takes a while.
    let in_flight = scenario.is_disturbed_in_flight();
    let timings = if in_flight {
        &timings[1..]
    } else {
        &timings[..]
    };
    let plays = pool::each(timings, |timing| {
        play(Build::Sound, scenario, Plan::undisturbed(*timing), None)
    });
    let mut end: Option<Value> = None;
    let mut kills = Vec::new();
    let mut times = Vec::new();
    for (timing, played) in timings.iter().zip(plays) {
        if *timing == Timing::ACTS_LATE {
            times.clone_from(&played.times);
        }
        let problems = played.problems.join("\n");
        assert!(
            problems.is_empty(),
            "{}: undisturbed: {problems}",
            scenario.name
        );
        let first = end.get_or_insert_with(|| played.end.clone());
        assert_eq!(*first, played.end, "{}: undisturbed", scenario.name);
        kills.extend(played.kills.into_iter().filter(|kill| {
            // Only while a call runs does it matter when it acts.
            let in_call = matches!(kill.point, CALL_RUNNING | LEDGER_ATTEMPTED | LEDGER_WRITTEN);
            in_flight || (kill.timing != Timing::Prompt) == in_call
        }));
    }
    Undisturbed {
        end: end.unwrap(),
        kills,
        times,
    }
}

/// The deaths that are tried. The worst is always among them.
pub(crate) fn chosen(name: &str, kills: &[Kill], wanted: usize) -> Vec<Kill> {
    match Effort::asked_for() {
        Effort::Full => kills.to_vec(),
        Effort::Sample => {
            let mut chosen = sample(name, kills, wanted, |kill| (kill.point, kill.seat));
            let worst = last_effect(kills);
            chosen.extend(worst.filter(|worst| !chosen.contains(worst)));
            chosen
        }
    }
}

/// The death after the last effect and before its record.
pub(crate) fn last_effect(kills: &[Kill]) -> Option<Kill> {
    let written = kills.iter().filter(|kill| kill.point == LEDGER_WRITTEN);
    written.max_by_key(|kill| (kill.phase, kill.nth)).copied()
}
