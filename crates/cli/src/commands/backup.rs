//! `holdpoint backup`: a copy of a store while it is in use.

use serde_json::json;

use crate::{
    args::Backup,
    exit::Exit,
    failure::Failure,
    session::{IfMissing, Output, Session},
    terminal,
};

/// Copies the store.
///
/// # Errors
///
/// The target exists, or cannot be written; the store cannot be copied.
pub(crate) async fn backup(args: &Backup) -> Result<Exit, Failure> {
    let session = Session::open(&args.common.of_nobody(), IfMissing::Refuse).await?;
    let copied = session.engine.store().backup(&args.file).await;
    copied.map_err(|error| Failure::unusable("backup_failed", error.to_string()))?;
    match session.output {
        Output::Json => terminal::json(&json!({"file": args.file})),
        Output::Plain => terminal::note(&format!(
            "the store as it was is in {}; a copy is only read until it is adopted (`holdpoint recover --adopt`)",
            args.file.display()
        )),
    }
    Ok(Exit::Done)
}
