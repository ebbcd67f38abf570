//! Every scenario with a death at every point: whoever goes on ends it as if nothing had happened.

use crate::{
    play::{Plan, Played, play},
    point::{CALL_RUNNING, CLOCK, Dice, Kill, Seat},
    pool,
    programs::{Build, Effort},
    rehearsal::{Undisturbed, chosen, undisturbed},
    report::Tally,
    scenario::Scenario,
    world::Timing,
};

const SAMPLE: usize = 8;

fn survives(scenario: &Scenario) -> Vec<(Kill, Played)> {
    let undisturbed = undisturbed(scenario);
    let kills = chosen(scenario.name, &undisturbed.kills, SAMPLE);
    survives_each("kill matrix", scenario, &undisturbed, kills)
}

fn survives_each(
    test: &'static str,
    scenario: &Scenario,
    undisturbed: &Undisturbed,
    kills: Vec<Kill>,
) -> Vec<(Kill, Played)> {
    let mut tally = Tally::new(test, scenario.name);
    let plays = pool::each(&kills, |kill| {
        play(
            Build::Sound,
            scenario,
            Plan::killed(*kill),
            Some(&undisturbed.end),
        )
    });
    for (kill, played) in kills.iter().zip(&plays) {
        tally.count(&kill.to_string(), played, 1);
    }
    tally.conclude();
    kills.into_iter().zip(plays).collect()
}

#[test]
fn an_approved_call_survives_a_death_at_every_point() {
    survives(&Scenario::approve());
}

#[test]
fn a_rejected_call_is_never_made_whatever_dies() {
    survives(&Scenario::reject());
}

#[test]
fn an_edited_call_is_made_as_it_was_edited_whatever_dies() {
    survives(&Scenario::edit());
}

#[test]
fn a_reviewers_response_stands_for_the_call_whatever_dies() {
    survives(&Scenario::respond());
}

#[test]
fn a_mixed_batch_is_carried_out_as_decided_whatever_dies() {
    survives(&Scenario::mixed_batch());
}

#[test]
fn calls_of_every_effect_class_at_once_survive_a_death() {
    survives(&Scenario::every_effect_class());
}

#[test]
fn whatever_can_be_found_out_is_found_out_without_asking_anybody() {
    survives(&Scenario::every_findable_class());
}

#[test]
fn a_write_without_a_lookup_is_never_repeated_unless_a_person_says_so() {
    let plays = survives(&Scenario::write_without_lookup());
    let in_doubt = plays.iter().filter(|(_, played)| played.asked > 0);
    assert!(in_doubt.count() > 0, "nobody was ever asked");
}

#[test]
fn a_program_that_outlives_its_driver_is_waited_for_and_not_repeated() {
    let plays = survives(&Scenario::outliving_programs());
    let outlived = plays
        .iter()
        .filter(|(kill, _)| kill.point == CALL_RUNNING)
        .filter(|(_, played)| played.deaths > 0);
    for (kill, played) in outlived {
        // Both acted after their driver's death, so neither was to be made again.
        assert_eq!(played.starts, 2, "{kill}");
    }
}

#[test]
fn a_waiting_run_is_cancelled_whatever_dies() {
    survives(&Scenario::cancel_waiting());
}

#[test]
fn a_cancel_in_flight_undoes_what_came_too_late_to_stop_whatever_dies() {
    survives(&Scenario::cancel_with_compensation());
}

#[test]
fn a_cancel_in_flight_shows_a_person_what_cannot_be_undone_whatever_dies() {
    survives(&Scenario::cancel_without_compensation());
}

#[test]
fn a_cancel_in_flight_of_a_write_without_hooks_survives_a_death() {
    survives(&Scenario::cancel_of_a_blind_write());
}

/// Not at a point but at any moment: while the store is opened, a lease taken, a definition stored.
#[test]
fn a_batch_survives_a_death_at_any_moment() {
    let scenario = Scenario::mixed_batch();
    let mut dice = Dice::new("any moment");
    let moments = Effort::asked_for().pick(12, 200);
    let kills: Vec<Kill> = (0..moments)
        .map(|at| {
            let phase = at % 2;
            // The first phase takes a few milliseconds, the second as long as its calls.
            let bound = [25_000, 600_000][phase];
            Kill {
                phase,
                seat: Seat::Driver,
                timing: Timing::ACTS_LATE,
                point: CLOCK,
                nth: dice.below(bound),
            }
        })
        .collect();
    survives_each("any moment", &scenario, &undisturbed(&scenario), kills);
}
