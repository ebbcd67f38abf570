//! Where a process can be made to die, and which of these places are tried.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
};

use crate::{programs::seed, world::Timing};

/// Before a commit: what it would have recorded is lost.
pub(crate) const COMMIT_BEFORE: &str = "store.commit.before";
/// After a commit: nothing of what follows from it was done.
pub(crate) const COMMIT_AFTER: &str = "store.commit.after";
/// Before a commit that is about no journal: a lease, a definition.
pub(crate) const SIDE_BEFORE: &str = "store.side.before";
/// After such a commit.
pub(crate) const SIDE_AFTER: &str = "store.side.after";
/// A call is recorded as started, and not made.
pub(crate) const CALL_BEFORE: &str = "engine.call.before";
/// The tool's program runs.
pub(crate) const CALL_RUNNING: &str = "engine.call.running";
/// The program has ended, which is not recorded.
pub(crate) const CALL_AFTER: &str = "engine.call.after";
/// What the program returned was long and is kept apart, which is not recorded.
pub(crate) const KEPT: &str = "engine.artifact.kept";

/// Not a point of the process but one outside: so many programs noted in the ledger that they are about to act.
pub(crate) const LEDGER_ATTEMPTED: &str = "ledger.attempted";
/// Not a point of the process but one outside: so many acts stand in the ledger. The program runs on, nothing is recorded.
pub(crate) const LEDGER_WRITTEN: &str = "ledger.written";
/// Not a point of the process but one outside: so many microseconds after its start.
pub(crate) const CLOCK: &str = "clock";

const POINTS: [&str; 8] = [
    COMMIT_BEFORE,
    COMMIT_AFTER,
    SIDE_BEFORE,
    SIDE_AFTER,
    CALL_BEFORE,
    CALL_RUNNING,
    CALL_AFTER,
    KEPT,
];

/// Which of a phase's processes is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seat {
    /// The one that drives the run.
    Driver,
    /// The one that cancels or pauses it from beside.
    Beside,
}

/// A process's death.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kill {
    pub(crate) phase: usize,
    pub(crate) seat: Seat,
    pub(crate) timing: Timing,
    pub(crate) point: &'static str,
    pub(crate) nth: usize,
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            phase,
            seat,
            timing,
            point,
            nth,
        } = self;
        write!(f, "phase {phase} {seat:?} {point}:{nth} {timing:?}")
    }
}

/// How often a process passed each point.
pub(crate) fn passed(log: &Path) -> Vec<(&'static str, usize)> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let count = |point: &str| text.lines().filter(|line| *line == point).count();
    POINTS
        .into_iter()
        .map(|point| (point, count(point)))
        .collect()
}

/// While a backup is adopted: after a thread was made to ask, and before the mark is taken away.
pub(crate) const ADOPTED_A_THREAD: &str = "engine.adopt.thread";
pub(crate) const ADOPTED_ALL: &str = "engine.adopt.restored";

/// Whether it is the process itself that notices the point.
pub(crate) fn is_inside(point: &str) -> bool {
    ![LEDGER_ATTEMPTED, LEDGER_WRITTEN, CLOCK].contains(&point)
}

/// A seeded choice of as many as asked for, and of as many kinds of death as possible.
pub(crate) fn sample<T: Ord + Copy, K: Ord>(
    name: &str,
    of: &[T],
    wanted: usize,
    kind: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut dice = Dice::new(name);
    let mut shuffled = of.to_vec();
    for at in (1..shuffled.len()).rev() {
        shuffled.swap(at, dice.below(at + 1));
    }
    let mut kinds: BTreeMap<K, T> = BTreeMap::new();
    for item in &shuffled {
        kinds.entry(kind(item)).or_insert(*item);
    }
    // Which kinds, if not all of them, is left to the dice too.
    let (first, rest): (Vec<T>, Vec<T>) = shuffled
        .into_iter()
        .partition(|item| kinds.get(&kind(item)) == Some(item));
    let mut chosen = BTreeSet::new();
    for item in first.into_iter().chain(rest) {
        if chosen.len() >= wanted {
            break;
        }
        chosen.insert(item);
    }
    chosen.into_iter().collect()
}

/// `SplitMix64`: a few lines, and the same everywhere.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (name, seed()).hash(&mut hasher);
        Self(hasher.finish())
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        usize::try_from(z % u64::try_from(bound).unwrap()).unwrap()
    }
}
