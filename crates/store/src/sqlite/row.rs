//! How domain values become columns, and back.

use holdpoint_core::{Codec, Digest, OwnerId, Payload, Record, Timestamp};
use rusqlite::{Error, Row, types::Type};

use crate::admission::{Standing, Tenure};

/// A thread's records are numbered from its id times this.
const RECORDS: i64 = 1 << 24;

/// The sequence of the last record that a thread can hold.
pub(super) const LAST_SEQ: u64 = RECORDS.unsigned_abs() - 1;

/// A count as a column. Counts grow one by one, so none comes near the limit.
pub(super) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// At most this many rows, as a column.
pub(super) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Where the record with this sequence lies.
pub(super) fn position(thread: i64, seq: u64) -> i64 {
    thread * RECORDS + int(seq.min(LAST_SEQ))
}

pub(super) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| Error::IntegralValueOutOfRange(column, value))
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    let micros: Option<i64> = row.get(column)?;
    Ok(micros.map(Timestamp::from_micros))
}

/// A payload in the three columns from `column` on: codec, key id, bytes.
pub(super) fn payload(row: &Row<'_>, column: usize) -> rusqlite::Result<Payload> {
    let number: u8 = row.get(column)?;
    let codec = Codec::from_number(number).ok_or_else(|| {
        let reason =
            format!("it is encoded in a way (number {number}) that this build does not know");
        Error::FromSqlConversionFailure(column, Type::Integer, reason.into())
    })?;
    Ok(Payload {
        codec,
        key_id: row.get(column + 1)?,
        bytes: row.get(column + 2)?,
    })
}

/// How a thread stands, in the five columns from `column` on: version, epoch, owner, boot, until.
pub(super) fn standing(row: &Row<'_>, column: usize) -> rusqlite::Result<Standing> {
    let owner: Option<[u8; 16]> = row.get(column + 2)?;
    let lease = match owner {
        Some(owner) => Some(Tenure {
            owner: OwnerId::from_bytes(owner),
            boot: row.get(column + 3)?,
            until: Timestamp::from_micros(row.get(column + 4)?),
        }),
        None => None,
    };
    Ok(Standing {
        version: count(row, column)?,
        epoch: count(row, column + 1)?,
        lease,
    })
}

/// A record: pos, header, salt, codec, key id, payload, hash.
pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let position: i64 = row.get(0)?;
    Ok(Record {
        seq: position.rem_euclid(RECORDS).unsigned_abs(),
        header: row.get(1)?,
        salt: row.get(2)?,
        payload: payload(row, 3)?,
        hash: Digest::from_bytes(row.get(6)?),
    })
}
