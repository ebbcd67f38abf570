//! Whom a driver's lease protects: the living from everyone, the dead from nobody.

use std::time::Duration;

use crate::{
    point::CALL_BEFORE,
    process::{Ended, Running, Watch},
    programs::Build,
    scenario::{Phase, Scenario},
    trace::Trace,
    world::{SESSION, Setting, Timing, World},
};

/// How long a lease lasts that its holder does not renew.
const LEASE: Duration = Duration::from_secs(10);

/// A run whose approved call was just recorded as started.
struct Driven {
    world: World,
    driver: Running,
}

fn driven(scenario: &Scenario, timing: Timing) -> Driven {
    let world = World::new(Build::Sound, scenario);
    let asked = world.run(SESSION, &Setting::PLAIN);
    assert_eq!(asked.code(), Some(3), "{}", asked.explain());
    let Some(Phase::Answer(_, decisions)) = scenario.phases.last() else {
        panic!("{} has no answer", scenario.name);
    };
    let decisions = decisions.to_string();
    let log = world.path("points");
    let setting = Setting {
        timing,
        kill_at: None,
        log: Some(log.clone()),
        ..Setting::PLAIN
    };
    let words = ["resume", SESSION, "--decisions", &decisions];
    let mut driver = world.spawn(&words, &setting);
    driver.wait_for_point(&log, CALL_BEFORE);
    assert!(!driver.has_ended(), "{}", driver.wait().explain());
    Driven { world, driver }
}

/// Two processes recover at once. Returns how they ended, and how long the faster one took.
fn two_recoveries(world: &World) -> ([Ended; 2], Duration) {
    let watch = Watch::start();
    let [mut one, mut other] = [(); 2].map(|()| world.spawn(&["recover"], &Setting::PLAIN));
    one.wait_until(|| other.has_ended());
    let took = watch.elapsed();
    ([one, other].map(Running::wait), took)
}

#[test]
fn two_recoveries_at_once_leave_alone_what_a_live_process_drives() {
    // The call outlasts a lease, so that only the driver's own renewals protect it.
    let outlasting = Timing::ActsLate(11_500);
    let scenario = Scenario::write_without_lookup().with_timeout("60s");
    let Driven { world, driver } = driven(&scenario, outlasting);
    let (recoveries, _) = two_recoveries(&world);
    for recovery in recoveries {
        assert_eq!(
            (recovery.code(), recovery.lines.len()),
            (Some(0), 0),
            "{}",
            recovery.explain()
        );
    }
    let ended = driver.wait();
    assert_eq!(ended.code(), Some(0), "{}", ended.explain());
    let trace = Trace::read(&world, SESSION).unwrap();
    assert_eq!((trace.starts(), world.ledger().effect_count()), (1, 1));
}

#[test]
fn two_recoveries_at_once_take_a_dead_drivers_work_over_once() {
    let scenario = Scenario::approve();
    let Driven { world, driver } = driven(&scenario, Timing::ACTS_LATE);
    let killed = driver.kill();
    assert!(killed.was_killed(), "{}", killed.explain());
    let (recoveries, took) = two_recoveries(&world);
    for recovery in recoveries {
        assert_eq!(recovery.code(), Some(0), "{}", recovery.explain());
    }
    // The call's own deadline is waited for, the dead driver's lease is not. The slower one waits for the faster one's.
    assert!(took < LEASE * 2 / 3, "it took {took:?}");
    let trace = Trace::read(&world, SESSION).unwrap();
    // The call had not acted when its driver died, so it was made again.
    assert_eq!((trace.starts(), world.ledger().effect_count()), (2, 1));
    assert_eq!(world.show(SESSION)["status"], "finished");
}

#[test]
fn a_dead_drivers_read_is_repeated_at_once() {
    let Driven { world, driver } = driven(&Scenario::read(), Timing::ACTS_LATE);
    assert!(driver.kill().was_killed());
    let watch = Watch::start();
    let recovery = world.call(&["recover"], &Setting::PLAIN);
    let took = watch.elapsed();
    assert_eq!(recovery.code(), Some(0), "{}", recovery.explain());
    assert!(took < LEASE / 3, "it took {took:?}");
    assert_eq!(world.show(SESSION)["status"], "finished");
}
