//! Servers of the Model Context Protocol: asked what they offer before a definition is stored, and noticed when they offer
//! something else.

use futures::future::join_all;
use holdpoint_core::{Definition, Digest, Index, McpServer, Payload, Principal, decode_definition};
use holdpoint_store::{CellChange, CellThen, SharedStore, Space};
use holdpoint_tools::{Changed, offers};

use crate::{Error, agent::Agents, error::from_append};

/// A definition with the tools of its servers.
#[derive(Debug)]
pub struct Completed {
    /// The definition.
    pub definition: Definition,
    /// Which servers could not be asked, so that it is what they offered before.
    pub warnings: Vec<String>,
}

impl Agents {
    /// Asks the servers of a definition what they offer. Where one cannot be asked, what was stored of the same definition
    /// before is good enough.
    pub(crate) async fn complete(
        &self,
        store: &SharedStore,
        definition: Definition,
    ) -> Result<Completed, Error> {
        let servers: Vec<McpServer> = definition.unlisted_servers().into_iter().cloned().collect();
        if servers.is_empty() {
            let warnings = Vec::new();
            return Ok(Completed {
                definition,
                warnings,
            });
        }
        let name = definition.name.clone();
        let unusable = |reason: String| Error::Definition {
            agent: name.clone(),
            reason,
        };
        let written = definition.digest_of_text();
        let written = written.map_err(|error| unusable(error.to_string()))?;
        let watchdog = self.watchdog();
        let asked = join_all(servers.iter().map(|server| offers(server, watchdog))).await;
        let mut warnings = Vec::new();
        let mut complete = definition;
        for (server, offers) in servers.iter().zip(asked) {
            // What does not fit may be a mistake of the server's, and so no reason to be without the agent.
            let taken = offers.and_then(|offers| complete.clone().with_offers(server, &offers));
            match taken {
                Ok(with) => complete = with,
                Err(reason) => warnings.push(reason),
            }
        }
        if warnings.is_empty() {
            complete.written = Some(written);
            return Ok(Completed {
                definition: complete,
                warnings,
            });
        }
        match self.stored(store, &name, written).await? {
            Some(stored) => Ok(Completed {
                definition: stored.with_models_of(&complete),
                warnings,
            }),
            None => Err(unusable(warnings.join("; "))),
        }
    }

    /// What any tenant has of the definition that was written so.
    async fn stored(
        &self,
        store: &SharedStore,
        agent: &str,
        written: Digest,
    ) -> Result<Option<Definition>, Error> {
        let known = store.tenants(Index::Session).await?;
        let known = known.iter().map(ToString::to_string);
        for tenant in known.chain([Principal::LOCAL_TENANT.to_owned()]) {
            let Some(current) = self.current(store, &tenant, agent).await? else {
                continue;
            };
            // It need not be one that can be used here and now: it may be out of date since long ago.
            let payload = store.blob(&tenant, current.digest()).await?;
            let stored = payload.and_then(|payload| decode_definition(&payload).ok());
            if let Some(stored) = stored.filter(|it| it.written == Some(written)) {
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    /// What is to be published of a definition where a tenant has this one: not less careful, where both are of one text. A tenant
    /// that has none of this text takes over what another one has seen of the servers since it was written.
    pub(crate) async fn as_careful_as(
        &self,
        store: &SharedStore,
        tenant: &str,
        definition: &Definition,
        stored: Option<Digest>,
    ) -> Result<Definition, Error> {
        let Some(written) = definition.written else {
            return Ok(definition.clone());
        };
        let own = match stored {
            Some(stored) => Some(self.pinned(store, tenant, stored).await?),
            None => None,
        };
        let before = match own.filter(|own| own.definition.written == Some(written)) {
            Some(own) => Some(own.definition.clone()),
            None => self.stored(store, &definition.name, written).await?,
        };
        Ok(match before {
            Some(before) => definition.clone().as_careful_as(&before),
            None => definition.clone(),
        })
    }

    /// Makes it known to all that a server offers its tools otherwise than the current definition of an agent says.
    pub(crate) async fn note_change(
        &self,
        store: &SharedStore,
        tenant: &str,
        agent: &str,
        changed: &Changed,
    ) -> Result<(), Error> {
        let Changed { server, offers } = changed;
        loop {
            let Some(current) = self.current(store, tenant, agent).await? else {
                return Ok(());
            };
            let before = self.pinned(store, tenant, current.digest()).await?;
            let Some(now) = before.definition.with_changed_offers(server, offers) else {
                return Ok(());
            };
            let (now, text) = self.prepare(now)?;
            let payload = Payload::json(text.into_bytes());
            store.put_blob(tenant, payload, now.digest).await?;
            let change = CellChange {
                space: Space::Definition,
                key: agent.to_owned(),
                expect: current.version(),
                then: CellThen::Set {
                    value: now.digest.to_string().into_bytes(),
                    until: None,
                },
            };
            match store.set_cell(tenant, change).await {
                Ok(_) => {
                    // What was last seen is out of date.
                    self.current(store, tenant, agent).await?;
                    return Ok(());
                }
                Err(holdpoint_store::AppendError::CellConflict { .. }) => {}
                Err(error) => return Err(from_append(error)),
            }
        }
    }
}
