//! What people are shown of a call beside its arguments: asked of its tool, kept apart from the head, and looked at again
//! right before the call.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt as _;
use holdpoint_core::{
    Action, ActionId, Answer, Decision, Digest, FramePath, InterruptId, JudgedCall, Params,
    Preview, PreviewForm, Shown, State, Subject, Transcript, Verdict, keep_preview, read_preview,
};
use holdpoint_store::{ThreadKey, Unavailable};
use holdpoint_tools::{Call, Tool};

use crate::{Agent, Engine, Error, InterruptView, RunView, thread::Thread};

/// How long a tool may take to say what a call would do. Nobody is asked about what it cannot say in that time.
const LIMIT: Duration = Duration::from_secs(10);

/// Stands for what nobody was shown: nothing is like it.
fn unseen() -> Digest {
    Digest::of(b"nobody was shown what is there")
}

/// What a tool says that a call would do.
pub(crate) async fn preview(
    tool: &dyn Tool,
    name: &str,
    args: &Params,
) -> Result<Option<Preview>, String> {
    let call = Call {
        tool: name,
        args,
        key: "",
        epoch: 0,
        remaining: LIMIT,
        step: None,
        scope: "",
        basis: None,
    };
    let unsaid = |how: &str| {
        Err(format!(
            "`{name}` could not say {how} what the call would do, so nobody was asked and nothing was executed."
        ))
    };
    let saying = AssertUnwindSafe(tool.preview(call)).catch_unwind();
    let said = match tokio::time::timeout(LIMIT, saying).await {
        Ok(Ok(said)) => said?,
        Ok(Err(_)) => return unsaid("without a panic"),
        Err(_) => return unsaid("in time"),
    };
    match said {
        Some(preview) if preview.body.len() > Preview::MAX_BODY => Err(format!(
            "What `{name}` would do is too much to be shown to a person ({} bytes). Do less at once.",
            preview.body.len()
        )),
        said => Ok(said),
    }
}

/// What a look at an approved call right before it is made comes to.
#[derive(Debug)]
pub(crate) enum Again {
    /// It would still do what was shown.
    Same,
    /// It would do something else.
    Other(Box<Preview>),
    /// It cannot work any more, and had no effect.
    Impossible(String),
}

/// Looks once more at a call that a person approved by what they were shown.
pub(crate) async fn look_again(tool: &dyn Tool, action: &Action) -> Again {
    let Some(basis) = action.basis() else {
        return Again::Same;
    };
    match preview(tool, &action.tool.name, &action.params).await {
        Ok(Some(preview)) if preview.basis.is_some_and(|now| now == basis) => Again::Same,
        Ok(Some(preview)) => Again::Other(Box::new(preview)),
        Ok(None) => Again::Impossible(format!(
            "`{}` does not say any more what it would do; nothing was executed",
            action.tool.name
        )),
        Err(why) => Again::Impossible(why),
    }
}

impl Engine {
    /// Keeps a preview. It is there before anything refers to it.
    pub(crate) async fn keep_shown(
        &self,
        key: &ThreadKey,
        preview: &Preview,
    ) -> Result<Shown, Error> {
        let (shown, payload) = keep_preview(key.thread, preview)
            .map_err(|error| Unavailable::new(format!("a preview cannot be kept: {error}")))?;
        self.store()
            .put_blob(&key.tenant, payload, shown.kept)
            .await?;
        Ok(shown)
    }

    /// Adds to the calls about which people are asked what they are shown. What its tool says cannot work is refused, and
    /// nobody is asked about it.
    pub(crate) async fn show(
        &self,
        key: &ThreadKey,
        agent: &Agent,
        frame: &FramePath,
        calls: &mut [JudgedCall],
    ) -> Result<(), Error> {
        for call in calls {
            let Ok(one) = &mut call.judged else { continue };
            if !matches!(one.verdict, Verdict::Ask(_)) {
                continue;
            }
            let name = &one.tool.name;
            let tool = agent.at(frame).and_then(|agent| agent.runner(name));
            let Some(tool) = tool else { continue };
            match preview(&*tool, name, &one.params).await {
                Ok(None) => {}
                Ok(Some(preview)) => {
                    one.shown = Some(Box::new(self.keep_shown(key, &preview).await?));
                }
                Err(why) => call.judged = Err(why),
            }
        }
        Ok(())
    }

