//! May this happen, and what follows? One pure function over the head.
//!
//! Every command either yields events or is refused and changes nothing. Commands carry everything that core cannot
//! know: ids and time, the policy's verdict, what a schema check found, what the tool that is about to be called is.

mod answer;
mod breakpoint;
mod command;
mod confirm;
mod effect;
mod fork;
mod frame;
mod grant;
mod guard;
mod late;
mod model;
mod outside;
mod restate;
mod restore;
mod run;
mod step;
mod timer;

pub use command::{
    Command, Judged, JudgedCall, ModelTrouble, Past, Proof, Reply, RestatedCall, SettledAs,
    Supersede, Suspension, ToolNow,
};

use crate::{
    Action, Artifact, Event, Outcome, Principal, Refusal, Seed, Span, State, Timestamp, apply,
    apply::is_wanted,
};

/// The longest text from outside that is kept in a head or an event's reason.
const MAX_REASON: usize = 1_024;

/// Cuts a text from outside to a bounded length, at a character.
fn clip(text: &str) -> String {
    clip_to(text, MAX_REASON)
}

/// At most so many characters of a text, and one that says that there were more.
fn clip_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// How a call ended, and what is kept of that apart.
#[derive(Debug)]
struct Reported {
    outcome: Outcome,
    artifact: Option<Box<Artifact>>,
}

impl From<Outcome> for Reported {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            artifact: None,
        }
    }
}

/// How often a model call, a call that may be repeated, or a lookup is tried before a person is asked.
pub const MAX_ATTEMPTS: u32 = 3;

/// How often one call may be rejected in a frame before the run gives up on its model.
pub const MAX_REJECTIONS: u32 = 3;

/// Who commands, and when; and the randomness for what the command creates.
#[derive(Debug, Clone)]
pub struct Context {
    /// The time, by the store's clock.
    pub now: Timestamp,
    /// Who commands.
    pub by: Principal,
    /// Where fresh ids and salts come from.
    pub seed: Seed,
}

/// Decides whether `command` may happen to a thread in this `state`, and what follows.
///
/// No events means that everything asked for is so already.
///
/// # Errors
///
/// A [`Refusal`] that says why not. Nothing has changed.
pub fn decide(
    state: &State,
    command: Command,
    context: &mut Context,
) -> Result<Vec<Event>, Refusal> {
    decide_on(state.clone(), command, context).map(|(_, events)| events)
}

