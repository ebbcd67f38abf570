//! Deaths not at a point but at any moment: while the store is opened, a lease taken, a definition stored.

use crate::{
    kill_matrix::survives_each,
    point::{CLOCK, Dice, Kill, Seat},
    programs::Effort,
    rehearsal::undisturbed,
    scenario::{Phase, Scenario},
    world::Timing,
};

fn survives(scenario: &Scenario, sample: usize, full: usize) {
    let undisturbed = undisturbed(scenario);
    let mut dice = Dice::new(scenario.name);
    // Those in which one process does everything, with the time that it takes.
    let phases: Vec<(usize, usize)> = scenario
        .phases
        .iter()
        .zip(&undisturbed.times)
        .enumerate()
        .filter(|(_, (phase, _))| matches!(phase, Phase::Start | Phase::Answer(..)))
        .map(|(at, (_, time))| (at, usize::try_from(time.as_micros()).unwrap()))
        .collect();
    let kills: Vec<Kill> = (0..Effort::asked_for().pick(sample, full))
        .map(|at| {
            let (phase, time) = phases[at % phases.len()];
            Kill {
                phase,
                seat: Seat::Driver,
                timing: Timing::ACTS_LATE,
                point: CLOCK,
                // Alone it may be faster than beside others.
                nth: dice.below(time * 3 / 4),
            }
        })
        .collect();
    survives_each("any moment", scenario, &undisturbed, kills);
}

#[test]
fn a_batch_survives_a_death_at_any_moment() {
    survives(&Scenario::mixed_batch(), 8, 200);
}

#[test]
fn a_stepped_tool_survives_a_death_at_any_moment() {
    survives(&Scenario::stepped(), 3, 150);
}

#[test]
fn two_subagents_at_once_survive_a_death_at_any_moment() {
    survives(&Scenario::team_of_two(), 3, 100);
}

#[test]
fn a_grant_for_an_agent_survives_a_death_at_any_moment() {
    survives(&Scenario::granted_to_the_agent(), 3, 100);
}
