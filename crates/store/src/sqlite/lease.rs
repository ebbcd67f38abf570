//! Leases: what the writer does for them.

use holdpoint_core::Span;

use super::{
    append::{lease, standing},
    row::int,
    writer::{Desk, Verdict, Write},
};
use crate::{Epoch, LeaseError, ThreadKey, admission};

/// What happens to a lease.
#[derive(Debug, Clone, Copy)]
pub(super) enum LeaseMove {
    Take { lasts: Span },
    Renew { epoch: Epoch, lasts: Span },
    Release { epoch: Epoch, version: u64 },
}

/// A change to the lease of a thread. It comes to the thread's epoch.
pub(super) struct ChangeLease {
    pub(super) key: ThreadKey,
    pub(super) lease: LeaseMove,
}

impl Write for ChangeLease {
    type Done = Epoch;
    type Error = LeaseError;

    const IS_APPEND: bool = false;

    fn write(&self, desk: &Desk<'_>) -> Verdict<Epoch, LeaseError> {
        let Desk { tx, owners, .. } = desk;
        let Some((id, before)) = standing(tx, &self.key)? else {
            return Ok(Err(LeaseError::NotFound));
        };
        let after = match self.lease {
            LeaseMove::Take { lasts } => admission::take(&before, lasts, desk),
            LeaseMove::Renew { epoch, lasts } => admission::renew(&before, epoch, lasts, desk),
            LeaseMove::Release { epoch, version } => {
                admission::release(&before, epoch, version, desk)
            }
        };
        let after = match after {
            Ok(after) => after,
            Err(refusal) => return Ok(Err(refusal)),
        };
        owners.note(before.lease.as_ref(), after.lease.as_ref());
        let (owner, boot, until) = lease(after.lease.as_ref());
        tx.prepare_cached(
            "UPDATE threads SET epoch = ?2, owner = ?3, boot = ?4, until = ?5 WHERE id = ?1",
        )?
        .execute((id, int(after.epoch), owner, boot, until))?;
        Ok(Ok(after.epoch))
    }
}
