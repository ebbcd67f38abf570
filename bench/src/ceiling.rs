//! The most that SQLite would let anyone do here: the very commits that Holdpoint made, written by a bare loop.
//!
//! It decides nothing, checks nothing, reads nothing and encodes nothing; everything it writes lies ready in memory. What
//! it keeps of Holdpoint is what the workload itself demands: a run's next commit is sent when the one before is durable,
//! and one thread writes what has queued up in one transaction.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use anyhow::Context as _;
use holdpoint_store::{Options, SqliteStore};
use rusqlite::{Connection, TransactionBehavior};
use tokio::{sync::oneshot, task::JoinSet, time::Instant};

use crate::{
    script::{Change, Script},
    workload::{Parking, Spent, Steps, Stopwatch, Tenths},
};

/// A commit that waits to be written.
struct Job {
    script: Arc<Script>,
    /// Which commit of it.
    nth: usize,
    /// The thread's row, once it has one.
    row: Option<i64>,
    done: oneshot::Sender<i64>,
}

/// Where commits are handed in.
#[derive(Clone)]
struct Queue(mpsc::Sender<Job>);

impl Queue {
    /// Writes all commits of a thread, one after the other. `seen` is called before each, and once at the end.
    async fn play(&self, script: &Arc<Script>, mut seen: impl FnMut()) -> anyhow::Result<()> {
        let mut row = None;
        for nth in 0..script.commits.len() {
            seen();
            let (done, written) = oneshot::channel();
            let script = Arc::clone(script);
            let job = Job {
                script,
                nth,
                row,
                done,
            };
            self.0.send(job).ok().context("the writer is gone")?;
            row = Some(written.await?);
        }
        seen();
        Ok(())
    }
}

/// The same pragmas as Holdpoint's writer has, on the same layout.
fn connect(file: &Path) -> anyhow::Result<Connection> {
    drop(SqliteStore::open(file, &Options::default())?);
    let conn = Connection::open(file)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    conn.pragma_update(None, "wal_autocheckpoint", 2_048)?;
    Ok(conn)
}

/// Writes what has queued up, until nobody can hand in any more.
fn write(mut conn: Connection, jobs: &mpsc::Receiver<Job>) -> anyhow::Result<()> {
    while let Ok(first) = jobs.recv() {
        let batch: Vec<Job> = std::iter::once(first).chain(jobs.try_iter()).collect();
        let mut rows = Vec::with_capacity(batch.len());
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for job in &batch {
            rows.push(write_one(&tx, job)?);
        }
        tx.commit()?;
        for (job, row) in batch.into_iter().zip(rows) {
            // A client that is gone has failed, and says so itself.
            job.done.send(row).ok();
        }
    }
    Ok(())
}

fn write_one(conn: &Connection, job: &Job) -> rusqlite::Result<i64> {
    let script = &*job.script;
    let Some(commit) = script.commits.get(job.nth) else {
        return Ok(0);
    };
    let (owner, boot, until) = match commit.until {
        Some(until) => (Some(&script.owner), Some(&*script.boot), Some(until)),
        None => (None, None, None),
    };
    let Some(head) = &commit.head else {
        let row = job.row.unwrap_or_default();
        conn.prepare_cached(
            "UPDATE threads SET epoch = ?2, owner = ?3, boot = ?4, until = ?5 WHERE id = ?1",
        )?
        .execute((row, commit.epoch, owner, boot, until))?;
        return Ok(row);
    };
    let row = match job.row {
        None => conn
            .prepare_cached(
                "INSERT INTO threads (tenant, thread, version, epoch, owner, boot, until, codec, key_id, head)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, NULL, ?8)",
            )?
            .insert((
                &*script.tenant,
                &script.thread,
                commit.version,
                commit.epoch,
                owner,
                boot,
                until,
                head,
            ))?,
        Some(row) => {
            conn.prepare_cached(
                "UPDATE threads SET version = ?2, epoch = ?3, owner = ?4, boot = ?5, until = ?6, codec = 1, key_id = NULL, head = ?7
                 WHERE id = ?1",
            )?
            .execute((row, commit.version, commit.epoch, owner, boot, until, head))?;
            row
        }
    };
    let mut insert = conn.prepare_cached(
        "INSERT INTO events (pos, header, salt, codec, key_id, payload, hash) VALUES (?1, ?2, ?3, 1, NULL, ?4, ?5)",
    )?;
    for record in &commit.records {
        insert.execute((
            (row << 24) + record.seq,
            &record.header,
            &record.salt,
            &record.payload,
            &record.hash,
        ))?;
    }
    for entry in &commit.entries {
        let sql = match entry.change {
            Change::Put => {
                "INSERT INTO entries (idx, tenant, key, sort, thread) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING"
            }
            Change::Remove => {
                "DELETE FROM entries WHERE idx = ?1 AND tenant = ?2 AND key = ?3 AND sort = ?4 AND thread = ?5"
            }
        };
        conn.prepare_cached(sql)?.execute((
            entry.index,
            &*script.tenant,
            &entry.key,
            entry.sort,
            &script.thread,
        ))?;
    }
    Ok(row)
}

/// Starts the writer, and has `play` hand in commits. Returns what it came to, once all is written.
async fn with_writer<T, F>(file: &Path, play: impl FnOnce(Queue) -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    let conn = connect(file)?;
    let (queue, jobs) = mpsc::channel();
    let writer = std::thread::spawn(move || write(conn, &jobs));
    let played = play(Queue(queue)).await;
    match writer.join() {
        Ok(written) => written?,
        Err(_) => anyhow::bail!("the writer panicked"),
    }
    played
}

/// W1's commits: `concurrency` threads at a time. Returns what all of them took.
///
/// # Errors
///
/// The database fails.
pub(crate) async fn park(
    file: &Path,
    scripts: &Arc<Vec<Arc<Script>>>,
    work: Parking,
) -> anyhow::Result<Spent> {
    with_writer(file, async |queue| {
        let next = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        let watch = Stopwatch::start();
        for _ in 0..work.concurrency {
            let (queue, next) = (queue.clone(), Arc::clone(&next));
            let scripts = Arc::clone(scripts);
            clients.spawn(async move {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    queue.play(script, || ()).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(client) = clients.join_next().await {
            client??;
        }
        Ok(watch.stop())
    })
    .await
}

/// W3's commits: all of one thread.
///
/// # Errors
///
/// The database fails.
pub(crate) async fn step(file: &Path, script: &Arc<Script>, work: Steps) -> anyhow::Result<Tenths> {
    with_writer(file, async |queue| {
        let script = Arc::clone(script);
        // On a task, as everything else is measured.
        let times = tokio::spawn(async move {
            let mut times = Vec::with_capacity(script.commits.len() + 1);
            queue.play(&script, || times.push(Instant::now())).await?;
            anyhow::Ok(times)
        });
        Ok(Tenths::new(&times.await??, work.steps))
    })
    .await
}
