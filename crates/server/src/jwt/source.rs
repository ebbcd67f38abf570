//! Where an issuer's keys come from, and how long they are good for.
//!
//! Keys from the web are fetched again every ten minutes, and, at most once a minute, when a token names a key that is
//! not among them. While they cannot be fetched, those that were fetched last are used for up to an hour.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use holdpoint_definition::{Issuer, IssuerKeys};
use holdpoint_tools::{Outbound, Patience};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::key_set::KeySet;

/// How often keys are fetched again.
const REFRESH: Duration = Duration::from_mins(10);
/// How often they are fetched in vain before that, and how often because of a key that is not among them.
const SEEK: Duration = Duration::from_mins(1);
/// How often they are fetched for requests that cannot be served without.
const RETRY: Duration = Duration::from_secs(10);
/// How long they are used while they cannot be fetched again.
const LAST: Duration = Duration::from_hours(1);
const PATIENCE: Patience = Patience {
    bytes: 256 << 10,
    time: Duration::from_secs(5),
};

/// The keys of one issuer.
#[derive(Debug)]
pub(super) struct Source {
    issuer: String,
    place: Place,
    cache: Mutex<Cache>,
    /// One fetches, and the others wait for what comes of it.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
enum Place {
    /// They were read, and stay.
    Here(Arc<KeySet>),
    /// At this URL.
    Web(Outbound, String),
    /// Where the document at this URL says.
    Discovery(Outbound, String),
}

/// What is known of keys on the web.
#[derive(Debug, Default)]
struct Cache {
    keys: Option<Fetched>,
    /// When they were last fetched, or at least asked for.
    tried: Option<Instant>,
    /// When that was because of a key that is not among them.
    sought: Option<Instant>,
    /// Whether the last try failed.
    failing: bool,
}

#[derive(Debug)]
struct Fetched {
    keys: Arc<KeySet>,
    at: Instant,
}

/// Why keys are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// It is time to.
    Due,
    /// A token needs one that is not there.
    Missing,
}

impl Cache {
    /// The keys, if they may still be used.
    fn usable(&self, now: Instant) -> Option<&Arc<KeySet>> {
        let fetched = self.keys.as_ref();
        let fetched = fetched.filter(|fetched| now.duration_since(fetched.at) < LAST);
        fetched.map(|fetched| &fetched.keys)
    }

    /// Whether keys may be fetched now; if so, it is noted that they are.
    fn begin(&mut self, why: Why, now: Instant) -> bool {
        let seeks = why == Why::Missing && self.usable(now).is_some();
        let (last, pause) = if seeks {
            (&mut self.sought, SEEK)
        } else {
            (&mut self.tried, RETRY)
        };
        if last.is_some_and(|last| now.duration_since(last) < pause) {
            return false;
        }
        *last = Some(now);
        self.tried = Some(now);
        true
    }

    fn end(&mut self, got: Option<KeySet>, now: Instant) {
        self.failing = got.is_none();
        if let Some(keys) = got {
            self.keys = Some(Fetched {
                keys: Arc::new(keys),
                at: now,
            });
        }
    }
}

impl Source {
    /// The keys of this issuer. Those in a file are read at once; nothing is fetched yet.
    ///
    /// # Errors
    ///
    /// The file has no keys that could be used.
    pub(super) fn new(issuer: &Issuer) -> Result<Self, String> {
        let documents = || Outbound::new(&issuer.allow_private).map_err(|error| error.to_string());
        let place = match &issuer.keys {
            IssuerKeys::File(path) => Place::Here(Arc::new(read_file(path)?)),
            IssuerKeys::Url(url) => Place::Web(documents()?, url.clone()),
            IssuerKeys::Discovery => {
                let base = issuer.issuer.strip_suffix('/').unwrap_or(&issuer.issuer);
                let url = format!("{base}/.well-known/openid-configuration");
                Place::Discovery(documents()?, url)
            }
        };
        Ok(Self {
            issuer: issuer.issuer.clone(),
            place,
            cache: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        })
    }

    /// The keys, with the one that is named if the issuer has it. `None` if that cannot be known now.
    pub(super) async fn having(self: &Arc<Self>, kid: Option<&str>) -> Option<Arc<KeySet>> {
        if let Place::Here(keys) = &self.place {
            return Some(Arc::clone(keys));
        }
        if let Some(keys) = self.at_hand(kid) {
            return Some(keys);
        }
        // Others wait for it too, so that it does not end with this request.
        let (this, sought) = (Arc::clone(self), kid.map(str::to_owned));
        let fetching = tokio::spawn(async move { this.seek(sought.as_deref()).await });
        if fetching.await.is_err() {
            return None;
        }
        let cache = self.cache();
        let keys = cache.usable(Instant::now())?;
        // A key that is not among the last ones may be among those that cannot be fetched.
        (keys.has(kid) || !cache.failing).then(|| Arc::clone(keys))
    }

