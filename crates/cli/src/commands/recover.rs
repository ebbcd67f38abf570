//! `holdpoint recover`: goes on with what dead processes left, never with what a live one drives.

use std::future::Future;

use holdpoint_core::Status;
use holdpoint_engine::{Engine, Error};
use holdpoint_store::ThreadKey;
use tokio::task::JoinSet;

use crate::{
    args::{Common, Recover},
    backups,
    exit::Exit,
    failure::Failure,
    pending, screen,
    session::{IfMissing, Output, Session},
    terminal, zone,
};

/// Drives every abandoned thread until it stops, all at once.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn recover(args: &Recover) -> Result<Exit, Failure> {
    let (session, adopted) = if args.adopt {
        adopt(&args.common).await?
    } else {
        let session = Session::open_to_drive(&args.common.of_nobody(), IfMissing::Refuse).await?;
        (session, Vec::new())
    };
    let looking = "looking whether other processes are still alive";
    let abandoned = tokio::select! {
        // Cancel safe: looking changes nothing.
        abandoned = patiently(session.output, looking, session.engine.abandoned()) => abandoned?,
        signal = session.leaving().asked() => {
            let again = session.place.command("recover");
            terminal::note(&format!("{signal}: left before anything was begun; go on with: {again}"));
            return Ok(Exit::Waiting);
        }
    };
    let mut abandoned = abandoned;
    abandoned.extend(session.engine.due().await?);
    abandoned.sort();
    abandoned.dedup();
    if session.output == Output::Plain && adopted.is_empty() {
        terminal::note(&match abandoned.len() {
            0 => "nothing was left behind".to_owned(),
            1 => "going on with 1 thread".to_owned(),
            count => format!("going on with {count} threads"),
        });
    }
    // Before anything is gone on with: whatever is in flight now was cut off.
    let cut_off = cut_off(&session, &abandoned).await;
    let mut driving = JoinSet::new();
    for key in &abandoned {
        driving.spawn(drive(session.engine.clone(), key.clone()));
    }
    let mut open = abandoned;
    let mut worst = Exit::Done;
    for key in adopted {
        worst = worse(worst, told(&session, print(&session, &key).await));
    }
    loop {
        let waiting = format!("at work on {}{cut_off}", driving.len());
        let landed = tokio::select! {
            // Cancel safe: both arms are, and leaving is meant.
            landed = patiently(session.output, &waiting, driving.join_next()) => landed,
            signal = session.leaving().asked() => {
                driving.shutdown().await;
                return Ok(worse(worst, leave(&session, &open, signal).await?));
            }
        };
        let Some(landed) = landed else {
            return Ok(worst);
        };
        if let Ok((done, _)) = &landed {
            open.retain(|key| key != done);
        }
        let exit = match landed {
            Ok((key, Ok(()))) => print(&session, &key).await,
            Ok((key, Err(error))) => Err(Failure::from(error).about(key.thread)),
            Err(panic) => Err(Failure::unusable("crashed", panic.to_string())),
        };
        worst = worse(worst, told(&session, exit));
    }
}

/// Of how many threads it is looked up what they wait for.
const LOOKED_AT: usize = 20;

/// What nobody can hurry: calls that were cut off and may still be at work, until their time is over. What cannot be read is told by
/// whoever drives it.
async fn cut_off(session: &Session, abandoned: &[ThreadKey]) -> String {
    let mut last = None;
    for key in abandoned.iter().take(LOOKED_AT) {
        let state = session.engine.state(key).await.ok().flatten();
        last = last.max(state.and_then(|state| pending::cut_off_until(&state)));
    }
    last.map_or_else(String::new, |until| {
        format!(
            "; a call that was cut off may itself be at work until {}",
            zone::short(until)
        )
    })
}

/// What a thread that was looked at ends with. One that could not be is told of.
fn told(session: &Session, exit: Result<Exit, Failure>) -> Exit {
    exit.unwrap_or_else(|failure| {
        match session.output {
            Output::Json => failure.print_json(),
            Output::Plain => failure.print(),
        }
        failure.exit()
    })
}

