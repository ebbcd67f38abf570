//! What whoever waits for an interrupt gets.

use holdpoint_core::{InterruptStatus, OnTimeout};
use holdpoint_engine::{Outside, question::Response};

use super::ManagerError;

/// What whoever waits gets; `None` while it is pending.
pub(super) fn outcome(outside: &Outside) -> Option<Result<Response, ManagerError>> {
    let id = outside.interrupt.id;
    let closed = outside.closed.as_ref()?;
    let by = closed.by.clone();
    Some(match outside.status {
        InterruptStatus::Pending => return None,
        InterruptStatus::Resolved | InterruptStatus::Rejected => {
            let status = outside.status;
            outside
                .response()
                .ok_or(ManagerError::AlreadyFinal { id, status, by })
        }
        InterruptStatus::Canceled => Err(ManagerError::Canceled { id, by }),
        InterruptStatus::Timeout => match outside.interrupt.on_timeout {
            OnTimeout::Reject => Ok(Response {
                timestamp: Some(closed.at),
                ..Response::reject("nobody answered in time").by("system:timeout")
            }),
            OnTimeout::Expire | OnTimeout::Escalate | OnTimeout::Keep => {
                Err(ManagerError::Timeout { id })
            }
        },
    })
}
