//! A store moves to another, and whoever moves it dies over that.

use holdpoint_test_postgres::Database;

use crate::{
    point::{CLOCK, Dice},
    programs::{Build, Effort},
    report::Tally,
    scenario::{Scenario, Shelf},
    world::{Setting, World},
};

/// The old store takes nothing new.
const SEALED: &str = "copy.sealed";
/// Some of it has arrived.
const PIECE: &str = "copy.piece";
/// All of it has.
const COPIED: &str = "copy.copied";
/// All of it was checked.
const CHECKED: &str = "copy.checked";
/// The old store has left for good, and the new one does not know yet that it goes on.
const LEFT: &str = "copy.left";

const POINTS: [&str; 5] = [SEALED, PIECE, COPIED, CHECKED, LEFT];

const THREADS: usize = 3;

fn sessions() -> impl Iterator<Item = String> {
    (0..THREADS).map(|number| format!("t{number}"))
}

/// Moves a store in which runs wait, dies at this point, and moves it again. Returns what was wrong.
fn moved(scenario: &Scenario, point: (&'static str, usize)) -> (usize, Vec<String>) {
    let world = World::new(Build::Sound, scenario);
    for session in sessions() {
        let asked = world.run(&session, &Setting::PLAIN);
        assert_eq!(asked.code(), Some(3), "{}", asked.explain());
    }
    // To what it was not on before.
    let database = Database::create().unwrap();
    let (old, new) = match &scenario.shelf {
        Shelf::Sqlite => (world.store(), database.url()),
        Shelf::Postgres => {
            let file = world.path("new.db");
            (world.store(), format!("sqlite:{}", file.display()))
        }
    };
    let there = Setting {
        store: Some(new.clone()),
        ..Setting::PLAIN
    };
    let mut problems = Vec::new();
    let words = ["store", "copy", &old, &new];
    let dying = Setting {
        kill_at: Some(point),
        ..Setting::PLAIN
    };
    let died = world.call(&words, &dying);
    // By the clock, it may come to its end before.
    let lived = point.0 == CLOCK && died.code() == Some(0);
    if !died.was_killed() && !lived {
        problems.push(format!("it lived: {}", died.explain()));
    }
    if died.was_killed() {
        // At no point can anything go on in both; and by the clock it may not have begun, or have come to its end.
        let driven = [&Setting::PLAIN, &there].map(|setting| {
            let paused = world.call(&["pause", "t0"], setting);
            paused.code() == Some(0)
        });
        match (point.0, driven) {
            (CLOCK, [true, false] | [false, true]) | (_, [false, false]) => {}
            (_, driven) => problems.push(format!("[old, new] were driven: {driven:?}")),
        }
        // It may have ended right before it died.
        let again = world.call(&words, &Setting::PLAIN);
        let is_over = point.0 == CLOCK && again.error_code() == Some("cannot_drive");
        if again.code() != Some(0) && !is_over {
            problems.push(again.explain());
        }
    }
    for session in sessions() {
        let late = world.call(&["resume", &session, "--approve"], &Setting::PLAIN);
        if late.code() == Some(0) {
            problems.push(format!("{session} went on in the old store"));
        }
        // One of them was paused before it moved.
        world.call(&["continue", &session], &there);
        let done = world.call(&["resume", &session, "--approve"], &there);
        if done.code() != Some(0) {
            problems.push(done.explain());
        }
    }
    let checked = world.call(&["store", "check"], &there);
    if checked.code() != Some(0) {
        problems.push(checked.explain());
    }
    let effects = world.ledger().effect_count();
    if effects != THREADS {
        problems.push(format!("{effects} effects instead of {THREADS}"));
    }
    if !problems.is_empty() {
        world.keep_and_say();
    }
    (effects, problems)
}

fn whoever_moves_it_dies(name: &str, scenario: &Scenario) {
    let moments = Effort::asked_for().pick(2, 40);
    let mut tally = Tally::new("moves", name);
    let mut dice = Dice::new(name);
    // So long takes a whole move here, about.
    let moments = (0..moments).map(|_| (CLOCK, 1 + dice.below(400_000)));
    let points = POINTS.into_iter().map(|point| (point, 1));
    for point in points.chain(moments.collect::<Vec<_>>()) {
        let (effects, problems) = moved(scenario, point);
        tally.points += 1;
        tally.effects += effects;
        if problems.is_empty() {
            tally.passed += 1;
        } else {
            let problems = problems.join("\n  ");
            tally.violations.push(format!("{point:?}:\n  {problems}"));
        }
    }
    tally.conclude();
}

#[test]
fn whoever_dies_while_moving_a_file_to_postgres_leaves_nothing_that_goes_on_twice() {
    whoever_moves_it_dies("SQLite to PostgreSQL", &Scenario::write_without_lookup());
}

#[test]
fn whoever_dies_while_moving_a_database_to_a_file_leaves_nothing_that_goes_on_twice() {
    let scenario = Scenario::write_without_lookup().on_postgres();
    whoever_moves_it_dies("PostgreSQL to SQLite", &scenario);
}
