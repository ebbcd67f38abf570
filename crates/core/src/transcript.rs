//! The conversation, folded from the journal: what a model is given, and what people read.
//!
//! The head does not hold it, so that what a step writes does not grow with the thread. A driver folds it once and keeps
//! it while it drives.

use std::collections::BTreeMap;

use crate::{
    ActionId, AfterLate, AfterLookup, AfterUnknown, Artifact, ArtifactAddress, Ask, Called,
    Carried, Decision, Event, Fate, Finish, FramePath, HeldReply, InterruptId, Lookup, Memo, Memos,
    Message, Outcome, Params, Stop, Subject, ToolStatus, artifact::Artifacts, content_of, preview,
};

/// The conversations of a thread: its agent's, and those of the subagents that are at work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    root: Conversation,
    subagents: BTreeMap<FramePath, Conversation>,
    memos: Memos,
    aside: Aside,
    artifacts: Artifacts,
}

/// What models said that is held back: in no conversation until a person lets it be said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Aside {
    replies: BTreeMap<FramePath, HeldReply>,
    /// In which frame the questions are about them.
    asked: BTreeMap<InterruptId, FramePath>,
}

/// The messages of one frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    settled: Vec<Message>,
    turn: Vec<Slot>,
    compensations: BTreeMap<ActionId, ActionId>,
    /// The action whose task it carries out.
    task: Option<ActionId>,
}

/// One call of the last turn.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    action: Option<ActionId>,
    call_id: String,
    tool: String,
    /// What ran instead, if a person edited the call.
    edited: Option<Params>,
    /// Whether a call was made, or may have been.
    started: bool,
    /// Whether a subagent was given the task.
    delegated: bool,
    reply: Option<Reply>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reply {
    executed: bool,
    status: ToolStatus,
    content: String,
}

impl Transcript {
    /// All messages of the agent itself, in the order its model reads them.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.root.messages()
    }

    /// The last thing the agent's model said.
    #[must_use]
    pub fn last_text(&self) -> Option<&str> {
        self.root.last_text()
    }

    /// What a call of a stepped tool has behind it.
    #[must_use]
    pub fn memo(&self, action: ActionId) -> Memo {
        self.memos.of(action)
    }

    /// What the model of a frame said and a person has not let pass.
    #[must_use]
    pub fn held(&self, path: &FramePath) -> Option<&HeldReply> {
        self.aside.replies.get(path)
    }

    /// The result of a call of this conversation that is kept apart under this address.
    #[must_use]
    pub fn artifact(&self, address: &ArtifactAddress) -> Option<&Artifact> {
        self.artifacts.get(address)
    }

    /// All results that are kept apart, the oldest first.
    #[must_use]
    pub fn artifacts(&self) -> &[Artifact] {
        self.artifacts.list()
    }

    /// How many messages there are in all.
    #[must_use]
    pub fn len(&self) -> usize {
        let all = self.subagents.values().chain([&self.root]);
        all.map(|conversation| conversation.settled.len()).sum()
    }

    /// Whether nothing was said yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The conversation of a frame that is open.
    #[must_use]
    pub fn frame(&self, path: &FramePath) -> Option<&Conversation> {
        if path.is_root() {
            Some(&self.root)
        } else {
            self.subagents.get(path)
        }
    }

    /// Adds what an event contributes.
    pub fn apply(&mut self, event: &Event) {
        self.memos.apply(event);
        if let Some(artifact) = event.artifact() {
            self.artifacts.add(artifact);
        }
        if let Event::FrameOpened {
            frame,
            action,
            input,
        } = event
        {
            self.open(frame, *action, input);
        } else if let Event::FrameClosed { frame } = event {
            self.close(frame);
        } else if let Event::ModelStarted { frame, .. } | Event::ModelReplied { frame, .. } = event
        {
            if let Some(conversation) = self.frame_mut(frame) {
                conversation.apply(event);
            }
        } else {
            self.root.apply(event);
            for conversation in self.subagents.values_mut() {
                conversation.apply(event);
            }
        }
        // In plain words only the agent's own model asks; any model's words may be held back.
        if let Event::Answered {
            interrupt,
            says: Some(says),
            ..
        }
        | Event::InterruptClosed {
            interrupt,
            says: Some(says),
            ..
        } = event
        {
            let frame = self.aside.asked.get(interrupt).cloned();
            if let Some(conversation) = self.frame_mut(&frame.unwrap_or_default()) {
                conversation.settled.push(Message::User {
                    content: says.clone(),
                });
            }
        }
        self.aside.apply(event);
        if matches!(
            event,
            Event::RunStarted { .. } | Event::StopRequested { .. }
        ) {
            self.subagents.clear();
        }
    }

    fn frame_mut(&mut self, path: &FramePath) -> Option<&mut Conversation> {
        if path.is_root() {
            Some(&mut self.root)
        } else {
            self.subagents.get_mut(path)
        }
    }

    fn open(&mut self, frame: &FramePath, action: ActionId, input: &str) {
        let parent = frame.parent().and_then(|parent| self.frame_mut(&parent));
        if let Some(slot) = parent.and_then(|parent| parent.slot(action)) {
            slot.started = true;
            slot.delegated = true;
        }
        let task = Message::User {
            content: input.to_owned(),
        };
        let conversation = Conversation {
            settled: vec![task],
            task: Some(action),
            ..Conversation::default()
        };
        self.subagents.insert(frame.clone(), conversation);
    }

    /// A subagent's last word is the result of its task.
    fn close(&mut self, frame: &FramePath) {
        let Some(conversation) = self.subagents.remove(frame) else {
            return;
        };
        let word = conversation.last_text().unwrap_or_default().to_owned();
        let parent = frame.parent().and_then(|parent| self.frame_mut(&parent));
        if let (Some(parent), Some(task)) = (parent, conversation.task) {
            parent.done(task, &word);
        }
    }
}

