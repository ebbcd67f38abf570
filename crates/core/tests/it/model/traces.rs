//! What is promised of traces: each stretch once, all of a run in one piece, and whoever tells it tells the same.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{
    Entry, Event, RunId, State, Timestamp, fold,
    spans::{Began, Starts, Stretch, StretchId, What, stretches},
};

use super::Life;

/// All that is wrong with what was told of a thread in which nothing is open any more.
pub(super) fn faults(entries: &[Entry], told: &[Stretch]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut ids: BTreeMap<RunId, BTreeSet<StretchId>> = BTreeMap::new();
    for stretch in told {
        if !ids.entry(stretch.run).or_default().insert(stretch.id) {
            faults.push(format!("told twice: {stretch:?}"));
        }
    }
    let mut begun: BTreeMap<RunId, Timestamp> = BTreeMap::new();
    for stretch in told {
        match (stretch.parent, stretch.began) {
            (None, Began::At(at)) => drop(begun.insert(stretch.run, at)),
            (None, Began::Unseen) => faults.push(format!("a run without a beginning: {stretch:?}")),
            (Some(parent), _) if !ids[&stretch.run].contains(&parent) => {
                faults.push(format!("a part of nothing: {stretch:?}"));
            }
            (Some(_), _) => {}
        }
    }
    let mut over = BTreeSet::new();
    for stretch in told {
        let run = begun.get(&stretch.run).copied();
        if stretch.parent.is_none() {
            over.insert(stretch.run);
        }
        let (Began::At(at), Some(run)) = (stretch.began, run) else {
            continue;
        };
        // When a run began that is over is not known any more to whoever tells what was found out late, and by a clock that
        // was set back that may have been before.
        let is_late = stretch.parent.is_some() && over.contains(&stretch.run);
        if at < run && !is_late || stretch.end < at {
            faults.push(format!("out of its time: {stretch:?}"));
        }
    }
    let kinds = |kind: &str| told.iter().filter(|it| kind_of(&it.what) == kind).count();
    let mut expected: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        if let Some(kind) = begins(&entry.event) {
            *expected.entry(kind).or_default() += 1;
        }
    }
    for kind in ["run", "task", "chat", "call", "wait"] {
        let (began, ended) = (expected.get(kind).copied().unwrap_or(0), kinds(kind));
        if began != ended {
            faults.push(format!("{kind}: {began} began and {ended} were told"));
        }
    }
    faults
}

fn kind_of(what: &What) -> &'static str {
    match what {
        What::Run { .. } => "run",
        What::Task { .. } => "task",
        What::Chat { .. } => "chat",
        What::Call(_) => "call",
        What::Wait { .. } => "wait",
    }
}

fn begins(event: &Event) -> Option<&'static str> {
    match event {
        Event::RunStarted { .. } => Some("run"),
        Event::FrameOpened { .. } => Some("task"),
        Event::ModelStarted { .. } => Some("chat"),
        Event::ActionStarted { .. } => Some("call"),
        Event::InterruptRaised(_) => Some("wait"),
        _ => None,
    }
}

/// The promises, for a life in which nothing is open any more.
pub(super) fn check_traces(life: &Life) {
    let (entries, told) = (&life.thread.entries, &life.thread.stretches);
    assert_eq!(faults(entries, told), Vec::<String>::new());
    // It does not matter how events were put together to appends.
    let at_once = stretches(&State::default(), entries, &mut Starts::default());
    assert_eq!(sorted(&at_once), sorted(told));
    // Nor does it matter by how many processes: but when a model was called, only one of them knows.
    let mut apart = Vec::new();
    let mut state = State::default();
    for entry in entries {
        let one = std::slice::from_ref(entry);
        apart.extend(stretches(&state, one, &mut Starts::default()));
        fold(&mut state, entry);
    }
    let unseen = told.iter().cloned().map(|mut stretch| {
        if let What::Chat { .. } = stretch.what {
            stretch.began = Began::Unseen;
        }
        stretch
    });
    let unseen: Vec<Stretch> = unseen.collect();
    assert_eq!(sorted(&apart), sorted(&unseen));
}

fn sorted(told: &[Stretch]) -> Vec<&Stretch> {
    let mut told: Vec<&Stretch> = told.iter().collect();
    told.sort_by_key(|stretch| (stretch.run, stretch.id));
    told
}

/// A list in which something is wrong must be reported, or a good one says nothing.
#[test]
fn what_is_told_twice_or_not_at_all_or_in_pieces_is_reported() {
    let mut life = Life::new();
    life.make(&super::Move::StartRun(5));
    life.finish();
    let (entries, good) = (&life.thread.entries, life.thread.stretches.clone());
    assert_eq!(faults(entries, &good), Vec::<String>::new());
    assert_eq!(good.len(), 2, "{good:?}");
    let doctored = |change: fn(&mut Vec<Stretch>)| {
        let mut told = good.clone();
        change(&mut told);
        faults(entries, &told)
    };
    let twice = doctored(|told| told.push(told[0].clone()));
    assert!(
        twice.iter().any(|fault| fault.contains("twice")),
        "{twice:?}"
    );
    let missing = doctored(|told| drop(told.remove(0)));
    assert!(
        missing
            .iter()
            .any(|fault| fault.contains("chat: 1 began and 0")),
        "{missing:?}"
    );
    let rootless = doctored(|told| drop(told.pop()));
    assert!(
        rootless
            .iter()
            .any(|fault| fault.contains("a part of nothing")),
        "{rootless:?}"
    );
    let torn = doctored(|told| told[0].run = RunId::from_bytes([1; 16]));
    assert!(
        torn.iter().any(|fault| fault.contains("a part of nothing")),
        "{torn:?}"
    );
    let early = doctored(|told| told[0].began = Began::At(Timestamp::default()));
    assert!(
        early.iter().any(|fault| fault.contains("out of its time")),
        "{early:?}"
    );
}
