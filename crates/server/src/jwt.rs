//! Tokens of issuers that the configuration trusts: JSON Web Tokens that stand for users, beside API keys.
//!
//! Which issuer a token names is looked at first, because its keys are needed; nothing else of it counts before its
//! signature was found good. Only signatures that are made with a key that nobody else has are taken, and the issuer's
//! key says which, never the token.

mod claims;
mod key_set;
mod source;

use std::{collections::BTreeMap, sync::Arc};

use holdpoint_core::{Principal, Timestamp};
use holdpoint_definition::Issuer;
use holdpoint_store::SharedStore;
use jsonwebtoken::{Header, Validation, dangerous};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::source::Source;

/// How long a token may be.
const LONGEST: usize = 8 << 10;

/// Why nobody is let in with a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    /// It is no good. What is wrong, without the token.
    #[error("{0}")]
    Refused(String),
    /// Whether it is good cannot be told now.
    #[error("the keys of this token's issuer cannot be fetched now; the server's log says why")]
    Unavailable,
}

/// Why an issuer cannot be used, ever.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the issuer `{issuer}`: {reason}")]
pub(crate) struct BadIssuer {
    issuer: String,
    reason: String,
}

/// Who a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bearer {
    pub(crate) principal: Principal,
    /// From when on it stands for nobody.
    pub(crate) until: Timestamp,
}

/// Whose tokens are taken.
#[derive(Debug)]
pub(crate) struct Tokens {
    store: SharedStore,
    /// By what their tokens call them.
    issuers: BTreeMap<String, Trusted>,
}

#[derive(Debug)]
struct Trusted {
    issuer: Issuer,
    keys: Arc<Source>,
}

impl Tokens {
    /// The tokens of these issuers, at the time that the store tells. Keys in files are read at once.
    ///
    /// # Errors
    ///
    /// A file has no keys that could be used.
    pub(crate) fn new(store: SharedStore, issuers: Vec<Issuer>) -> Result<Self, BadIssuer> {
        let trusted = issuers.into_iter().map(|issuer| {
            let keys = Source::new(&issuer).map_err(|reason| BadIssuer {
                issuer: issuer.issuer.clone(),
                reason,
            })?;
            let keys = Arc::new(keys);
            Ok((issuer.issuer.clone(), Trusted { issuer, keys }))
        });
        Ok(Self {
            store,
            issuers: trusted.collect::<Result<_, _>>()?,
        })
    }

    /// Whether nobody's tokens are taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// Whether a text is to be read as a token.
    pub(crate) fn is_token(text: &str) -> bool {
        text.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// Every tenant whose users can come.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = &str> {
        let issuers = self.issuers.values();
        issuers.flat_map(|trusted| trusted.issuer.tenant.all())
    }

    /// Keeps the issuers' keys fresh until the server goes.
    pub(crate) fn keep(&self, tasks: &TaskTracker, closing: &CancellationToken) {
        for trusted in self.issuers.values() {
            let keys = Arc::clone(&trusted.keys);
            tasks.spawn(closing.clone().run_until_cancelled_owned(keys.keep()));
        }
    }

    /// Whether a token that is good until then still is.
    pub(crate) fn is_good(&self, until: Timestamp) -> bool {
        self.store.now() < until
    }

    /// Who a token stands for.
    ///
    /// # Errors
    ///
    /// Nobody; or its issuer's keys cannot be had.
    pub(crate) async fn bearer(&self, token: &str) -> Result<Bearer, TokenError> {
        if token.len() > LONGEST {
            return Err(refused(format!("the token is longer than {LONGEST} bytes")));
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| unreadable())?;
        if header.crit.is_some() {
            return Err(refused(
                "the token needs something to be understood (`crit`) that is not",
            ));
        }
        // INVARIANT: this chooses the keys by which the token is checked, and nothing else.
        let named = dangerous::insecure_decode_claims::<Named>(token).map_err(|_| unreadable())?;
        let trusted = self.issuers.get(&named.iss);
        let trusted =
            trusted.ok_or_else(|| refused("the token is of an issuer that is unknown here"))?;
        let claims = trusted.verify(token, &header).await?;
        claims::bearer(&trusted.issuer, &claims, self.store.now()).map_err(TokenError::Refused)
    }
}

/// What is read of a token before its signature was checked.
#[derive(Debug, Deserialize)]
struct Named {
    iss: String,
}

impl Trusted {
    /// What a token says, once its signature was found good.
    async fn verify(&self, token: &str, header: &Header) -> Result<Map<String, Value>, TokenError> {
        let keys = self.keys.having(header.kid.as_deref()).await;
        let keys = keys.ok_or(TokenError::Unavailable)?;
        let key = keys
            .choose(header.kid.as_deref(), header.alg)
            .map_err(|error| refused(error.to_string()))?;
        let mut validation = Validation::new(header.alg);
        // Time is the store's, and all claims are looked at in one place.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        // INVARIANT: no claim is believed before this.
        let token = jsonwebtoken::decode::<Map<String, Value>>(token, key, &validation);
        let token = token.map_err(|_| refused("the token's signature is not its issuer's"))?;
        Ok(token.claims)
    }
}

fn refused(why: impl Into<String>) -> TokenError {
    TokenError::Refused(why.into())
}

fn unreadable() -> TokenError {
    refused("the token cannot be read: it is no signed JWT, or names no issuer")
}
