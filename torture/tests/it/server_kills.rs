//! A server is killed at random under load: what it acknowledged is there, and nothing runs twice.

use std::{ops::Range, thread, time::Duration};

use crate::{
    client::{Keys, Load},
    point::Dice,
    programs::{Build, Effort},
    report::Tally,
    scenario::Scenario,
    service::Service,
    storm::{CLIENTS, Storm, storm},
    world::{Timing, World},
};

/// How long a server lives after it got ready, in milliseconds.
const LIFE: Range<usize> = 50..400;

/// How long one lives at most that does not get ready.
const STILLBORN: usize = 80;

/// Kills a server so often under load.
fn killed_under_load(build: Build, keys: Keys, kills: usize) -> Storm {
    let world = World::new(build, &Scenario::served());
    let mut service = Service::new(&world);
    let load = Load::new(&world, vec![service.address], keys);
    let seen = storm(&load, || {
        let killed = rage(&mut service, kills);
        load.calm_down();
        service.start(Timing::Prompt);
        killed.and_then(|()| service.await_ready())
    });
    drop(service);
    let seen = seen.judged(&world);
    // What was meant to go wrong needs nobody to look at it.
    if keys == Keys::Sent && !seen.is_sound() {
        world.keep_and_say();
    }
    seen
}

/// Kills the server at moments that nobody foresees.
fn rage(service: &mut Service<'_>, kills: usize) -> Result<(), String> {
    let mut dice = Dice::new("server kills");
    for _ in 0..kills {
        let millis = u32::try_from(20 + dice.below(100)).unwrap();
        // Where a tool takes its time, a death is likely to find it: before its effect, or after.
        let timing = match dice.below(4) {
            0 => Timing::Prompt,
            1 => Timing::ActsLate(millis),
            _ => Timing::EndsLate(millis),
        };
        service.start(timing);
        // Some do not even get ready.
        let life = if dice.below(8) == 0 {
            dice.below(STILLBORN)
        } else {
            service.await_ready()?;
            LIFE.start + dice.below(LIFE.len())
        };
        thread::sleep(Duration::from_millis(life.try_into().unwrap()));
        service.kill()?;
    }
    Ok(())
}

#[test]
fn a_server_that_is_killed_under_load_loses_nothing_and_does_nothing_twice() {
    let kills = Effort::asked_for().pick(10, 200);
    let mut tally = Tally::new("server kills", format!("{kills} kills, {CLIENTS} clients"));
    let seen = killed_under_load(Build::Sound, Keys::Sent, kills);
    tally.also("kills", kills);
    seen.conclude(tally);
}

/// Has one storm after another until something is found that was to be found, or too many found nothing.
fn control(name: &str, build: Build, keys: Keys, is_found: fn(&String) -> bool) {
    const STORMS: usize = 8;
    let mut tally = Tally::new("negative controls", name);
    for _ in 0..STORMS {
        killed_under_load(build, keys, 10).count(&mut tally);
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
