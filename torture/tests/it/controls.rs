//! Negative controls: on builds that are wrong on purpose the same oracles must report what they report nowhere else. An
//! oracle that finds nothing there would find nothing anywhere.

use crate::{
    contest::Arena,
    play::{Plan, play},
    point::{CALL_AFTER, Kill, LEDGER_WRITTEN},
    pool,
    programs::Build,
    rehearsal::undisturbed,
    report::Tally,
    scenario::Scenario,
};

/// The deaths after the effect and before its record.
fn between_effect_and_record(kills: &[Kill]) -> Vec<Kill> {
    let after_effect = |kill: &&Kill| matches!(kill.point, CALL_AFTER | LEDGER_WRITTEN);
    kills.iter().filter(after_effect).copied().collect()
}

fn deaths_after_the_effect(build: Build, name: &str) -> Tally {
    let scenario = Scenario::write_without_lookup();
    let undisturbed = undisturbed(&scenario);
    let kills = between_effect_and_record(&undisturbed.kills);
    let mut tally = Tally::new("negative controls", name);
    let plays = pool::each(&kills, |kill| {
        play(
            build,
            &scenario,
            Plan::killed(*kill),
            Some(&undisturbed.end),
        )
    });
    for (kill, played) in kills.iter().zip(&plays) {
        tally.count(&kill.to_string(), played, 1);
    }
    assert_eq!((tally.points, tally.missed), (kills.len(), 0), "{tally:?}");
    tally
}

#[test]
fn without_the_started_record_the_oracle_reports_doubled_effects() {
    let weak = deaths_after_the_effect(Build::WeakNoStarted, "started record off");
    weak.publish();
    let doubled = weak
        .violations
        .iter()
        .filter(|violation| violation.contains("doubled"));
    assert_eq!(doubled.count(), weak.points, "{weak:?}");
    deaths_after_the_effect(Build::Sound, "started record on").conclude();
}

#[test]
fn without_the_version_check_the_oracle_reports_several_winners() {
    const ROUNDS: usize = 30;
    let mut weak = Tally::new("negative controls", "version check off");
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
    let mut sound = Tally::new("negative controls", "version check on");
    let arena = Arena::new(Build::Sound);
    for round in 0..weak.points.max(4) {
        let contest = arena.fight(&format!("q{round}"));
        sound.points += 1;
        sound.effects += contest.effects;
        if contest.problems.is_empty() {
            sound.passed += 1;
        } else {
            sound.violations.push(contest.problems.join("\n  "));
        }
    }
    sound.conclude();
}
