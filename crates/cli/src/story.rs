//! What happened, in words: one line for each event, and the details that a reader may want below it.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "only for showing: what has no words of its own is shown by its name"
)]

use std::collections::{HashMap, HashSet};

use holdpoint_core::{
    ActionId, AfterLate, AfterLookup, AfterModel, AfterUnknown, Artifact, Decided, Decision, Event,
    Fate, Finish, Flag, Interrupt, LimitKind, Lookup, Outcome, RunOutcome, State, Stop, Subject,
    Timestamp, ToolCall, Verdict, explain_cause,
};

use crate::{
    safe_text::{GUTTER, line},
    terminal, zone,
};

/// Knows what actions are called, which events do not repeat.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: HashMap<ActionId, String>,
    /// The actions that were seen to take steps.
    stepped: HashSet<ActionId>,
}

impl Names {
    /// The actions that are open in a state.
    pub(crate) fn of(state: &State) -> Self {
        let actions = || state.actions.values();
        let mut names = Self {
            names: actions()
                .map(|action| (action.id, action.shown_name()))
                .collect(),
            stepped: actions()
                .filter(|action| action.is_entered())
                .map(|action| action.id)
                .collect(),
        };
        for interrupt in state.interrupts.values() {
            names.note_asks(interrupt);
        }
        names
    }

    /// Takes in the actions that an event introduces.
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::ModelReplied { calls, .. } => {
                for called in calls {
                    if let Fate::Action { id, .. } = &called.fate {
                        self.names.insert(*id, called.call.name.clone());
                    }
                }
            }
            Event::CompensationBound {
                action,
                compensation,
            } => {
                let name = format!("undo of {}", self.get(*action));
                self.names.insert(*compensation, name);
            }
            Event::StepStarted {
                action, step, name, ..
            } => {
                self.stepped.insert(*action);
                let name = format!("{}.{name}", self.get(*action));
                self.names.insert(*step, name);
            }
            Event::InterruptRaised(interrupt) => self.note_asks(interrupt),
            _ => {}
        }
    }

    fn note_asks(&mut self, interrupt: &Interrupt) {
        for ask in &interrupt.asks {
            let name = match &ask.subject {
                Subject::Model => "the model".to_owned(),
                Subject::Node { node, .. } => node.clone(),
                Subject::Question { name, prompt, .. } if name.is_empty() => prompt.title.clone(),
                Subject::Question { name, .. } => name.clone(),
                Subject::Confirmation { .. } => "what the model asked".to_owned(),
                Subject::Output { .. } => "what the model said".to_owned(),
                Subject::Restored { .. } => "the restored run".to_owned(),
                Subject::Action { .. } | Subject::Effect { .. } => continue,
            };
            self.names.insert(ask.action_id, name);
        }
    }

    fn takes_steps(&self, id: ActionId) -> bool {
        self.stepped.contains(&id)
    }

    /// An action's name, safe to print.
    pub(crate) fn get(&self, id: ActionId) -> String {
        self.names
            .get(&id)
            .map_or_else(|| id.to_string(), |name| line(name))
    }
}

