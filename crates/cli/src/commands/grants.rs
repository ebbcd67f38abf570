//! `holdpoint grants`: what people allowed for several calls.

use holdpoint_core::{Matches, Scope};
use holdpoint_engine::GrantView;
use serde_json::json;

use crate::{
    args::Grants,
    exit::Exit,
    failure::Failure,
    safe_text::line,
    session::{IfMissing, Output, Session},
    terminal, zone,
};

/// Lists the grants, or takes one back.
///
/// # Errors
///
/// There is no such grant, or the store fails.
pub(crate) async fn grants(args: &Grants) -> Result<Exit, Failure> {
    let session = match args.revoke {
        Some(_) => Session::open_to_drive(&args.threads, IfMissing::Refuse).await?,
        None => Session::open(&args.threads, IfMissing::Refuse).await?,
    };
    if let Some(grant) = args.revoke {
        Box::pin(session.engine.revoke(&session.by, grant)).await?;
        if session.output == Output::Plain {
            terminal::data(&format!("{grant} is revoked"));
            return Ok(Exit::Done);
        }
    }
    let now = session.engine.store().now();
    for view in session.engine.grants(&session.by.actor.tenant).await? {
        let good = view.grant.is_good(now);
        match session.output {
            Output::Json => terminal::json(&json!({
                "grant": view.grant,
                "agent": view.agent,
                "thread_id": view.thread,
                "good": good,
            })),
            Output::Plain => terminal::data(&tell(&view, good)),
        }
    }
    Ok(Exit::Done)
}

fn tell(view: &GrantView, good: bool) -> String {
    let grant = &view.grant;
    let what = match grant.terms.matches {
        Matches::Tool => format!("every call of {}", line(&grant.like.tool)),
        Matches::Args => format!("{} with the same arguments", line(&grant.like.tool)),
        Matches::All => "everything that may be approved".to_owned(),
    };
    let place = match grant.terms.scope {
        Scope::Thread => format!("in {}", view.thread),
        Scope::Agent => format!("in every thread of {}", line(&view.agent)),
    };
    let uses = match grant.terms.uses {
        Some(uses) => format!("used {} of {uses}", grant.used),
        None => format!("used {}", grant.used),
    };
    let until = match grant.expires_at {
        Some(at) => format!(", until {}", zone::short(at)),
        None => String::new(),
    };
    let stands = match (grant.revoked, good) {
        (true, _) => ", revoked",
        (false, false) => ", over",
        (false, true) => "",
    };
    let by = line(&grant.by.to_string());
    format!(
        "{}  {what} {place}, by {by}; {uses}{until}{stands}",
        grant.id
    )
}
