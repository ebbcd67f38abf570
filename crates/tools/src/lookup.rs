//! What a lookup says: `{"status": "committed|not_found|partial|unknown", "receipt": …}`.

use holdpoint_core::Lookup;
use serde::Deserialize;
use serde_json::Value;

/// What was found. More keys than these do no harm.
#[derive(Debug, Deserialize)]
pub(crate) struct Finding {
    status: Status,
    #[serde(default)]
    receipt: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Committed,
    NotFound,
    Partial,
    Unknown,
}

/// Why nothing follows from it.
#[derive(Debug)]
pub(crate) enum NoFinding {
    SaysSo,
    Malformed(serde_json::Error),
}

impl NoFinding {
    /// In words; `place` is where it was said.
    pub(crate) fn of(&self, place: &str) -> String {
        match self {
            Self::SaysSo => "says that it does not know".to_owned(),
            Self::Malformed(error) => format!(
                "{place} is not `{{\"status\": \"committed|not_found|partial|unknown\"}}`: {error}"
            ),
        }
    }
}

impl Finding {
    pub(crate) fn read(text: &str) -> Result<Lookup, NoFinding> {
        let Self { status, receipt } = serde_json::from_str(text).map_err(NoFinding::Malformed)?;
        match status {
            Status::Committed => Ok(Lookup::Committed { receipt }),
            Status::NotFound => Ok(Lookup::NotFound),
            Status::Partial => Ok(Lookup::Partial { receipt }),
            Status::Unknown => Err(NoFinding::SaysSo),
        }
    }
}