/// An event in one line, safe to print.
pub(crate) fn tell(event: &Event, names: &Names) -> String {
    match event {
        Event::ThreadCreated { agent, session, .. } => {
            format!("thread created: {}/{}", line(agent), line(session))
        }
        Event::Forked { parent, at, .. } => format!("goes on from {parent} after event {at}"),
        Event::Restored {
            backup,
            interrupt,
            held,
            doubted,
        } => restored(*backup, interrupt.is_some(), held.len(), doubted.len()),
        Event::RunStarted {
            run, plan_version, ..
        } => format!("run started: {run}, plan {plan_version}"),
        Event::ModelStarted { attempt, .. } => format!("model asked{}", retry(*attempt)),
        Event::ModelReplied { calls, model, .. } => {
            let who = if model.is_empty() {
                "model".to_owned()
            } else {
                format!("model `{}`", line(model))
            };
            match calls.len() {
                0 => format!("{who} replied"),
                1 => format!("{who} replied, with a call"),
                count => format!("{who} replied, with {count} calls"),
            }
        }
        Event::OutputHeld { flags, .. } => {
            let why: Vec<String> = flags.iter().map(|flag| line(&flag.reason)).collect();
            format!("what the model said is held back: {}", why.join("; "))
        }
        Event::ModelFailed { error, then, .. } => {
            let then = match then {
                AfterModel::RetryAt { .. } => "trying again".to_owned(),
                AfterModel::SleepUntil { at } => format!("sleeping until {}", zone::short(*at)),
                AfterModel::Ask => "asking a person".to_owned(),
            };
            format!("model failed: {}; {then}", line(error))
        }
        Event::InterruptRaised(interrupt) => {
            let about: Vec<String> = interrupt
                .asks
                .iter()
                .map(|ask| names.get(ask.action_id))
                .collect();
            let cause = explain_cause(interrupt.cause);
            format!("asked {}: {cause} ({})", interrupt.id, about.join(", "))
        }
        Event::Answered {
            interrupt,
            status,
            decisions,
            ..
        } => {
            let decisions: Vec<String> = decisions
                .iter()
                .map(|decided| {
                    let name = names.get(decided.action_id);
                    format!("{} {name}", decided.decision.kind())
                })
                .collect();
            let status = status.as_str();
            format!("answered {interrupt}, {status}: {}", decisions.join(", "))
        }
        Event::InterruptClosed {
            interrupt,
            status,
            reason,
            ..
        } => format!("closed {interrupt}, {}: {}", status.as_str(), line(reason)),
        Event::ActionStarted {
            action, attempt, ..
        } => format!("started {}{}", names.get(*action), retry(*attempt)),
        Event::ActionFinished {
            action, outcome, ..
        } => match outcome {
            Finish::Done { .. } => format!("finished {}", names.get(*action)),
            Finish::Failed { error } => {
                format!(
                    "failed without effect {}: {}",
                    names.get(*action),
                    line(error)
                )
            }
        },
        Event::ActionUnknown {
            action,
            reason,
            then,
            ..
        } => {
            let then = match then {
                AfterUnknown::RetryAt { .. } if names.takes_steps(*action) => {
                    "going on after the steps that are recorded"
                }
                AfterUnknown::RetryAt { .. } => "trying again with the same key",
                AfterUnknown::LookUpAt { .. } => "looking it up",
                AfterUnknown::Ask => "asking a person",
                AfterUnknown::GiveUp => "giving it up",
            };
            format!(
                "outcome unknown of {}: {}; {then}",
                names.get(*action),
                line(reason)
            )
        }
        Event::ActionWithheld { action, reason, .. } => {
            format!("not made {}: {}", names.get(*action), line(reason))
        }
        Event::ActionLookedUp {
            action,
            lookup,
            then,
            ..
        } => {
            let found = match lookup {
                Lookup::Committed { .. } => "committed".to_owned(),
                Lookup::NotFound => "not found".to_owned(),
                Lookup::Partial { .. } => "partly done".to_owned(),
                Lookup::Unknown { .. } => "unknown".to_owned(),
            };
            let then = match then {
                AfterLookup::Settled => "recorded",
                AfterLookup::RetryAt { .. } => "trying again with the same key",
                AfterLookup::NotDone => "leaving it undone",
                AfterLookup::LookUpAt { .. } => "looking again",
                AfterLookup::Ask => "asking a person",
            };
            format!("looked up {}: {found}; {then}", names.get(*action))
        }
        Event::LateOutcome { action, then, .. } => {
            let then = match then {
                AfterLate::Recorded => "it changes nothing",
                AfterLate::Settled => "it settles the call",
                AfterLate::Noted => "a person will see both",
                AfterLate::Contradicts { .. } => "it contradicts what was settled, asking a person",
            };
            format!("late outcome of {}; {then}", names.get(*action))
        }
        Event::WarrantVoided { action, reason, .. } => {
            format!("no longer allowed {}: {}", names.get(*action), line(reason))
        }
        Event::CompensationBound { action, .. } => format!("undoing {}", names.get(*action)),
        Event::Repinned { definition, .. } => format!("definition changed to {definition}"),
        Event::StopRequested { stop, .. } => format!("stopping: {}", why(stop)),
        Event::Paused => "paused: nothing starts until it is continued".to_owned(),
        Event::Continued => "continued".to_owned(),
        Event::FrameOpened { frame, .. } => format!("task given to {}", line(frame.as_str())),
        Event::FrameClosed { frame } => format!("task done by {}", line(frame.as_str())),
        Event::StepStarted { step, attempt, .. } => {
            format!("started {}{}", names.get(*step), retry(*attempt))
        }
        Event::Suspended { action, name, .. } => {
            format!("left {} to ask `{}`", names.get(*action), line(name))
        }
        Event::Slept { action, name, .. } => {
            format!("left {} to sleep (`{}`)", names.get(*action), line(name))
        }
        Event::FrameWoken { .. } => "woke, to call the model again".to_owned(),
        Event::Woken { action } => format!("woke {}", names.get(*action)),
        Event::Yielded { action } => format!("left {} between two steps", names.get(*action)),
        Event::GrantKept(grant) => format!("grant {} is counted here", grant.id),
        Event::GrantUsed { grant, action, .. } => format!("grant {grant} used for {action}"),
        Event::GrantRevoked { grant } => format!("grant {grant} revoked"),
        Event::RunEnded { outcome } => match outcome {
            RunOutcome::Finished => "run finished".to_owned(),
            RunOutcome::Failed { code, message } => {
                format!("run failed: {} ({})", line(message), line(code))
            }
            RunOutcome::Cancelled => "run cancelled".to_owned(),
            RunOutcome::TimedOut => "run cancelled: nobody answered in time".to_owned(),
            _ => "run ended".to_owned(),
        },
        _ => event.name().to_owned(),
    }
}

