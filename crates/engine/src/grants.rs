//! Grants: used instead of asking, listed, taken back.
//!
//! What is good for one thread stands in its head. What is good for all threads of an agent is found by index; its uses are
//! counted in a thread of its own, and a use is reserved there before the call that passes by it is recorded.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use holdpoint_core::{
    Command, Digest, Entry, Event, Grant, GrantId, GrantUse, Index, JudgedCall, Like, Principal,
    Refusal, Scope, ThreadId, ToolCall, Verdict, decode_records,
};
use holdpoint_store::{Direction, Scan, ThreadKey};

use crate::{
    Engine, Error,
    driver::Order,
    guard,
    judge::{self, Caller},
    thread::{engine_principal, fresh_seed},
};

/// How many answers that gave grants are read at once where all of them end.
const ENDED_AT_ONCE: usize = 500;

/// The grants that are good for all threads of an agent, as this process last read them.
///
/// A grant of another process that is not here yet only means that somebody is asked once more; and one that is here is
/// counted, and can be revoked, in its own thread.
#[derive(Debug, Default)]
pub(crate) struct WideGrants(Mutex<HashMap<Agent, Read>>);

/// Tenant and name.
type Agent = (String, String);

#[derive(Debug, Clone)]
struct Read {
    /// How many changes of others had been noticed by then.
    changes: u64,
    grants: Arc<Vec<Grant>>,
}

impl WideGrants {
    fn lock(&self) -> MutexGuard<'_, HashMap<Agent, Read>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was read, if an answer gives another one.
    pub(crate) fn note(&self, entries: &[Entry]) {
        let gives = |entry: &Entry| {
            matches!(&entry.event, Event::Answered { decisions, .. }
                if decisions.iter().any(|decided| decided.grant.is_some()))
        };
        if entries.iter().any(gives) {
            self.lock().clear();
        }
    }
}

/// A grant and where it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrantView {
    /// The grant as it stands: how often it was used, whether it was taken back.
    pub grant: Grant,
    /// The agent it is good for.
    pub agent: String,
    /// The thread where it was given.
    pub thread: ThreadId,
}

