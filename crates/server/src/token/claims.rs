//! What a token, or a link, says.

use std::collections::BTreeSet;

use holdpoint_core::{
    Actor, Digest, InterruptId, Pass, Principal, PrincipalKind, RunId, Timestamp,
};
use serde::{Deserialize, Serialize};

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) run: RunId,
    pub(crate) interrupt: InterruptId,
    pub(crate) nonce: String,
    pub(crate) plan_version: u32,
    pub(crate) subject: Digest,
    pub(crate) user: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) roles: BTreeSet<String>,
    pub(crate) issued_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) issuer: Actor,
    /// The API key by which it was issued, which may be revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuer_key: Option<String>,
}

impl Claims {
    /// As core looks at it, handed over by this one.
    pub(crate) fn pass(&self, key: String, carrier: &Actor) -> Pass {
        Pass {
            id: self.id.clone(),
            key,
            run: self.run,
            nonce: self.nonce.clone(),
            plan_version: self.plan_version,
            subject: self.subject,
            user: self.user.clone(),
            expires_at: self.expires_at,
            issuer: self.issuer.clone(),
            carrier: carrier.clone(),
        }
    }

    /// Whoever answers by it.
    pub(crate) fn holder(&self) -> Principal {
        let mut holder = Principal::new(PrincipalKind::User, &self.tenant, &self.user);
        holder.roles.clone_from(&self.roles);
        holder
    }
}
