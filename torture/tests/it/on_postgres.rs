//! What is shown on SQLite, on PostgreSQL: the kill matrix, and many processes that answer at once.

use crate::{
    contest::Arena,
    kill_matrix::survives_each,
    programs::{Build, Effort},
    rehearsal::{chosen, undisturbed},
    report::Tally,
    scenario::Scenario,
};

/// The scenarios of the kill matrix; those first that are always tried.
const SCENARIOS: [fn() -> Scenario; 27] = [
    Scenario::approve,
    Scenario::write_without_lookup,
    Scenario::stepped,
    Scenario::granted_to_the_agent,
    Scenario::reject,
    Scenario::edit,
    Scenario::respond,
    Scenario::mixed_batch,
    Scenario::every_effect_class,
    Scenario::every_findable_class,
    Scenario::outliving_programs,
    Scenario::read,
    Scenario::cancel_waiting,
    Scenario::cancel_with_compensation,
    Scenario::cancel_without_compensation,
    Scenario::cancel_of_a_blind_write,
    Scenario::per_call,
    Scenario::per_call_by_map,
    Scenario::chained,
    Scenario::stepped_without_lookup,
    Scenario::timeout_rejects,
    Scenario::timeout_expires,
    Scenario::paused_while_waiting,
    Scenario::paused_in_flight,
    Scenario::granted_in_the_thread,
    Scenario::nested_team,
    Scenario::team_of_two,
];

#[test]
fn every_scenario_survives_a_death_at_every_point_on_postgres() {
    let wanted = Effort::asked_for().pick(4, SCENARIOS.len());
    for scenario in SCENARIOS.iter().take(wanted) {
        let scenario = scenario().on_postgres();
        let undisturbed = undisturbed(&scenario);
        let kills = chosen(scenario.name, &undisturbed.kills, 3);
        survives_each("kill matrix, PostgreSQL", &scenario, &undisturbed, kills);
    }
}

#[test]
fn of_many_processes_that_answer_at_once_on_postgres_exactly_one_wins() {
    let rounds = Effort::asked_for().pick(6, 100);
    let name = format!("{rounds} questions, 8 processes each, PostgreSQL");
    let mut tally = Tally::new("one winner", name);
    let arena = Arena::on(
        Build::Sound,
        &Scenario::write_without_lookup().on_postgres(),
    );
    for round in 0..rounds {
        let session = format!("q{round}");
        arena.fight(&session).count(&session, &mut tally);
    }
    tally.conclude();
}
