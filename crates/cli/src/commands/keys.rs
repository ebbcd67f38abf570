//! `holdpoint keys`: who may speak with a server.

use std::collections::BTreeSet;

use holdpoint_core::{Principal, PrincipalKind, Span};
use holdpoint_server::{KeyError, KeyRecord, Keys};
use serde_json::json;

use crate::{
    args::{CreateKey, KeyKind, Keys as Args, KeysCommand, RevokeKey, Store},
    exit::Exit,
    failure::Failure,
    safe_text::line,
    session::{IfMissing, Output, Session},
    terminal, zone,
};

/// Makes, lists or revokes keys.
///
/// # Errors
///
/// Nobody may be such a principal; there is no such key; the store fails.
pub(crate) async fn keys(args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        KeysCommand::Create(args) => create(args).await,
        KeysCommand::List(args) => list(args).await,
        KeysCommand::Revoke(args) => revoke(args).await,
    }
}

async fn create(args: &CreateKey) -> Result<Exit, Failure> {
    let session = Session::open(&args.common.of_nobody(), IfMissing::Create).await?;
    if !session.engine.store().is_durable() {
        let message = "a key in a store that forgets would stand for nobody";
        return Err(Failure::usage(message).help("use `--store sqlite:PATH`"));
    }
    let kind = match args.kind {
        KeyKind::User => PrincipalKind::User,
        KeyKind::Service => PrincipalKind::Service,
        KeyKind::Agent => PrincipalKind::Agent,
    };
    let mut principal = Principal::new(kind, &args.tenant, &args.name);
    principal.roles = args.role.iter().cloned().collect::<BTreeSet<_>>();
    principal.permissions = args.permission.iter().cloned().collect::<BTreeSet<_>>();
    let store = session.engine.store();
    let expires_at = match &args.expires_in {
        None => None,
        Some(text) => {
            let span = Span::parse(text).filter(|span| *span > Span::ZERO);
            let span = span.ok_or_else(|| {
                Failure::usage("`--expires-in` must be a length of time such as `720h`")
            })?;
            Some(store.now() + span)
        }
    };
    let keys = Keys::new(std::sync::Arc::clone(store));
    let note = args.note.as_deref().unwrap_or_default();
    let made = keys.create(principal, expires_at, note).await?;
    match session.output {
        Output::Json => terminal::json(&json!({"id": made.id, "key": made.key})),
        Output::Plain => {
            // Only the key itself on stdout, so that it can be put into a variable.
            terminal::note(&format!(
                "key {} for {} of tenant {}; it is shown this once",
                made.id,
                line(&args.name),
                line(&args.tenant)
            ));
            terminal::data(&made.key);
        }
    }
    Ok(Exit::Done)
}

async fn list(args: &Store) -> Result<Exit, Failure> {
    let session = Session::open(&args.common.of_nobody(), IfMissing::Refuse).await?;
    let store = session.engine.store();
    let now = store.now();
    let keys = Keys::new(std::sync::Arc::clone(store));
    for (id, record) in keys.list().await? {
        let good = record.is_good(now);
        match session.output {
            Output::Json => terminal::json(&json!({
                "id": id,
                "principal": record.principal,
                "created_at": record.created_at,
                "expires_at": record.expires_at,
                "revoked_at": record.revoked_at,
                "note": record.note,
                "good": good,
            })),
            Output::Plain => terminal::data(&tell(&id, &record, good)),
        }
    }
    Ok(Exit::Done)
}

async fn revoke(args: &RevokeKey) -> Result<Exit, Failure> {
    let session = Session::open(&args.common.of_nobody(), IfMissing::Refuse).await?;
    let keys = Keys::new(std::sync::Arc::clone(session.engine.store()));
    let record = keys.revoke(&args.id).await?;
    match session.output {
        Output::Json => terminal::json(&json!({"id": args.id, "revoked_at": record.revoked_at})),
        Output::Plain => terminal::data(&format!("{} is revoked", line(&args.id))),
    }
    Ok(Exit::Done)
}

fn tell(id: &str, record: &KeyRecord, good: bool) -> String {
    let actor = &record.principal.actor;
    let stands = match (record.revoked_at, good) {
        (Some(at), _) => format!(", revoked {}", zone::short(at)),
        (None, false) => ", over".to_owned(),
        (None, true) => record
            .expires_at
            .map_or_else(String::new, |at| format!(", until {}", zone::short(at))),
    };
    let note = match record.note.as_str() {
        "" => String::new(),
        note => format!("; {}", line(note)),
    };
    format!(
        "{id}  {} of tenant {}, made {}{stands}{note}",
        line(&actor.to_string()),
        line(&actor.tenant),
        zone::short(record.created_at)
    )
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::BadPrincipal(message) => Self::usage(message),
            KeyError::NotFound(id) => Self::refused("not_found", format!("there is no key `{id}`"))
                .help("`holdpoint keys list` says which there are"),
            KeyError::Unavailable(error) => error.into(),
            other => Self::unusable("keys", other.to_string()),
        }
    }
}
