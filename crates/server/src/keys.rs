//! API keys: made, listed, revoked, and looked at with every request.
//!
//! A key is opaque and shown once. The store keeps a digest of its secret, and who it stands for.

use std::collections::BTreeSet;

use async_trait::async_trait;
use holdpoint_core::{Credential, Digest, Principal, PrincipalKind, Timestamp, hex, is_name};
use holdpoint_engine::Rights;
use holdpoint_store::{
    AppendError, CellChange, CellThen, SYSTEM_TENANT, SharedStore, Space, Unavailable,
};
use serde::{Deserialize, Serialize};

use crate::secret;

const PREFIX: &str = "hp";
/// How every key begins.
pub(crate) const BEGINNING: &str = "hp_";
const ID_LEN: usize = 12;
const SECRET_LEN: usize = 64;

/// Why a key could not be made, or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A principal that nobody may be.
    #[error("{0}")]
    BadPrincipal(String),
    /// There is no such key.
    #[error("there is no key `{0}`")]
    NotFound(String),
    /// The store could not be reached.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// What is kept of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The digest of its secret.
    secret: Digest,
    /// Who it stands for.
    pub principal: Principal,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// What it is for, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A key that was just made. This is the only time that it is seen.
#[derive(Debug)]
pub struct NewKey {
    /// By what it is listed and revoked.
    pub id: String,
    /// The key.
    pub key: String,
}

/// The keys of a store.
#[derive(Debug, Clone)]
pub struct Keys {
    store: SharedStore,
}

impl Keys {
    /// The keys that this store keeps.
    #[must_use]
    pub const fn new(store: SharedStore) -> Self {
        Self { store }
    }

    /// Makes a key.
    ///
    /// # Errors
    ///
    /// Nobody may be this principal; the store fails.
    pub async fn create(
        &self,
        principal: Principal,
        expires_at: Option<Timestamp>,
        note: &str,
    ) -> Result<NewKey, KeyError> {
        check(&principal)?;
        let mut principal = principal;
        principal.credential = Credential::Key;
        loop {
            let mut random = [0; ID_LEN / 2 + SECRET_LEN / 2];
            getrandom::fill(&mut random).map_err(|error| {
                Unavailable::new(format!("the operating system gave no randomness: {error}"))
            })?;
            let (id, secret) = random.split_at(ID_LEN / 2);
            let (id, secret) = (hex(id), hex(secret));
            let record = KeyRecord {
                secret: Digest::of(secret.as_bytes()),
                principal: principal.clone(),
                created_at: self.store.now(),
                expires_at,
                revoked_at: None,
                note: note.to_owned(),
            };
            match self.put(&id, 0, &record).await {
                Ok(()) => {
                    let key = format!("{PREFIX}_{id}_{secret}");
                    return Ok(NewKey { id, key });
                }
                // Another key has this id: draw again.
                Err(AppendError::CellConflict { .. }) => {}
                Err(error) => return Err(unavailable(error).into()),
            }
        }
    }

    /// All keys, by id.
    ///
    /// # Errors
    ///
    /// The store fails, or a key cannot be read.
    pub async fn list(&self) -> Result<Vec<(String, KeyRecord)>, KeyError> {
        Ok(self.all().await?)
    }

    async fn all(&self) -> Result<Vec<(String, KeyRecord)>, Unavailable> {
        let mut keys: Vec<(String, KeyRecord)> = Vec::new();
        loop {
            let after = keys.last().map(|(id, _)| id.as_str());
            let page = self
                .store
                .cells(SYSTEM_TENANT, Space::Key, after, 500)
                .await?;
            let more = page.len() == 500;
            for (id, cell) in page {
                let record = read(&id, &cell.value)?;
                keys.push((id, record));
            }
            if !more {
                return Ok(keys);
            }
        }
    }

    /// Revokes a key. From now on it stands for nobody.
    ///
    /// # Errors
    ///
    /// There is no such key; the store fails.
    pub async fn revoke(&self, id: &str) -> Result<KeyRecord, KeyError> {
        loop {
            let Some((version, mut record)) = self.get(id).await? else {
                return Err(KeyError::NotFound(id.to_owned()));
            };
            if record.revoked_at.is_some() {
                return Ok(record);
            }
            record.revoked_at = Some(self.store.now());
            match self.put(id, version, &record).await {
                Ok(()) => return Ok(record),
                Err(AppendError::CellConflict { .. }) => {}
                Err(error) => return Err(unavailable(error).into()),
            }
        }
    }

