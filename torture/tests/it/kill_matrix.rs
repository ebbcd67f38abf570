//! Every scenario with a death at every point: whoever goes on ends it as if nothing had happened.

use crate::{
    play::{Plan, Played, play},
    point::{CLOCK, Kill, LEDGER_ATTEMPTED},
    pool,
    programs::{Build, Effort},
    rehearsal::{Undisturbed, chosen, undisturbed},
    report::Tally,
    scenario::Scenario,
};

const SAMPLE: usize = 5;

/// How often a play is repeated whose point did not come.
const MISSES: usize = 3;

fn survives(scenario: &Scenario) -> Vec<(Kill, Played)> {
    let undisturbed = undisturbed(scenario);
    let kills = chosen(scenario.name, &undisturbed.kills, SAMPLE);
    survives_each("kill matrix", scenario, &undisturbed, kills)
}

pub(crate) fn survives_each(
    test: &'static str,
    scenario: &Scenario,
    undisturbed: &Undisturbed,
    kills: Vec<Kill>,
) -> Vec<(Kill, Played)> {
    let mut tally = Tally::new(test, scenario.name);
    let plays = pool::each(&kills, |kill| {
        let mut kill = *kill;
        let mut misses = 0;
        loop {
            let plan = Plan::killed(kill);
            let played = play(Build::Sound, scenario, plan, Some(&undisturbed.end));
            let missed = (played.deaths == 0 || played.too_late) && played.problems.is_empty();
            misses += 1;
            if !missed || kill.nth == 0 || misses > MISSES && kill.point != CLOCK {
                return played;
            }
            // A moment may come too late on a machine that has less to do than in the rehearsal: then an earlier one. And
            // where that has more to do, things may be committed together that were not in the rehearsal, or a cancel may
            // come when there is nothing left to cancel: then once more.
            if kill.point == CLOCK {
                kill.nth /= 2;
            }
        }
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
        .filter(|(kill, _)| (kill.point, kill.nth) == (LEDGER_ATTEMPTED, 2))
        .filter(|(_, played)| played.deaths > 0);
    for (kill, played) in outlived {
        // Both were running and acted after their driver's death, so neither was to be made again.
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

#[test]
fn questions_of_one_turn_are_answered_one_by_one_whatever_dies() {
    survives(&Scenario::per_call());
}

#[test]
fn questions_of_one_turn_are_answered_at_once_whatever_dies() {
    survives(&Scenario::per_call_by_map());
}

#[test]
fn one_question_after_the_other_survives_a_death_at_every_point() {
    survives(&Scenario::chained());
}

#[test]
fn a_write_of_a_subagents_subagent_survives_a_death_at_every_point() {
    survives(&Scenario::nested_team());
}

#[test]
fn writes_of_two_subagents_at_once_survive_a_death_at_every_point() {
    survives(&Scenario::team_of_two());
}

#[test]
fn a_stepped_tool_takes_every_step_once_whatever_dies() {
    survives(&Scenario::stepped());
}

#[test]
fn a_step_without_a_lookup_is_never_repeated_unless_a_person_says_so() {
    let plays = survives(&Scenario::stepped_without_lookup());
    let in_doubt = plays.iter().filter(|(_, played)| played.asked > 0);
    assert!(in_doubt.count() > 0, "nobody was ever asked");
}

#[test]
fn a_question_that_is_rejected_by_time_stays_rejected_whatever_dies() {
    survives(&Scenario::timeout_rejects());
}

#[test]
fn a_question_that_expires_ends_the_run_whatever_dies() {
    survives(&Scenario::timeout_expires());
}

#[test]
fn nothing_starts_while_a_run_is_paused_whatever_dies() {
    survives(&Scenario::paused_while_waiting());
}

#[test]
fn a_call_that_was_in_flight_when_the_run_was_paused_survives_a_death() {
    survives(&Scenario::paused_in_flight());
}

#[test]
fn a_grant_for_a_thread_spares_as_many_questions_as_it_says_whatever_dies() {
    survives(&Scenario::granted_in_the_thread());
}

#[test]
fn a_grant_for_an_agent_never_spares_more_questions_than_it_says_whatever_dies() {
    let plays = survives(&Scenario::granted_to_the_agent());
    // A use that was reserved by whoever died then is lost. Only a sample may miss that death.
    let cost_a_use = plays.iter().filter(|(_, played)| played.approvals > 2);
    assert!(cost_a_use.count() > 0 || Effort::asked_for() == Effort::Sample);
}
