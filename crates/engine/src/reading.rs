//! What callers may read: states, journals, conversations, and which threads there are.

use holdpoint_core::{Entry, Index, RunId, State, Transcript};
use holdpoint_store::{Scan, ThreadKey};

use crate::{
    Engine, Error,
    thread::{leads_to, read_journal, read_transcript},
};

impl Engine {
    /// A thread's current state, or `None` if there is no such thread in its tenant.
    ///
    /// # Errors
    ///
    /// The store fails, or what it holds cannot be read.
    pub async fn state(&self, key: &ThreadKey) -> Result<Option<State>, Error> {
        match self.store().load(key).await? {
            None => Ok(None),
            Some(head) => Ok(Some(self.thread(key, Some(&head))?.state)),
        }
    }

    /// A thread's whole journal, its chain checked.
    ///
    /// # Errors
    ///
    /// The store fails, or the journal was tampered with.
    pub async fn journal(&self, key: &ThreadKey) -> Result<Vec<Entry>, Error> {
        let head = self.state(key).await?;
        let journal = read_journal(self.store(), key).await?;
        if let Some(head) = head {
            leads_to(&journal, (head.version, head.hash))?;
        }
        Ok(journal)
    }

    /// A thread's conversation up to a state that was read before.
    ///
    /// # Errors
    ///
    /// As [`Engine::journal`].
    pub async fn transcript(&self, key: &ThreadKey, state: &State) -> Result<Transcript, Error> {
        read_transcript(self.store(), key, (state.version, state.hash)).await
    }

    /// The threads of a tenant whose session has this name.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn sessions(&self, tenant: &str, session: &str) -> Result<Vec<ThreadKey>, Error> {
        let scan = Scan {
            index: Index::Session,
            key: Some(session.to_owned()),
            up_to: None,
            after: None,
            limit: 100,
        };
        let rows = self.store().scan(tenant, scan).await?;
        Ok(rows
            .into_iter()
            .map(|row| ThreadKey {
                tenant: tenant.into(),
                thread: row.thread,
            })
            .collect())
    }

    /// The runs of a tenant, oldest first, with the threads they belong to.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn runs(&self, tenant: &str) -> Result<Vec<(RunId, ThreadKey)>, Error> {
        let mut runs = Vec::new();
        let mut after = None;
        loop {
            let scan = Scan {
                index: Index::Run,
                key: None,
                up_to: None,
                after,
                limit: 500,
            };
            let rows = self.store().scan(tenant, scan).await?;
            for row in &rows {
                if let Ok(run) = row.key.parse() {
                    runs.push((
                        run,
                        ThreadKey {
                            tenant: tenant.into(),
                            thread: row.thread,
                        },
                    ));
                }
            }
            if rows.len() < 500 {
                return Ok(runs);
            }
            after = rows.last().cloned();
        }
    }
}
