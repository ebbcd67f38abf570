//! What may go wrong with a backup.

use std::path::PathBuf;

use crate::Unavailable;

/// Why a backup is not driven.
pub(crate) const NOT_ADOPTED: &str = "this is a backup, and what it holds may have gone on elsewhere; `--adopt` makes it the store to go on with";

/// Why no backup was made. Under the name it was to have, there is nothing that was not there before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// This kind of store has no backups.
    #[error("this store makes no backups: {0}")]
    Unsupported(String),
    /// There is something already, which was not touched: the file itself, or one beside it that would be taken for a
    /// part of it.
    #[error("`{}` exists, and a backup overwrites nothing", path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// It could not be written.
    #[error("the backup `{}` could not be made: {reason}", path.display())]
    Failed {
        /// Where it was to be.
        path: PathBuf,
        /// What is the matter, in words.
        reason: String,
    },
    /// The store itself could not be read.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
