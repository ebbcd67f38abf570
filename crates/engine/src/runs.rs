//! Runs, found by their ids: the current one of a thread, and those before it.

use std::{collections::HashMap, sync::Arc};

use holdpoint_core::{Entry, Event, Index, IndexRow, RunId, State, ThreadId, ThreadKind, fold};
use holdpoint_store::{Direction, Scan, ThreadKey};

use crate::{Engine, Error, RunSummary};

/// How many rows one read fetches.
const PAGE: usize = 100;

/// How many runs are looked at for one list, however few of them are wanted.
const MAX_LOOKED_AT: usize = 1_000;

impl Engine {
    /// The thread that a run belongs to, and the event that began it; `None` if there is no such run in this tenant.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn find_run(
        &self,
        tenant: &str,
        run: RunId,
    ) -> Result<Option<(ThreadKey, u64)>, Error> {
        let scan = Scan {
            index: Index::Run,
            key: Some(run.to_string()),
            up_to: None,
            direction: Direction::Forward,
            after: None,
            limit: 1,
        };
        let rows = self.store().scan(tenant, scan).await?;
        Ok(rows.first().map(|row| {
            let key = ThreadKey {
                tenant: tenant.into(),
                thread: row.thread,
            };
            (key, u64::try_from(row.sort).unwrap_or(0))
        }))
    }

    /// The thread as a run left it, or as it is now while the run is the last one.
    ///
    /// # Errors
    ///
    /// The store fails, or the journal was tampered with.
    pub async fn run_state(
        &self,
        key: &ThreadKey,
        run: RunId,
    ) -> Result<Option<Arc<State>>, Error> {
        let Some(head) = self.state(key).await? else {
            return Ok(None);
        };
        if id_of(&head) == Some(run) {
            return Ok(Some(head));
        }
        let end = self.end_of(key, run).await?;
        Ok(end.map(|(state, _)| Arc::new(state)))
    }

    /// The event that ended a run; `None` while it goes on.
    ///
    /// # Errors
    ///
    /// The store fails, or the journal was tampered with.
    pub async fn run_end(&self, key: &ThreadKey, run: RunId) -> Result<Option<u64>, Error> {
        let head = self.state(key).await?;
        let active = |head: &Arc<State>| id_of(head) == Some(run) && head.active().is_some();
        if head.as_ref().is_some_and(active) {
            return Ok(None);
        }
        let end = self.end_of(key, run).await?;
        Ok(end.map(|(_, seq)| seq))
    }

    /// The thread as a run left it, and the event that ended the run; `None` while it goes on.
    async fn end_of(&self, key: &ThreadKey, run: RunId) -> Result<Option<(State, u64)>, Error> {
        let mut state = State::default();
        for entry in self.journal(key).await? {
            fold(&mut state, &entry);
            if id_of(&state) == Some(run) && ends(&entry) {
                return Ok(Some((state, entry.seq)));
            }
        }
        Ok(None)
    }

    /// All runs of agents, the oldest first.
    ///
    /// # Errors
    ///
    /// The store fails, or what it holds cannot be read.
    pub async fn summaries(&self, tenant: &str) -> Result<Vec<RunSummary>, Error> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.newest_runs(tenant, after, usize::MAX, &|_| true);
            let (runs, looked_to) = page.await?;
            all.extend(runs);
            after = looked_to;
            if after.is_none() {
                all.reverse();
                return Ok(all);
            }
        }
    }

    /// Runs of agents, the newest first, of those that began before `after`: at least `limit` of the wanted ones and one
    /// more, unless there are fewer or too many others were looked at. The id says how far was looked, if not to the end.
    ///
    /// # Errors
    ///
    /// The store fails, or what it holds cannot be read.
    pub async fn newest_runs(
        &self,
        tenant: &str,
        after: Option<RunId>,
        limit: usize,
        wanted: &(dyn Fn(&RunSummary) -> bool + Sync),
    ) -> Result<(Vec<RunSummary>, Option<RunId>), Error> {
        let mut after = after.map(first_row);
        let mut found = Vec::new();
        let mut earlier = HashMap::new();
        let mut looked_at = 0;
        loop {
            let scan = Scan {
                index: Index::Run,
                key: None,
                up_to: None,
                direction: Direction::Backward,
                after,
                limit: PAGE,
            };
            let rows = self.store().scan(tenant, scan).await?;
            let is_last = rows.len() < PAGE;
            looked_at += rows.len();
            for summary in self.summaries_of(tenant, &rows, &mut earlier).await? {
                if wanted(&summary) {
                    found.push(summary);
                }
            }
            if is_last {
                return Ok((found, None));
            }
            let last = rows.last().and_then(|row| row.key.parse().ok());
            if found.len() > limit || looked_at >= MAX_LOOKED_AT {
                return Ok((found, last));
            }
            after = rows.last().cloned();
        }
    }

    /// The runs of these rows, in their order.
    async fn summaries_of(
        &self,
        tenant: &str,
        rows: &[IndexRow],
        earlier: &mut HashMap<RunId, RunSummary>,
    ) -> Result<Vec<RunSummary>, Error> {
        let tenant: Arc<str> = tenant.into();
        let threads: Vec<ThreadId> = rows.iter().map(|row| row.thread).collect();
        let heads = self.store().load_all(&tenant, &threads).await?;
        let mut summaries = Vec::with_capacity(rows.len());
        for (row, head) in rows.iter().zip(heads) {
            let key = ThreadKey {
                tenant: Arc::clone(&tenant),
                thread: row.thread,
            };
            let (Ok(run), Some(head)) = (row.key.parse::<RunId>(), head) else {
                continue;
            };
            let state = self.thread(&key, Some(&head))?.state;
            if state.kind != ThreadKind::Agent {
                continue;
            }
            if let Some(summary) = RunSummary::of(&state).filter(|last| last.run_id == run) {
                summaries.push(summary);
                continue;
            }
            // Heads know only their last run; the earlier ones of the same thread are read from its journal, once.
            if !earlier.contains_key(&run) {
                self.past_runs(&key, &state, earlier).await?;
            }
            summaries.extend(earlier.remove(&run));
        }
        Ok(summaries)
    }
}

/// Comes before every row of a run, and after those of the one before it.
fn first_row(run: RunId) -> IndexRow {
    IndexRow {
        index: Index::Run,
        key: run.to_string(),
        sort: i64::MIN,
        thread: ThreadId::from_bytes([0; 16]),
    }
}

fn id_of(state: &State) -> Option<RunId> {
    state.run.as_ref().map(|run| run.id)
}

const fn ends(entry: &Entry) -> bool {
    matches!(entry.event, Event::RunEnded { .. })
}