    /// Who a key stands for; `None` if it is none, or not any more.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub(crate) async fn principal(
        &self,
        key: &str,
    ) -> Result<Option<(String, Principal)>, Unavailable> {
        let mut parts = key.splitn(3, '_');
        let (Some(PREFIX), Some(id), Some(secret)) = (parts.next(), parts.next(), parts.next())
        else {
            return Ok(None);
        };
        if id.len() != ID_LEN || secret.len() != SECRET_LEN {
            return Ok(None);
        }
        let found = self.get(id).await?;
        let presented = Digest::of(secret.as_bytes());
        // A key that is not there is compared as well, so that nothing can be told from the time it takes.
        let kept = found
            .as_ref()
            .map_or_else(Digest::default, |(_, record)| record.secret);
        let same = secret::same(presented.as_bytes(), kept.as_bytes());
        Ok(found
            .filter(|(_, record)| same && record.is_good(self.store.now()))
            .map(|(_, record)| (id.to_owned(), record.principal)))
    }

    /// Whether the key with this id still stands for somebody.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub(crate) async fn is_good(&self, id: &str) -> Result<bool, Unavailable> {
        let found = self.get(id).await?;
        Ok(found.is_some_and(|(_, record)| record.is_good(self.store.now())))
    }

    async fn get(&self, id: &str) -> Result<Option<(u64, KeyRecord)>, Unavailable> {
        let cell = self.store.cell(SYSTEM_TENANT, Space::Key, id).await?;
        let Some(cell) = cell else { return Ok(None) };
        Ok(Some((cell.version, read(id, &cell.value)?)))
    }

    async fn put(&self, id: &str, expect: u64, record: &KeyRecord) -> Result<(), AppendError> {
        let value = serde_json::to_vec(record)
            .map_err(|error| AppendError::Malformed(error.to_string()))?;
        let change = CellChange {
            space: Space::Key,
            key: id.to_owned(),
            expect,
            then: CellThen::Set { value, until: None },
        };
        self.store.set_cell(SYSTEM_TENANT, change).await.map(|_| ())
    }
}

#[async_trait]
impl Rights for Keys {
    /// Whoever came by a key of ours may do what their keys say that hold now. Of others nothing is known here: a token of
    /// an issuer says it each time.
    async fn of(&self, requester: &Principal) -> Result<Option<BTreeSet<String>>, Unavailable> {
        if requester.credential == Credential::Token {
            return Ok(None);
        }
        let keys = self.all().await?;
        let theirs = keys.iter().map(|(_, key)| key);
        let mut theirs = theirs
            .filter(|key| key.principal.actor == requester.actor)
            .peekable();
        if theirs.peek().is_none() {
            // INVARIANT: a key is never removed. Whoever came by one that is not here was let in by another store's keys.
            return match requester.credential {
                Credential::Key => Err(Unavailable::new(format!(
                    "the keys of {} are not in this store, so nobody here knows what they may do now: go on by the server that has them",
                    requester.actor
                ))),
                Credential::Unsaid | Credential::Token | _ => Ok(None),
            };
        }
        let now = self.store.now();
        let good = theirs.filter(|key| key.is_good(now));
        Ok(Some(
            good.flat_map(|key| key.principal.permissions.iter().cloned())
                .collect(),
        ))
    }
}

impl KeyRecord {
    /// Whether it stands for somebody at this time.
    #[must_use]
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| now < at)
    }
}

fn read(id: &str, value: &[u8]) -> Result<KeyRecord, Unavailable> {
    serde_json::from_slice(value)
        .map_err(|error| Unavailable::new(format!("key `{id}` cannot be read: {error}")))
}

fn unavailable(error: AppendError) -> Unavailable {
    if let AppendError::Unavailable(error) = error {
        return error;
    }
    Unavailable::new(error.to_string())
}

/// Names that stand for us, or for nobody.
pub(crate) fn check(principal: &Principal) -> Result<(), KeyError> {
    let actor = &principal.actor;
    let bad = |message: String| Err(KeyError::BadPrincipal(message));
    for (what, name) in [("tenant", &actor.tenant), ("name", &actor.name)] {
        if !is_name(name) || name.starts_with('_') {
            return bad(format!(
                "`{}` cannot be a {what}: use letters, digits, `_`, `-` and `.`, and not `_` first",
                name.escape_debug()
            ));
        }
    }
    let name = actor.name.as_str();
    if name == "holdpoint" || name == "system" || name.starts_with("system.") {
        return bad(format!(
            "`{name}` is the name of Holdpoint itself in the audit trail"
        ));
    }
    match actor.kind {
        PrincipalKind::User | PrincipalKind::Service | PrincipalKind::Agent => Ok(()),
        PrincipalKind::Local => bad("a key stands for a user, a service or an agent".to_owned()),
        _ => bad("a key cannot stand for this kind of principal".to_owned()),
    }
}
