//! A run as a chat: what is seen of it becomes frames of one of the two formats.
//!
//! Neither format can take text back. So where the agent's words are looked at for a request to confirm, text is sent
//! once it is committed; elsewhere it is sent as it comes.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "only for showing: what is not named here is nothing to a chat"
)]

use std::collections::BTreeMap;

use holdpoint_core::{
    Action, ActionId, AfterLookup, AfterModel, AfterUnknown, Entry, Event as Happened, Finish,
    FramePath, Lookup, RunOutcome, State, Timestamp, content_of,
};
use serde_json::Value;

use crate::{
    follow::Seen,
    frames::{A2ui, CallStatus, Event, InterruptState, Legacy, beat},
    hub::Speech,
};

/// Which format a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Legacy,
    A2ui,
}

/// When a model's words are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// As they come.
    Said,
    /// Once they are committed.
    Committed,
}

#[derive(Debug)]
enum Encoder {
    Legacy(Legacy),
    A2ui(A2ui),
}

/// Tells one run.
#[derive(Debug)]
pub(crate) struct Teller {
    encoder: Encoder,
    when: When,
    /// What was sent of the message that is being said.
    sent: String,
    /// What was said of it and not sent, as it came.
    tokens: Vec<String>,
    /// Whether a message was sent before.
    spoke: bool,
    out: Vec<u8>,
    now: Timestamp,
}

impl Teller {
    pub(crate) fn new(format: Format, when: When) -> Self {
        Self {
            encoder: match format {
                Format::Legacy => Encoder::Legacy(Legacy::default()),
                Format::A2ui => Encoder::A2ui(A2ui::default()),
            },
            when,
            sent: String::new(),
            tokens: Vec::new(),
            spoke: false,
            out: Vec::new(),
            now: Timestamp::default(),
        }
    }

