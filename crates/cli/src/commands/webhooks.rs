//! `holdpoint webhooks`: who outside is told what becomes of questions, and what could not be told.

use holdpoint_core::Letter;
use holdpoint_engine::DeadLetter;
use serde_json::json;

use crate::{
    args::{DeadLetters, RemoveWebhook, Threads, Webhooks, WebhooksCommand},
    exit::Exit,
    failure::Failure,
    safe_text::line,
    session::{IfMissing, Output, Session},
    terminal, zone,
};

/// How many letters are read at once.
const PAGE: usize = 200;
/// Up to how many are counted.
const COUNTED: usize = 1_000;

/// Lists webhooks and dead letters, sends these again, discards them, or forgets a webhook.
///
/// # Errors
///
/// There is no such webhook; the store fails.
pub(crate) async fn webhooks(args: &Webhooks) -> Result<Exit, Failure> {
    match &args.command {
        WebhooksCommand::List(args) => list(args).await,
        WebhooksCommand::Dead(args) => dead(args).await,
        WebhooksCommand::Resend(args) => resend(args).await,
        WebhooksCommand::Discard(args) => discard(args).await,
        WebhooksCommand::Remove(args) => remove(args).await,
    }
}

async fn list(threads: &Threads) -> Result<Exit, Failure> {
    let session = Session::open_to_read(threads).await?;
    let engine = &session.engine;
    for (name, subscription) in engine.subscriptions().await? {
        if !subscription.covers(session.tenant()) {
            continue;
        }
        let undelivered = engine.undelivered(session.tenant(), &name, None, COUNTED);
        let undelivered = undelivered.await?.len();
        let dead = engine.dead_letters(&session.by, &name, None, COUNTED);
        let dead = dead.await?.len();
        match session.output {
            Output::Json => terminal::json(&json!({
                "name": name,
                "types": subscription.kinds,
                "undelivered": undelivered,
                "dead_letters": dead,
            })),
            Output::Plain => terminal::data(&format!(
                "{}  {undelivered} to be delivered, {dead} given up",
                line(&name)
            )),
        }
    }
    Ok(Exit::Done)
}

async fn dead(args: &DeadLetters) -> Result<Exit, Failure> {
    let session = Session::open_to_read(&args.threads).await?;
    expect_known(&session, &args.name).await?;
    let mut after: Option<Letter> = None;
    let mut is_any = false;
    loop {
        let letters = session
            .engine
            .dead_letters(&session.by, &args.name, after.as_ref(), PAGE)
            .await?;
        for dead in &letters {
            if args.interrupt.is_none_or(|it| it == dead.letter.interrupt) {
                is_any = true;
                show(&session, dead);
            }
        }
        if letters.len() < PAGE {
            if !is_any && session.output == Output::Plain {
                let tenant = line(session.tenant());
                terminal::note(&format!("nothing of tenant {tenant} was given up"));
            }
            return Ok(Exit::Done);
        }
        after = letters.last().map(|dead| dead.letter.clone());
    }
}

fn show(session: &Session, DeadLetter { letter, tries }: &DeadLetter) {
    let Letter { interrupt, seq, .. } = letter;
    match session.output {
        Output::Json => terminal::json(&json!({
            "interrupt_id": interrupt,
            "seq": seq,
            "attempts": tries.as_ref().map_or(0, |tries| tries.count),
            "first_attempt_at": tries.as_ref().map(|tries| zone::rfc3339(tries.first_at)),
            "last_attempt_at": tries.as_ref().map(|tries| zone::rfc3339(tries.last_at)),
            "error": tries.as_ref().map(|tries| &tries.error),
        })),
        Output::Plain => {
            let tried = match tries {
                Some(tries) => format!(
                    "tried {} times, last {}: {}",
                    tries.count,
                    zone::short(tries.last_at),
                    line(&tries.error)
                ),
                None => "tried long ago".to_owned(),
            };
            terminal::data(&format!("{interrupt}  event {seq}, {tried}"));
        }
    }
}

async fn resend(args: &DeadLetters) -> Result<Exit, Failure> {
    let session = Session::open_to_drive(&args.threads, IfMissing::Refuse).await?;
    expect_known(&session, &args.name).await?;
    let (engine, by) = (&session.engine, &session.by);
    let count = engine.send_again(by, &args.name, args.interrupt).await?;
    let then = "a server that has the webhook in its configuration delivers them";
    tell(&session, count, &format!("to be sent again; {then}"));
    Ok(Exit::Done)
}

async fn discard(args: &DeadLetters) -> Result<Exit, Failure> {
    let session = Session::open_to_drive(&args.threads, IfMissing::Refuse).await?;
    expect_known(&session, &args.name).await?;
    let (engine, by) = (&session.engine, &session.by);
    let count = engine.discard(by, &args.name, args.interrupt).await?;
    tell(&session, count, "discarded");
    Ok(Exit::Done)
}

fn tell(session: &Session, count: usize, what: &str) {
    match session.output {
        Output::Json => terminal::json(&json!({ "count": count })),
        Output::Plain => terminal::data(&format!("{count} {what}")),
    }
}

async fn remove(args: &RemoveWebhook) -> Result<Exit, Failure> {
    let session = Session::open_to_drive(&args.common.of_nobody(), IfMissing::Refuse).await?;
    if !session.engine.unsubscribe(&args.name).await? {
        return Err(unknown(&args.name));
    }
    match session.output {
        Output::Json => terminal::json(&json!({ "removed": args.name })),
        Output::Plain => terminal::data(&format!(
            "{} is forgotten, with everything that it was still to be told",
            line(&args.name)
        )),
    }
    Ok(Exit::Done)
}

/// A webhook whose name was mistyped has no dead letters either, and that would look like good news.
async fn expect_known(session: &Session, name: &str) -> Result<(), Failure> {
    let known = session.engine.subscriptions().await?;
    if known.contains_key(name) {
        return Ok(());
    }
    Err(unknown(name))
}

fn unknown(name: &str) -> Failure {
    Failure::refused("not_found", format!("there is no webhook `{}`", line(name))).help(
        "`holdpoint webhooks list` says which there are; a server makes those of its configuration",
    )
}