impl Aside {
    fn apply(&mut self, event: &Event) {
        if let Event::OutputHeld { frame, reply, .. } = event {
            self.replies.insert(frame.clone(), (**reply).clone());
        } else if let Event::InterruptRaised(interrupt) = event {
            let held = |ask: &Ask| matches!(ask.subject, Subject::Output { .. });
            if interrupt.asks.iter().any(held) {
                self.asked.insert(interrupt.id, interrupt.frame.clone());
            }
        } else if let Event::Answered { interrupt, .. } | Event::InterruptClosed { interrupt, .. } =
            event
        {
            self.asked.remove(interrupt);
        } else if let Event::ModelStarted { frame, .. }
        | Event::ModelReplied { frame, .. }
        | Event::FrameClosed { frame } = event
        {
            self.replies.remove(frame);
        } else if let Event::RunStarted { .. }
        | Event::StopRequested { .. }
        | Event::RunEnded { .. } = event
        {
            *self = Self::default();
        }
    }
}

impl Conversation {
    /// All messages, in the order a model reads them.
    ///
    /// Within a turn, calls that were not executed come first, then the results in the order of the calls.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = self.settled.clone();
        messages.extend(self.turn_messages());
        messages
    }

    /// The messages of all turns whose calls are settled: what a model is given when it is called.
    #[must_use]
    pub fn settled(&self) -> &[Message] {
        &self.settled
    }

    /// The last thing the model said.
    #[must_use]
    pub fn last_text(&self) -> Option<&str> {
        self.settled.iter().rev().find_map(|message| match message {
            Message::Assistant { content, .. } => Some(content.as_str()),
            Message::User { .. } | Message::Tool { .. } => None,
        })
    }

    fn turn_messages(&self) -> impl Iterator<Item = Message> + '_ {
        let of = |executed: bool| {
            self.turn.iter().filter_map(move |slot| {
                let reply = slot
                    .reply
                    .as_ref()
                    .filter(|reply| reply.executed == executed)?;
                Some(Message::Tool {
                    tool_call_id: slot.call_id.clone(),
                    name: slot.tool.clone(),
                    content: reply.content.clone(),
                    status: reply.status,
                    action_id: slot.action,
                })
            })
        };
        of(false).chain(of(true))
    }

    fn flush(&mut self) {
        let messages: Vec<Message> = self.turn_messages().collect();
        self.settled.extend(messages);
        self.turn.clear();
    }

    fn slot(&mut self, action: ActionId) -> Option<&mut Slot> {
        let action = self.compensations.get(&action).copied().unwrap_or(action);
        self.turn
            .iter_mut()
            .find(|slot| slot.action == Some(action))
    }

    /// A reply that stands is never overwritten.
    fn reply(
        &mut self,
        action: ActionId,
        executed: bool,
        status: ToolStatus,
        content: impl FnOnce(&Slot) -> String,
    ) {
        if let Some(slot) = self.slot(action)
            && slot.reply.is_none()
        {
            let content = content(slot);
            slot.reply = Some(Reply {
                executed,
                status,
                content,
            });
        }
    }

    fn done(&mut self, action: ActionId, content: &str) {
        if self.compensations.contains_key(&action) {
            // Whatever the call itself reported is no longer so.
            if let Some(slot) = self.slot(action) {
                slot.reply = None;
            }
            self.reply(action, true, ToolStatus::Error, |slot| {
                preview::undone(&slot.tool, action)
            });
            return;
        }
        self.reply(action, true, ToolStatus::Success, |slot| {
            match &slot.edited {
                Some(params) => preview::edited_result(&slot.tool, params, content),
                None => content.to_owned(),
            }
        });
    }

    fn failed(&mut self, action: ActionId, error: &str) {
        // A failed compensation says nothing about the call itself; a person is asked.
        if !self.compensations.contains_key(&action) {
            self.reply(action, true, ToolStatus::Error, |slot| match &slot.edited {
                Some(params) => preview::edited_result(&slot.tool, params, error),
                None => error.to_owned(),
            });
        }
    }

    /// Adds what an event contributes to the conversation. Events about a frame are those of this one.
    fn apply(&mut self, event: &Event) {
        match event {
            // What a call reported may still be undone or corrected until the model is asked again.
            Event::ModelStarted { .. } => self.flush(),
            Event::InterruptClosed { rejected, .. } => {
                for action in rejected {
                    self.reply(*action, false, ToolStatus::Error, |slot| {
                        preview::timed_out(&slot.tool, &slot.call_id)
                    });
                }
            }
            Event::RunStarted { input, .. } => {
                self.flush();
                self.settled.push(Message::User {
                    content: input.clone(),
                });
            }
            Event::ModelReplied {
                text,
                calls,
                carried,
                ..
            } => self.model_replied(text, calls, carried.clone()),
            Event::Answered { decisions, .. } => {
                for decided in decisions {
                    self.decided(decided.action_id, &decided.decision);
                }
            }
            Event::ActionFinished {
                action,
                outcome: Finish::Done { content },
                ..
            } => self.done(*action, content),
            Event::ActionFinished {
                action,
                outcome: Finish::Failed { error },
                ..
            } => self.failed(*action, error),
            Event::ActionUnknown {
                action,
                reason,
                then: AfterUnknown::GiveUp,
                ..
            } => {
                self.reply(*action, true, ToolStatus::Error, |slot| {
                    preview::given_up(&slot.tool, reason)
                });
            }
            Event::ActionLookedUp {
                action,
                lookup: Lookup::Committed { receipt },
                then: AfterLookup::Settled,
                ..
            } => {
                self.done(*action, &content_of(receipt));
            }
            Event::ActionLookedUp {
                action,
                then: AfterLookup::NotDone,
                ..
            } => self.reply(*action, false, ToolStatus::Error, |slot| {
                preview::not_executed(&slot.tool, &slot.call_id)
            }),
            Event::LateOutcome {
                action,
                outcome,
                then: AfterLate::Settled,
                ..
            } => match outcome {
                Outcome::Done { content } => self.done(*action, content),
                Outcome::Failed { error } => self.failed(*action, error),
                Outcome::Unknown { .. } => {}
            },
            Event::ActionStarted { action, .. } => {
                if let Some(slot) = self.slot(*action) {
                    slot.started = true;
                }
            }
            Event::CompensationBound {
                action,
                compensation,
            } => {
                self.compensations.insert(*compensation, *action);
            }
            Event::StopRequested { stop, closed } => {
                for action in closed {
                    self.not_executed(*action, matches!(stop, Stop::TimedOut { .. }));
                }
            }
            Event::RunEnded { .. } => {
                let open: Vec<ActionId> = self
                    .turn
                    .iter()
                    .filter(|slot| slot.reply.is_none())
                    .filter_map(|slot| slot.action)
                    .collect();
                for action in open {
                    self.not_executed(action, false);
                }
                self.flush();
                self.compensations.clear();
            }
            Event::ThreadCreated { .. }
            | Event::Forked { .. }
            | Event::OutputHeld { .. }
            | Event::ModelFailed { .. }
            | Event::InterruptRaised(_)
            | Event::ActionUnknown { .. }
            | Event::ActionWithheld { .. }
            | Event::ActionLookedUp { .. }
            | Event::LateOutcome { .. }
            | Event::WarrantVoided { .. }
            | Event::Repinned { .. }
            | Event::Restored { .. }
            | Event::Paused
            | Event::Continued
            | Event::FrameOpened { .. }
            | Event::FrameClosed { .. }
            | Event::StepStarted { .. }
            | Event::Suspended { .. }
            | Event::Slept { .. }
            | Event::FrameWoken { .. }
            | Event::Woken { .. }
            | Event::Yielded { .. }
            | Event::GrantKept(_)
            | Event::GrantUsed { .. }
            | Event::GrantRevoked { .. } => {}
        }
    }

    /// The run was stopped before the call had a result.
    fn not_executed(&mut self, action: ActionId, timed_out: bool) {
        let started = self.slot(action).is_some_and(|slot| slot.started);
        self.reply(action, started, ToolStatus::Error, |slot| {
            if slot.delegated {
                preview::given_up(
                    &slot.tool,
                    "the subagent was stopped midway; what it did until then stands",
                )
            } else if slot.started {
                preview::given_up(&slot.tool, "the run was stopped before it ended")
            } else if timed_out {
                preview::timed_out(&slot.tool, &slot.call_id)
            } else {
                preview::not_executed(&slot.tool, &slot.call_id)
            }
        });
    }

    fn model_replied(&mut self, text: &str, calls: &[Called], carried: Option<Box<Carried>>) {
        self.flush();
        let tool_calls = calls.iter().map(|called| called.call.clone()).collect();
        self.settled.push(Message::Assistant {
            content: text.to_owned(),
            tool_calls,
            carried,
        });
        self.turn = calls
            .iter()
            .map(|called| {
                let (action, reply) = match &called.fate {
                    Fate::Action { id, .. } => (Some(*id), None),
                    Fate::Refused { message } => {
                        let content = message.clone();
                        (
                            None,
                            Some(Reply {
                                executed: false,
                                status: ToolStatus::Error,
                                content,
                            }),
                        )
                    }
                };
                let (call_id, tool) = (called.call.id.clone(), called.call.name.clone());
                Slot {
                    action,
                    call_id,
                    tool,
                    edited: None,
                    started: false,
                    delegated: false,
                    reply,
                }
            })
            .collect();
    }

    fn decided(&mut self, action: ActionId, decision: &Decision) {
        match decision {
            Decision::Approve { .. } | Decision::Compensate | Decision::Answer { .. } => {}
            Decision::NotCommitted => {
                // Whether it is tried again or not, what was tried so far did not happen.
                if !self.compensations.contains_key(&action)
                    && let Some(slot) = self.slot(action)
                {
                    slot.started = false;
                }
            }
            Decision::Edit { edited_action } => {
                if let Some(slot) = self.slot(action) {
                    slot.edited = Some(edited_action.args.clone());
                }
            }
            Decision::Reject { .. } if self.compensations.contains_key(&action) => {
                self.reply(action, true, ToolStatus::Error, |slot| {
                    preview::not_undone(&slot.tool, action)
                });
            }
            Decision::Reject { message } => {
                // Of a call that was made nobody can say that it was not executed.
                let started = self.slot(action).is_some_and(|slot| slot.started);
                self.reply(action, started, ToolStatus::Error, |slot| {
                    if started {
                        preview::abandoned(&slot.tool, message.as_deref())
                    } else {
                        preview::rejection(&slot.tool, &slot.call_id, message.as_deref())
                    }
                });
            }
            Decision::Respond { message } => {
                self.reply(action, false, ToolStatus::Success, |_| message.clone());
            }
            Decision::Committed { result } => {
                // A person who knows that it happened knows better than a failed attempt.
                if let Some(slot) = self.slot(action)
                    && slot
                        .reply
                        .as_ref()
                        .is_some_and(|reply| reply.status == ToolStatus::Error)
                {
                    slot.reply = None;
                }
                self.done(action, &content_of(result));
            }
        }
    }
}
