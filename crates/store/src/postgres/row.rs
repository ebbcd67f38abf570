//! How domain values become columns, and back.

use holdpoint_core::{
    Codec, Digest, Index, IndexRow, OwnerId, Payload, Record, ThreadId, Timestamp,
};
use tokio_postgres::Row;

use super::pack;
use crate::{
    Cell, KeptCell, Space,
    admission::{Standing, Tenure},
};

/// A column does not hold what it must.
pub(super) type Unreadable = String;

/// A count as a column. Counts grow one by one, so none comes near the limit.
pub(super) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// At most this many rows, as a column.
pub(super) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

pub(super) fn count(row: &Row, column: usize) -> Result<u64, Unreadable> {
    let value: i64 = get(row, column)?;
    u64::try_from(value)
        .map_err(|_| format!("column {column} holds {value}, and must not be negative"))
}

fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    column: usize,
) -> Result<T, Unreadable> {
    row.try_get(column).map_err(|error| error.to_string())
}

fn fixed<const N: usize>(row: &Row, column: usize) -> Result<[u8; N], Unreadable> {
    let bytes: &[u8] = get(row, column)?;
    bytes
        .try_into()
        .map_err(|_| format!("column {column} holds {} bytes instead of {N}", bytes.len()))
}

/// A name that was a text.
pub(super) fn text(row: &Row, column: usize) -> Result<String, Unreadable> {
    let bytes: Vec<u8> = get(row, column)?;
    String::from_utf8(bytes).map_err(|error| format!("column {column}: {error}"))
}

/// A payload in the three columns from `column` on: codec, key id, bytes.
pub(super) fn payload(row: &Row, column: usize) -> Result<Payload, Unreadable> {
    let number: i16 = get(row, column)?;
    let codec = u8::try_from(number).ok().and_then(Codec::from_number);
    let codec = codec.ok_or_else(|| {
        format!("it is encoded in a way (number {number}) that this build does not know")
    })?;
    Ok(Payload {
        codec,
        key_id: get(row, column + 1)?,
        bytes: get(row, column + 2)?,
    })
}

/// How a thread stands, in the four columns from `column` on: version, epoch, owner, until.
pub(super) fn standing(row: &Row, column: usize) -> Result<Standing, Unreadable> {
    let owner: Option<&[u8]> = get(row, column + 2)?;
    let lease = match owner {
        Some(_) => Some(Tenure {
            owner: OwnerId::from_bytes(fixed(row, column + 2)?),
            boot: None,
            until: Timestamp::from_micros(get(row, column + 3)?),
        }),
        None => None,
    };
    Ok(Standing {
        version: count(row, column)?,
        epoch: count(row, column + 1)?,
        lease,
    })
}

/// A head, packed.
pub(super) fn head(row: &Row, column: usize) -> Result<Payload, Unreadable> {
    pack::read_payload(get(row, column)?)
}

/// The records of an append: the sequence of the last one, and all of them packed.
pub(super) fn records(row: &Row) -> Result<Vec<Record>, Unreadable> {
    pack::read_records(get(row, 1)?, count(row, 0)?)
}

pub(super) fn digest(row: &Row, column: usize) -> Result<Digest, Unreadable> {
    Ok(Digest::from_bytes(fixed(row, column)?))
}

/// A cell as it is kept: tenant, space, key, version, value, until.
pub(super) fn kept_cell(row: &Row) -> Result<KeptCell, Unreadable> {
    let number: i16 = get(row, 1)?;
    let space = u8::try_from(number).ok().and_then(Space::from_number);
    let until: Option<i64> = get(row, 5)?;
    Ok(KeptCell {
        tenant: text(row, 0)?.into(),
        space: space.ok_or_else(|| {
            format!("a cell is for something (number {number}) that this build does not know")
        })?,
        key: text(row, 2)?,
        version: count(row, 3)?,
        value: get(row, 4)?,
        until: until.map(Timestamp::from_micros),
    })
}

/// A row of an index: key, sort, thread.
pub(super) fn entry(index: Index, row: &Row) -> Result<IndexRow, Unreadable> {
    Ok(IndexRow {
        index,
        key: text(row, 0)?,
        sort: get(row, 1)?,
        thread: thread(row, 2)?,
    })
}

pub(super) fn thread(row: &Row, column: usize) -> Result<ThreadId, Unreadable> {
    Ok(ThreadId::from_bytes(fixed(row, column)?))
}

/// A cell in the three columns from `column` on: version, value, until.
pub(super) fn cell(row: &Row, column: usize) -> Result<Cell, Unreadable> {
    let until: Option<i64> = get(row, column + 2)?;
    Ok(Cell {
        version: count(row, column)?,
        value: get(row, column + 1)?,
        until: until.map(Timestamp::from_micros),
    })
}
