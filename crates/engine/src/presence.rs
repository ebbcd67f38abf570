//! Servers that live on a store, and programs that leave the driving to them.
//!
//! A server stays, and has the credentials and the surroundings that its agents' tools are meant to run in. A command in
//! somebody's terminal has neither. So a server says that it is there, in a cell that ends soon unless it says so again;
//! and a command that finds one commits what it has to say and follows the journal.

use holdpoint_core::Span;
use holdpoint_store::{AppendError, CellChange, CellThen, SYSTEM_TENANT, Space};

use crate::{Engine, Error, error::from_append};

/// How long a server counts as alive after it last said so. Whoever waits for a dead one waits no longer.
const LIVES: Span = Span::from_secs(10);

/// Who drives what is decided through an engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Drives {
    /// The engine itself.
    #[default]
    Itself,
    /// A server, if one lives on the store; otherwise the engine itself.
    ServersFirst,
}

impl Engine {
    /// Says that a server lives on the store, for some seconds.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub async fn announce(&self) -> Result<(), Error> {
        let store = self.store();
        let until = store.now() + LIVES;
        self.set_presence(CellThen::Set {
            value: Vec::new(),
            until: Some(until),
        })
        .await
    }

    /// Takes back that a server lives on the store.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    pub async fn withdraw_presence(&self) -> Result<(), Error> {
        self.set_presence(CellThen::Remove).await
    }

    async fn set_presence(&self, then: CellThen) -> Result<(), Error> {
        let store = self.store();
        let key = store.owner().to_string();
        loop {
            let cell = store.cell(SYSTEM_TENANT, Space::Server, &key).await?;
            let change = CellChange {
                space: Space::Server,
                key: key.clone(),
                expect: cell.map_or(0, |cell| cell.version),
                then: then.clone(),
            };
            match store.set_cell(SYSTEM_TENANT, change).await {
                Ok(_) => return Ok(()),
                // A word that was given up on came through after all.
                Err(AppendError::CellConflict { .. }) => {}
                Err(error) => return Err(from_append(error)),
            }
        }
    }

    /// Whether this engine leaves the driving to a server that lives on the store.
    pub(crate) async fn leaves_driving(&self) -> Result<bool, Error> {
        if self.options().drives == Drives::Itself {
            return Ok(false);
        }
        let servers = self.store().cells(SYSTEM_TENANT, Space::Server, None, 1);
        Ok(!servers.await?.is_empty())
    }
}