    /// What edited calls would do; and why one of them cannot work.
    pub(crate) async fn show_edited(
        &self,
        thread: &Thread,
        interrupt: InterruptId,
        answer: &Answer,
        misfits: &mut Vec<(ActionId, String)>,
    ) -> Result<Vec<(ActionId, Shown)>, Error> {
        let mut shown = Vec::new();
        let Some(interrupt) = thread.state.interrupts.get(&interrupt) else {
            return Ok(shown);
        };
        let Ok(assigned) = interrupt.assign(answer, &thread.state) else {
            return Ok(shown);
        };
        for (ask, decision) in assigned {
            let (Decision::Edit { edited_action }, Subject::Action { .. }) =
                (&decision, &ask.subject)
            else {
                continue;
            };
            let id = ask.action_id;
            let Some(action) = thread.state.actions.get(&id) else {
                continue;
            };
            if misfits.iter().any(|(misfit, _)| *misfit == id) {
                continue;
            }
            let agent = self.agent(&thread.key.tenant, action.definition).await?;
            let name = &action.tool.name;
            let tool = agent.at(&action.frame).and_then(|agent| agent.runner(name));
            let Some(tool) = tool else { continue };
            match preview(&*tool, name, &edited_action.args).await {
                Ok(None) => {}
                Ok(Some(mut preview)) => {
                    // Nobody has seen what these arguments would do to anything but what was shown. Where that is something else by
                    // now, or they name something else, the call is not made, and asked about again with what it would do.
                    let seen = action.shown.as_ref().and_then(|shown| shown.basis);
                    if let Some(basis) = &mut preview.basis {
                        basis.before = seen.map_or_else(unseen, |seen| seen.before);
                    }
                    shown.push((id, self.keep_shown(&thread.key, &preview).await?));
                }
                Err(why) => misfits.push((id, why)),
            }
        }
        Ok(shown)
    }

    /// A thread as doors show it, with what the calls that are asked about would do.
    ///
    /// # Errors
    ///
    /// As [`Engine::fill_previews`].
    pub async fn show_run(
        &self,
        tenant: &str,
        state: &State,
        transcript: &Transcript,
    ) -> Result<RunView, Error> {
        let mut view = RunView::new(state, transcript);
        self.fill_previews(tenant, state, &mut view.interrupts)
            .await?;
        Ok(view)
    }

    /// Adds to what is shown of a question about words that are held back these words.
    async fn fill_held(
        &self,
        tenant: &str,
        state: &State,
        view: &mut InterruptView,
    ) -> Result<(), Error> {
        let Some(interrupt) = state.interrupts.get(&view.id) else {
            return Ok(());
        };
        let key = ThreadKey {
            tenant: tenant.into(),
            thread: state.thread,
        };
        let requests = &mut view.value.action_requests;
        for (ask, request) in interrupt.asks.iter().zip(requests) {
            if let Subject::Output { reply, text } = ask.subject {
                let words = self.held_words(&key, state, interrupt, reply, text).await?;
                let title = "What the model would say";
                request.preview = Some(Preview::new(title, words, PreviewForm::Text));
            }
        }
        Ok(())
    }

    /// Adds to what is shown of pending questions what their calls would do, or what would be said.
    ///
    /// # Errors
    ///
    /// The store fails, or a preview is not what was kept: then nobody can see what they would approve.
    pub async fn fill_previews(
        &self,
        tenant: &str,
        state: &State,
        interrupts: &mut [InterruptView],
    ) -> Result<(), Error> {
        for view in interrupts {
            self.fill_held(tenant, state, view).await?;
            self.fill_shown(tenant, state, view).await?;
        }
        Ok(())
    }

    /// Adds to what is shown of a question what its calls would do.
    pub(crate) async fn fill_shown(
        &self,
        tenant: &str,
        state: &State,
        view: &mut InterruptView,
    ) -> Result<(), Error> {
        for request in &mut view.value.action_requests {
            let action = state.actions.get(&request.action_id);
            let Some(shown) = action.and_then(|action| action.shown.as_ref()) else {
                continue;
            };
            let payload = self.store().blob(tenant, shown.kept).await?;
            let preview = payload
                .filter(|payload| Digest::of(&payload.bytes) == shown.kept)
                .and_then(|payload| read_preview(&payload).ok());
            let Some(preview) = preview else {
                let what = format!(
                    "what `{}` would do is not kept as it was shown ({})",
                    request.name, shown.kept
                );
                return Err(Unavailable::new(what).into());
            };
            request.preview = Some(preview);
        }
        Ok(())
    }
}