    /// The time of what follows.
    pub(crate) const fn at(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The bytes that are to be sent now.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Whether text waits to be sent with what follows.
    pub(crate) const fn waits(&self) -> bool {
        match &self.encoder {
            Encoder::Legacy(_) => false,
            Encoder::A2ui(a2ui) => a2ui.waiting() > 0,
        }
    }

    /// Sends text that waits, if it is time.
    pub(crate) fn tick(&mut self) {
        if let Encoder::A2ui(a2ui) = &mut self.encoder {
            a2ui.tick(&mut self.out, self.now);
        }
    }

    /// A sign of life.
    pub(crate) fn beat(&mut self) {
        if let Encoder::A2ui(a2ui) = &mut self.encoder {
            a2ui.flush(&mut self.out, self.now);
        }
        beat(&mut self.out);
    }

    /// Tells what is seen. `before` is the thread as it was before an event.
    pub(crate) fn see(&mut self, seen: &Seen, before: &State) {
        match seen {
            Seen::Event(entry) => self.event(entry, before),
            Seen::Said(speech) if speech.frame.is_root() => self.said(&speech.text),
            Seen::Reset(speech) if speech.frame.is_root() => self.reset(speech),
            Seen::Said(_) | Seen::Reset(_) => {}
        }
    }

    /// The run waits for this.
    pub(crate) fn interrupt(&mut self, state: &InterruptState) {
        match &mut self.encoder {
            Encoder::Legacy(legacy) => legacy.interrupt(&mut self.out, state),
            Encoder::A2ui(a2ui) => {
                a2ui.send(&mut self.out, self.now, &Event::Interrupt(state.into()));
            }
        }
    }

    /// Something went wrong.
    pub(crate) fn error(&mut self, code: &str, message: &str) {
        match &mut self.encoder {
            Encoder::Legacy(legacy) => legacy.error(&mut self.out, message),
            Encoder::A2ui(a2ui) => {
                a2ui.send(&mut self.out, self.now, &Event::Error { code, message });
            }
        }
    }

    /// How far it is. The legacy format has no word for that.
    pub(crate) fn progress(&mut self, message: &str) {
        self.named(&Event::Progress {
            step: message,
            current: None,
            total: None,
        });
    }

    /// Nothing follows.
    pub(crate) fn done(&mut self) {
        match &mut self.encoder {
            Encoder::Legacy(legacy) => legacy.done(&mut self.out),
            Encoder::A2ui(a2ui) => a2ui.send(&mut self.out, self.now, &Event::Done),
        }
    }

    fn named(&mut self, event: &Event<'_>) {
        if let Encoder::A2ui(a2ui) = &mut self.encoder {
            a2ui.send(&mut self.out, self.now, event);
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        // Two messages are two paragraphs.
        let between = if std::mem::take(&mut self.spoke) {
            "\n\n"
        } else {
            ""
        };
        match &mut self.encoder {
            Encoder::Legacy(legacy) => {
                legacy.text(&mut self.out, between);
                legacy.text(&mut self.out, text);
            }
            Encoder::A2ui(a2ui) => a2ui.text(&mut self.out, self.now, text),
        }
        self.sent.push_str(text);
    }

    fn said(&mut self, text: &str) {
        match self.when {
            When::Said => self.text(text),
            When::Committed => self.tokens.push(text.to_owned()),
        }
    }

    fn reset(&mut self, speech: &Speech) {
        match self.when {
            When::Said => self.become_text(&speech.text),
            When::Committed => self.tokens = vec![speech.text.clone()],
        }
    }

    /// The message is this. What was sent of it stays; where that is something else, the client is told.
    fn become_text(&mut self, text: &str) {
        let rest = match text.strip_prefix(self.sent.as_str()) {
            Some(rest) => rest.to_owned(),
            None => {
                self.break_off();
                text.to_owned()
            }
        };
        self.text(&rest);
    }

    fn break_off(&mut self) {
        let again = "the answer broke off and begins again";
        match &mut self.encoder {
            Encoder::Legacy(legacy) => {
                legacy.text(&mut self.out, "\n");
                legacy.error(&mut self.out, again);
                legacy.text(&mut self.out, "\n");
            }
            Encoder::A2ui(a2ui) => {
                a2ui.begin_message(&mut self.out, self.now);
                let event = Event::Progress {
                    step: "message_reset",
                    current: None,
                    total: None,
                };
                a2ui.send(&mut self.out, self.now, &event);
            }
        }
        self.sent.clear();
    }

    /// The message is committed.
    fn message(&mut self, text: &str) {
        let tokens = std::mem::take(&mut self.tokens);
        match self.when {
            When::Said => self.become_text(text),
            When::Committed if tokens.concat() == text => {
                tokens.iter().for_each(|token| self.text(token));
            }
            When::Committed => self.text(text),
        }
        if let Encoder::A2ui(a2ui) = &mut self.encoder {
            a2ui.begin_message(&mut self.out, self.now);
        }
        self.spoke |= !self.sent.is_empty();
        self.sent.clear();
    }

    fn event(&mut self, entry: &Entry, before: &State) {
        let actions = &before.actions;
        match &entry.event {
            Happened::ModelReplied { frame, text, .. } if frame.is_root() => self.message(text),
            Happened::ModelReplied { text, .. } if !text.is_empty() => {
                self.named(&Event::Thinking { content: text });
            }
            Happened::ModelFailed { error, then, .. } => match then {
                AfterModel::RetryAt { .. } => self.progress("the model is asked again"),
                AfterModel::SleepUntil { .. } => {
                    self.progress("the model's provider wants to be left alone for a while");
                }
                AfterModel::Ask => self.error("model_failed", error),
            },
            Happened::ActionStarted { action, .. } => {
                if let Some(action) = actions.get(action) {
                    self.call_begins(action);
                }
            }
            Happened::ActionFinished {
                action, outcome, ..
            } => match outcome {
                Finish::Done { content } => self.call_ends(actions, *action, Ok(content)),
                Finish::Failed { error } => self.call_ends(actions, *action, Err(error)),
            },
            Happened::ActionLookedUp {
                action,
                lookup: Lookup::Committed { receipt },
                then: AfterLookup::Settled,
                ..
            } => self.call_ends(actions, *action, Ok(&content_of(receipt))),
            Happened::ActionUnknown {
                action,
                reason,
                then: AfterUnknown::GiveUp,
                ..
            } => self.call_ends(actions, *action, Err(reason)),
            Happened::ActionUnknown { .. } => {
                self.progress("the outcome of a call is being found out")
            }
            Happened::ActionWithheld { .. } => self.progress("a call is tried again"),
            Happened::FrameOpened { frame, .. } => self.switch(frame, &parent_of(frame, before)),
            Happened::FrameClosed { frame } => {
                let (to, from) = (parent_of(frame, before), name_of(frame, before));
                self.named(&Event::AgentSwitch {
                    from_agent: &from,
                    to_agent: &to,
                });
            }
            Happened::RunEnded {
                outcome: RunOutcome::Failed { code, message },
            } => self.error(code, message),
            Happened::RunEnded {
                outcome: RunOutcome::Cancelled,
            } => self.error("cancelled", "the run was cancelled"),
            Happened::RunEnded {
                outcome: RunOutcome::TimedOut,
            } => self.error("timeout", "nobody answered in time"),
            _ => {}
        }
    }

    fn switch(&mut self, frame: &FramePath, from: &str) {
        let agent = frame.lineage().last().unwrap_or_default().to_owned();
        self.named(&Event::AgentSwitch {
            from_agent: from,
            to_agent: &agent,
        });
    }

    fn call_begins(&mut self, action: &Action) {
        let args = action.params.to_value();
        if let Some(code) = args.get("code").and_then(Value::as_str) {
            let language = args.get("language").and_then(Value::as_str);
            self.named(&Event::CodeBlock {
                language: language.unwrap_or_default(),
                code,
            });
        }
        self.named(&Event::ToolCall {
            id: &action.call_id,
            name: &action.tool.name,
            args: &args,
            status: CallStatus::Calling,
        });
    }

    fn call_ends(
        &mut self,
        actions: &BTreeMap<ActionId, Action>,
        id: ActionId,
        outcome: Result<&String, &String>,
    ) {
        let Some(action) = actions.get(&id) else {
            return;
        };
        let (result, status) = match outcome {
            Ok(content) => (content, CallStatus::Success),
            Err(error) => (error, CallStatus::Error),
        };
        self.named(&Event::ToolCall {
            id: &action.call_id,
            name: &action.tool.name,
            args: &action.params.to_value(),
            status,
        });
        self.named(&Event::ToolResult {
            id: &action.call_id,
            name: &action.tool.name,
            result,
            is_error: status == CallStatus::Error,
        });
    }
}

fn name_of(frame: &FramePath, state: &State) -> String {
    let own = || state.agent.clone();
    frame.lineage().last().map_or_else(own, str::to_owned)
}

fn parent_of(frame: &FramePath, state: &State) -> String {
    frame
        .parent()
        .map_or_else(|| state.agent.clone(), |parent| name_of(&parent, state))
}
