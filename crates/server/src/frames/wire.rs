//! What an interrupt looks like to a chat client.

use holdpoint_core::{InputField, InterruptId, Timestamp};
use serde::{Deserialize, Serialize};

/// A question that a chat waits at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct InterruptState {
    /// The conversation.
    pub session_id: String,
    /// The agent that asks.
    pub agent_name: String,
    /// What is asked, in the model's words.
    pub reason: String,
    /// What to fill in; there may be nothing, but the key is always there.
    #[schema(value_type = Vec<Object>)]
    pub fields: Vec<InputField>,
    /// When it was asked, in seconds since 1970.
    pub timestamp: i64,
    /// Where it is kept; see [`checkpoint_id`].
    pub checkpoint_id: String,
    /// The durable question behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub interrupt_id: Option<InterruptId>,
}

/// The name of an interrupt's checkpoint: agent, session and the nanoseconds since 1970.
///
/// ```
/// use holdpoint_core::Timestamp;
/// use holdpoint_server::frames::checkpoint_id;
///
/// let at = Timestamp::from_millis(1_746_000_000_000);
/// assert_eq!(
///     checkpoint_id("approval-agent", "session-123", at),
///     "approval-agent_session-123_1746000000000000000"
/// );
/// ```
#[must_use]
pub fn checkpoint_id(agent: &str, session: &str, at: Timestamp) -> String {
    // Nanoseconds leave 64 bits in the year 2262, microseconds do not.
    let nanos = i128::from(at.as_micros()) * 1_000;
    format!("{agent}_{session}_{nanos}")
}
