//! Two servers on one database look for what is due: each question is closed once, and what follows from that happens once.

use std::{thread, time::Duration};

use crate::{
    process::Watch,
    programs::{Build, Effort},
    report::Tally,
    scenario::Scenario,
    service::Service,
    trace::Trace,
    world::{Setting, Timing, World},
};

/// Far longer than anything is open.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is wrong with a run that nobody answered in time: it counts as rejected, and then the model does something else.
fn judge(world: &World, session: &str) -> Vec<String> {
    let watch = Watch::start();
    while world.show(session)["status"] != "finished" {
        if watch.elapsed() > PATIENCE {
            return vec![format!("it does not end: {}", world.show(session))];
        }
        thread::sleep(Duration::from_millis(50));
    }
    let trace = match Trace::read(world, session) {
        Ok(trace) => trace,
        Err(problem) => return vec![problem],
    };
    let mut problems = Vec::new();
    let closed = trace.closings() + trace.answers().values().sum::<usize>();
    if closed != 1 {
        problems.push(format!("its question was closed {closed} times"));
    }
    let ledger = world.ledger();
    let done: usize = trace.keys().into_iter().map(|key| ledger.done(key)).sum();
    if done != 1 {
        problems.push(format!("{done} effects followed instead of 1"));
    }
    problems
}

#[test]
fn what_is_due_happens_once_though_two_servers_look_for_it() {
    let runs = Effort::asked_for().pick(12, 200);
    let name = format!("{runs} questions time out, 2 servers, PostgreSQL");
    let mut tally = Tally::new("timers", name);
    let world = World::new(Build::Shipped, &Scenario::timeout_rejects().on_postgres());
    let mut services = [(); 2].map(|()| Service::new(&world));
    for service in &mut services {
        service.start(Timing::Prompt);
        service.await_ready().unwrap();
    }
    let sessions: Vec<String> = (0..runs).map(|run| format!("s{run}")).collect();
    for session in &sessions {
        world.run(session, &Setting::PLAIN);
    }
    for session in &sessions {
        tally.points += 1;
        let problems = judge(&world, session);
        if problems.is_empty() {
            tally.passed += 1;
        } else {
            let problems = problems.join("\n  ");
            tally.violations.push(format!("{session}:\n  {problems}"));
        }
    }
    tally.effects = world.ledger().effect_count();
    drop(services);
    tally.conclude();
    assert_eq!(world.ledger().effect_count(), runs);
}
