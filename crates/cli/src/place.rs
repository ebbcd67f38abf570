//! Where a command works: on which store, and among whose threads.

use std::path::PathBuf;

use holdpoint_core::Principal;
use holdpoint_store::discreet;

use crate::{env, safe_text::line};

/// The store of whoever names none.
const DEFAULT_STORE: &str = "sqlite:holdpoint.db";

/// Where a command works.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The store.
    pub(crate) store: String,
    /// Whose threads are seen.
    pub(crate) tenant: String,
    /// The configuration whose models count.
    pub(crate) config: Option<PathBuf>,
}

impl Place {
    /// The same store, among the threads of this tenant.
    pub(crate) fn of(&self, tenant: &str) -> Self {
        Self {
            store: self.store.clone(),
            tenant: tenant.to_owned(),
            config: self.config.clone(),
        }
    }

    /// A command line that goes on in the same place.
    pub(crate) fn command(&self, rest: &str) -> String {
        let mut command = format!("holdpoint {rest}");
        // What the environment says it says again, and may have a password in it that is not shown.
        if self.store != env::store().as_deref().unwrap_or(DEFAULT_STORE) {
            command.push_str(&format!(" --store {}", shell_word(&discreet(&self.store))));
        }
        if let Some(config) = &self.config
            && Some(config) != env::config().as_ref()
        {
            let config = config.display().to_string();
            command.push_str(&format!(" --config {}", shell_word(&config)));
        }
        if self.tenant != Principal::LOCAL_TENANT {
            command.push_str(&format!(" --tenant {}", shell_word(&self.tenant)));
        }
        command
    }
}

/// A word that a shell passes on as it is.
fn shell_word(text: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_./:@%+=,".contains(char);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", line(text).replace('\'', r"'\''"))
    }
}