/// Makes a backup the store to go on with. Returns the threads that ask since; none where it is no backup.
async fn adopt(common: &Common) -> Result<(Session, Vec<ThreadKey>), Failure> {
    let session = Session::open(&common.of_nobody(), IfMissing::Refuse).await?;
    let adopting = patiently(
        session.output,
        "adopting the backup",
        session.engine.adopt(),
    );
    let Some(adopted) = adopting.await? else {
        return Ok((session, Vec::new()));
    };
    terminal::note(&backups::tell(&session.place.store, &adopted));
    for key in &adopted.unreadable {
        terminal::note(&format!(
            "{} cannot be read, and was left as it is",
            key.thread
        ));
    }
    Ok((session, adopted.asking))
}

/// Waits, and says so where a person does too.
async fn patiently<T>(output: Output, what: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut patience = screen::PATIENCE;
    loop {
        match tokio::time::timeout(patience, &mut work).await {
            Ok(done) => return done,
            Err(_) if output == Output::Plain && terminal::is_watched() => {
                terminal::note(&format!("… {what}"));
            }
            Err(_) => {}
        }
        patience = screen::AGAIN;
    }
}

/// Says which threads are left in the middle of their work. A program gets their objects too.
async fn leave(session: &Session, open: &[ThreadKey], signal: &str) -> Result<Exit, Failure> {
    const NAMED: usize = 5;
    let mut worst = Exit::Done;
    let mut names = Vec::new();
    for key in open {
        let (state, view) = session.view(key).await?;
        if state.status() == Some(Status::Running) {
            names.push(pending::thread_word(&view));
        }
        // One that came to a stop in this very moment is printed like any other.
        if session.output == Output::Json || state.status() != Some(Status::Running) {
            print(session, key).await?;
        }
        worst = worse(worst, Exit::of(state.status().as_ref()));
    }
    if names.is_empty() {
        return Ok(worst);
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut left = names.join(", ");
    if more > 0 {
        left.push_str(&format!(" and {more} more"));
    }
    session.say_goodbye(signal, &left, "recover");
    Ok(worst)
}

async fn drive(engine: Engine, key: ThreadKey) -> (ThreadKey, Result<(), Error>) {
    // What is due is done once, whoever sees it; then it goes on with what follows.
    let result = match Box::pin(engine.tick(&key)).await {
        Ok(submitted) => submitted.finish().await.map(drop),
        Err(error) => Err(error),
    };
    (key, result)
}

async fn print(session: &Session, key: &ThreadKey) -> Result<Exit, Failure> {
    let (state, view) = session.view(key).await?;
    let status = state.status();
    // It goes on with the threads of all tenants.
    let place = session.place.of(&key.tenant);
    match session.output {
        Output::Json => terminal::json(&view),
        Output::Plain if !view.interrupts.is_empty() => {
            terminal::data(&pending::render(&view, &place));
        }
        Output::Plain if let Some(stillness) = pending::stillness(&view, &place) => {
            terminal::data(&stillness);
        }
        Output::Plain => {
            let name = pending::thread_word(&view);
            let status = status.as_ref().map_or("new", Status::as_str);
            terminal::data(&format!("{name} {status}"));
        }
    }
    Ok(Exit::of(status.as_ref()))
}

/// A wait outweighs what could not be driven, which outweighs a failure: somebody is being asked.
const fn worse(a: Exit, b: Exit) -> Exit {
    match (a, b) {
        (Exit::Waiting, _) | (_, Exit::Waiting) => Exit::Waiting,
        (Exit::Usage, _) | (_, Exit::Usage) => Exit::Usage,
        (Exit::Refused, _) | (_, Exit::Refused) => Exit::Refused,
        (Exit::Failed, _) | (_, Exit::Failed) => Exit::Failed,
        (Exit::Done, Exit::Done) => Exit::Done,
    }
}
