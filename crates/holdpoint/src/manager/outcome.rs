//! What whoever waits for an interrupt gets.

use holdpoint_core::{InterruptStatus, OnTimeout};
use holdpoint_engine::{Question, question::Response};

use super::ManagerError;

/// What whoever waits gets; `None` while it is pending.
pub(super) fn outcome(question: &Question) -> Option<Result<Response, ManagerError>> {
    let id = question.interrupt.id;
    let closed = question.closed.as_ref()?;
    let by = closed.by.clone();
    Some(match question.status {
        InterruptStatus::Pending => return None,
        InterruptStatus::Resolved | InterruptStatus::Rejected => {
            let status = question.status;
            question
                .response()
                .ok_or(ManagerError::AlreadyFinal { id, status, by })
        }
        InterruptStatus::Canceled => Err(ManagerError::Canceled { id, by }),
        InterruptStatus::Timeout => match question.interrupt.on_timeout {
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
