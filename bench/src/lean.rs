//! Clients that share one thread: they are not what is measured, and have to leave the processors to what is.

use std::{cell::Cell, ops::Range};

use anyhow::Context as _;
use futures::future::try_join_all;

use crate::workload::{Parking, Shared, SharedWatch};

/// Somebody who takes runs from their start to their end.
pub(crate) trait Client {
    /// Starts a run, sees it park, approves what it asks, and sees it end.
    ///
    /// # Errors
    ///
    /// Something fails, or the run does not end as it should.
    async fn cycle(&mut self, run: usize) -> anyhow::Result<()>;
}

/// Does something on this thread alone: whatever it starts shares it too.
///
/// # Errors
///
/// It fails.
pub(crate) fn alone<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::task::block_in_place(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("there is no thread for the clients")?
            .block_on(work)
    })
}

/// W1: has clients work through runs, after some that do not count. Returns what those took that do; `servers` are the
/// processes that do it for them.
///
/// # Errors
///
/// As [`Client::cycle`]; or a server is gone.
pub(crate) async fn park<C: Client>(
    clients: &mut [C],
    work: Parking,
    servers: &[u32],
) -> anyhow::Result<Shared> {
    let (first, end) = (work.warm_up(), work.warm_up() + work.runs);
    by_clients(clients, 0..first).await?;
    let watch = SharedWatch::start(servers)?;
    by_clients(clients, first..end).await?;
    watch.stop()
}

/// Has clients work through runs, each taking the next one when it is done.
async fn by_clients<C: Client>(clients: &mut [C], runs: Range<usize>) -> anyhow::Result<()> {
    let next = Cell::new(runs.start);
    let work = async |client: &mut C| {
        loop {
            let run = next.get();
            if run >= runs.end {
                return anyhow::Ok(());
            }
            next.set(run + 1);
            client.cycle(run).await?;
        }
    };
    try_join_all(clients.iter_mut().map(work)).await?;
    Ok(())
}
