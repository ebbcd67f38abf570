//! The peer behind HTTP: Restate, whose server calls a service in Node.
//!
//! What the service does is written in `bench/peers/restate/service.js`; here is how both are started, and the clients.

mod client;
mod npm;
mod server;

use std::{cell::RefCell, collections::HashMap, path::Path, pin::pin};

use anyhow::ensure;
use futures::future::try_join_all;
use tokio::sync::oneshot;

use self::{
    client::{Awakeable, Caller},
    npm::Installed,
    server::{Server, Service},
};
use crate::{
    lean,
    workload::{Parking, Shared},
};

/// Who waits for which awakeable: the session's name, and where its id goes.
type Waiting = RefCell<HashMap<String, oneshot::Sender<Awakeable>>>;

/// How it is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// As it comes and as its documentation says: the server divides what it keeps into as many partitions as it does when
    /// nobody says anything, and that somebody was asked is recorded.
    Shipped,
    /// As fast as we could make it: as many partitions as there are processors, and that somebody was asked is not
    /// recorded.
    Tuned,
}

impl Shape {
    fn partitions(self) -> usize {
        match self {
            Self::Shipped => 24,
            Self::Tuned => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Restate, installed.
#[derive(Debug)]
pub(crate) struct Restate {
    installed: Installed,
}

impl Restate {
    /// Installs it beneath a folder, unless that was done before.
    ///
    /// # Errors
    ///
    /// There is no npm, or nothing to install from.
    pub(crate) async fn install(root: &Path, folder: &Path) -> anyhow::Result<Self> {
        let source = root.join("bench/peers/restate");
        let installed = npm::install(&source, folder).await?;
        Ok(Self { installed })
    }

    /// Which versions of what it is.
    pub(crate) fn about(&self) -> &str {
        &self.installed.about
    }

    /// W1: parks and resumes runs, `concurrency` of them at a time, after some that do not count.
    ///
    /// # Errors
    ///
    /// A run fails, or its effect did not happen exactly once.
    pub(crate) async fn park(
        &self,
        folder: &Path,
        work: Parking,
        shape: Shape,
    ) -> anyhow::Result<Shared> {
        let server = Server::start(&self.installed, folder, shape.partitions()).await?;
        let service = Service::start(&self.installed, shape).await?;
        server.register(&service).await?;
        let waiting = Waiting::default();
        let measuring = async {
            let clients =
                (0..work.concurrency).map(|_| Caller::connect(server.ingress(), &waiting));
            let mut clients = try_join_all(clients).await?;
            lean::park(&mut clients, work, &[server.pid()?, service.pid()?]).await
        };
        let spent = telling(&service, &waiting, measuring).await?;
        let (effects, expected) = (service.stop().await?, work.warm_up() + work.runs);
        ensure!(effects == expected, "{effects} effects in {expected} runs");
        server.stop().await?;
        Ok(spent)
    }
}

/// Hands out the ids that the service tells, for as long as something is done.
async fn telling<T>(
    service: &Service,
    waiting: &Waiting,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            told = service.told() => {
                let (session, awakeable) = told?;
                // One that nobody waits for was told before: an invocation that is tried again begins anew.
                if let Some(waiting) = waiting.borrow_mut().remove(&session) {
                    waiting.send(awakeable).ok();
                }
            }
        }
    }
}
