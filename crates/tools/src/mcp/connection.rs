//! What one conversation has with one server: at most one link, taken up when it is needed and let go when it is idle.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use holdpoint_core::{McpOffer, McpServer};
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::{
    asked::Given,
    link::{Broken, Link, NOT_READY, Sent},
    said::Said,
};
use crate::{StepTrouble, Watchdog};

/// How long it may take until a server is there to be asked, from when it is started.
const OPENING: Duration = Duration::from_secs(60);

/// A call.
pub(super) struct Request<'a> {
    pub(super) tool: &'a str,
    /// What it was when it was allowed.
    pub(super) version: &'a str,
    pub(super) arguments: serde_json::Map<String, Value>,
    pub(super) key: &'a str,
    pub(super) given: &'a Given,
}

/// The right to call a server, kept for as long as the call takes: one that cannot tell calls apart has one at a time.
#[derive(Debug)]
pub(super) struct Turn(#[expect(dead_code, reason = "it is held")] Option<OwnedSemaphorePermit>);

/// What a conversation has with a server.
#[derive(Debug)]
pub(super) struct Connection {
    server: McpServer,
    link: tokio::sync::Mutex<Option<Arc<Link>>>,
    /// Whose turn it is, where the server cannot tell calls apart.
    turn: Arc<Semaphore>,
    /// When it was last waited for in vain, if it has not begun since.
    in_vain: Mutex<Option<Instant>>,
    used: Mutex<Instant>,
}

impl Connection {
    pub(super) fn new(server: McpServer) -> Self {
        Self {
            server,
            link: tokio::sync::Mutex::default(),
            turn: Arc::new(Semaphore::new(1)),
            in_vain: Mutex::default(),
            used: Mutex::new(Instant::now()),
        }
    }

    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(super) fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that there is a link. To begin one takes a time of its own, whatever a call may take. Where that has passed in
    /// vain, whoever comes within as much time again waits until `soon` only, so that people are asked and no call is given up.
    pub(super) async fn begin(&self, watchdog: &Watchdog, soon: Instant) -> Result<(), String> {
        let now = Instant::now();
        let in_vain = *self.in_vain();
        let until = match in_vain {
            Some(at) if now < at + OPENING => soon,
            Some(_) | None => now + OPENING,
        };
        let begun = self.link(watchdog, until).await;
        let ended = Instant::now();
        let mut in_vain = self.in_vain();
        match &begun {
            Ok(_) => *in_vain = None,
            Err(_) if until > soon && ended > soon => *in_vain = Some(ended),
            Err(_) => {}
        }
        begun.map(drop)
    }

    fn in_vain(&self) -> MutexGuard<'_, Option<Instant>> {
        self.in_vain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server offers.
    pub(super) async fn offers(
        &self,
        watchdog: &Watchdog,
        deadline: Instant,
    ) -> Result<Arc<[McpOffer]>, String> {
        let link = self.link(watchdog, deadline).await?;
        link.offers(deadline).await
    }

    /// The link, made if there is none.
    async fn link(&self, watchdog: &Watchdog, deadline: Instant) -> Result<Arc<Link>, String> {
        let waited = timeout_at(deadline, self.link.lock()).await;
        // Somebody else waits for it to begin.
        let mut link = waited.map_err(|_| NOT_READY.to_owned())?;
        if let Some(link) = link.as_ref().filter(|link| !link.is_over()) {
            return Ok(Arc::clone(link));
        }
        // What is over is gone before another one begins.
        *link = None;
        let opened = Arc::new(Link::open(&self.server, watchdog, deadline).await?);
        *link = Some(Arc::clone(&opened));
        Ok(opened)
    }

    async fn drop_link(&self, old: &Arc<Link>) {
        let mut link = self.link.lock().await;
        if link.as_ref().is_some_and(|link| Arc::ptr_eq(link, old)) {
            *link = None;
        }
    }

    /// Waits until the server can be called; `None` if that was not so by then.
    pub(super) async fn turn(
        &self,
        watchdog: &Watchdog,
        deadline: Instant,
    ) -> Result<Option<Turn>, String> {
        if self.link(watchdog, deadline).await?.takes_several() {
            return Ok(Some(Turn(None)));
        }
        let turn = timeout_at(deadline, Arc::clone(&self.turn).acquire_owned()).await;
        Ok(turn.ok().and_then(Result::ok).map(|turn| Turn(Some(turn))))
    }

    /// Makes a call, once. Its turn has come.
    pub(super) async fn call(
        &self,
        watchdog: &Watchdog,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Said, StepTrouble> {
        // A server that has forgotten us has not looked at the call.
        for _ in 0..2 {
            let link = self
                .link(watchdog, deadline)
                .await
                .map_err(StepTrouble::no_effect)?;
            self.expect_same(&link, request, deadline).await?;
            let sent = Sent {
                tool: request.tool,
                arguments: request.arguments.clone(),
                key: request.key,
                given: request.given,
            };
            let said = link.call(sent, deadline).await;
            self.touch();
            match said {
                Ok(said) => return Ok(said),
                Err(Broken::Forgotten) => self.drop_link(&link).await,
                Err(Broken::Trouble(trouble)) => {
                    if let StepTrouble::Unknown { .. } = trouble {
                        // Whatever it still does, it does not do for us; a program is killed by this.
                        self.drop_link(&link).await;
                    }
                    return Err(trouble);
                }
            }
        }
        Err(StepTrouble::no_effect(
            "the server forgets every session at once",
        ))
    }

    /// Nothing is called that is not what was allowed.
    async fn expect_same(
        &self,
        link: &Link,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<(), StepTrouble> {
        let offers = link
            .offers(deadline)
            .await
            .map_err(StepTrouble::no_effect)?;
        let now = offers.iter().find(|it| it.name == request.tool);
        if now.is_some_and(|offer| offer.version() == request.version) {
            return Ok(());
        }
        Err(StepTrouble::no_effect(format!(
            "the MCP server `{}` does not offer `{}` any more as it was when this was allowed; nothing was called",
            self.server.name, request.tool
        )))
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::McpTransport;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_was_waited_for_in_vain_is_not_waited_for_at_once_again() {
        // It lets others in, and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", silent.local_addr().unwrap());
        let mut server = McpServer::http("s", url);
        if let McpTransport::Http { allow_private, .. } = &mut server.transport {
            allow_private.push("127.0.0.1".to_owned());
        }
        let connection = Connection::new(server);
        let soon = Duration::from_secs(2);
        let watchdog = Watchdog::default();
        for expected in [OPENING, soon, soon, OPENING, soon] {
            let begun = Instant::now();
            // Three at once wait no longer than one.
            let wait = || connection.begin(&watchdog, begun + soon);
            let (one, two, three) = tokio::join!(wait(), wait(), wait());
            for waited in [one, two, three] {
                let why = waited.unwrap_err();
                assert!(why.contains("not ready to be asked in time"), "{why}");
            }
            let waited = begun.elapsed();
            assert!(
                waited >= expected && waited < expected + soon / 2,
                "{waited:?}"
            );
            if expected == soon && waited < OPENING {
                tokio::time::advance(OPENING / 2).await;
            }
        }
    }
}
