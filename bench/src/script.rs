//! What Holdpoint wrote, laid out so that it can be written again with no further thought.

use std::sync::Arc;

use holdpoint_core::IndexChange;
use holdpoint_store::ThreadKey;

use crate::recording::Commit as Recorded;

/// All commits of one thread.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) tenant: Arc<str>,
    pub(crate) thread: [u8; 16],
    pub(crate) owner: [u8; 16],
    /// As long as a boot id.
    pub(crate) boot: String,
    pub(crate) commits: Vec<Commit>,
}

/// The rows of one commit.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) version: i64,
    pub(crate) epoch: i64,
    pub(crate) until: Option<i64>,
    /// Absent where only the lease changed.
    pub(crate) head: Option<Vec<u8>>,
    pub(crate) records: Vec<Record>,
    pub(crate) entries: Vec<Entry>,
}

/// One row of the journal.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) seq: i64,
    pub(crate) header: Vec<u8>,
    pub(crate) salt: [u8; 16],
    pub(crate) payload: Vec<u8>,
    pub(crate) hash: [u8; 32],
}

/// One row of an index.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) change: Change,
    pub(crate) index: u8,
    pub(crate) key: String,
    pub(crate) sort: i64,
}

/// What happens to a row of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Put,
    Remove,
}

fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Script {
    /// The commits that were recorded of a thread.
    pub(crate) fn new(key: &ThreadKey, recorded: Vec<Recorded>) -> Self {
        Self {
            tenant: Arc::clone(&key.tenant),
            thread: *key.thread.as_bytes(),
            owner: [7; 16],
            boot: "00000000-0000-4000-8000-000000000000".to_owned(),
            commits: recorded.into_iter().map(Commit::new).collect(),
        }
    }
}

impl Commit {
    fn new(recorded: Recorded) -> Self {
        let epoch = int(recorded.epoch);
        let until = recorded.until.map(holdpoint_core::Timestamp::as_micros);
        let Some(append) = recorded.append else {
            return Self {
                version: 0,
                epoch,
                until,
                head: None,
                records: Vec::new(),
                entries: Vec::new(),
            };
        };
        let version = int(append.expect) + int(append.records.len() as u64);
        let records = append.records.into_iter().map(|record| Record {
            seq: int(record.seq),
            header: record.header,
            salt: record.salt,
            payload: record.payload.bytes,
            hash: *record.hash.as_bytes(),
        });
        let entries = append.index.into_iter().map(|change| {
            let (change, row) = match change {
                IndexChange::Put(row) => (Change::Put, row),
                IndexChange::Remove(row) => (Change::Remove, row),
            };
            Entry {
                change,
                index: row.index.number(),
                key: row.key,
                sort: row.sort,
            }
        });
        Self {
            version,
            epoch,
            until,
            head: Some(append.head.bytes),
            records: records.collect(),
            entries: entries.collect(),
        }
    }
}

/// What the commits of a workload come to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weight {
    pub(crate) commits: usize,
    pub(crate) records: usize,
    pub(crate) puts: usize,
    pub(crate) removes: usize,
    /// Of heads, records and index keys.
    pub(crate) bytes: usize,
}

impl Weight {
    /// Adds up what scripts write.
    pub(crate) fn of<'a>(scripts: impl IntoIterator<Item = &'a Arc<Script>>) -> Self {
        let mut weight = Self::default();
        for commit in scripts.into_iter().flat_map(|script| &script.commits) {
            weight.commits += 1;
            weight.records += commit.records.len();
            weight.bytes += commit.head.as_ref().map_or(0, Vec::len);
            for record in &commit.records {
                weight.bytes += record.header.len() + record.payload.len() + 16 + 32;
            }
            for entry in &commit.entries {
                match entry.change {
                    Change::Put => weight.puts += 1,
                    Change::Remove => weight.removes += 1,
                }
                weight.bytes += entry.key.len();
            }
        }
        weight
    }
}

impl Weight {
    /// In words, for each of so many.
    pub(crate) fn per(self, count: usize) -> String {
        let each = |sum: usize| sum as f64 / count as f64;
        format!(
            "{:.2} commits with {:.2} events, {:.2} index rows written and {:.2} removed, {:.0} bytes",
            each(self.commits),
            each(self.records),
            each(self.puts),
            each(self.removes),
            each(self.bytes)
        )
    }
}
