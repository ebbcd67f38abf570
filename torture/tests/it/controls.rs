//! Negative controls: on builds that are wrong on purpose the same oracles must report what they report nowhere else. An
//! oracle that finds nothing there would find nothing anywhere.

use crate::{
    contest::Arena,
    duel::{Duel, Stand},
    play::{Plan, play},
    point::{CALL_AFTER, Kill, LEDGER_WRITTEN},
    pool,
    programs::Build,
    rehearsal::{last_effect, undisturbed},
    report::Tally,
    scenario::Scenario,
};

/// The deaths after the effect and before its record.
fn between_effect_and_record(kills: &[Kill]) -> Vec<Kill> {
    let after_effect = |kill: &&Kill| matches!(kill.point, CALL_AFTER | LEDGER_WRITTEN);
    kills.iter().filter(after_effect).copied().collect()
}

/// The death after the last effect of a stepped tool. What it did before may be repeated, and its end is no effect.
fn within_the_last_step(kills: &[Kill]) -> Vec<Kill> {
    last_effect(kills).into_iter().collect()
}

fn deaths(
    build: Build,
    name: &str,
    scenario: &Scenario,
    choose: fn(&[Kill]) -> Vec<Kill>,
) -> Tally {
    let undisturbed = undisturbed(scenario);
    let kills = choose(&undisturbed.kills);
    let mut tally = Tally::new("negative controls", name);
    let plays = pool::each(&kills, |kill| {
        play(build, scenario, Plan::killed(*kill), Some(&undisturbed.end))
    });
    for (kill, played) in kills.iter().zip(&plays) {
        tally.count(&kill.to_string(), played, 1);
    }
    assert_eq!((tally.points, tally.missed), (kills.len(), 0), "{tally:?}");
    assert!(tally.points > 0, "{}", scenario.name);
    tally
}

fn all_are_doubled(weak: &Tally) {
    weak.publish();
    let doubled = weak
        .violations
        .iter()
        .filter(|violation| violation.contains("doubled"));
    assert_eq!(doubled.count(), weak.points, "{weak:?}");
}

#[test]
fn without_the_started_record_the_oracle_reports_doubled_effects() {
    let scenario = Scenario::write_without_lookup();
    let deaths = |build, name| deaths(build, name, &scenario, between_effect_and_record);
    all_are_doubled(&deaths(Build::WeakNoStarted, "started record off"));
    deaths(Build::Sound, "started record on").conclude();
}

#[test]
fn without_the_started_record_the_oracle_reports_doubled_steps() {
    let scenario = Scenario::stepped();
    let deaths = |build, name| deaths(build, name, &scenario, within_the_last_step);
    all_are_doubled(&deaths(
        Build::WeakNoStarted,
        "started record of a step off",
    ));
    deaths(Build::Sound, "started record of a step on").conclude();
}

#[test]
fn without_the_version_check_the_oracle_reports_several_winners() {
    const ROUNDS: usize = 30;
    let mut weak = Tally::new("negative controls", "version check off, 8 processes");
    let arena = Arena::new(Build::WeakVersionCheck);
    for round in 0..ROUNDS {
        let contest = arena.fight(&format!("q{round}"));
        weak.points += 1;
        weak.effects += contest.effects;
        if contest.is_doubled() {
            weak.violations.push(contest.problems.join("\n  "));
            break;
        }
    }
    weak.publish();
    assert!(!weak.violations.is_empty(), "{ROUNDS} rounds found nothing");
    let mut sound = Tally::new("negative controls", "version check on, 8 processes");
    let arena = Arena::new(Build::Sound);
    for round in 0..weak.points.max(4) {
        let session = format!("q{round}");
        arena.fight(&session).count(&session, &mut sound);
    }
    sound.conclude();
}

fn duel(build: Build, name: &str, questions: usize) -> Tally {
    let mut tally = Tally::new("negative controls", name);
    let mut duel = Duel::new(build);
    for number in 0..questions {
        // Nobody takes the lease of a paused run for long, so that only the version check is left.
        let question = duel.park(number, Stand::Paused);
        let fought = duel.fight(&question);
        tally.points += 1;
        tally.effects += fought.effects;
        match (fought.problems.is_empty(), fought.winners.len()) {
            (true, 1) => tally.passed += 1,
            (_, winners) => {
                let problems = fought.problems.join("\n  ");
                tally
                    .violations
                    .push(format!("{winners} winners:\n  {problems}"));
                // What follows would be about a file that is broken.
                if winners > 1 {
                    break;
                }
            }
        }
    }
    tally
}

#[test]
fn without_the_version_check_two_processes_have_several_winners() {
    let weak = duel(
        Build::WeakVersionCheck,
        "version check off, 100 answers",
        30,
    );
    weak.publish();
    let several = |violation: &String| !violation.starts_with("1 winners");
    assert!(weak.violations.iter().any(several), "{weak:?}");
    duel(Build::Sound, "version check on, 100 answers", 4).conclude();
}
