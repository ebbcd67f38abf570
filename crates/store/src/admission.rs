//! Whether an append or a lease is admitted, given how its thread stands: the one place where every backend decides it.

use std::collections::BTreeSet;

use holdpoint_core::{OwnerId, Span, Timestamp};

use crate::{
    Append, AppendError, CellChange, CellThen, Epoch, Fence, Holder, Lease, LeaseAfter, LeaseError,
};

/// A lease as a backend keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tenure {
    pub(crate) owner: OwnerId,
    /// The boot of the machine that the owner runs in, where that is known.
    pub(crate) boot: Option<String>,
    pub(crate) until: Timestamp,
}

/// What admission depends on. The default is how a thread stands that does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) version: u64,
    pub(crate) epoch: Epoch,
    pub(crate) lease: Option<Tenure>,
}

/// What a backend knows of the processes that share it, itself included.
pub(crate) trait Census {
    fn now(&self) -> Timestamp;

    /// The process that asks.
    fn us(&self) -> OwnerId;

    /// Whether leases may be taken at all here, or why not.
    fn may_drive(&self) -> Result<(), String> {
        Ok(())
    }

    /// A lease for us, or why we cannot hold one.
    fn tenure(&self, until: Timestamp) -> Result<Tenure, String>;

    /// What is known of a holder that is not us.
    fn other(&self, tenure: &Tenure) -> Holder;

    fn lease(&self, tenure: &Tenure) -> Lease {
        let holder = if tenure.owner == self.us() {
            Holder::Us
        } else {
            self.other(tenure)
        };
        Lease {
            owner: tenure.owner,
            until: tenure.until,
            holder,
        }
    }
}

/// Why a lease cannot be taken.
enum Untaken {
    Held(Lease),
    CannotDrive(String),
}

impl Standing {
    fn is_held_by(&self, owner: OwnerId, epoch: Epoch) -> bool {
        self.epoch == epoch
            && self
                .lease
                .as_ref()
                .is_some_and(|lease| lease.owner == owner)
    }

    fn taken(&self, lasts: Span, census: &dyn Census) -> Result<Self, Untaken> {
        census.may_drive().map_err(Untaken::CannotDrive)?;
        let now = census.now();
        // A dead holder is looked for only where the lease has not ended by itself: looking costs system calls.
        if let Some(tenure) = self.lease.as_ref().filter(|lease| lease.until > now) {
            let lease = census.lease(tenure);
            match lease.holder {
                Holder::Us | Holder::MaybeAlive => return Err(Untaken::Held(lease)),
                Holder::Dead => {}
            }
        }
        let lease = census.tenure(now + lasts).map_err(Untaken::CannotDrive)?;
        Ok(Self {
            version: self.version,
            epoch: self.epoch + 1,
            lease: Some(lease),
        })
    }
}

/// Whether an append keeps the contract, whatever its thread's standing.
pub(crate) fn well_formed(append: &Append) -> Result<(), AppendError> {
    let malformed = |what: String| Err(AppendError::Malformed(what));
    if append.records.is_empty() {
        return malformed("it has no records".to_owned());
    }
    let mut seq = append.expect;
    for record in &append.records {
        if seq.checked_add(1) != Some(record.seq) {
            return malformed(format!("record {} does not follow on {seq}", record.seq));
        }
        seq = record.seq;
    }
    if append.fence == Fence::Open && append.lease == LeaseAfter::Release {
        return malformed("it releases a lease without naming its epoch".to_owned());
    }
    each_cell_once(&append.cells)
}

/// Refuses changes that name a cell twice, whatever it is.
pub(crate) fn each_cell_once(changes: &[CellChange]) -> Result<(), AppendError> {
    let mut cells = BTreeSet::new();
    for CellChange { space, key, .. } in changes {
        if !cells.insert((space, key)) {
            let twice = format!("it changes cell `{key}` twice");
            return Err(AppendError::Malformed(twice));
        }
    }
    Ok(())
}

