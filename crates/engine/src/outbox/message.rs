//! What a letter says.

use std::sync::Arc;

use holdpoint_core::{Damaged, InterruptStatus, Letter, Timestamp};
use holdpoint_store::{ThreadKey, Unavailable};
use serde::Serialize;

use crate::{
    Engine, Error,
    question::{Interrupt, rfc3339},
};

/// A letter, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name: the same however often it is sent.
    pub id: String,
    /// What it says, as JSON: the same however often it is sent.
    pub body: String,
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(with = "rfc3339")]
    timestamp: Timestamp,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    tenant: &'a str,
    seq: u64,
    interrupt: Interrupt,
}

impl Engine {
    /// What a letter says: the question as it stood right after the event.
    ///
    /// # Errors
    ///
    /// The store fails, or the journal was tampered with.
    pub async fn message(&self, tenant: &Arc<str>, letter: &Letter) -> Result<Message, Error> {
        let key = ThreadKey {
            tenant: Arc::clone(tenant),
            thread: letter.thread,
        };
        let mut journal = self.journal(&key).await?;
        // However it has gone on since.
        journal.retain(|entry| entry.seq <= letter.seq);
        let version = letter.seq;
        let missing = || Error::from(Damaged::Incomplete { version });
        let (hash, timestamp) = match journal.last() {
            Some(event) if event.seq == letter.seq => (event.hash, event.header.at),
            Some(_) | None => return Err(missing()),
        };
        let told = self.told_by(&key, journal, |id| id == letter.interrupt);
        let question = told.await?.into_iter().next().ok_or_else(missing)?;
        let interrupt = Interrupt::from(question);
        let body = Body {
            kind: format!("interrupt.{}", happened(interrupt.status)),
            timestamp,
            data: Data {
                tenant,
                seq: letter.seq,
                interrupt,
            },
        };
        let unwritable = |error: serde_json::Error| Unavailable::new(error.to_string());
        Ok(Message {
            id: letter.id(&hash),
            body: serde_json::to_string(&body).map_err(unwritable)?,
        })
    }
}

/// What happened to a question that stands so.
const fn happened(status: InterruptStatus) -> &'static str {
    match status {
        InterruptStatus::Pending => "created",
        InterruptStatus::Resolved
        | InterruptStatus::Rejected
        | InterruptStatus::Timeout
        | InterruptStatus::Canceled => status.as_str(),
    }
}