/// That a thread was found in a backup, and what follows.
fn restored(backup: Timestamp, asks: bool, held: usize, doubted: usize) -> String {
    let mut told = format!("restored from a backup of {}", zone::short(backup));
    if doubted > 0 {
        told.push_str(&format!("; in doubt: {doubted}"));
    }
    if held > 0 {
        told.push_str(&format!("; no longer asked or allowed: {held}"));
    }
    if asks {
        told.push_str("; it stands still until a person says that it goes on");
    }
    told
}

/// What else an event says, in lines that are safe to print.
pub(crate) fn details(event: &Event) -> Vec<String> {
    let quoted = |text: &str| -> Vec<String> {
        if text.is_empty() {
            return Vec::new();
        }
        terminal::block(text, GUTTER)
            .lines()
            .map(str::to_owned)
            .collect()
    };
    match event {
        Event::RunStarted {
            input, definition, ..
        } => {
            let mut lines = quoted(input);
            lines.push(format!("definition {definition}"));
            lines
        }
        Event::ModelReplied { text, calls, .. } => {
            let mut lines = quoted(text);
            for called in calls {
                let call = &called.call;
                let fate = match &called.fate {
                    Fate::Action {
                        id,
                        grant: Some(used),
                        ..
                    } => format!(
                        "{id}, allowed by {} of {}",
                        used.grant,
                        line(&used.by.to_string())
                    ),
                    Fate::Action {
                        id, verdict, rule, ..
                    } => {
                        let rule = rule.as_ref().map(|rule| format!(" ({})", line(rule)));
                        let rule = rule.unwrap_or_default();
                        match verdict {
                            Verdict::Ask(terms) => {
                                let flags = terms.flags.iter().map(flagged);
                                let flags: String = flags.collect();
                                format!("{id}, a person is asked{rule}{flags}")
                            }
                            Verdict::Allow => format!("{id}, allowed{rule}"),
                            Verdict::Deny => format!("{id}, denied{rule}"),
                        }
                    }
                    Fate::Refused { message } => format!("not done: {}", line(message)),
                };
                lines.push(format!("{} {}", line(&call.name), line(&call.arguments)));
                lines.push(format!("  → {fate}"));
            }
            lines
        }
        Event::OutputHeld { reply, flags, .. } => {
            let mut lines = quoted(&reply.text);
            let call = |call: &ToolCall| format!("{} {}", line(&call.name), line(&call.arguments));
            lines.extend(reply.calls.iter().map(call));
            let why = |flag: &Flag| format!("  {}: {}", line(&flag.guardrail), line(&flag.reason));
            lines.extend(flags.iter().map(why));
            lines
        }
        Event::InterruptRaised(interrupt) => {
            let changes = interrupt.changes.iter();
            changes
                .map(|change| format!("- {}", line(change)))
                .collect()
        }
        Event::Answered { decisions, .. } => decisions.iter().filter_map(words).collect(),
        Event::ActionStarted { key, epoch, .. } => vec![format!("key {key}, epoch {epoch}")],
        Event::StepStarted {
            key, epoch, params, ..
        } => vec![
            line(params.canonical()),
            format!("key {key}, epoch {epoch}"),
        ],
        Event::FrameOpened { input, .. } => quoted(input),
        Event::ActionFinished {
            outcome: Finish::Done { content },
            artifact,
            ..
        } => kept(artifact.as_deref(), quoted(content)),
        Event::ActionFinished { artifact, .. } => kept(artifact.as_deref(), Vec::new()),
        Event::ActionLookedUp {
            lookup: Lookup::Committed { receipt },
            artifact,
            ..
        } => kept(artifact.as_deref(), quoted(&receipt.to_string())),
        Event::LateOutcome {
            outcome, artifact, ..
        } => {
            let said = match outcome {
                Outcome::Done { content } => quoted(content),
                Outcome::Failed { error } => quoted(error),
                Outcome::Unknown { .. } => Vec::new(),
            };
            kept(artifact.as_deref(), said)
        }
        _ => Vec::new(),
    }
}

