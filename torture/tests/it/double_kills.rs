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

const SAMPLE: usize = 4;
/// How often a pair of deaths that was not reached is tried again.
const TRIES: usize = 3;
/// Of the pairs of deaths in a long scenario only so many are tried in full: there are thousands.
const MANY: usize = 120;

fn survives_two(scenario: &Scenario) {
    survives_two_of(scenario, usize::MAX);
}

fn survives_two_of(scenario: &Scenario, most: usize) {
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
    let most = Effort::asked_for().pick(SAMPLE, most);
    if pairs.len() > most {
        pairs = sample(scenario.name, &pairs, most, |(kill, second)| {
            (second.step, second.point, kill.point)
        });
    }
    let plays = pool::each(&pairs, |(kill, second)| {
        let plan = || Plan {
            second: Some(*second),
            ..Plan::killed(*kill)
        };
        let mut played = play(Build::Sound, scenario, plan(), end);
        for _ in 0..TRIES {
            // What is in flight when a run is cancelled may be faster this time, and what follows is another way: then
            // once more.
            if played.deaths == 2 || !played.problems.is_empty() {
                break;
            }
            played = play(Build::Sound, scenario, plan(), end);
        }
        played
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
fn a_stepped_tool_survives_two_deaths() {
    survives_two_of(&Scenario::stepped_without_lookup(), MANY);
}

#[test]
fn a_write_of_a_subagents_subagent_survives_two_deaths() {
    survives_two_of(&Scenario::nested_team(), MANY);
}

#[test]
fn a_cancel_in_flight_survives_two_deaths() {
    survives_two(&Scenario::cancel_with_compensation());
}
