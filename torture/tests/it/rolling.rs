//! Two servers on one database are replaced one after the other under load, as a new version is rolled out: nobody notices but
//! those who were talking to the one that goes, and they go on with the other.

use std::time::Duration;

use crate::{
    client::{Keys, Load},
    follower::Memory,
    programs::{Build, Effort},
    report::{Tally, tenths},
    scenario::Scenario,
    service::Service,
    storm::{CLIENTS, Storm, storm},
    world::{Setting, Timing, World},
};

/// How many runs end between two departures.
const BETWEEN: usize = 6;

/// What was seen of the servers that went.
#[derive(Debug, Default)]
struct Departures {
    /// How many runs were not over when each of them went.
    under_way: Vec<usize>,
    slowest: Duration,
}

/// How a server is made to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Farewell {
    Asked,
    /// Wrong on purpose.
    Killed,
}

impl Farewell {
    /// Returns how long it took.
    fn to(self, service: &mut Service<'_>) -> Result<Duration, String> {
        match self {
            Self::Asked => service.let_go(),
            Self::Killed => service.kill().map(|()| Duration::ZERO),
        }
    }
}

/// Has every server go and come back, so many times.
fn roll_out(
    services: &mut [Service<'_>],
    load: &Load<'_>,
    rounds: usize,
    farewell: Farewell,
    departures: &mut Departures,
) -> Result<(), String> {
    for round in 0..rounds {
        for service in &mut *services {
            load.await_ended(load.ended() + BETWEEN)?;
            departures.under_way.push(load.under_way());
            departures.slowest = farewell.to(service)?.max(departures.slowest);
            // Where tools take their time, some are in the air when the next one goes.
            service.start(timing(round));
            service.await_ready()?;
        }
    }
    Ok(())
}

fn served_by(build: Build) -> World {
    World::new(build, &Scenario::served_twice().on_postgres())
}

fn timing(round: usize) -> Timing {
    [Timing::EndsLate(60), Timing::Prompt, Timing::ActsLate(60)][round % 3]
}

/// Replaces two servers one after the other under load, so many times.
fn replaced_under_load(
    world: World,
    first: Build,
    rounds: usize,
    farewell: Farewell,
    memory: Memory,
) -> (Storm, Departures) {
    let mut services = [(); 2].map(|()| Service::new(&world));
    for service in &mut services {
        service.becomes(first);
        service.start(timing(0));
        service.await_ready().unwrap();
        service.becomes(world.build());
    }
    let addresses = services.each_ref().map(|service| service.address);
    let load = Load::new(&world, addresses.to_vec(), Keys::Sent)
        .asking(2)
        .bearing_departures_only()
        .followed(memory);
    let mut departures = Departures::default();
    let seen = storm(&load, || {
        roll_out(&mut services, &load, rounds, farewell, &mut departures)
    });
    drop(services);
    let seen = seen.judged(&world);
    // What was meant to go wrong needs nobody to look at it.
    if (farewell, memory) == (Farewell::Asked, Memory::Kept) && !seen.is_sound() {
        world.keep_and_say();
    }
    (seen, departures)
}

#[test]
fn servers_that_are_replaced_one_after_the_other_lose_nothing_and_every_stream_goes_on() {
    let rounds = Effort::asked_for().pick(1, 20);
    let name = format!("{rounds} rounds, 2 servers, {CLIENTS} clients, PostgreSQL");
    let mut tally = Tally::new("rolling restarts", name);
    let (seen, departures) = replaced_under_load(
        served_by(Build::Shipped),
        Build::Shipped,
        rounds,
        Farewell::Asked,
        Memory::Kept,
    );
    let followed = seen.runs.iter().filter_map(|run| run.followed.as_ref());
    let moves: usize = followed.map(|it| it.moves).sum();
    tally.also("departures", departures.under_way.len());
    tally.also("slowest_departure_s", tenths(departures.slowest));
    tally.also("streams_gone_on_with", moves);
    seen.conclude(tally);
    assert_eq!(departures.under_way.len(), rounds * 2);
    let all_came_under_load = departures.under_way.iter().all(|it| *it > 0);
    assert!(all_came_under_load, "{departures:?}");
    // Streams that were never cut off would show nothing.
    assert!(moves > 0, "no stream went on elsewhere");
}

#[test]
fn servers_of_the_version_before_are_replaced_one_after_the_other_and_both_get_along() {
    let times = Effort::asked_for().pick(1, 10);
    let name = format!("{times} times from the previous stored format, 2 servers, PostgreSQL");
    let mut tally = Tally::new("rolling restarts", name);
    let mut under_way = 0;
    for _ in 0..times {
        // The database is brought to the new format while a server of the version before works on it.
        let world = served_by(Build::Shipped);
        let (seen, departures) =
            replaced_under_load(world, Build::Previous, 1, Farewell::Asked, Memory::Kept);
        under_way += departures.under_way.iter().sum::<usize>();
        seen.count(&mut tally);
    }
    tally.also("runs_under_way_at_departures", under_way);
    tally.conclude();
    assert!(under_way > 0);
}

#[test]
fn a_version_that_does_not_know_the_stored_format_does_not_touch_it() {
    let world = served_by(Build::Shipped);
    let previous = Setting {
        build: Some(Build::Previous),
        ..Setting::PLAIN
    };
    let asked = world.run("s", &previous);
    assert_eq!(asked.code(), Some(3), "{}", asked.explain());
    // By this version, which finds what the one before it wrote.
    let view = world.show("s");
    assert_eq!(view["status"], "waiting", "{view}");
    let refused = world.call(&["resume", "s", "--approve"], &previous);
    assert_eq!(refused.error_code(), Some("store_unusable"));
    assert_eq!(world.show("s"), view);
    let done = world.call(&["resume", "s", "--approve"], &Setting::PLAIN);
    assert_eq!(done.error_code(), None, "{}", done.explain());
}

/// Rolls out until something is found that was to be found, or too often found nothing.
fn control(name: &str, build: Build, farewell: Farewell, memory: Memory, sign: &str) {
    const STORMS: usize = 6;
    let mut tally = Tally::new("negative controls", name);
    let is_found = |tally: &Tally| tally.violations.iter().any(|it| it.contains(sign));
    for _ in 0..STORMS {
        let (seen, _) = replaced_under_load(served_by(build), build, 1, farewell, memory);
        seen.count(&mut tally);
        if is_found(&tally) {
            break;
        }
    }
    tally.publish();
    assert!(is_found(&tally), "{tally:?}");
}

#[test]
fn of_servers_that_go_without_a_word_the_oracle_reports_the_streams_that_broke_off() {
    let name = "servers killed instead of asked to go";
    // With leases that end soon, so that somebody goes on with what the dead one left.
    let sign = "breaks off without a word";
    control(name, Build::Sound, Farewell::Killed, Memory::Kept, sign);
}

#[test]
fn of_followers_who_forget_where_they_were_the_oracle_reports_what_came_twice() {
    let name = "streams gone on with from their beginning";
    let sign = "its stream showed";
    control(name, Build::Shipped, Farewell::Asked, Memory::Lost, sign);
}