/// As [`decide`], and returns the state after the events as well, so that they need not be applied again.
pub(crate) fn decide_on(
    state: State,
    command: Command,
    context: &mut Context,
) -> Result<(State, Vec<Event>), Refusal> {
    let now = context.now;
    let watched = breakpoint::watched(&state);
    let mut draft = Draft {
        state,
        events: Vec::new(),
        now,
        context,
    };
    match command {
        Command::StartRun {
            thread,
            tenant,
            agent,
            session,
            definition,
            input,
            limits,
            breakpoints,
            supersede,
        } => {
            run::start(
                &mut draft,
                run::Start {
                    thread,
                    tenant,
                    agent,
                    session,
                    definition,
                    input,
                    limits,
                    breakpoints,
                    supersede,
                },
            )?;
        }
        Command::Fork {
            thread,
            session,
            from,
        } => fork::fork(&mut draft, thread, session, &from)?,
        Command::Ask {
            thread,
            tenant,
            workflow,
            node,
            kind,
            prompt,
            expiry,
        } => {
            let asker = outside::Asker {
                thread,
                tenant,
                workflow,
                node,
            };
            outside::ask(&mut draft, asker, kind, prompt, expiry)?;
        }
        Command::Withdraw { interrupt } => outside::withdraw(&mut draft, interrupt)?,
        Command::Cancel { run } => run::cancel(&mut draft, run)?,
        Command::Pause { run } => run::pause(&mut draft, run, true)?,
        Command::Continue { run } => run::pause(&mut draft, run, false)?,
        Command::Tick => timer::tick(&mut draft),
        Command::BeginStep {
            action,
            attempt,
            name,
            effect,
            params,
            epoch,
        } => {
            let wish = step::Wish {
                name,
                effect,
                params,
            };
            step::begin(&mut draft, action, attempt, wish, epoch)?;
        }
        Command::Suspend {
            action,
            attempt,
            name,
            on,
        } => step::suspend(&mut draft, action, attempt, name, on)?,
        Command::Yield { action, attempt } => step::give_way(&mut draft, action, attempt)?,
        Command::UseGrant {
            thread,
            grant,
            action,
            caller,
        } => grant::reserve(&mut draft, thread, &grant, action, caller)?,
        Command::RevokeGrant {
            thread,
            given,
            grant,
        } => grant::revoke(&mut draft, thread, given, grant)?,
        Command::StartModel { frame, epoch } => model::start(&mut draft, frame, epoch)?,
        Command::ModelReplied {
            frame,
            attempt,
            text,
            calls,
            mode,
            usage,
            model,
            carried,
            confirm,
        } => {
            let reply = model::Replied {
                text,
                calls,
                mode,
                usage,
                model,
                carried,
                confirm,
            };
            model::replied(&mut draft, frame, attempt, reply)?;
        }
        Command::HoldOutput {
            frame,
            attempt,
            reply,
            flags,
        } => guard::hold(&mut draft, frame, attempt, reply, flags)?,
        Command::ModelFailed {
            frame,
            attempt,
            trouble,
        } => model::failed(&mut draft, &frame, attempt, &trouble)?,
        Command::ModelLost { frame, attempt } => model::lost(&mut draft, &frame, attempt)?,
        Command::StartAction {
            action,
            epoch,
            proof,
        } => effect::start(&mut draft, action, epoch, &proof)?,
        Command::ActionEnded {
            action,
            attempt,
            outcome,
            artifact,
            past,
        } => {
            let reported = Reported { outcome, artifact };
            effect::ended(&mut draft, action, attempt, reported, past)?;
        }
        Command::ActionWithheld {
            action,
            attempt,
            reason,
        } => effect::withheld(&mut draft, action, attempt, reason)?,
        Command::ActionOutdated {
            action,
            attempt,
            reason,
            shown,
        } => effect::outdated(&mut draft, action, attempt, reason, shown)?,
        Command::ActionOrphaned { action, attempt } => {
            effect::orphaned(&mut draft, action, attempt)?
        }
        Command::LookedUp {
            action,
            lookup,
            artifact,
        } => effect::looked_up(&mut draft, action, lookup, artifact)?,
        Command::Answer { answers } => answer::answer(&mut draft, &answers)?,
        Command::Restate {
            definition,
            interrupt,
            calls,
        } => {
            restate::restate(&mut draft, definition, interrupt, calls)?;
        }
        Command::Restore { backup, spelt } => restore::restore(&mut draft, backup, &spelt)?,
    }
    frame::conclude(&mut draft);
    // After the frames, since the end of one is the end of a call.
    breakpoint::stop_after(&mut draft, watched);
    outside::conclude(&mut draft);
    run::conclude(&mut draft);
    Ok((draft.state, draft.events))
}

/// A state that events are tried on while a command is decided.
struct Draft<'c> {
    state: State,
    events: Vec<Event>,
    now: Timestamp,
    context: &'c mut Context,
}

impl Draft<'_> {
    fn emit(&mut self, event: Event) {
        // Deadlines are counted from the clock as it is. Only the journal's own time never runs backwards: a clock that
        // had once jumped ahead must not put every later deadline out of reach.
        let at = self.now.max(self.state.now);
        apply(&mut self.state, at, &self.context.by.actor, &event);
        self.events.push(event);
    }

    /// Whether an action's effect is still wanted by its run.
    fn wants(&self, action: &Action) -> bool {
        is_wanted(&self.state, action)
    }

    /// When a model may be asked again after `failures` of its turns: later each time, so that what is over in a few seconds wakes
    /// nobody, and a random bit later, so that not all come again at once who were refused together.
    fn ask_again_at(&mut self, failures: u32) -> Timestamp {
        let wait = Span::from_secs(1_u64 << failures.saturating_sub(1).min(6));
        let half = Span::from_micros(wait.as_micros() / 2);
        self.now + wait + self.context.seed.up_to(half)
    }

    /// When the next attempt may be made after `failures` of them.
    fn back_off(&self, failures: u32) -> Timestamp {
        let millis = 100_u64.saturating_mul(1 << failures.saturating_sub(1).min(6));
        self.now + Span::from_millis(millis)
    }
}
