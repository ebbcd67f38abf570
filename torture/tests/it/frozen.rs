//! A driver is frozen past its lease while its call is in the air, another one goes on, and the first comes back: whatever it
//! then wants to record is refused.

use std::{thread, time::Duration};

use crate::{
    pool,
    process::Watch,
    programs::{Build, Effort},
    report::Tally,
    scenario::Scenario,
    trace::Trace,
    world::{LEASE, SESSION, Setting, Timing, World},
};

/// Far longer than a lease, and than the deadline of a call with its time to settle.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of one freezing.
#[derive(Debug, Default)]
struct Frozen {
    effects: usize,
    problems: Vec<String>,
}

fn freeze(build: Build) -> Frozen {
    let world = World::new(build, &Scenario::approve().on_postgres());
    let mut frozen = Frozen::default();
    if let Err(problem) = come_back(&world) {
        frozen.problems.push(problem);
    }
    frozen.effects = world.ledger().effect_count();
    if frozen.effects != 1 {
        let effects = frozen.effects;
        frozen.problems.push(format!("{effects} effects"));
    }
    match Trace::read(&world, SESSION) {
        Ok(trace) => {
            if trace.runs() != 1 || trace.ends() != 1 {
                let (runs, ends) = (trace.runs(), trace.ends());
                let problem = format!("it began {runs} times and ended {ends} times");
                frozen.problems.push(problem);
            }
        }
        Err(problem) => frozen.problems.push(problem),
    }
    frozen
}

fn come_back(world: &World) -> Result<(), String> {
    let asked = world.run(SESSION, &Setting::PLAIN);
    if asked.code() != Some(3) {
        return Err(asked.explain());
    }
    let setting = Setting {
        timing: Timing::EndsLate(400),
        ..Setting::PLAIN
    };
    let mut driver = world.spawn(&["resume", SESSION, "--approve"], &setting);
    driver.wait_until(|| world.ledger().acts() > 0);
    driver.freeze();
    thread::sleep(LEASE);
    let watch = Watch::start();
    while world.show(SESSION)["status"] != "finished" {
        world.call(&["recover"], &Setting::PLAIN);
        if watch.elapsed() > PATIENCE {
            driver.thaw();
            driver.kill();
            return Err(format!("nobody goes on after {PATIENCE:?}"));
        }
    }
    // What it has to say about a call that was settled meanwhile may be noted, and changes nothing.
    let standing = || {
        let shown = world.show(SESSION);
        (shown["status"].clone(), shown["output"].clone())
    };
    let before = standing();
    driver.thaw();
    let ended = driver.wait();
    let after = standing();
    if before == after {
        return Ok(());
    }
    Err(format!(
        "who came back changed what was over: {before:?} became {after:?}: {}",
        ended.explain()
    ))
}

fn count(tally: &mut Tally, build: Build, times: usize) {
    let rounds: Vec<usize> = (0..times).collect();
    for (nth, frozen) in pool::each(&rounds, |_| freeze(build))
        .into_iter()
        .enumerate()
    {
        tally.effects += frozen.effects;
        tally.judge(&nth.to_string(), 0, &frozen.problems);
    }
}

#[test]
fn a_driver_that_comes_back_after_its_lease_changes_nothing() {
    let times = Effort::asked_for().pick(4, 100);
    let mut tally = Tally::new("frozen drivers", format!("{times} times, PostgreSQL"));
    count(&mut tally, Build::Sound, times);
    tally.conclude();
}

#[test]
fn without_the_epoch_check_the_oracle_reports_what_a_stale_driver_writes() {
    let mut tally = Tally::new("negative controls", "epoch check off, driver frozen");
    // Whoever comes back may find its lease and the run as they were; then once more.
    for _ in 0..10 {
        count(&mut tally, Build::WeakVersionCheck, 4);
        if !tally.violations.is_empty() {
            break;
        }
    }
    tally.publish();
    assert!(!tally.violations.is_empty(), "{tally:?}");
}
