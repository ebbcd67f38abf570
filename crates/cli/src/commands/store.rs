//! `holdpoint store`: what is done with everything in a store at once.

use std::time::Duration;

use holdpoint_engine::{Flaw, Seen};
use holdpoint_store::{Copied, End, Progress, SharedStore, Stage, discreet};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    args::{CopyStore, Store, StoreCommand, Whole},
    exit::Exit,
    failure::Failure,
    leaving::Leaving,
    safe_text::line,
    session::{IfMissing, Output, mention_past, named_store, open_store},
    terminal, zone,
};

/// Moves a store, or checks one.
///
/// # Errors
///
/// A store cannot be opened, or may not be moved.
pub(crate) async fn store(args: &Whole) -> Result<Exit, Failure> {
    match &args.command {
        StoreCommand::Copy(args) => copy(args).await,
        StoreCommand::Check(args) => check(args).await,
    }
}

async fn copy(args: &CopyStore) -> Result<Exit, Failure> {
    let output = Output::of(args.json);
    let (from, to) = (named_store(&args.from)?, named_store(&args.to)?);
    let (from_name, to_name) = (spelt(&from), spelt(&to));
    let from = open_durable(&from, IfMissing::Refuse).await?;
    let from = End {
        store: &*from,
        name: &from_name,
    };
    if args.abandon {
        return abandon(from, output).await;
    }
    // First, so that a move that is refused leaves no empty store behind.
    holdpoint_store::may_leave(from).await?;
    let missing = match from.store.part().await? {
        None => IfMissing::Create,
        // It is on its way to one that is there.
        Some(_) => IfMissing::Refuse,
    };
    let to = open_durable(&to, missing).await?;
    let to = End {
        store: &*to,
        name: &to_name,
    };
    let mut pace = Pace::new();
    let mut tell = |progress| {
        if pace.is_due() {
            terminal::note(&progress_line(progress));
        }
    };
    let leaving = Leaving::listen();
    let Copied {
        threads, records, ..
    } = tokio::select! {
        copied = holdpoint_store::copy(from, to, &mut tell) => copied?,
        // Dropped in the middle, a copy is like one that was killed: it can be gone on with.
        signal = leaving.asked() => {
            terminal::note(&format!(
                "{signal}: cut off. Nothing is lost: the same command goes on with it, and with `--abandon` gives it up. \
                 Until then {} takes nothing new, if it was sealed already",
                line(&from_name)
            ));
            return Ok(Exit::Waiting);
        }
    };
    match output {
        Output::Json => terminal::json(&json!({
            "from": from_name, "to": to_name, "threads": threads, "records": records,
        })),
        Output::Plain => terminal::note(&format!(
            "{} moved to {}: {threads} threads, {records} records, every chain of hashes checked; it goes on there, and \
             the old store is only read from now on",
            line(&from_name),
            line(&to_name),
        )),
    }
    Ok(Exit::Done)
}

/// How a store is named to people, also to those in another folder: without a password, and with the whole path.
fn spelt(url: &str) -> String {
    let path = url.strip_prefix("sqlite:").map(std::path::absolute);
    match path {
        Some(Ok(path)) => format!("sqlite:{}", path.display()),
        Some(Err(_)) | None => discreet(url),
    }
}

async fn abandon(from: End<'_>, output: Output) -> Result<Exit, Failure> {
    let was_moving = holdpoint_store::abandon(from).await?;
    if !was_moving {
        let message = format!("{} is not being moved", from.name);
        return Err(Failure::refused("not_moving", message));
    }
    match output {
        Output::Json => terminal::json(&json!({"from": from.name, "abandoned": true})),
        Output::Plain => terminal::note(&format!(
            "{} goes on as before; what was copied of it is of no use any more",
            line(from.name)
        )),
    }
    Ok(Exit::Done)
}

async fn open_durable(url: &str, missing: IfMissing) -> Result<SharedStore, Failure> {
    let store = open_store(url, missing).await?;
    if store.is_durable() {
        return Ok(store);
    }
    let message = format!("`{url}` is gone when this command ends");
    Err(Failure::usage(message).help("name a store that lasts: `sqlite:PATH` or `postgres://…`"))
}

fn progress_line(Progress { stage, threads, of }: Progress) -> String {
    match stage {
        Stage::Waiting { until } => format!(
            "a process may still be at work; waiting for its lease to end at {}",
            zone::short(until)
        ),
        Stage::Copying => format!("copied {threads} of {of} threads"),
        Stage::Checking => format!("checked {threads} of {of} threads"),
    }
}

async fn check(args: &Store) -> Result<Exit, Failure> {
    let output = Output::of(args.common.json);
    let store = open_store(&args.common.store, IfMissing::Refuse).await?;
    mention_past(&store).await?;
    let mut pace = Pace::new();
    let mut flaws = 0_u64;
    let mut tell = |seen| match seen {
        Seen::Threads(threads, of) => {
            if pace.is_due() {
                terminal::note(&format!("checked {threads} of {of} threads"));
            }
        }
        Seen::Flaw(flaw) => {
            flaws += 1;
            print(&flaw, output);
        }
    };
    let checked = holdpoint_engine::check(&*store, &mut tell).await?;
    match output {
        Output::Json => terminal::json(&json!({
            "threads": checked.threads,
            "records": checked.records,
            "rows": checked.rows,
            "definitions": checked.definitions,
            "previews": checked.previews,
            "artifacts": checked.artifacts,
            "changed": checked.changed,
            "flaws": flaws,
        })),
        Output::Plain => {
            let verdict = match flaws {
                0 => "all is as it should be".to_owned(),
                1 => "1 flaw".to_owned(),
                flaws => format!("{flaws} flaws"),
            };
            terminal::data(&format!(
                "{verdict}: {} threads, {} records, {} rows of indexes, {} definitions, {} previews, {} artifacts",
                checked.threads,
                checked.records,
                checked.rows,
                checked.definitions,
                checked.previews,
                checked.artifacts
            ));
            if checked.changed > 0 {
                terminal::note(&format!(
                    "{} threads changed meanwhile, so that nothing is said of their rows",
                    checked.changed
                ));
            }
        }
    }
    Ok(if flaws == 0 { Exit::Done } else { Exit::Failed })
}

fn print(Flaw { thread, what }: &Flaw, output: Output) {
    let (tenant, id) = match thread {
        Some(key) => (Some(&*key.tenant), Some(key.thread.to_string())),
        None => (None, None),
    };
    match output {
        Output::Json => terminal::json(&json!({"tenant": tenant, "thread_id": id, "flaw": what})),
        Output::Plain => {
            let whose = match (tenant, id) {
                (Some(tenant), Some(id)) => format!("{} of tenant {}: ", id, line(tenant)),
                _ => String::new(),
            };
            terminal::data(&format!("{whose}{}", line(what)));
        }
    }
}

/// Lets something be told now and then, if it takes long.
struct Pace {
    told: Instant,
}

impl Pace {
    const EVERY: Duration = Duration::from_secs(2);

    fn new() -> Self {
        Self {
            told: Instant::now(),
        }
    }

    fn is_due(&mut self) -> bool {
        let is_due = self.told.elapsed() >= Self::EVERY;
        if is_due {
            self.told = Instant::now();
        }
        is_due
    }
}
