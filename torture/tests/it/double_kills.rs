//! A second death, of the process that goes on after the first.

use crate::{
    play::{Plan, play},
    point::{Kill, sample},
    pool,
    programs::{Build, Effort},
    rehearsal::{chosen, undisturbed},
    report::Tally,
    revival::Second,
    scenario::Scenario,
};

const SAMPLE: usize = 6;

fn survives_two(scenario: &Scenario) {
    let mut tally = Tally::new("double kills", scenario.name);
    let undisturbed = undisturbed(scenario);
    let end = Some(&undisturbed.end);
    let first = chosen(scenario.name, &undisturbed.kills, SAMPLE);
    let plays = pool::each(&first, |kill| {
        play(Build::Sound, scenario, Plan::killed(*kill), end)
    });
    let mut pairs: Vec<(Kill, Second)> = Vec::new();
    for (kill, played) in first.iter().zip(plays) {
        pairs.extend(played.seconds.into_iter().map(|second| (*kill, second)));
    }
    if Effort::asked_for() == Effort::Sample {
        pairs = sample(scenario.name, &pairs, SAMPLE, |(_, second)| second.point);
    }
    let plays = pool::each(&pairs, |(kill, second)| {
        let plan = Plan {
            second: Some(*second),
            ..Plan::killed(*kill)
        };
        play(Build::Sound, scenario, plan, end)
    });
    for ((kill, second), played) in pairs.iter().zip(&plays) {
        tally.count(&format!("{kill}, then {second:?}"), played, 2);
    }
    tally.conclude();
}

#[test]
fn an_approved_call_survives_two_deaths() {
    survives_two(&Scenario::approve());
}

#[test]
fn a_mixed_batch_survives_two_deaths() {
    survives_two(&Scenario::mixed_batch());
}

#[test]
fn a_write_that_a_person_was_asked_about_survives_two_deaths() {
    survives_two(&Scenario::write_without_lookup());
}

#[test]
fn a_cancel_in_flight_survives_two_deaths() {
    survives_two(&Scenario::cancel_with_compensation());
}
