//! `holdpoint show`: how a thread stands, what it waits for, and its checkpoint.

use holdpoint_core::{Message, State, ToolStatus, explain_cause, steps};
use holdpoint_engine::{Checkpoint, RunView};
use serde::Serialize;

use crate::{
    args::Thread,
    exit::Exit,
    failure::Failure,
    pending,
    safe_text::{GUTTER, line},
    session::{Output, Session},
    terminal, thread_name, zone,
};

/// The one object that every door prints, and the checkpoint.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    view: &'a RunView,
    checkpoint: &'a Checkpoint,
}

/// Shows a thread. It ends as the run stands.
///
/// # Errors
///
/// There is no such thread, or the store fails.
pub(crate) async fn show(args: &Thread) -> Result<Exit, Failure> {
    let session = Session::open_to_read(&args.threads).await?;
    let key = thread_name::resolve(&session, &args.thread).await?;
    let (state, view) = session.view(&key).await?;
    let mut journal = session.engine.journal(&key).await?;
    journal.retain(|entry| entry.seq <= state.version);
    let artifacts = session.engine.artifacts(&key, &state).await?;
    let checkpoint = Checkpoint::new(&state, &steps(&journal), zone::rfc3339(state.now))
        .with_artifacts(&artifacts);
    let exit = Exit::of(state.status().as_ref());
    match session.output {
        Output::Json => {
            terminal::json(&Shown {
                view: &view,
                checkpoint: &checkpoint,
            });
        }
        Output::Plain => print(&session, &state, &view, &checkpoint),
    }
    Ok(exit)
}

fn print(session: &Session, state: &State, view: &RunView, checkpoint: &Checkpoint) {
    terminal::data(&format!(
        "thread   {}/{}",
        line(&view.agent),
        line(&view.session)
    ));
    terminal::data(&format!("         {}", view.thread_id));
    if let Some(run) = &state.run {
        let started = zone::short(run.started_at);
        let by = line(&run.requester.actor.to_string());
        terminal::data(&format!("run      {}, started {started} by {by}", run.id));
    }
    terminal::data(&format!("status   {}", standing(state, view)));
    terminal::data("");
    for message in &view.messages {
        print_message(message);
    }
    if !view.interrupts.is_empty() {
        terminal::data("");
        terminal::data(&pending::render(view, &session.place));
    }
    terminal::data("");
    terminal::data("checkpoint");
    let text = serde_json::to_string_pretty(checkpoint).unwrap_or_default();
    terminal::data(&terminal::block(&text, "  "));
}

fn standing(state: &State, view: &RunView) -> String {
    let cause = state
        .interrupts
        .values()
        .next()
        .map(|interrupt| explain_cause(interrupt.cause));
    let mut text = view.status.to_owned();
    if let Some(until) = view.sleeps_until {
        text.push_str(&format!(" until {}", zone::short(until)));
    }
    if view.cancel_requested {
        text.push_str(", being cancelled");
    }
    if let Some(error) = &view.error {
        text.push_str(&format!(": {}", line(error)));
    } else if let Some(cause) = cause {
        text.push_str(&format!(": {cause}"));
    }
    text
}

fn print_message(message: &Message) {
    let say = |who: &str, text: &str| {
        terminal::data(who);
        if !text.is_empty() {
            terminal::data(&terminal::block(text, &format!("  {GUTTER}")));
        }
    };
    match message {
        Message::User { content } => say("user", content),
        Message::Assistant {
            content,
            tool_calls,
            ..
        } => {
            say("model", content);
            for call in tool_calls {
                terminal::data(&format!("  → {}", line(&call.name)));
                terminal::data(&terminal::block(&call.arguments, &format!("    {GUTTER}")));
            }
        }
        Message::Tool {
            name,
            content,
            status,
            ..
        } => {
            let failed = match status {
                ToolStatus::Success => "",
                ToolStatus::Error => ", as an error",
            };
            say(&format!("{}{failed}", line(name)), content);
        }
        _ => {}
    }
}