    /// Fetches keys again whenever it is time to.
    pub(super) async fn keep(self: Arc<Self>) {
        if let Place::Here(_) = self.place {
            return;
        }
        loop {
            let alone = self.fetching.lock().await;
            self.fetch_alone(Why::Due, &alone).await;
            drop(alone);
            let pause = if self.cache().failing { SEEK } else { REFRESH };
            sleep(pause).await;
        }
    }

    /// The keys, if they may be used and have the one that is named.
    fn at_hand(&self, kid: Option<&str>) -> Option<Arc<KeySet>> {
        let cache = self.cache();
        let keys = cache.usable(Instant::now());
        keys.filter(|keys| keys.has(kid)).cloned()
    }

    /// Fetches keys because of one that is missing, unless somebody else just did.
    async fn seek(&self, kid: Option<&str>) {
        let alone = self.fetching.lock().await;
        if self.at_hand(kid).is_none() {
            self.fetch_alone(Why::Missing, &alone).await;
        }
    }

    /// INVARIANT: whoever calls this is the only one that fetches.
    async fn fetch_alone(&self, why: Why, _: &tokio::sync::MutexGuard<'_, ()>) {
        if !self.cache().begin(why, Instant::now()) {
            return;
        }
        let got = self.get().await;
        let mut cache = self.cache();
        let (issuer, was_failing) = (&self.issuer, cache.failing);
        let got = match got {
            Ok(keys) => {
                if was_failing {
                    tracing::info!(issuer, "the keys of an issuer can be fetched again");
                }
                Some(keys)
            }
            Err(error) => {
                if !was_failing {
                    let then = match cache.usable(Instant::now()) {
                        Some(_) => "those at hand are used for up to an hour",
                        None => "its tokens are refused until they can",
                    };
                    tracing::warn!(
                        issuer,
                        error,
                        "the keys of an issuer cannot be fetched; {then}"
                    );
                }
                None
            }
        };
        cache.end(got, Instant::now());
    }

    async fn get(&self) -> Result<KeySet, String> {
        let text = match &self.place {
            Place::Here(_) => return Err("they are in a file".to_owned()),
            Place::Web(documents, url) => document(documents, url).await?,
            Place::Discovery(documents, url) => {
                let text = document(documents, url).await?;
                let found: Discovery = serde_json::from_str(&text)
                    .map_err(|error| format!("{url}: not a configuration of OpenID: {error}"))?;
                // INVARIANT: an issuer is believed about itself and nobody else.
                if found.issuer != self.issuer {
                    return Err(format!(
                        "{url} is of another issuer, `{}`",
                        found.issuer.escape_debug()
                    ));
                }
                document(documents, &found.jwks_uri).await?
            }
        };
        KeySet::read(&text)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an issuer says of itself, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

async fn document(documents: &Outbound, url: &str) -> Result<String, String> {
    let text = documents.get(url, PATIENCE).await;
    text.map_err(|error| format!("{}: {error}", url.escape_debug()))
}

fn read_file(path: &Path) -> Result<KeySet, String> {
    let shown = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    let keys = KeySet::read(&text).map_err(|error| format!("`{shown}`: {error}"))?;
    if keys.is_empty() {
        return Err(format!(
            "`{shown}` has no key for signatures that could be used: one of RSA with at least 2048 bits, P-256, P-384 or Ed25519"
        ));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Option<KeySet> {
        KeySet::read(r#"{"keys": []}"#).ok()
    }

    #[test]
    fn keys_are_fetched_once_a_minute_for_a_missing_one_and_last_an_hour() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut cache = Cache::default();
        assert!(cache.begin(Why::Due, at(0)));
        cache.end(None, at(0));
        assert!(cache.failing && cache.usable(at(0)).is_none());
        // Without any, requests wait for the next try, which comes soon.
        assert!(!cache.begin(Why::Missing, at(9)));
        assert!(cache.begin(Why::Missing, at(10)));
        cache.end(keys(), at(10));
        assert!(!cache.failing && cache.usable(at(10)).is_some());
        // With some, the first one that is missing is sought at once, and then none for a minute.
        assert!(cache.begin(Why::Missing, at(11)));
        cache.end(keys(), at(11));
        assert!(!cache.begin(Why::Missing, at(12)));
        assert!(!cache.begin(Why::Missing, at(70)));
        assert!(cache.begin(Why::Missing, at(71)));
        cache.end(None, at(71));
        assert!(cache.failing && cache.usable(at(71)).is_some());
        assert!(cache.begin(Why::Due, at(611)));
        cache.end(None, at(611));
        // They last an hour from when they were fetched.
        assert!(cache.usable(at(3_610)).is_some());
        assert!(cache.usable(at(3_611)).is_none());
    }
}
