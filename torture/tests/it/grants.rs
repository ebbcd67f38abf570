//! A grant spares as many questions as it says, however many threads of its agent ask for leave at once.

use serde_json::json;

use crate::{
    process::{Ended, Running},
    programs::{Build, Effort},
    report::Tally,
    scenario::{Scenario, granting},
    world::{Setting, World},
};

const THREADS: usize = 8;
const USES: usize = 3;

/// One grant, and many threads that could do with it. Returns what was wrong.
fn fight(world: &World, round: usize) -> Result<(), String> {
    let before = world.ledger().effect_count();
    let first = format!("r{round}");
    let asked = world.run(&first, &Setting::PLAIN);
    if asked.code() != Some(3) {
        return Err(format!("nobody was asked: {}", asked.explain()));
    }
    let decisions = json!([granting("agent", USES)]).to_string();
    let words = ["resume", &first, "--decisions", &decisions];
    let granted = world.call(&words, &Setting::PLAIN);
    if granted.code() != Some(0) {
        return Err(granted.explain());
    }
    let agent = world.path("agent.yaml");
    let agent = agent.to_str().unwrap();
    let threads: Vec<Running> = (0..THREADS)
        .map(|thread| {
            let session = format!("r{round}-{thread}");
            let words = ["run", agent, "--input", "please", "--thread", &session];
            world.spawn(&words, &Setting::PLAIN)
        })
        .collect();
    let ended: Vec<Ended> = threads.into_iter().map(Running::wait).collect();
    let of = |code: i32| ended.iter().filter(|it| it.code() == Some(code)).count();
    let effects = world.ledger().effect_count() - before;
    if (of(0), of(3), effects) == (USES, THREADS - USES, 1 + USES) {
        return Ok(());
    }
    let explained: Vec<String> = ended.iter().map(Ended::explain).collect();
    Err(format!(
        "{} passed, {} waited, {effects} effects\n{}",
        of(0),
        of(3),
        explained.join("\n")
    ))
}

#[test]
fn of_many_threads_at_once_no_more_pass_by_a_grant_than_it_allows() {
    let rounds = Effort::asked_for().pick(3, 60);
    let name = format!("{rounds} grants of {USES} uses, {THREADS} processes each");
    let mut tally = Tally::new("one winner", name);
    let world = World::new(Build::Sound, &Scenario::approve());
    for round in 0..rounds {
        tally.points += 1;
        match fight(&world, round) {
            Ok(()) => tally.passed += 1,
            Err(problem) => tally.violations.push(format!("r{round}: {problem}")),
        }
    }
    tally.effects = world.ledger().effect_count();
    tally.conclude();
}
