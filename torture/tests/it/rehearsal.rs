//! A scenario without a death: how it ends, and where its processes could die.

use serde_json::Value;

use crate::{
    play::{Plan, play},
    point::{CALL_RUNNING, Kill, LEDGER_WRITTEN, sample},
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
}

/// Plays a scenario undisturbed, in every timing, to learn where its processes can die.
pub(crate) fn undisturbed(scenario: &Scenario) -> Undisturbed {
    let timings = [Timing::Prompt, Timing::ACTS_LATE, Timing::ENDS_LATE];
    // A cancel in flight needs a call that takes a while.
    let in_flight = scenario.is_cancelled_in_flight();
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
    for played in plays {
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
            let in_call = matches!(kill.point, CALL_RUNNING | LEDGER_WRITTEN);
            in_flight || (kill.timing != Timing::Prompt) == in_call
        }));
    }
    Undisturbed {
        end: end.unwrap(),
        kills,
    }
}

/// The deaths that are tried.
pub(crate) fn chosen(name: &str, kills: &[Kill], wanted: usize) -> Vec<Kill> {
    match Effort::asked_for() {
        Effort::Full => kills.to_vec(),
        Effort::Sample => sample(name, kills, wanted, |kill| (kill.point, kill.seat)),
    }
}
