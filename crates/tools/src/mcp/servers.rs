//! Which servers are connected to, for whom.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use holdpoint_core::{Digest, McpServer};
use tokio::time::Instant;

use super::connection::Connection;

/// How long a server is kept that nobody calls.
const IDLE: Duration = Duration::from_secs(300);

/// How often it is looked at who is idle.
const LOOK: Duration = Duration::from_secs(15);

/// The connections of one process. Each conversation has its own, so that none sees what another one left behind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Servers(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    open: HashMap<(String, Digest), Arc<Connection>>,
    is_watched: bool,
}

impl Servers {
    /// The connection of a conversation to a server.
    pub(super) fn to(&self, server: &McpServer, scope: &str) -> Arc<Connection> {
        let reached = serde_json::to_vec(&(&server.name, &server.transport)).unwrap_or_default();
        let key = (scope.to_owned(), Digest::of(&reached));
        let mut shared = lock(&self.0);
        if !shared.is_watched {
            shared.is_watched = true;
            tokio::spawn(let_go_of_idle_ones(Arc::downgrade(&self.0)));
        }
        let connection = shared
            .open
            .entry(key)
            .or_insert_with(|| Arc::new(Connection::new(server.clone())));
        connection.touch();
        Arc::clone(connection)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn let_go_of_idle_ones(shared: Weak<Mutex<Shared>>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let mut shared = lock(&shared);
        let now = Instant::now();
        // What somebody holds is being used.
        shared.open.retain(|_, connection| {
            Arc::strong_count(connection) > 1 || now - connection.used() < IDLE
        });
        if shared.open.is_empty() {
            shared.is_watched = false;
            return;
        }
    }
}
