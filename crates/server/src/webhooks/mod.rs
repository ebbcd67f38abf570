//! Telling endpoints outside what becomes of questions, in the form of the Standard Webhooks specification.
//!
//! What is to be told is in the outbox of the store since the commit that it tells of. For each endpoint one server at a
//! time is the courier: it delivers, and then takes out of the outbox what was delivered. Whoever dies in between delivers
//! again, under the same id.

mod breaker;
mod courier;
pub(crate) mod routes;
mod signer;

use std::{collections::BTreeMap, sync::Arc};

use holdpoint_definition::Webhook;
use holdpoint_tools::Outbound;

pub(crate) use courier::carry;
use signer::Signer;

/// Somebody outside whom this server tells what happens.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) webhook: Webhook,
    signer: Signer,
    outbound: Outbound,
}

/// What secrets there are, by the variables that hold them.
pub(crate) type Secrets = BTreeMap<String, String>;

/// Makes endpoints ready.
///
/// # Errors
///
/// What one of them is signed with is missing, or is no secret.
pub(crate) fn endpoints(
    webhooks: Vec<Webhook>,
    secrets: &Secrets,
) -> Result<Vec<Arc<Endpoint>>, String> {
    webhooks
        .into_iter()
        .map(|webhook| ready(webhook, secrets).map(Arc::new))
        .collect()
}

fn ready(webhook: Webhook, secrets: &Secrets) -> Result<Endpoint, String> {
    let Webhook { name, secret, .. } = &webhook;
    let text = secrets
        .get(secret)
        .ok_or_else(|| format!("webhook `{name}`: the environment has no `{secret}`"))?;
    let signer = Signer::parse(text).ok_or_else(|| {
        format!(
            "webhook `{name}`: what `{secret}` holds is no secret: write `whsec_` and 24 to 64 bytes in base64, as \
             `echo whsec_$(openssl rand -base64 32)` does; several, separated by spaces, all sign"
        )
    })?;
    let outbound = Outbound::new(&webhook.allow_private);
    let outbound = outbound.map_err(|error| format!("webhook `{name}`: {error}"))?;
    Ok(Endpoint {
        webhook,
        signer,
        outbound,
    })
}
