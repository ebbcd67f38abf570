//! Answering a question of anybody, in the words that every question understands.

use holdpoint_core::Refusal;

use crate::{Engine, Error, Question, Request, Submitted, question::Reply};

impl Engine {
    /// Answers a question that was just looked at.
    ///
    /// # Errors
    ///
    /// The reply does not fit, and nothing has changed; or as [`Engine::answer`].
    pub async fn respond(
        &self,
        request: impl Into<Request>,
        question: &Question,
        reply: Reply,
    ) -> Result<Submitted, Error> {
        let request = request.into();
        let (key, interrupt) = (&question.key, question.interrupt.id);
        let answered = async {
            // Who comes late is told so, whatever they say.
            if question.closed.is_some() {
                return Err(self.explain(key, Refusal::NotPending { interrupt }).await?);
            }
            let answer = reply.into_answer(question).map_err(Error::BadReply)?;
            self.answer_once(&request, key, vec![(interrupt, answer)])
                .await
        };
        self.once(&request, Box::pin(answered)).await
    }
}
