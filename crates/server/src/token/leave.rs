//! Leave for somebody to answer a question.

use std::collections::BTreeSet;

use holdpoint_core::{Actor, Holder, Principal, PrincipalKind, Span, Timestamp, hex};
use holdpoint_engine::{Error, Question};

use super::Claims;
use crate::{caller::Caller, keys, problem::Problem};

/// Who gives somebody leave, and by which API key: it may be revoked.
#[derive(Debug)]
pub(crate) struct Giver {
    pub(crate) actor: Actor,
    pub(crate) key: Option<String>,
}

impl From<&Caller> for Giver {
    fn from(caller: &Caller) -> Self {
        Self {
            actor: caller.principal.actor.clone(),
            key: caller.pass.key().map(str::to_owned),
        }
    }
}

/// Whom a caller may give leave: themselves, or, where they may, somebody else.
///
/// # Errors
///
/// They may not, or nobody can be called so.
pub(crate) fn holder(
    caller: &Caller,
    user: Option<&str>,
    roles: Option<BTreeSet<String>>,
) -> Result<Holder, Problem> {
    if let Some(user) = user {
        let named = Principal::new(PrincipalKind::User, caller.tenant(), user);
        keys::check(&named)
            .map_err(|error| Problem::new("bad_request", format!("`user_id`: {error}")))?;
    }
    let holder = Holder::chosen(&caller.principal, user, roles);
    Ok(holder.map_err(Error::from)?)
}

/// Leave for a holder to answer a question, for so long, and never longer than the question itself.
///
/// # Errors
///
/// There is no randomness.
pub(crate) fn leave(
    question: &Question,
    giver: &Giver,
    holder: Holder,
    now: Timestamp,
    lasts: Span,
) -> Result<Claims, Problem> {
    let interrupt = &question.interrupt;
    let until = now + lasts;
    Ok(Claims {
        id: fresh_id()?,
        tenant: giver.actor.tenant.clone(),
        run: interrupt.run,
        interrupt: interrupt.id,
        nonce: interrupt.nonce.clone(),
        plan_version: interrupt.plan_version,
        subject: interrupt.subject(),
        user: holder.user,
        roles: holder.roles,
        issued_at: now,
        expires_at: interrupt.due_at().map_or(until, |due| due.min(until)),
        issuer: giver.actor.clone(),
        issuer_key: giver.key.clone(),
    })
}

/// A name that nothing else has.
///
/// # Errors
///
/// There is no randomness.
fn fresh_id() -> Result<String, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        let error = format!("the operating system gave no randomness: {error}");
        Problem::new("internal", error)
    })?;
    Ok(format!("tok_{}", hex(&random)))
}

/// How long it is to hold, if that is not too long.
///
/// # Errors
///
/// It is, or not at all.
pub(crate) fn lasting(seconds: u64, longest: u64) -> Result<Span, Problem> {
    if (1..=longest).contains(&seconds) {
        return Ok(Span::from_secs(seconds));
    }
    let error = format!("`ttl_seconds` must be from 1 to {longest}");
    Err(Problem::new("bad_request", error))
}