impl Engine {
    /// Judges the calls of one turn, and reserves the uses of grants that let some of them pass.
    pub(crate) async fn judged(
        &self,
        key: &ThreadKey,
        caller: Caller<'_>,
        calls: Vec<ToolCall>,
        own: &[Grant],
    ) -> Result<Vec<JudgedCall>, Error> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.store().now();
        let mut judged = judge::judge(caller, calls, &mut fresh_seed(now)?);
        // First, since what they flag passes by no grant.
        guard::look_at_calls(caller, &mut judged).await;
        for call in &mut judged {
            let Ok(one) = &mut call.judged else { continue };
            let Verdict::Ask(terms) = &one.verdict else {
                continue;
            };
            if terms.bars_grants().is_some() {
                continue;
            }
            let like = Like {
                lineage: caller.frame.lineage().map(str::to_owned).collect(),
                tool: one.tool.name.clone(),
                version: one.tool.version.clone(),
                schema: one.schema,
                params_hash: one.params.hash(&one.tool.name, &one.tool.version),
            };
            // What the thread itself allows needs no reservation.
            if own.iter().any(|grant| grant.covers(&like, now)) {
                continue;
            }
            let agent = &caller.root.definition.name;
            let wide = self.known(&key.tenant, agent).await?;
            for grant in wide.iter().filter(|grant| grant.covers(&like, now)) {
                if self.reserve(key, grant, call.id).await? {
                    one.reserved = Some(GrantUse {
                        grant: grant.id,
                        by: grant.by.clone(),
                    });
                    break;
                }
            }
        }
        Ok(judged)
    }

    /// The calls of one turn, none of which is made.
    pub(crate) fn refused(
        &self,
        calls: Vec<ToolCall>,
        why: &str,
    ) -> Result<Vec<JudgedCall>, Error> {
        let mut seed = fresh_seed(self.store().now())?;
        Ok(judge::refused(calls, why, &mut seed))
    }

    /// Reserves a use of a grant for a call; `false` where it is used up, expired or taken back.
    async fn reserve(
        &self,
        key: &ThreadKey,
        grant: &Grant,
        action: holdpoint_core::ActionId,
    ) -> Result<bool, Error> {
        let thread = ThreadId::of_grant(&key.tenant, grant.id);
        let command = Command::UseGrant {
            thread,
            grant: Box::new(grant.clone()),
            action,
            caller: key.thread,
        };
        let by = engine_principal(&key.tenant);
        let counted = ThreadKey {
            tenant: key.tenant.clone(),
            thread,
        };
        match self.append_open(&counted, Order::new(command, by)).await {
            Ok(_) => Ok(true),
            Err(Error::Refused(Refusal::Stale(_))) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a grant that is wider than a thread still lets a call run that passed by it.
    pub(crate) async fn still_granted(
        &self,
        key: &ThreadKey,
        used: &GrantUse,
    ) -> Result<bool, Error> {
        let counted = ThreadKey {
            tenant: key.tenant.clone(),
            thread: ThreadId::of_grant(&key.tenant, used.grant),
        };
        let state = self.state(&counted).await?;
        let grant = state.and_then(|state| state.grants.get(&used.grant).cloned());
        Ok(grant.is_some_and(|grant| grant.still_holds(self.store().now())))
    }

    /// As [`Engine::given`], read only where something may have changed.
    async fn known(&self, tenant: &str, agent: &str) -> Result<Arc<Vec<Grant>>, Error> {
        let changes = *self.store().foreign_changes().borrow();
        let name = (tenant.to_owned(), agent.to_owned());
        let read = self.wide().lock().get(&name).cloned();
        if let Some(read) = read.filter(|read| read.changes == changes) {
            return Ok(read.grants);
        }
        let grants = Arc::new(self.given(tenant, agent).await?);
        let read = Read {
            changes,
            grants: Arc::clone(&grants),
        };
        self.wide().lock().insert(name, read);
        Ok(grants)
    }

    /// The grants that were given for all threads of an agent, as they were given.
    async fn given(&self, tenant: &str, agent: &str) -> Result<Vec<Grant>, Error> {
        let scan = Scan {
            index: Index::Grant,
            key: Some(agent.to_owned()),
            up_to: None,
            direction: Direction::Forward,
            after: None,
            limit: 1_000,
        };
        let mut grants = Vec::new();
        for row in self.store().scan(tenant, scan).await? {
            let key = ThreadKey {
                tenant: tenant.into(),
                thread: row.thread,
            };
            let seq = u64::try_from(row.sort).unwrap_or(0);
            grants.extend(self.given_at(&key, seq).await?);
        }
        Ok(grants)
    }

    /// The grants for all threads that were given with one answer.
    async fn given_at(&self, key: &ThreadKey, seq: u64) -> Result<Vec<Grant>, Error> {
        let before = seq.saturating_sub(2);
        let records = self.store().read(key, before, 2).await?;
        // The record before only serves to check the link.
        let previous = records
            .iter()
            .find(|record| record.seq + 1 == seq)
            .map_or_else(Digest::default, |record| record.hash);
        let last: Vec<_> = records
            .into_iter()
            .filter(|record| record.seq == seq)
            .collect();
        let mut grants = Vec::new();
        for entry in decode_records(previous, &last)? {
            if let Event::Answered { decisions, .. } = entry.event {
                let given = decisions.into_iter().filter_map(|decided| decided.grant);
                grants.extend(
                    given
                        .map(|grant| *grant)
                        .filter(|grant| grant.terms.scope == Scope::Agent),
                );
            }
        }
        Ok(grants)
    }

    /// All grants of an agent, and those of a thread, as they stand.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn grants(&self, tenant: &str) -> Result<Vec<GrantView>, Error> {
        let mut views = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (_, key) in self.runs(tenant).await? {
            if !seen.insert(key.thread) {
                continue;
            }
            let Some(state) = self.state(&key).await? else {
                continue;
            };
            views.extend(state.grants.values().map(|grant| GrantView {
                grant: grant.clone(),
                agent: state.agent.clone(),
                thread: state.thread,
            }));
        }
        let scan = Scan {
            index: Index::Grant,
            key: None,
            up_to: None,
            direction: Direction::Forward,
            after: None,
            limit: 10_000,
        };
        for row in self.store().scan(tenant, scan).await? {
            let key = ThreadKey {
                tenant: tenant.into(),
                thread: row.thread,
            };
            let seq = u64::try_from(row.sort).unwrap_or(0);
            for grant in self.given_at(&key, seq).await? {
                let counted = ThreadKey {
                    tenant: tenant.into(),
                    thread: ThreadId::of_grant(tenant, grant.id),
                };
                let state = self.state(&counted).await?;
                let kept = state.and_then(|state| state.grants.get(&grant.id).cloned());
                views.push(GrantView {
                    grant: kept.unwrap_or(grant),
                    agent: row.key.clone(),
                    thread: row.thread,
                });
            }
        }
        views.sort_by_key(|view| view.grant.given_at);
        Ok(views)
    }

    /// Takes back every grant that is wider than a thread, in all tenants, also in a backup.
    pub(crate) async fn end_wide_grants(&self) -> Result<(), Error> {
        for tenant in self.store().tenants(Index::Grant).await? {
            let mut after = None;
            loop {
                let scan = Scan {
                    index: Index::Grant,
                    key: None,
                    up_to: None,
                    direction: Direction::Forward,
                    after,
                    limit: ENDED_AT_ONCE,
                };
                let rows = self.store().scan(&tenant, scan).await?;
                for row in &rows {
                    let key = ThreadKey {
                        tenant: Arc::clone(&tenant),
                        thread: row.thread,
                    };
                    let seq = u64::try_from(row.sort).unwrap_or(0);
                    for given in self.given_at(&key, seq).await? {
                        self.end_wide(&tenant, given).await?;
                    }
                }
                after = rows.last().cloned();
                if rows.len() < ENDED_AT_ONCE {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn end_wide(&self, tenant: &Arc<str>, given: Grant) -> Result<(), Error> {
        let (thread, grant) = (ThreadId::of_grant(tenant, given.id), given.id);
        let key = ThreadKey {
            tenant: Arc::clone(tenant),
            thread,
        };
        let command = Command::RevokeGrant {
            thread,
            given: Some(Box::new(given)),
            grant,
        };
        let order = Order::new(command, engine_principal(tenant));
        self.append_anywhere(&key, order).await?;
        Ok(())
    }

    /// Takes a grant back.
    ///
    /// # Errors
    ///
    /// There is no such grant; the principal may not; the store fails.
    pub async fn revoke(&self, by: &Principal, grant: GrantId) -> Result<(), Error> {
        let tenant = &by.actor.tenant;
        let views = self.grants(tenant).await?;
        let Some(view) = views.into_iter().find(|view| view.grant.id == grant) else {
            return Err(Refusal::NotFound.into());
        };
        let (thread, given) = match view.grant.terms.scope {
            Scope::Thread => (view.thread, None),
            Scope::Agent => {
                let mut given = view.grant;
                given.used = 0;
                (ThreadId::of_grant(tenant, grant), Some(Box::new(given)))
            }
        };
        let key = ThreadKey {
            tenant: tenant.as_str().into(),
            thread,
        };
        let command = Command::RevokeGrant {
            thread,
            given,
            grant,
        };
        let by = by.clone();
        self.append_open(&key, Order::new(command, by)).await?;
        Ok(())
    }
}
