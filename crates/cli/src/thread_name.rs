//! Which thread is meant: by its id, by agent and session, or by a session that only one agent has.

use std::{collections::BTreeMap, sync::Arc};

use holdpoint_core::{State, ThreadId};
use holdpoint_store::ThreadKey;
use serde_json::json;

use crate::{failure::Failure, session::Session};

/// Finds the one thread that `name` can mean.
///
/// # Errors
///
/// There is none (refused, as `not_found`), or there are several (a usage error that lists them).
pub(crate) async fn resolve(session: &Session, name: &str) -> Result<ThreadKey, Failure> {
    if let Ok(thread) = name.parse::<ThreadId>()
        && let Some((key, _)) = find(session, thread).await?
    {
        return Ok(key);
    }
    let mut found = BTreeMap::new();
    // A session may have a slash in its name too, so both readings are tried.
    if let Some((agent, name)) = name.split_once('/') {
        let thread = ThreadId::of_session(session.tenant(), agent, name);
        if let Some((key, state)) = find(session, thread).await? {
            found.insert(key, state);
        }
    }
    for key in session.engine.sessions(session.tenant(), name).await? {
        if let Some((key, state)) = find(session, key.thread).await? {
            found.insert(key, state);
        }
    }
    if found.len() > 1 {
        return Err(ambiguous(name, &found));
    }
    found.into_keys().next().ok_or_else(|| {
        Failure::refused("not_found", format!("there is no thread `{name}`"))
            .help("`holdpoint runs` lists what there is")
            .details(json!({"thread": name}))
    })
}

async fn find(
    session: &Session,
    thread: ThreadId,
) -> Result<Option<(ThreadKey, Arc<State>)>, Failure> {
    let key = ThreadKey {
        tenant: session.tenant().into(),
        thread,
    };
    let state = session.engine.state(&key).await?;
    Ok(state.map(|state| (key, state)))
}

fn ambiguous(name: &str, found: &BTreeMap<ThreadKey, Arc<State>>) -> Failure {
    let mut names: Vec<String> = found
        .values()
        .map(|state| format!("{}/{}", state.agent, state.session))
        .collect();
    names.sort();
    let list = names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    Failure::unusable(
        "ambiguous_thread",
        format!("`{name}` can be several threads: {list}"),
    )
    .help("say which: AGENT/SESSION, or the thread's id")
    .details(json!({"thread": name, "candidates": names}))
}
