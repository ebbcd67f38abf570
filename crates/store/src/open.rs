//! Opening a store that a text names.

use std::{path::PathBuf, sync::Arc};

use crate::{MemoryStore, Options, SharedStore, SqliteStore};

/// Why a store could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text names no kind of store that there is.
    #[error("`{}` names no store: use `sqlite:PATH`, `postgres://…` or `memory:`", beginning(.url))]
    UnknownKind {
        /// The text.
        url: String,
    },
    /// The file was written by a newer version of this program. It was not touched.
    #[error(
        "{store} has format {found}, but this version reads formats up to {reads}: use a newer version"
    )]
    Newer {
        /// The store.
        store: String,
        /// The format it has.
        found: u64,
        /// The newest format that this build reads.
        reads: u64,
    },
    /// It cannot be reached now; it may be later.
    #[error("{reason}")]
    Away {
        /// What is the matter, in words.
        reason: String,
    },
    /// What is there is not a store, or cannot be used. It was not touched.
    #[error("{reason}")]
    Unusable {
        /// What is the matter, in words.
        reason: String,
    },
}

/// How a text begins that may have a password in it.
fn beginning(text: &str) -> String {
    match text.split_once([':', '=']) {
        Some((kind, _)) => format!("{kind}:…"),
        None => text.to_owned(),
    }
}

/// Opens the store that `url` names: `sqlite:PATH`, `postgres://…` or `memory:`.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use holdpoint_store::{Options, open};
/// let store = open("memory:", Options::default()).await.unwrap();
/// assert!(!store.is_durable());
/// # });
/// ```
///
/// # Errors
///
/// [`OpenError`], if there is no such kind of store or it cannot be opened.
pub async fn open(url: &str, options: Options) -> Result<SharedStore, OpenError> {
    if url == "memory:" {
        return Ok(Arc::new(MemoryStore::new(&options)));
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return open_postgres(url, &options).await;
    }
    let path = url.strip_prefix("sqlite:").filter(|path| !path.is_empty());
    let Some(path) = path.map(PathBuf::from) else {
        return Err(OpenError::UnknownKind {
            url: url.to_owned(),
        });
    };
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(&path, &options));
    match opening.await {
        Ok(store) => Ok(Arc::new(store?)),
        Err(fault) => Err(OpenError::Unusable {
            reason: format!("`{url}` could not be opened: {fault}"),
        }),
    }
}

/// The url of a store as it may be shown: without a password.
///
/// ```
/// # use holdpoint_store::discreet;
/// assert_eq!(discreet("postgres://ann:secret@db/runs"), "postgres://ann:…@db/runs");
/// assert_eq!(discreet("sqlite:runs.db"), "sqlite:runs.db");
/// ```
#[must_use]
pub fn discreet(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let rest = match rest.rsplit_once('@') {
        None => rest.to_owned(),
        Some((user, host)) => match user.split_once(':') {
            None => format!("{user}@{host}"),
            Some((user, _)) => format!("{user}:…@{host}"),
        },
    };
    let query: Vec<&str> = query
        .split('&')
        .filter(|part| !part.is_empty() && !part.starts_with("password="))
        .collect();
    if query.is_empty() {
        return format!("{scheme}://{rest}");
    }
    format!("{scheme}://{rest}?{}", query.join("&"))
}

#[cfg(feature = "postgres")]
async fn open_postgres(url: &str, options: &Options) -> Result<SharedStore, OpenError> {
    Ok(Arc::new(crate::PostgresStore::open(url, options).await?))
}

#[cfg(not(feature = "postgres"))]
async fn open_postgres(_: &str, _: &Options) -> Result<SharedStore, OpenError> {
    Err(OpenError::Unusable {
        reason: "this build has no PostgreSQL in it; it needs the feature `postgres`".to_owned(),
    })
}
