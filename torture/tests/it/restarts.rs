//! The database restarts again and again under load: what was acknowledged is there, and nothing runs twice.

use std::{thread, time::Duration};

use holdpoint_test_postgres::{Database, Programs, Server, Stop};

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

/// How often every run asks.
const QUESTIONS: usize = 2;

/// How long a database is away at most, besides the time it takes to stop and to start, in milliseconds.
const AWAY: usize = 1_500;

/// What there was at one restart.
#[derive(Debug, Clone, Copy)]
struct Restart {
    how: Stop,
    /// How many runs had ended.
    ended: usize,
    /// How many runs were not over.
    under_way: usize,
}

/// So many restarts, spread over so many runs.
#[derive(Debug, Clone, Copy)]
struct Plan {
    restarts: usize,
    runs: usize,
}

/// Restarts a database under the load of clients of two servers.
fn restarted_under_load(settings: &[&str], plan: Plan, hows: &[Stop]) -> (Storm, Vec<Restart>) {
    // Nobody else's tests may notice anything of it.
    let server = Server::start(Programs::find_or_install().unwrap(), settings).unwrap();
    let database = Database::on(&server.url()).unwrap();
    let world = World::on(Build::Shipped, &Scenario::served_twice(), database);
    let mut services = [(); 2].map(|()| Service::new(&world));
    for service in &mut services {
        service.start(Timing::Prompt);
        service.await_ready().unwrap();
    }
    let addresses = services.each_ref().map(|service| service.address);
    let load = Load::new(&world, addresses.to_vec(), Keys::Sent).asking(QUESTIONS);
    let mut restarts = Vec::new();
    let seen = storm(&load, || {
        restart_all(&server, &load, plan, hows, &mut restarts)
    });
    drop(services);
    let seen = seen.judged(&world);
    // With other settings, something is meant to go wrong.
    if settings.is_empty() && !seen.is_sound() {
        world.keep_and_say();
    }
    (seen, restarts)
}

/// Restarts it at moments that nobody foresees, and then lets the other runs end.
fn restart_all(
    server: &Server,
    load: &Load<'_>,
    plan: Plan,
    hows: &[Stop],
    restarts: &mut Vec<Restart>,
) -> Result<(), String> {
    let mut dice = Dice::new("database restarts");
    let every = plan.runs / (plan.restarts + 1);
    for (nth, how) in (1..=plan.restarts).zip(hows.iter().cycle()) {
        load.await_ended(every * nth - dice.below(every / 2))?;
        restarts.push(Restart {
            how: *how,
            ended: load.ended(),
            under_way: load.under_way(),
        });
        let fails = |error: anyhow::Error| format!("the database itself: {error:#}");
        server.stop(*how).map_err(fails)?;
        let millis = dice.below(AWAY);
        thread::sleep(Duration::from_millis(millis.try_into().unwrap()));
        server.begin().map_err(fails)?;
    }
    load.await_ended(plan.runs)
}

#[test]
fn a_database_that_restarts_under_load_loses_nothing_and_repeats_nothing() {
    let effort = Effort::asked_for();
    let plan = Plan {
        restarts: effort.pick(2, 20),
        runs: effort.pick(40, 5_000),
    };
    let name = format!(
        "{} restarts, {} runs that ask twice, 2 servers, {CLIENTS} clients, PostgreSQL",
        plan.restarts, plan.runs
    );
    let mut tally = Tally::new("database restarts", name);
    let (seen, restarts) = restarted_under_load(&[], plan, &[Stop::Immediate, Stop::Fast]);
    let crashes = restarts.iter().filter(|it| it.how == Stop::Immediate);
    tally.also("restarts", restarts.len());
    tally.also("as_a_crash", crashes.count());
    let pairs: usize = seen.runs.iter().map(|run| run.answers.len()).sum();
    tally.also("answered", pairs);
    seen.conclude(tally);
    assert!(pairs >= plan.runs * QUESTIONS, "{pairs} questions answered");
    // All of them came while runs were under way, and runs ended in between.
    assert_eq!(restarts.len(), plan.restarts);
    assert!(restarts.iter().all(|it| it.under_way > 0), "{restarts:?}");
    assert!(
        restarts.is_sorted_by(|one, next| one.ended < next.ended),
        "{restarts:?}"
    );
}

/// Whether something was acknowledged and is gone: a run, or an answer.
fn is_lost(violation: &str) -> bool {
    let signs = [
        "lost: [(",
        "404 instead of",
        "was asked although",
        "[] recorded",
    ];
    signs.iter().any(|sign| violation.contains(sign))
}

#[test]
fn with_a_database_that_forgets_commits_the_oracle_reports_what_was_lost() {
    const STORMS: usize = 4;
    // What is committed is written at leisure, so that a crash takes some of it away.
    let forgetful = ["synchronous_commit=off", "wal_writer_delay=10000ms"];
    let plan = Plan {
        restarts: 1,
        runs: 30,
    };
    let mut tally = Tally::new("negative controls", "commits forgotten, database crashed");
    for _ in 0..STORMS {
        let (seen, _) = restarted_under_load(&forgetful, plan, &[Stop::Immediate]);
        seen.count(&mut tally);
        if tally.violations.iter().any(|it| is_lost(it)) {
            break;
        }
    }
    tally.publish();
    assert!(tally.violations.iter().any(|it| is_lost(it)), "{tally:?}");
}
