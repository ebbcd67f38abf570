//! A stepped tool that is entered, seen from the driver: what it wants is put to the driver, and answered once it is
//! committed.

use async_trait::async_trait;
use holdpoint_core::{ActionId, Effect, Memo, Outcome, Params, Recalled, Suspension};
use holdpoint_tools::{Begun, StepRefused, Steps};
use tokio::sync::{mpsc, oneshot};

/// What a stepped tool wants.
#[derive(Debug)]
pub(crate) struct Wish {
    /// The tool's action.
    pub(crate) action: ActionId,
    /// The attempt at it that speaks.
    pub(crate) attempt: u32,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// To take a step.
    Begin {
        name: String,
        effect: Effect,
        params: Params,
        reply: oneshot::Sender<Result<Begun, StepRefused>>,
    },
    /// To say how a step ended.
    End {
        name: String,
        outcome: Outcome,
        reply: oneshot::Sender<Result<(), StepRefused>>,
    },
    /// To wait. There is no reply: the tool is left, and entered again.
    Wait { name: String, on: Suspension },
}

/// The tool's end.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) action: ActionId,
    pub(crate) attempt: u32,
    pub(crate) memo: Memo,
    pub(crate) wishes: mpsc::UnboundedSender<Wish>,
}

impl Handle {
    /// Puts a wish to the driver. It never completes where the driver does not answer: the entry is dropped then.
    async fn put<T>(&self, what: What, reply: oneshot::Receiver<T>) -> T {
        let wish = Wish {
            action: self.action,
            attempt: self.attempt,
            what,
        };
        if self.wishes.send(wish).is_ok()
            && let Ok(answer) = reply.await
        {
            return answer;
        }
        std::future::pending().await
    }
}

#[async_trait]
impl Steps for Handle {
    fn memo(&self) -> &Memo {
        &self.memo
    }

    async fn begin(&self, name: &str, effect: Effect, args: Params) -> Result<Begun, StepRefused> {
        // What has ended before the tool was entered needs no driver.
        match self.memo.step(name, effect, &args) {
            Err(misnamed) => return Err(StepRefused(misnamed.to_string())),
            Ok(Some(end)) => return Ok(Begun::Ended(end.clone())),
            Ok(None) => {}
        }
        let (reply, answer) = oneshot::channel();
        let what = What::Begin {
            name: name.to_owned(),
            effect,
            params: args,
            reply,
        };
        self.put(what, answer).await
    }

    async fn end(&self, name: &str, outcome: Outcome) -> Result<(), StepRefused> {
        let (reply, answer) = oneshot::channel();
        let what = What::End {
            name: name.to_owned(),
            outcome,
            reply,
        };
        self.put(what, answer).await
    }

    async fn wait(&self, name: &str, on: Suspension) -> Result<Recalled, StepRefused> {
        let known = match &on {
            Suspension::Question { prompt, .. } => self.memo.answer(name, prompt),
            Suspension::Sleep { .. } => self.memo.sleep(name),
        };
        match known {
            Err(misnamed) => return Err(StepRefused(misnamed.to_string())),
            Ok(Some(recalled)) => return Ok(recalled.clone()),
            Ok(None) => {}
        }
        let what = What::Wait {
            name: name.to_owned(),
            on,
        };
        let (_, never) = oneshot::channel();
        self.put(what, never).await
    }
}
