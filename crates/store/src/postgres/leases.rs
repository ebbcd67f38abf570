//! Leases: one statement each, and the desk to find out why one was refused.

use holdpoint_core::{OwnerId, Span};
use tokio_postgres::Error;

use super::{
    clock::Time,
    desk::Desk,
    line::Line,
    row::int,
    trouble::{Teller, Trouble},
};
use crate::{Epoch, LeaseError, ThreadKey, admission};

/// What happens to a lease.
#[derive(Debug, Clone, Copy)]
pub(super) enum LeaseMove {
    Take { lasts: Span },
    Renew { epoch: Epoch, lasts: Span },
    Release { epoch: Epoch, version: u64 },
}

/// The time of the database, unless one is given as the third parameter.
macro_rules! statement {
    ($set:literal, $only_if:literal) => {
        concat!(
            "UPDATE threads SET ",
            $set,
            " FROM (SELECT coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS now) AS clock
             WHERE tenant = $1 AND thread = $2 AND ",
            $only_if,
            " RETURNING epoch"
        )
    };
}

const TAKE: &str = statement!(
    "epoch = epoch + 1, owner = $4, until = now + $5",
    "(until IS NULL OR until <= now) AND NOT EXISTS (SELECT FROM marks WHERE name = 'backup')"
);
const RENEW: &str = statement!(
    "until = greatest(until, now + $5)",
    "owner = $4 AND epoch = $6"
);
const RELEASE: &str = statement!(
    "owner = NULL, until = NULL",
    "owner = $4 AND epoch = $5 AND version = $6 AND now IS NOT NULL"
);

/// Moves a lease if that is plainly possible. Returns the thread's epoch then.
pub(super) async fn try_move(
    connection: &Line,
    key: &ThreadKey,
    lease: LeaseMove,
    us: OwnerId,
    time: &Time,
) -> Result<Option<Epoch>, Error> {
    let (tenant, thread) = (key.tenant.as_bytes(), key.thread.as_bytes().as_slice());
    let (now, us) = (time.given(), us.as_bytes().as_slice());
    let row = match lease {
        LeaseMove::Take { lasts } => {
            let lasts = int(lasts.as_micros());
            connection
                .query_opt(TAKE, &[&tenant, &thread, &now, &us, &lasts])
                .await?
        }
        LeaseMove::Renew { epoch, lasts } => {
            let (lasts, epoch) = (int(lasts.as_micros()), int(epoch));
            connection
                .query_opt(RENEW, &[&tenant, &thread, &now, &us, &lasts, &epoch])
                .await?
        }
        LeaseMove::Release { epoch, version } => {
            let (epoch, version) = (int(epoch), int(version));
            connection
                .query_opt(RELEASE, &[&tenant, &thread, &now, &us, &epoch, &version])
                .await?
        }
    };
    let epoch: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
    Ok(epoch.map(i64::unsigned_abs))
}

/// Moves a lease, or says why not.
pub(super) async fn move_at_desk(
    connection: &mut Line,
    teller: &Teller,
    key: &ThreadKey,
    lease: LeaseMove,
    us: OwnerId,
    time: &Time,
) -> Result<Result<Epoch, LeaseError>, Trouble> {
    let desk = Desk::open(connection, teller, us, time, &[]).await?;
    let Some(before) = desk.standing(key).await? else {
        return Ok(Err(LeaseError::NotFound));
    };
    let after = match lease {
        LeaseMove::Take { lasts } => admission::take(&before, lasts, &desk),
        LeaseMove::Renew { epoch, lasts } => admission::renew(&before, epoch, lasts, &desk),
        LeaseMove::Release { epoch, version } => admission::release(&before, epoch, version, &desk),
    };
    let after = match after {
        Ok(after) => after,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let owner = after.lease.as_ref().map(|lease| lease.owner);
    let owner = owner.as_ref().map(|owner| owner.as_bytes().as_slice());
    let until = after.lease.as_ref().map(|lease| lease.until.as_micros());
    let set =
        "UPDATE threads SET epoch = $3, owner = $4, until = $5 WHERE tenant = $1 AND thread = $2";
    desk.tx
        .execute(
            set,
            &[
                &key.tenant.as_bytes(),
                &key.thread.as_bytes().as_slice(),
                &int(after.epoch),
                &owner,
                &until,
            ],
        )
        .await
        .map_err(|error| desk.failed(&error))?;
    desk.commit().await?;
    Ok(Ok(after.epoch))
}