/// With where all of it is, if only both ends are here.
fn kept(artifact: Option<&Artifact>, mut said: Vec<String>) -> Vec<String> {
    said.extend(artifact.map(|artifact| {
        let Artifact { address, size, .. } = artifact;
        format!("kept apart: {address}, {size} bytes")
    }));
    said
}

fn words(decided: &Decided) -> Option<String> {
    match &decided.decision {
        Decision::Approve { grant: None } | Decision::NotCommitted | Decision::Compensate => None,
        Decision::Approve { grant: Some(_) } => decided
            .grant
            .as_ref()
            .map(|grant| format!("gave {}", grant.id)),
        Decision::Answer { value } => Some(format!("value {}", line(&value.to_string()))),
        Decision::Edit { edited_action } => Some(format!(
            "{} {}",
            line(&edited_action.name),
            line(edited_action.args.canonical())
        )),
        Decision::Reject { message } => message.as_ref().map(|text| format!("“{}”", line(text))),
        Decision::Respond { message } => Some(format!("“{}”", line(message))),
        Decision::Committed { result } => Some(format!("result {}", line(&result.to_string()))),
    }
}

/// What a guardrail found about a call.
fn flagged(flag: &Flag) -> String {
    format!("; `{}`: {}", line(&flag.guardrail), line(&flag.reason))
}

fn retry(attempt: u32) -> String {
    if attempt > 1 {
        format!(", attempt {attempt}")
    } else {
        String::new()
    }
}

fn why(stop: &Stop) -> String {
    match stop {
        Stop::Cancelled => "it was cancelled".to_owned(),
        Stop::Limit { limit } => match limit {
            LimitKind::Turns => "the limit of model turns is reached".to_owned(),
            LimitKind::Calls => "the limit of tool calls is reached".to_owned(),
            LimitKind::Time => "the limit of working time is reached".to_owned(),
        },
        Stop::Loop { tool, rejections } => {
            format!(
                "the same call of {} was rejected {rejections} times",
                line(tool)
            )
        }
        Stop::TimedOut { interrupt } => format!("nobody answered {interrupt} in time"),
        Stop::ModelUnavailable { error } => format!("the model does not answer: {}", line(error)),
        _ => "a stop was requested".to_owned(),
    }
}