/// How a thread stands after an append, or why the append is refused. Cells are looked at by the backend.
///
/// A driver that was taken over is told so first, since it has to stop whatever else happened. All others are first told
/// that the thread has moved on, since they have to look again anyway.
pub(crate) fn admit(
    append: &Append,
    standing: &Standing,
    census: &dyn Census,
) -> Result<Standing, AppendError> {
    // NEGATIVE CONTROL: with this feature, stale appends are let in on purpose.
    let weak = cfg!(feature = "weak-version-check");
    let fenced = AppendError::Fenced {
        current: standing.epoch,
    };
    let driven = match append.fence {
        Fence::Driver(epoch) => weak || standing.is_held_by(census.us(), epoch),
        Fence::Open | Fence::Take { .. } => true,
    };
    if !driven {
        return Err(fenced);
    }
    if !weak && append.expect != standing.version {
        return Err(AppendError::Conflict {
            current: standing.version,
        });
    }
    let mut after = match append.fence {
        Fence::Open | Fence::Driver(_) => standing.clone(),
        Fence::Take { after, .. } if !weak && after != standing.epoch => return Err(fenced),
        Fence::Take { lasts, .. } => {
            standing
                .taken(lasts, census)
                .map_err(|untaken| match untaken {
                    Untaken::Held(lease) => AppendError::LeaseHeld {
                        lease,
                        epoch: standing.epoch,
                    },
                    Untaken::CannotDrive(reason) => AppendError::CannotDrive(reason),
                })?
        }
    };
    after.version = standing.version + append.records.len() as u64;
    match append.lease {
        LeaseAfter::Keep => {}
        LeaseAfter::Release => after.lease = None,
    }
    Ok(after)
}

/// How an existing thread stands after its lease was taken.
pub(crate) fn take(
    standing: &Standing,
    lasts: Span,
    census: &dyn Census,
) -> Result<Standing, LeaseError> {
    standing
        .taken(lasts, census)
        .map_err(|untaken| match untaken {
            Untaken::Held(lease) => LeaseError::Held { lease },
            Untaken::CannotDrive(reason) => LeaseError::CannotDrive(reason),
        })
}

/// How a thread stands after our lease was prolonged.
///
/// A lease that has ended is still prolonged if nobody has taken it: its epoch is the last one, so nothing happened behind
/// its holder's back.
pub(crate) fn renew(
    standing: &Standing,
    epoch: Epoch,
    lasts: Span,
    census: &dyn Census,
) -> Result<Standing, LeaseError> {
    // NEGATIVE CONTROL: with this feature, a driver does not learn here either that it was taken over.
    let weak = cfg!(feature = "weak-version-check");
    if !weak && !standing.is_held_by(census.us(), epoch) {
        return Err(LeaseError::Fenced {
            current: standing.epoch,
        });
    }
    let mut after = standing.clone();
    let until = census.now() + lasts;
    if let Some(lease) = &mut after.lease {
        lease.until = lease.until.max(until);
    }
    Ok(after)
}

/// How a thread stands after our lease was given back.
pub(crate) fn release(
    standing: &Standing,
    epoch: Epoch,
    version: u64,
    census: &dyn Census,
) -> Result<Standing, LeaseError> {
    if !standing.is_held_by(census.us(), epoch) {
        return Err(LeaseError::Fenced {
            current: standing.epoch,
        });
    }
    if standing.version != version {
        return Err(LeaseError::Conflict {
            current: standing.version,
        });
    }
    Ok(Standing {
        lease: None,
        ..standing.clone()
    })
}

/// A cell as admission sees it. One that was removed or has ended keeps its version and is absent, so that a version that
/// was once read never comes back with another value. The default is a cell that never was.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot {
    /// Its own; where nothing is left of it, the highest of those of which nothing is left.
    pub(crate) version: u64,
    pub(crate) is_there: bool,
}

/// Whether a cell that ends then, if ever, has not ended yet.
pub(crate) fn lasts(until: Option<Timestamp>, now: Timestamp) -> bool {
    until.is_none_or(|until| until > now)
}

/// The version that a cell has then, or why it may not change.
pub(crate) fn admit_cell(change: &CellChange, slot: Slot) -> Result<u64, AppendError> {
    let visible = if slot.is_there { slot.version } else { 0 };
    if change.expect == visible {
        Ok(match change.then {
            CellThen::Set { .. } | CellThen::Remove => slot.version + 1,
            CellThen::Keep => visible,
        })
    } else {
        Err(AppendError::CellConflict {
            space: change.space,
            key: change.key.clone(),
        })
    }
}
