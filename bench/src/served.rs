//! Holdpoint behind HTTP: a server in a process of its own, and clients of it. Agent, model and tool are those of all
//! workloads.

mod chat;
mod runs;
mod server;

use anyhow::ensure;
use futures::future::try_join_all;
use tokio::time::Instant;

pub(crate) use self::server::serve;
use self::{chat::Chatter, runs::Caller, server::Server};
use crate::{
    crowd::{Crowd, WARM_UP},
    holdpoint::{Bench, open},
    lean, process,
    scene::Asking,
    workload::{Parking, Shared},
};

/// By which of its doors a server is reached.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Door {
    /// The runs API: a command, the stream of the run, another command.
    Runs,
    /// The chat API: two messages, each answered by a stream.
    Chat,
}

/// What W2 over HTTP measures.
#[derive(Debug)]
pub(crate) struct ResumedOverHttp {
    /// What each resume took.
    pub(crate) resume_ms: Vec<f64>,
    /// The memory that the server has in the end.
    pub(crate) rss_kb: u64,
}

/// W1: parks and resumes runs, `concurrency` of them at a time, after some that do not count.
///
/// # Errors
///
/// A run fails, does not end as finished, or its effect did not happen exactly once.
pub(crate) async fn park(url: &str, work: Parking, door: Door) -> anyhow::Result<Shared> {
    let server = Server::start(url).await?;
    let (address, servers) = (server.address(), [server.pid()?]);
    let clients = 0..work.concurrency;
    let spent = match door {
        Door::Runs => {
            let clients = clients.map(|_| Caller::connect(address));
            let mut clients = try_join_all(clients).await?;
            lean::park(&mut clients, work, &servers).await?
        }
        Door::Chat => {
            let clients = clients.map(|_| Chatter::connect(address));
            let mut clients = try_join_all(clients).await?;
            lean::park(&mut clients, work, &servers).await?
        }
    };
    let (effects, expected) = (server.stop().await?, work.warm_up() + work.runs);
    ensure!(effects == expected, "{effects} effects in {expected} runs");
    Ok(spent)
}

/// W2: resumes some of those that are parked in a database, drawn at random, one after the other.
///
/// # Errors
///
/// A run fails, does not end as finished, or its effect did not happen exactly once.
pub(crate) async fn resume(
    url: &str,
    parked: usize,
    resumes: usize,
) -> anyhow::Result<ResumedOverHttp> {
    let server = Server::start(url).await?;
    // A server remembers what it parked last. Nobody answers within milliseconds, so another process parks.
    let other = Bench::new(open(url).await?, Asking::Always, 1, 0).await?;
    let mut client = Caller::connect(server.address()).await?;
    let mut crowd = Crowd::new(0..parked);
    let mut resume_ms = Vec::with_capacity(resumes);
    for nth in 0..WARM_UP + resumes {
        let (place, session) = crowd.any();
        let run = other.run(&session).await?;
        let began = Instant::now();
        client.resume(&run.to_string()).await?;
        if nth >= WARM_UP {
            resume_ms.push(began.elapsed().as_secs_f64() * 1e3);
        }
        other.start(&crowd.replace(place)).await?;
    }
    let rss_kb = process::rss_kb(server.pid()?)?;
    drop((client, other));
    let (effects, expected) = (server.stop().await?, WARM_UP + resumes);
    ensure!(effects == expected, "{effects} effects in {expected} runs");
    Ok(ResumedOverHttp { resume_ms, rss_kb })
}
