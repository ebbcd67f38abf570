//! A server is killed at random under load: what it acknowledged is there, and nothing runs twice.

use crate::{
    client::{Keys, LIMIT},
    programs::{Build, Effort},
    report::{Tally, tenths},
    storm::{CLIENTS, Storm, storm},
};

/// Every run is an operation: from its beginning to its end.
fn count(tally: &mut Tally, storm: &Storm) {
    for run in &storm.runs {
        tally.points += 1;
        if !run.problems.is_empty() {
            let problems = run.problems.join("\n  ");
            tally
                .violations
                .push(format!("{}:\n  {problems}", run.session));
        } else if run.asked > 0 {
            tally.waited += 1;
        } else {
            tally.passed += 1;
        }
    }
    tally.violations.extend(storm.problems.iter().cloned());
    tally.effects += storm.effects;
}

#[test]
fn a_server_that_is_killed_under_load_loses_nothing_and_does_nothing_twice() {
    let kills = Effort::asked_for().pick(10, 200);
    let mut tally = Tally::new("server kills", format!("{kills} kills, {CLIENTS} clients"));
    let storm = storm(Build::Sound, Keys::Sent, kills);
    count(&mut tally, &storm);
    let under_fire = storm.runs.iter().filter(|run| run.under_fire).count();
    tally.also("kills", storm.kills);
    tally.also("ended_under_fire", under_fire);
    tally.also("requests", storm.requests);
    tally.also("repeated", storm.repeated);
    tally.also("replayed", storm.replayed);
    tally.also("over_after_s", tenths(storm.calm_after));
    tally.conclude();
    assert!(storm.calm_after < LIMIT, "{:?}", storm.calm_after);
    // A server that hardly ever answers proves nothing.
    let Storm {
        requests, repeated, ..
    } = storm;
    assert!(
        repeated * 2 <= requests,
        "{repeated} of {requests} requests were sent again"
    );
}

/// Has one storm after another until something is found that was to be found, or too many found nothing.
fn control(name: &str, build: Build, keys: Keys, is_found: fn(&String) -> bool) {
    const STORMS: usize = 8;
    let mut tally = Tally::new("negative controls", name);
    for _ in 0..STORMS {
        count(&mut tally, &storm(build, keys, 10));
        if tally.violations.iter().any(is_found) {
            break;
        }
    }
    tally.publish();
    assert!(tally.violations.iter().any(is_found), "{tally:?}");
}

#[test]
fn without_the_started_record_the_oracle_reports_doubled_effects_of_a_server() {
    let name = "started record off, server killed";
    control(name, Build::WeakNoStarted, Keys::Sent, |violation| {
        violation.contains("doubled")
    });
}

#[test]
fn without_keys_the_oracle_reports_what_was_done_and_not_acknowledged() {
    let name = "requests without keys, server killed";
    control(name, Build::Sound, Keys::LeftOut, |violation| {
        violation.contains("409 instead of")
    });
}
