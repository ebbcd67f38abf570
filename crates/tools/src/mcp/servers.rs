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

/// How many are kept at most: beyond that, who was idle for longest is let go.
const MOST: usize = 64;

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
        if shared.open.len() >= MOST && !shared.open.contains_key(&key) {
            shared.let_go_of_the_idlest();
        }
        let connection = shared
            .open
            .entry(key)
            .or_insert_with(|| Arc::new(Connection::new(server.clone())));
        connection.touch();
        Arc::clone(connection)
    }
}

impl Shared {
    fn let_go_of_the_idlest(&mut self) {
        let idle = self.open.iter().filter(|(_, it)| !is_held(it));
        let idlest = idle.min_by_key(|(_, it)| it.used());
        if let Some(key) = idlest.map(|(key, _)| key.clone()) {
            self.open.remove(&key);
        }
    }
}

/// Whether somebody is using it.
fn is_held(connection: &Arc<Connection>) -> bool {
    Arc::strong_count(connection) > 1
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
        shared
            .open
            .retain(|_, connection| is_held(connection) || now - connection.used() < IDLE);
        if shared.open.is_empty() {
            shared.is_watched = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(servers: &Servers) -> usize {
        lock(&servers.0).open.len()
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_idle_for_longest_makes_room_and_who_is_used_stays() {
        let (servers, server) = (Servers::default(), McpServer::stdio("s", ["s"], "/"));
        let first = servers.to(&server, "first");
        for at in 0..2 * MOST {
            tokio::time::advance(Duration::from_millis(1)).await;
            drop(servers.to(&server, &at.to_string()));
        }
        assert_eq!(count(&servers), MOST);
        assert!(Arc::ptr_eq(&first, &servers.to(&server, "first")));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_kept_who_is_not_called() {
        let (servers, server) = (Servers::default(), McpServer::stdio("s", ["s"], "/"));
        drop(servers.to(&server, "t"));
        tokio::time::sleep(IDLE / 2).await;
        assert_eq!(count(&servers), 1);
        tokio::time::sleep(IDLE).await;
        assert_eq!(count(&servers), 0);
    }

    #[tokio::test]
    async fn each_conversation_has_its_own_and_so_has_each_way_to_reach_it() {
        let servers = Servers::default();
        let (one, other) = (
            McpServer::stdio("s", ["a"], "/"),
            McpServer::stdio("s", ["b"], "/"),
        );
        let connection = servers.to(&one, "t");
        assert!(Arc::ptr_eq(&connection, &servers.to(&one, "t")));
        assert!(!Arc::ptr_eq(&connection, &servers.to(&one, "u")));
        assert!(!Arc::ptr_eq(&connection, &servers.to(&other, "t")));
    }
}
