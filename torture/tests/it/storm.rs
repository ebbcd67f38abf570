//! Servers under load while something is done to them or to their store, and what came of it.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    client::{LIMIT, Load, Manner, Run},
    http::Request,
    ledger::Ledger,
    pool,
    report::{Tally, tenths},
    trace::Trace,
    world::World,
};

pub(crate) const CLIENTS: usize = 8;

/// What was seen of it.
#[derive(Debug)]
pub(crate) struct Storm {
    pub(crate) runs: Vec<Run>,
    /// What is wrong with the whole, and not with a single run.
    problems: Vec<String>,
    /// How long after the last blow the last run was over.
    calm_after: Duration,
    requests: usize,
    repeated: usize,
    replayed: usize,
    effects: usize,
}

/// Has clients begin runs, answer what they ask and see them end until the rage is over, and the servers say what they know
/// of it.
pub(crate) fn storm(load: &Load<'_>, rage: impl FnOnce() -> Result<(), String>) -> Storm {
    let (raged, runs) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || visit(load, client)))
            .collect();
        let raged = rage();
        load.calm_down();
        let runs = clients.into_iter().flat_map(|it| it.join().unwrap());
        (raged, runs.collect::<Vec<Run>>())
    });
    let calm_after = load.calm_for();
    let problems = raged.and_then(|()| as_acknowledged(load.any_address(), &runs));
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    Storm {
        problems: problems.err().into_iter().collect(),
        calm_after,
        requests: count(&load.requests),
        repeated: count(&load.repeated),
        replayed: count(&load.replayed),
        effects: 0,
        runs,
    }
}

/// Begins one run after another, until nobody dies any more.
fn visit(load: &Load<'_>, client: usize) -> Vec<Run> {
    let manners = Manner::ALL.into_iter().cycle().skip(client);
    let mut runs = Vec::new();
    for (number, manner) in manners.enumerate() {
        if load.is_calm() {
            break;
        }
        runs.push(load.play(format!("c{client}-{number}"), manner));
    }
    runs
}

/// The server must know every run that it acknowledged, as finished, and no other one.
fn as_acknowledged(address: SocketAddr, runs: &[Run]) -> Result<(), String> {
    let mut listed = Vec::new();
    let mut path = "/api/v1/runs?limit=200".to_owned();
    loop {
        let page = Request::get(&path).send(address);
        let page = page
            .map_err(|error| format!("the runs cannot be listed: {error}"))?
            .body;
        let items = page["items"].as_array().cloned().unwrap_or_default();
        listed.extend(items);
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/api/v1/runs?limit=200&cursor={cursor}"),
            None => break,
        }
    }
    let line = |run: &Value| {
        let word = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
        (word("run_id"), word("session_id"), word("status"))
    };
    let there: BTreeSet<_> = listed.iter().map(line).collect();
    let known: BTreeSet<_> = runs
        .iter()
        .map(|run| (run.id.clone(), run.session.clone(), "finished".to_owned()))
        .collect();
    if there.len() == listed.len() && there == known {
        return Ok(());
    }
    let lost: Vec<_> = known.difference(&there).collect();
    let strange: Vec<_> = there.difference(&known).collect();
    Err(format!(
        "lost: {lost:?}; unknown to everybody: {strange:?}; {} listed",
        listed.len()
    ))
}

impl Storm {
    /// Whether everything held.
    pub(crate) fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.runs.iter().all(|run| run.problems.is_empty())
    }

    /// Adds to the problems whatever the journals and the ledger do not agree on with what was acknowledged.
    pub(crate) fn judged(mut self, world: &World) -> Self {
        let ledger = world.ledger();
        self.effects = ledger.effect_count();
        let judged = pool::each(&self.runs, |run| judge(world, &ledger, run));
        let mut claimed = 0;
        for (run, (effects, problems)) in self.runs.iter_mut().zip(judged) {
            claimed += effects;
            run.problems.extend(problems);
        }
        if claimed != self.effects {
            let text = format!("of {} effects, {claimed} belong to runs", self.effects);
            self.problems.push(text);
        }
        self
    }

    /// Counts every run as an operation: from its beginning to its end.
    pub(crate) fn count(&self, tally: &mut Tally) {
        for run in &self.runs {
            tally.judge(&run.session, run.asked, &run.problems);
        }
        tally.violations.extend(self.problems.iter().cloned());
        tally.effects += self.effects;
    }

    /// Says what came of it, and fails if anything did not hold.
    #[track_caller]
    pub(crate) fn conclude(&self, mut tally: Tally) {
        let Self {
            requests, repeated, ..
        } = *self;
        self.count(&mut tally);
        let under_fire = self.runs.iter().filter(|run| run.under_fire).count();
        tally.also("ended_under_fire", under_fire);
        tally.also("requests", requests);
        tally.also("repeated", repeated);
        tally.also("replayed", self.replayed);
        tally.also("over_after_s", tenths(self.calm_after));
        tally.conclude();
        assert!(self.calm_after < LIMIT, "{:?}", self.calm_after);
        // A server that hardly ever answers proves nothing.
        assert!(
            repeated * 2 <= requests,
            "{repeated} of {requests} requests were sent again"
        );
    }
}

/// How many effects belong to a run, and what is wrong with it.
fn judge(world: &World, ledger: &Ledger, run: &Run) -> (usize, Vec<String>) {
    let trace = match Trace::read(world, &run.session) {
        Ok(trace) => trace,
        Err(problem) => return (0, vec![problem]),
    };
    let mut problems = Vec::new();
    if trace.runs() != 1 {
        problems.push(format!("it began {} times", trace.runs()));
    }
    for (interrupt, times) in trace.answers() {
        if times > 1 {
            problems.push(format!("{interrupt} was answered {times} times"));
        }
    }
    if let Some(followed) = &run.followed {
        problems.extend(followed.problems.iter().cloned());
        let seen = followed.events.iter();
        let seen: Vec<_> = seen.map(|(seq, hash)| (*seq, hash.as_str())).collect();
        let chain = trace.chain();
        if seen != chain {
            let [seen, chain] = [seen, chain].map(places);
            problems.push(format!("its stream showed {seen:?} of {chain:?}"));
        }
    }
    for (interrupt, kind) in &run.answers {
        let journal = trace.decisions_on(interrupt);
        if journal != [*kind] {
            problems.push(format!("{kind} was acknowledged, and {journal:?} recorded"));
        }
    }
    let approved = run.answers.iter().filter(|(_, kind)| *kind == "approve");
    let wanted = approved.count();
    let done = trace.keys().into_iter().map(|key| ledger.done(key)).sum();
    if done > wanted {
        problems.push(format!("doubled: done {done} times instead of {wanted}"));
    } else if done < wanted {
        problems.push(format!("missing: done {done} times instead of {wanted}"));
    }
    (done, problems)
}

/// Where events stand, without their hashes.
fn places(events: Vec<(u64, &str)>) -> Vec<u64> {
    events.into_iter().map(|(seq, _)| seq).collect()
}
