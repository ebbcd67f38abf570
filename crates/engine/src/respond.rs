//! Answering a question of anybody, in the words that every question understands.

use holdpoint_core::{Bond, Refusal};

use crate::{Engine, Error, Question, Request, Submitted, answer::Given, question::Reply};

impl Engine {
    /// Why a question that was just looked at can no longer be answered.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn why_not_pending(&self, question: &Question) -> Result<Error, Error> {
        let interrupt = question.interrupt.id;
        if question.closed.is_none() {
            return Ok(Refusal::Expired { interrupt }.into());
        }
        self.explain(&question.key, Refusal::NotPending { interrupt })
            .await
    }

    /// Answers a question that was just looked at, bound to what the answer says besides.
    ///
    /// # Errors
    ///
    /// The reply does not fit, and nothing has changed; its token does not hold, or was used; or as [`Engine::answer`].
    pub async fn respond(
        &self,
        request: impl Into<Request>,
        question: &Question,
        reply: Reply,
        bond: Bond,
    ) -> Result<Submitted, Error> {
        let request = request.into();
        let (key, interrupt) = (&question.key, question.interrupt.id);
        let own = bond.pass.as_ref().map(|pass| pass.id.clone());
        let answered = async {
            // Who comes late is told so, whatever they say.
            if question.closed.is_some() {
                return Err(self.why_not_pending(question).await?);
            }
            let answer = reply.into_answer(question).map_err(Error::BadReply)?;
            let given = Given {
                interrupt,
                answer,
                bond,
            };
            self.answer_once(&request, key, vec![given]).await
        };
        let answered = self.once(&request, Box::pin(answered)).await;
        match answered {
            Err(Error::AlreadyDecided {
                token: Some(winner),
                ..
            }) if own == Some(winner.clone()) => Err(Error::TokenUsed { interrupt }),
            other => other,
        }
    }
}
