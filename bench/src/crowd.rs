//! Holdpoint among many parked runs, in a process of its own: what W2 and W4 start.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, ensure};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    holdpoint::{self, Bench, session},
    process,
    scene::Asking,
    served,
};

/// How many questions a page has.
const PAGE: usize = 50;

/// How many pages are read.
const PAGES: usize = 40;

/// How many resumes come before those that count.
pub(crate) const WARM_UP: usize = 20;

/// How many clients are at work when the process is killed.
const CLIENTS: usize = 8;

/// What a process of the bench is started for. A peer's program knows the same words.
#[derive(Debug, Subcommand)]
pub(crate) enum Errand {
    /// W2: lists and resumes while others are parked.
    #[command(hide = true)]
    Resume {
        /// The database's url.
        url: String,
        /// How many are parked in it.
        #[arg(long)]
        parked: usize,
        /// How many are resumed.
        #[arg(long)]
        resumes: usize,
    },
    /// W1 and W2 over HTTP: serves until stdin ends.
    #[command(hide = true)]
    Serve {
        /// The database's url.
        url: String,
    },
    /// W4: resumes and parks until it is killed, saying how far it is.
    #[command(hide = true)]
    Work {
        /// The database's url.
        url: String,
        /// How many are parked in it.
        #[arg(long)]
        parked: usize,
    },
    /// W4: what a process does that comes after one that was killed.
    #[command(hide = true)]
    Start {
        /// The database's url.
        url: String,
        /// How many are parked in it.
        #[arg(long)]
        parked: usize,
    },
}

/// What W2 measures.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Resumed {
    /// What each page took.
    pub(crate) page_ms: Vec<f64>,
    /// What each resume took.
    pub(crate) resume_ms: Vec<f64>,
    /// The memory that the process has in the end.
    pub(crate) rss_kb: u64,
}

impl Errand {
    /// Does it.
    ///
    /// # Errors
    ///
    /// Something fails, or does not do what it should.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Resume {
                url,
                parked,
                resumes,
            } => tell(&resume(url, *parked, *resumes).await?),
            Self::Serve { url } => served::serve(url).await,
            Self::Work { url, parked } => work(url, *parked).await,
            Self::Start { url, parked } => start(url, *parked).await,
        }
    }
}

/// Says something to whoever started this process.
///
/// # Errors
///
/// It cannot be written.
pub(crate) fn tell(what: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(what)?);
    Ok(())
}

/// Parked runs. One that is resumed is replaced, so that there are always as many.
#[derive(Debug)]
pub(crate) struct Crowd {
    runs: Range<usize>,
    /// Of those that were replaced: how often.
    generations: HashMap<usize, u32>,
    random: u64,
}

impl Crowd {
    /// These runs, which are parked.
    pub(crate) fn new(runs: Range<usize>) -> Self {
        let random = 0x9e37_79b9_7f4a_7c15 ^ runs.start as u64;
        Self {
            runs,
            generations: HashMap::new(),
            random,
        }
    }

    /// One of them, and its session.
    pub(crate) fn any(&mut self) -> (usize, String) {
        // Marsaglia's xorshift64.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let nth = (self.random >> 16) as usize % self.runs.len().max(1);
        let run = self.runs.start + nth;
        (run, self.session(run))
    }

    /// The session of the one that takes its place.
    pub(crate) fn replace(&mut self, run: usize) -> String {
        *self.generations.entry(run).or_default() += 1;
        self.session(run)
    }

    fn session(&self, run: usize) -> String {
        match self.generations.get(&run) {
            None => session(run),
            Some(generation) => format!("{}.{generation}", session(run)),
        }
    }
}

async fn resume(url: &str, parked: usize, resumes: usize) -> anyhow::Result<Resumed> {
    let store = holdpoint::open(url).await?;
    let bench = Bench::new(store.clone(), Asking::Always, 1, 0).await?;
    // An engine remembers what it parked last. Nobody answers within milliseconds, so another one parks.
    let other = Bench::new(store, Asking::Always, 1, 0).await?;
    let mut page_ms = Vec::with_capacity(PAGES);
    let mut after = None;
    for _ in 0..PAGES {
        let is_first = after.is_none();
        let began = Instant::now();
        let page = bench.pending(after, PAGE).await?;
        page_ms.push(began.elapsed().as_secs_f64() * 1e3);
        let found = page.interrupts.len();
        ensure!(
            !is_first || found == PAGE.min(parked),
            "{found} questions on the first page"
        );
        after = page.next;
    }
    let mut crowd = Crowd::new(0..parked);
    let mut resume_ms = Vec::with_capacity(resumes);
    for nth in 0..WARM_UP + resumes {
        let (run, name) = crowd.any();
        let key = bench.key(&name);
        let began = Instant::now();
        bench.resume(&key).await?;
        if nth >= WARM_UP {
            resume_ms.push(began.elapsed().as_secs_f64() * 1e3);
        }
        ensure!(bench.is_finished(&name).await?, "`{name}` is not finished");
        other.start(&crowd.replace(run)).await?;
    }
    let (effects, expected) = (bench.effects(), WARM_UP + resumes);
    ensure!(effects == expected, "{effects} effects in {expected} runs");
    Ok(Resumed {
        page_ms,
        resume_ms,
        rss_kb: process::rss_kb(std::process::id())?,
    })
}

async fn work(url: &str, parked: usize) -> anyhow::Result<()> {
    let bench = Bench::new(holdpoint::open(url).await?, Asking::Always, 1, 0).await?;
    let bench = Arc::new(bench);
    let done = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let mut crowd = Crowd::new(client * parked / CLIENTS..(client + 1) * parked / CLIENTS);
        let (bench, done) = (Arc::clone(&bench), Arc::clone(&done));
        clients.spawn(async move {
            // Until it is killed, or fails.
            while !crowd.runs.is_empty() {
                let (run, name) = crowd.any();
                bench.resume(&bench.key(&name)).await?;
                bench.start(&crowd.replace(run)).await?;
                tell(&(done.fetch_add(1, Ordering::Relaxed) + 1))?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(())
}

async fn start(url: &str, parked: usize) -> anyhow::Result<()> {
    let bench = Bench::new(holdpoint::open(url).await?, Asking::Always, 1, 0).await?;
    let page = bench.pending(None, PAGE).await?;
    tell(&"ready")?;
    let found = page.interrupts.len();
    ensure!(
        found >= PAGE.min(parked / 2),
        "{found} questions on the first page"
    );
    let last = page.interrupts.last().context("nothing is pending")?;
    bench.resume(&bench.key(&last.session)).await?;
    tell(&"resumed")?;
    ensure!(
        bench.is_finished(&last.session).await?,
        "the run is not finished"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_run_is_replaced_by_one_with_another_session() {
        let mut crowd = Crowd::new(7..8);
        assert_eq!(crowd.any(), (7, "session-000007".to_owned()));
        assert_eq!(crowd.replace(7), "session-000007.1");
        assert_eq!(crowd.any(), (7, "session-000007.1".to_owned()));
        assert_eq!(crowd.replace(7), "session-000007.2");
    }

    #[test]
    fn any_run_may_be_drawn_and_none_from_outside() {
        let mut crowd = Crowd::new(3..8);
        let drawn: std::collections::BTreeSet<usize> = (0..200).map(|_| crowd.any().0).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
    }
}
