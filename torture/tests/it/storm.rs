//! A server under load that is killed again and again, and what came of it.

use std::{collections::BTreeSet, sync::atomic::Ordering, thread, time::Duration};

use serde_json::Value;

use crate::{
    client::{Keys, Load, Manner, Run},
    http::Request,
    ledger::Ledger,
    point::Dice,
    pool,
    programs::Build,
    scenario::Scenario,
    service::Service,
    trace::Trace,
    world::{Timing, World},
};

pub(crate) const CLIENTS: usize = 8;

/// How long a server lives after it got ready, in milliseconds.
const LIFE: std::ops::Range<usize> = 50..400;

/// How long one lives at most that does not get ready.
const STILLBORN: usize = 80;

/// What was seen of it.
#[derive(Debug)]
pub(crate) struct Storm {
    pub(crate) kills: usize,
    pub(crate) runs: Vec<Run>,
    /// What is wrong with the whole, and not with a single run.
    pub(crate) problems: Vec<String>,
    /// How long after the last kill the last run was over.
    pub(crate) calm_after: Duration,
    pub(crate) requests: usize,
    pub(crate) repeated: usize,
    pub(crate) replayed: usize,
    pub(crate) effects: usize,
}

/// Kills a server so often, while clients begin runs, answer what they ask, and see them end; then looks at what is left.
pub(crate) fn storm(build: Build, keys: Keys, kills: usize) -> Storm {
    let world = World::new(build, &Scenario::served());
    let mut service = Service::new(&world);
    let load = Load::new(&world, vec![service.address], keys);
    let (killed, runs) = thread::scope(|scope| {
        let load = &load;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || visit(load, client)))
            .collect();
        let killed = rage(&mut service, kills);
        load.calm_down();
        service.start(Timing::Prompt);
        let killed = killed.and_then(|()| service.await_ready());
        let runs = clients.into_iter().flat_map(|it| it.join().unwrap());
        (killed, runs.collect::<Vec<Run>>())
    });
    let calm_after = load.calm_for();
    let problems = killed.and_then(|()| as_acknowledged(&service, &runs));
    drop(service);
    let count = |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::Relaxed);
    let mut storm = Storm {
        kills,
        problems: problems.err().into_iter().collect(),
        calm_after,
        requests: count(&load.requests),
        repeated: count(&load.repeated),
        replayed: count(&load.replayed),
        effects: world.ledger().effect_count(),
        runs,
    };
    storm.judge(&world);
    // What was meant to go wrong needs nobody to look at it.
    if keys == Keys::Sent
        && !storm.is_sound()
        && let Some(folder) = world.keep()
    {
        println!("{} shows what happened", folder.display());
    }
    storm
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

/// Begins one run after another, until nobody dies any more.
pub(crate) fn visit(load: &Load<'_>, client: usize) -> Vec<Run> {
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
pub(crate) fn as_acknowledged(service: &Service<'_>, runs: &[Run]) -> Result<(), String> {
    let mut listed = Vec::new();
    let mut path = "/api/v1/runs?limit=200".to_owned();
    loop {
        let page = Request::get(&path).send(service.address);
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
    pub(crate) fn judge(&mut self, world: &World) {
        let ledger = world.ledger();
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
    let wanted = match &run.answer {
        None => 0,
        Some((interrupt, kind)) => {
            let journal = trace.decisions_on(interrupt);
            if journal != [*kind] {
                problems.push(format!("{kind} was acknowledged, and {journal:?} recorded"));
            }
            usize::from(*kind == "approve")
        }
    };
    let done = trace.keys().into_iter().map(|key| ledger.done(key)).sum();
    if done > wanted {
        problems.push(format!("doubled: done {done} times instead of {wanted}"));
    } else if done < wanted {
        problems.push("missing: it was approved and not done".to_owned());
    }
    (done, problems)
}
