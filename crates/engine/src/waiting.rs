//! What waits for whom, counted over a whole store.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use holdpoint_core::{Cause, Index, IndexRow, InterruptId, ThreadId};
use holdpoint_store::{Direction, Scan, ThreadKey};

use crate::{Engine, Error};

/// How many rows or heads one read fetches.
const PAGE: usize = 500;

/// The questions that are pending in a store, by why their runs wait. A question's cause never changes, so looking again
/// reads only the heads of threads that asked something since.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    causes: HashMap<InterruptId, Cause>,
    is_capped: bool,
}

impl Waiting {
    /// How many wait for each cause.
    #[must_use]
    pub fn by_cause(&self) -> BTreeMap<Cause, usize> {
        let mut counts = BTreeMap::new();
        for cause in self.causes.values() {
            *counts.entry(*cause).or_insert(0) += 1;
        }
        counts
    }

    /// Whether there may be more than were looked at.
    #[must_use]
    pub const fn is_capped(&self) -> bool {
        self.is_capped
    }
}

impl Engine {
    /// Looks at what is pending, over all tenants, but at no more than so many questions. `last` is what the last look saw.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn waiting(&self, last: &Waiting, limit: usize) -> Result<Waiting, Error> {
        let mut seen = Waiting::default();
        for tenant in self.store().tenants(Index::Pending).await? {
            let mut after: Option<IndexRow> = None;
            loop {
                // One more than there is room for shows that there are more.
                let room = limit - seen.causes.len();
                let scan = Scan {
                    index: Index::Pending,
                    key: None,
                    up_to: None,
                    direction: Direction::Forward,
                    after,
                    limit: PAGE.min(room + 1),
                };
                let wanted = scan.limit;
                let mut rows = self.store().scan(&tenant, scan).await?;
                let is_last = rows.len() < wanted;
                if rows.len() > room {
                    rows.truncate(room);
                    seen.is_capped = true;
                }
                self.look_at(&tenant, &rows, last, &mut seen).await?;
                if seen.is_capped {
                    return Ok(seen);
                }
                after = rows.pop();
                if is_last {
                    break;
                }
            }
        }
        Ok(seen)
    }

    async fn look_at(
        &self,
        tenant: &Arc<str>,
        rows: &[IndexRow],
        last: &Waiting,
        seen: &mut Waiting,
    ) -> Result<(), Error> {
        let mut asked: HashSet<InterruptId> = HashSet::new();
        let mut threads: BTreeSet<ThreadId> = BTreeSet::new();
        for row in rows {
            let Ok(id) = row.key.parse::<InterruptId>() else {
                continue;
            };
            if let Some(cause) = last.causes.get(&id) {
                seen.causes.insert(id, *cause);
            } else {
                asked.insert(id);
                threads.insert(row.thread);
            }
        }
        let threads: Vec<ThreadId> = threads.into_iter().collect();
        let heads = self.store().load_all(tenant, &threads).await?;
        for (thread, head) in threads.into_iter().zip(heads) {
            let tenant = Arc::clone(tenant);
            let key = ThreadKey { tenant, thread };
            // One that cannot be read hides no other.
            let Some(Ok(thread)) = head.map(|head| self.thread(&key, Some(&head))) else {
                continue;
            };
            // A thread may ask more than the rows that were looked at.
            let open = thread.state.interrupts.values();
            let open = open.filter(|interrupt| asked.contains(&interrupt.id));
            seen.causes.extend(open.map(|it| (it.id, it.cause)));
        }
        Ok(())
    }
}
