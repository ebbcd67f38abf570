//! A backup takes the place of a store that was lost, and whoever adopts it dies over that.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    point::{ADOPTED_A_THREAD, ADOPTED_ALL},
    programs::{Build, Effort},
    report::Tally,
    scenario::Scenario,
    trace::Trace,
    world::{Setting, World},
};

const THREADS: usize = 12;

fn sessions() -> impl Iterator<Item = String> {
    (0..THREADS).map(|number| format!("t{number}"))
}

/// Parks the runs, keeps a backup, and lets everything happen in the original. Returns the backup.
fn lose(world: &World) -> PathBuf {
    for session in sessions() {
        let asked = world.run(&session, &Setting::PLAIN);
        assert_eq!(asked.code(), Some(3), "{}", asked.explain());
    }
    let backup = world.path("backup.db");
    let made = world.call(&["backup", backup.to_str().unwrap()], &Setting::PLAIN);
    assert_eq!(made.code(), Some(0), "{}", made.explain());
    for session in sessions() {
        let done = world.call(&["resume", &session, "--approve"], &Setting::PLAIN);
        assert_eq!(done.code(), Some(0), "{}", done.explain());
    }
    backup
}

/// Puts the backup in the place of the store.
fn put_back(world: &World, backup: &Path) {
    for ending in ["", "-wal", "-shm", "-journal"] {
        // What is not there need not go.
        let _ = fs::remove_file(world.path(&format!("store.db{ending}")));
    }
    fs::copy(backup, world.path("store.db")).unwrap();
}

/// Adopts it, dies there, and adopts it again. Returns what was wrong.
fn adopt(world: &World, point: (&'static str, usize), effects: usize) -> Result<(), String> {
    let setting = Setting {
        kill_at: Some(point),
        ..Setting::PLAIN
    };
    let died = world.call(&["recover", "--adopt"], &setting);
    if !died.was_killed() {
        return Err(format!("it lived: {}", died.explain()));
    }
    let early = world.call(&["resume", "t0", "--approve"], &Setting::PLAIN);
    if early.error_code() != Some("not_adopted") {
        return Err(format!("it was not a backup any more: {}", early.explain()));
    }
    let adopted = world.call(&["recover", "--adopt"], &Setting::PLAIN);
    if adopted.code() != Some(3) {
        return Err(adopted.explain());
    }
    for session in sessions() {
        let view = world.show(&session);
        let asked = view["__interrupt__"].as_array().map_or(0, Vec::len);
        if view["cause"] != "system_restart" || asked != 1 {
            return Err(format!(
                "{session} is asked {asked} things: {}",
                view["cause"]
            ));
        }
        let restored = Trace::read(world, &session)?.restored();
        if restored != 1 {
            return Err(format!("{session} was restored {restored} times"));
        }
    }
    let now = world.ledger().effect_count();
    if now != effects {
        return Err(format!("{now} effects instead of {effects}"));
    }
    Ok(())
}

#[test]
fn whoever_dies_while_adopting_leaves_a_backup_and_nothing_is_done_twice() {
    let world = World::new(Build::Sound, &Scenario::approve());
    let backup = lose(&world);
    let effects = world.ledger().effect_count();
    assert_eq!(effects, THREADS);
    let all: Vec<usize> = match Effort::asked_for() {
        Effort::Full => (1..=THREADS).collect(),
        Effort::Sample => vec![1, THREADS / 2, THREADS],
    };
    let points = all.into_iter().map(|nth| (ADOPTED_A_THREAD, nth));
    let name = format!("a backup of {THREADS} runs is adopted");
    let mut tally = Tally::new("kill matrix", name);
    for point in points.chain([(ADOPTED_ALL, 1)]) {
        put_back(&world, &backup);
        tally.points += 1;
        match adopt(&world, point, effects) {
            Ok(()) => tally.passed += 1,
            Err(problem) => tally.violations.push(format!("{point:?}: {problem}")),
        }
    }
    tally.effects = world.ledger().effect_count();
    tally.conclude();
}
