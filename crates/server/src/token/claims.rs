//! What a token says, and how it is spelt.

use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use holdpoint_core::{
    Actor, Digest, InterruptId, Pass, Principal, PrincipalKind, Refusal, RunId, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::Keyring;

/// The form, and what a token begins with.
const FORM: &str = "hpt1";
/// The longest token that is looked at.
const MAX_LEN: usize = 4_096;

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
    /// As a text that is signed with the first key of a ring.
    pub(crate) fn spell(&self, keys: &Keyring) -> String {
        let body = serde_json::to_vec(self).unwrap_or_default();
        let body = BASE64_URL_SAFE_NO_PAD.encode(body);
        let (key, sign) = keys.signing();
        let said = format!("{FORM}.{key}.{body}");
        let signature = BASE64_URL_SAFE_NO_PAD.encode(sign(said.as_bytes()));
        format!("{said}.{signature}")
    }

    /// What a text says that was signed with a key of this ring, and which key that was.
    ///
    /// # Errors
    ///
    /// It is no token, or nobody here signed it. One answer for all: whoever forges learns nothing.
    pub(crate) fn read(text: &str, keys: &Keyring) -> Result<(Self, String), Refusal> {
        let bad = || Refusal::BadPass {
            why: "it is not one of ours",
        };
        if text.len() > MAX_LEN {
            return Err(bad());
        }
        let (said, signature) = text.rsplit_once('.').ok_or_else(bad)?;
        let mut parts = said.split('.');
        let (Some(FORM), Some(key), Some(body), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        let signature = BASE64_URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| bad())?;
        if !keys.has_signed(key, said.as_bytes(), &signature) {
            return Err(bad());
        }
        let body = BASE64_URL_SAFE_NO_PAD.decode(body).map_err(|_| bad())?;
        let claims = serde_json::from_slice(&body).map_err(|_| bad())?;
        Ok((claims, key.to_owned()))
    }

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
