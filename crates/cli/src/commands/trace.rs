//! `holdpoint trace`: everything that ever happened in a thread, with its chain checked.

use holdpoint_core::Entry;
use serde_json::json;

use crate::{
    args::Thread,
    exit::Exit,
    failure::Failure,
    safe_text::line,
    session::{Output, Session},
    story::{self, Names},
    terminal, thread_name, zone,
};

/// Shows every event of a thread.
///
/// # Errors
///
/// There is no such thread, the store fails, or the journal was tampered with.
pub(crate) async fn trace(args: &Thread) -> Result<Exit, Failure> {
    let session = Session::open_to_read(&args.threads).await?;
    let key = thread_name::resolve(&session, &args.thread).await?;
    let journal = session.engine.journal(&key).await?;
    match session.output {
        Output::Json => {
            for entry in &journal {
                terminal::json(&json!({
                    "seq": entry.seq,
                    "at": zone::rfc3339(entry.header.at),
                    "by": entry.header.by.to_string(),
                    "type": entry.event.name(),
                    "event": entry.event,
                    "hash": entry.hash,
                }));
            }
        }
        Output::Plain => print(&journal),
    }
    Ok(Exit::Done)
}

fn print(journal: &[Entry]) {
    let mut names = Names::default();
    let mut day = String::new();
    for entry in journal {
        names.note(&entry.event);
        let stamp = zone::short(entry.header.at);
        let today = stamp.split(' ').next().unwrap_or_default();
        if day != today {
            today.clone_into(&mut day);
            terminal::data(&day);
        }
        let time = zone::time_of_day(entry.header.at);
        let by = line(&entry.header.by.to_string());
        let what = story::tell(&entry.event, &names);
        terminal::data(&format!("{:>5}  {time}  {by:<17}  {what}", entry.seq));
        for detail in story::details(&entry.event) {
            terminal::data(&format!("{:>42}{detail}", ""));
        }
    }
    if let Some(last) = journal.last() {
        terminal::data(&format!(
            "{} events, an unbroken chain up to {}",
            journal.len(),
            last.hash
        ));
    }
}
