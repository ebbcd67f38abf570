//! What went wrong with a database, in words, and what it means for what was being done.

use std::{error::Error as _, sync::Arc};

use deadpool_postgres::PoolError;
use tokio_postgres::{Error, error::SqlState};

use crate::Unavailable;

/// What is known after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing was committed, and trying again may help.
    Again,
    /// Whether it was committed is not known: the connection went away.
    Unknown,
    /// Nothing was committed, and trying again does not help.
    Never,
}

/// A failure of the database.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) fate: Fate,
    pub(super) reason: Unavailable,
}

impl From<Trouble> for Unavailable {
    fn from(trouble: Trouble) -> Self {
        trouble.reason
    }
}

/// Speaks of the troubles of one database.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    shown: Arc<str>,
}

impl Teller {
    pub(super) const fn new(shown: Arc<str>) -> Self {
        Self { shown }
    }

    /// A statement failed.
    pub(super) fn failed(&self, error: &Error) -> Trouble {
        let fate = fate(error);
        let words = words(error);
        Trouble {
            fate,
            reason: Unavailable::new(format!("{}: {words}", self.shown)),
        }
    }

    /// No connection was to be had, so nothing was sent. One that was refused for good (a wrong password) is not tried again.
    pub(super) fn unreached(&self, error: &PoolError) -> Trouble {
        let fate = match error {
            PoolError::Backend(error) if fate(error) == Fate::Never => Fate::Never,
            PoolError::Backend(_)
            | PoolError::Timeout(_)
            | PoolError::Closed
            | PoolError::NoRuntimeSpecified
            | PoolError::PostCreateHook(_) => Fate::Again,
        };
        let words = match error {
            PoolError::Backend(error) => words(error),
            PoolError::Timeout(_) => "it cannot be reached in time".to_owned(),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                error.to_string()
            }
        };
        Trouble {
            fate,
            reason: Unavailable::new(format!("{}: {words}", self.shown)),
        }
    }

    /// There was no answer in time. The connection must not be used again.
    pub(super) fn silent(&self) -> Trouble {
        Trouble {
            fate: Fate::Unknown,
            reason: Unavailable::new(format!("{}: it does not answer", self.shown)),
        }
    }

    /// What was looked at is not so any more.
    pub(super) fn moved(&self) -> Trouble {
        Trouble {
            fate: Fate::Again,
            reason: Unavailable::new(format!(
                "{}: others were faster again and again",
                self.shown
            )),
        }
    }

    /// Something that is stored cannot be read.
    pub(super) fn unreadable(&self, what: impl std::fmt::Display) -> Trouble {
        Trouble {
            fate: Fate::Never,
            reason: Unavailable::new(format!("{}: {what}", self.shown)),
        }
    }
}

fn fate(error: &Error) -> Fate {
    let Some(code) = error.code() else {
        // Not the database's own word: the connection is gone, or what came back made no sense.
        return Fate::Unknown;
    };
    let again = [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::LOCK_NOT_AVAILABLE,
        // Somebody was faster, or a batch has a row that is there already; one by one it is found out.
        SqlState::UNIQUE_VIOLATION,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::CANNOT_CONNECT_NOW,
        // A server that has become a standby: the next connection may find the one that is not.
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::QUERY_CANCELED,
    ];
    let unknown = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN];
    if unknown.contains(code) || code.code().starts_with("08") {
        Fate::Unknown
    } else if again.contains(code) {
        Fate::Again
    } else {
        Fate::Never
    }
}

fn words(error: &Error) -> String {
    if let Some(database) = error.as_db_error() {
        let code = database.code();
        let message = database.message();
        return if *code == SqlState::DISK_FULL {
            format!("its disk is full ({message})")
        } else if *code == SqlState::INVALID_PASSWORD
            || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION
        {
            format!("it does not let us in ({message})")
        } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            format!("its user may not do this ({message})")
        } else if *code == SqlState::INVALID_SQL_STATEMENT_NAME
            || *code == SqlState::DUPLICATE_PSTATEMENT
        {
            format!(
                "a pooler stands between that hands out connections for a transaction at a time ({message}); add \
                 `pooling=transaction` to the url"
            )
        } else {
            message.to_owned()
        };
    }
    match error.source() {
        Some(source) if source.to_string().contains("CaUsedAsEndEntity") => format!(
            "{error}: its certificate is that of an authority; give the server one that the authority has signed, and name \
             the authority's file in `sslrootcert`"
        ),
        Some(source) if source.to_string().contains("invalid peer certificate") => format!(
            "{error}: {source}; name the file of the certificate, or of the authority that signed it, with `sslrootcert=FILE` in \
             the url, or say `sslmode=disable` where nobody can listen in between"
        ),
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
