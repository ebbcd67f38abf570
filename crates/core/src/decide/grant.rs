//! Grants: given with an approval, used instead of one.

use super::{Draft, Judged};
use crate::{
    ActionId, Ask, Asked, Decision, DecisionKind, Event, FramePath, Grant, GrantId, GrantTerms,
    GrantUse, Like, Matches, Misfit, Refusal, Scope, Subject, ThreadId, ThreadKind, Verdict,
};

/// What a grant would have to cover for this call to pass.
pub(super) fn like(frame: &FramePath, judged: &Judged) -> Like {
    Like {
        lineage: frame.lineage().map(str::to_owned).collect(),
        tool: judged.tool.name.clone(),
        version: judged.tool.version.clone(),
        schema: judged.schema,
        params_hash: judged.params.hash(&judged.tool.name, &judged.tool.version),
    }
}

/// The grant by which a call passes that would otherwise be asked about. `taken` counts the uses that earlier calls of the
/// same turn make.
pub(super) fn find(
    draft: &Draft<'_>,
    frame: &FramePath,
    judged: &Judged,
    taken: &[GrantUse],
) -> Option<GrantUse> {
    let Verdict::Ask(terms) = &judged.verdict else {
        return None;
    };
    // What must always be asked, and what nobody could approve, passes by no grant.
    if terms.bars_grants().is_some() || !terms.allowed.contains(DecisionKind::Approve) {
        return None;
    }
    if let Some(reserved) = &judged.reserved {
        return Some(reserved.clone());
    }
    let call = like(frame, judged);
    let grants = draft.state.grants.values();
    let mut fitting = grants.filter(|grant| {
        let uses = taken.iter().filter(|used| used.grant == grant.id).count();
        let mut grant = (*grant).clone();
        grant.used = grant
            .used
            .saturating_add(u32::try_from(uses).unwrap_or(u32::MAX));
        grant.terms.scope == Scope::Thread && grant.covers(&call, draft.now)
    });
    fitting.next().map(|grant| GrantUse {
        grant: grant.id,
        by: grant.by.clone(),
    })
}

/// What is granted by a decision; refused where nothing can be. `given_before` counts what is granted to this thread by
/// earlier decisions of the same command.
pub(super) fn given(
    draft: &Draft<'_>,
    given_before: usize,
    at: usize,
    interrupt: crate::InterruptId,
    ask: &Ask,
    decision: &Decision,
) -> Result<Option<Box<Grant>>, Misfit> {
    let Decision::Approve { grant: Some(terms) } = decision else {
        return Ok(None);
    };
    let refuse = |problem: &str| Misfit::Grant {
        action: Asked::new(&draft.state, at, ask),
        problem: problem.to_owned(),
    };
    let (Subject::Action { schema, .. }, Some(action)) =
        (&ask.subject, draft.state.actions.get(&ask.action_id))
    else {
        return Err(refuse(
            "only the approval of a call can allow further calls",
        ));
    };
    if let Verdict::Ask(terms) = &action.verdict
        && let Some(why) = terms.bars_grants()
    {
        return Err(refuse(why));
    }
    if (terms.scope, terms.matches) == (Scope::Agent, Matches::All) {
        return Err(refuse("everything can be allowed for one thread only"));
    }
    let held = draft.state.grants.values();
    let held = held.filter(|grant| grant.is_good(draft.now)).count();
    if terms.scope == Scope::Thread && held + given_before >= Grant::MAX {
        return Err(refuse(
            "this thread holds as many grants as it can; revoke one first",
        ));
    }
    let like = Like {
        lineage: action.frame.lineage().map(str::to_owned).collect(),
        tool: action.tool.name.clone(),
        version: action.tool.version.clone(),
        schema: *schema,
        params_hash: action.params_hash,
    };
    let id = GrantId::of_approval(interrupt, ask.action_id);
    Ok(Some(Box::new(give(draft, id, terms, like))))
}

fn give(draft: &Draft<'_>, id: GrantId, terms: &GrantTerms, like: Like) -> Grant {
    Grant {
        id,
        by: draft.context.by.actor.clone(),
        given_at: draft.now,
        expires_at: terms.expires_in.map(|span| draft.now + span),
        terms: terms.clone(),
        like,
        used: 0,
        revoked: false,
    }
}

/// Whether a grant of this thread still lets a call run that passed by it.
pub(super) fn still_holds(draft: &Draft<'_>, used: &GrantUse, wider: bool) -> bool {
    match draft.state.grants.get(&used.grant) {
        Some(grant) => grant.still_holds(draft.now),
        None => wider,
    }
}

/// Reserves a use of a grant that is wider than a thread.
pub(super) fn reserve(
    draft: &mut Draft<'_>,
    thread: ThreadId,
    given: &Grant,
    action: ActionId,
    caller: ThreadId,
) -> Result<(), Refusal> {
    keep(draft, thread, given)?;
    let now = draft.now;
    let grant = draft.state.grants.get(&given.id);
    if !grant.is_some_and(|grant| grant.is_good(now)) {
        return Err(Refusal::Stale("the grant is used up, expired or revoked"));
    }
    draft.emit(Event::GrantUsed {
        grant: given.id,
        action,
        thread: caller,
    });
    Ok(())
}

/// Takes a grant back.
pub(super) fn revoke(
    draft: &mut Draft<'_>,
    thread: ThreadId,
    given: Option<Box<Grant>>,
    grant: GrantId,
) -> Result<(), Refusal> {
    let by = &draft.context.by.actor;
    if draft.state.version > 0 && by.tenant != draft.state.tenant {
        return Err(Refusal::NotFound);
    }
    if !by.may_decide() {
        return Err(Refusal::Forbidden { by: by.to_string() });
    }
    if let Some(given) = given {
        keep(draft, thread, &given)?;
    }
    match draft.state.grants.get(&grant) {
        None => Err(Refusal::NotFound),
        Some(kept) if kept.revoked => Ok(()),
        Some(_) => {
            draft.emit(Event::GrantRevoked { grant });
            Ok(())
        }
    }
}

/// Begins to count a grant, where nobody has yet.
fn keep(draft: &mut Draft<'_>, thread: ThreadId, given: &Grant) -> Result<(), Refusal> {
    if draft.state.version == 0 {
        draft.emit(Event::ThreadCreated {
            thread,
            tenant: given.by.tenant.clone(),
            agent: String::new(),
            session: given.id.to_string(),
            kind: ThreadKind::Grant,
        });
        draft.emit(Event::GrantKept(Box::new(given.clone())));
    }
    if draft.state.kind != ThreadKind::Grant {
        return Err(Refusal::NotFound);
    }
    Ok(())
}
