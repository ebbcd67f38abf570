//! A thread in memory: commands go in, and everything a store would keep comes out and is kept.

use std::collections::BTreeSet;

use holdpoint_core::{
    Action, ActionId, ActionStatus, Allowed, Answer, Ask, Batch, Bond, Breakpoints, Command,
    Confirmation, Context, Decision, DecisionKind, Digest, EditedAction, Effect, Entry, Event,
    FramePath, Hooks, IndexChange, IndexRow, Interrupt, InterruptId, InterruptKind, InterruptMode,
    Judged, JudgedCall, Limits, Lookup, Memo, Memos, Message, OnTimeout, Outcome, Params, Payload,
    Principal, PrincipalKind, Prompt, Proof, Record, Refusal, Reply, RestatedCall, Role, Seed,
    Span, State, Supersede, Suspension, Tally, Terms, ThreadId, Timestamp, ToolCall, ToolFacts,
    ToolKind, ToolNow, Transcript, Usage, Verdict, Work, next, past_action,
    spans::{Starts, Stretch, stretches},
    tally,
};

pub(crate) const TENANT: &str = "acme";

/// One second, as the tests' clock counts.
pub(crate) const SECOND: i64 = 1_000_000;

/// When every test begins.
pub(crate) const BEGIN: i64 = 1_800_000_000 * SECOND;

/// How long a call may take, and how long its effect may take to appear.
pub(crate) const TIMEOUT: u64 = 60;
pub(crate) const SETTLE: u64 = 5;

pub(crate) fn user(name: &str) -> Principal {
    Principal::new(PrincipalKind::User, TENANT, name)
}

pub(crate) fn driver() -> Principal {
    Principal::new(PrincipalKind::Service, TENANT, "driver")
}

pub(crate) fn thread_id() -> ThreadId {
    ThreadId::of_session(TENANT, "teller", "s1")
}

pub(crate) fn params(text: &str) -> Params {
    Params::parse(text).unwrap()
}

pub(crate) fn plain() -> Hooks {
    Hooks::default()
}

pub(crate) fn with_lookup() -> Hooks {
    Hooks {
        lookup: true,
        compensate: false,
    }
}

pub(crate) fn with_compensation() -> Hooks {
    Hooks {
        lookup: false,
        compensate: true,
    }
}

pub(crate) fn with_both() -> Hooks {
    Hooks {
        lookup: true,
        compensate: true,
    }
}

pub(crate) fn tool(name: &str, version: &str, effect: Effect, hooks: Hooks) -> ToolFacts {
    ToolFacts {
        name: name.to_owned(),
        version: version.to_owned(),
        effect,
        timeout: Span::from_secs(TIMEOUT),
        settle: Span::from_secs(SETTLE),
        hooks,
        kind: ToolKind::Plain,
    }
}

pub(crate) fn ask(kinds: &[DecisionKind]) -> Verdict {
    Verdict::Ask(Terms::new(Allowed::new(kinds.to_vec()).unwrap()))
}

/// What `interrupt_on: true` means, and respond.
pub(crate) fn gated() -> Verdict {
    ask(&DecisionKind::CONFIGURABLE)
}

/// As `gated`, and what lets it run is taken by a token only.
pub(crate) fn gated_by_token() -> Verdict {
    Verdict::Ask(Terms {
        requires_token: true,
        ..Terms::new(Allowed::new(DecisionKind::CONFIGURABLE.to_vec()).unwrap())
    })
}

/// As `gated`, with a question that stays open for so many seconds.
pub(crate) fn gated_for(seconds: u64, on_timeout: OnTimeout) -> Verdict {
    Verdict::Ask(Terms {
        timeout: Some(Span::from_secs(seconds)),
        on_timeout,
        ..Terms::new(Allowed::new(DecisionKind::CONFIGURABLE.to_vec()).unwrap())
    })
}

/// A call with the call id `id`, judged. It gets its action id from the thread that it is told to.
pub(crate) fn call(id: &str, tool: ToolFacts, arguments: &str, verdict: Verdict) -> JudgedCall {
    JudgedCall {
        id: ActionId::from_bytes([0; 16]),
        call: ToolCall {
            id: id.to_owned(),
            name: tool.name.clone(),
            arguments: arguments.to_owned(),
        },
        judged: Ok(Judged {
            params: params(arguments),
            schema: Digest::of(b"schema"),
            tool,
            verdict,
            rule: None,
            reserved: None,
            shown: None,
        }),
    }
}

/// An ungated call of a tool of this class.
pub(crate) fn free(id: &str, effect: Effect, hooks: Hooks) -> JudgedCall {
    call(
        id,
        tool("work", "1", effect, hooks),
        r#"{"n":1}"#,
        Verdict::Allow,
    )
}

/// A gated call of a write.
pub(crate) fn held(id: &str, arguments: &str) -> JudgedCall {
    call(
        id,
        tool("pay", "1", Effect::Write, plain()),
        arguments,
        gated(),
    )
}

/// The stepped tool `order`, ungated. What its definition says of its effect does not matter: its steps have their own.
pub(crate) fn stepped(id: &str, hooks: Hooks) -> JudgedCall {
    call(id, stepped_tool(hooks), r#"{"n":1}"#, Verdict::Allow)
}

pub(crate) fn stepped_tool(hooks: Hooks) -> ToolFacts {
    ToolFacts {
        kind: ToolKind::Stepped,
        ..tool("order", "1", Effect::Write, hooks)
    }
}

/// A task for a subagent.
pub(crate) fn task(id: &str, subagent: &str) -> JudgedCall {
    let tool = ToolFacts {
        kind: ToolKind::Task,
        ..tool("task", "1", Effect::Read, plain())
    };
    let arguments = format!(r#"{{"description":"do {id}","subagent_type":"{subagent}"}}"#);
    call(id, tool, &arguments, Verdict::Allow)
}

pub(crate) fn path(text: &str) -> FramePath {
    serde_json::from_value(text.into()).unwrap()
}

/// A question that a tool or a program outside asks.
pub(crate) fn prompt(title: &str) -> Prompt {
    Prompt {
        title: title.to_owned(),
        ..Prompt::default()
    }
}

pub(crate) fn question(title: &str) -> Suspension {
    Suspension::Question {
        kind: InterruptKind::Approval,
        prompt: Box::new(prompt(title)),
        expiry: None,
    }
}

pub(crate) fn say(value: &str) -> Decision {
    Decision::Answer {
        value: value.into(),
    }
}

pub(crate) fn reject(message: &str) -> Decision {
    Decision::Reject {
        message: (!message.is_empty()).then(|| message.to_owned()),
    }
}

pub(crate) fn edit(tool: &str, arguments: &str) -> Decision {
    Decision::Edit {
        edited_action: EditedAction {
            name: tool.to_owned(),
            args: params(arguments),
        },
    }
}

pub(crate) fn committed(result: &str) -> Decision {
    Decision::Committed {
        result: result.into(),
    }
}

pub(crate) fn done(content: &str) -> Outcome {
    Outcome::Done {
        content: content.to_owned(),
    }
}

pub(crate) fn failed(error: &str) -> Outcome {
    Outcome::Failed {
        error: error.to_owned(),
    }
}

pub(crate) fn lost() -> Outcome {
    Outcome::Unknown {
        reason: "timed out".to_owned(),
    }
}

pub(crate) fn unsure() -> Lookup {
    Lookup::Unknown {
        reason: "not reachable".to_owned(),
    }
}

/// A thread, and all that a store keeps of it.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) state: State,
    pub(crate) entries: Vec<Entry>,
    pub(crate) records: Vec<Record>,
    pub(crate) head: Payload,
    pub(crate) rows: BTreeSet<IndexRow>,
    pub(crate) transcript: Transcript,
    pub(crate) memos: Memos,
    pub(crate) now: Timestamp,
    /// What was counted of it.
    pub(crate) tallies: Vec<Tally>,
    /// What took its time in it and is over.
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) starts: Starts,
    /// How its agent recognises that its model asks in plain words.
    pub(crate) confirm: Option<Confirmation>,
    commands: u64,
}

impl Thread {
    pub(crate) fn new() -> Self {
        Self {
            state: State::default(),
            entries: Vec::new(),
            records: Vec::new(),
            head: Payload::json(serde_json::to_vec(&State::default()).unwrap()),
            rows: BTreeSet::new(),
            transcript: Transcript::default(),
            memos: Memos::default(),
            now: Timestamp::from_micros(BEGIN),
            tallies: Vec::new(),
            stretches: Vec::new(),
            starts: Starts::default(),
            confirm: None,
            commands: 0,
        }
    }

    /// A thread with a run whose model was just called.
    pub(crate) fn thinking() -> Self {
        let mut thread = Self::new();
        thread.start_run(Limits::default());
        thread.think();
        thread
    }

    /// A thread whose model asked for these calls.
    pub(crate) fn asked(calls: Vec<JudgedCall>) -> Self {
        let mut thread = Self::thinking();
        thread.reply("", calls);
        thread
    }

    /// A thread with one ungated action that was started once.
    pub(crate) fn started(effect: Effect, hooks: Hooks) -> (Self, ActionId) {
        let mut thread = Self::asked(vec![free("c1", effect, hooks)]);
        let action = thread.action("c1").id;
        thread.start(action);
        (thread, action)
    }

    pub(crate) fn context(&mut self, by: Principal) -> Context {
        self.commands += 1;
        let mut random = [0; 16];
        random[..8].copy_from_slice(&self.commands.to_be_bytes());
        Context {
            now: self.now,
            by,
            seed: Seed::new(random, self.now),
        }
    }

    /// The process that works on it is gone, and with it all that only it knew.
    pub(crate) fn crash(&mut self) {
        self.starts = Starts::default();
    }

    /// Lets time pass; a negative number sets the clock back.
    pub(crate) fn wait(&mut self, seconds: i64) {
        self.now = Timestamp::from_micros(self.now.as_micros() + seconds * SECOND);
    }

    pub(crate) fn batch(&self) -> Batch {
        Batch::new(self.state.clone())
    }

    /// What a store does with a batch.
    pub(crate) fn commit(&mut self, batch: Batch) -> Vec<Event> {
        let sealed = batch.seal().unwrap();
        assert_eq!(sealed.expect, self.state.version);
        for change in sealed.index {
            match change {
                IndexChange::Put(row) => assert!(self.rows.insert(row.clone()), "{row:?} twice"),
                IndexChange::Remove(row) => assert!(self.rows.remove(&row), "{row:?} is not there"),
            }
        }
        for entry in &sealed.entries {
            self.transcript.apply(&entry.event);
            self.memos.apply(&entry.event);
        }
        let events = sealed
            .entries
            .iter()
            .map(|entry| entry.event.clone())
            .collect();
        let (before, now) = (&self.state, self.now);
        let count = |counted| self.tallies.push(counted);
        tally(before, &sealed.state, &sealed.entries, now, count);
        let ended = stretches(before, &sealed.entries, &mut self.starts);
        self.stretches.extend(ended);
        self.state = sealed.state;
        self.entries.extend(sealed.entries);
        self.records.extend(sealed.records);
        self.head = sealed.head;
        events
    }

    /// Decides one command and commits it.
    pub(crate) fn tell(&mut self, by: Principal, command: Command) -> Result<Vec<Event>, Refusal> {
        let mut context = self.context(by);
        let mut batch = self.batch();
        batch.decide(command, &mut context)?;
        Ok(self.commit(batch))
    }

    pub(crate) fn drive(&mut self, command: Command) -> Vec<Event> {
        self.tell(driver(), command).unwrap()
    }

    pub(crate) fn start_command(limits: Limits) -> Command {
        Command::StartRun {
            thread: thread_id(),
            tenant: TENANT.to_owned(),
            agent: "teller".to_owned(),
            session: "s1".to_owned(),
            definition: Digest::of(b"definition"),
            input: "go".to_owned(),
            limits,
            breakpoints: Breakpoints::default(),
            supersede: Supersede::Nothing,
        }
    }

    /// A thread with a run that stops before and after these nodes.
    pub(crate) fn with_breakpoints(nodes_before: &[&str], nodes_after: &[&str]) -> Self {
        let mut thread = Self::new();
        let names = |nodes: &[&str]| nodes.iter().map(|node| (*node).to_owned()).collect();
        let mut start = Self::start_command(Limits::default());
        if let Command::StartRun { breakpoints, .. } = &mut start {
            *breakpoints = Breakpoints {
                before: names(nodes_before),
                after: names(nodes_after),
            };
        }
        thread.tell(user("ann"), start).unwrap();
        thread
    }

    pub(crate) fn start_run(&mut self, limits: Limits) {
        self.tell(user("ann"), Self::start_command(limits)).unwrap();
    }

    pub(crate) fn think(&mut self) -> Vec<Event> {
        self.think_in(&FramePath::root())
    }

    pub(crate) fn think_in(&mut self, frame: &FramePath) -> Vec<Event> {
        self.drive(Command::StartModel {
            frame: frame.clone(),
            epoch: 1,
        })
    }

    pub(crate) fn reply(&mut self, text: &str, calls: Vec<JudgedCall>) -> Vec<Event> {
        self.reply_in(&FramePath::root(), InterruptMode::Batched, text, calls)
    }

    /// The model of a frame, which was just called, says this.
    pub(crate) fn reply_in(
        &mut self,
        frame: &FramePath,
        mode: InterruptMode,
        text: &str,
        calls: Vec<JudgedCall>,
    ) -> Vec<Event> {
        let attempt = thinking(&self.state, frame).unwrap();
        let calls = self.with_ids(calls);
        self.drive(Command::ModelReplied {
            frame: frame.clone(),
            attempt,
            text: text.to_owned(),
            calls,
            mode,
            usage: Usage::default(),
            model: String::new(),
            carried: None,
            confirm: self.confirm.clone().map(Box::new),
        })
    }

    /// The next turn of a frame: its model is called and wants these calls.
    pub(crate) fn turn_in(&mut self, frame: &FramePath, calls: Vec<JudgedCall>) -> Vec<Event> {
        self.think_in(frame);
        self.reply_in(frame, InterruptMode::Batched, "", calls)
    }

    /// The model of a frame is called and says its last word.
    pub(crate) fn last_word(&mut self, frame: &FramePath, text: &str) -> Vec<Event> {
        self.think_in(frame);
        self.reply_in(frame, InterruptMode::Batched, text, vec![])
    }

    /// Draws the ids of these calls.
    pub(crate) fn with_ids(&mut self, mut calls: Vec<JudgedCall>) -> Vec<JudgedCall> {
        let mut seed = self.context(driver()).seed;
        for call in &mut calls {
            call.id = seed.action_id();
        }
        calls
    }

    /// What a stepped tool has behind it when it is entered.
    pub(crate) fn memo(&self, action: ActionId) -> Memo {
        self.memos.of(action)
    }

    pub(crate) fn attempt(&self, action: ActionId) -> u32 {
        self.state.actions[&action].attempts
    }

    /// A stepped tool takes a step in the attempt that is in flight, as soon as it may. Returns the step.
    pub(crate) fn step(&mut self, action: ActionId, name: &str, effect: Effect) -> ActionId {
        let before = self.state.actions.get(&action.step(name));
        if let Some(ActionStatus::Ready {
            not_before: Some(at),
            ..
        }) = before.map(|step| &step.status)
        {
            self.now = self.now.max(*at);
        }
        let command = self.step_command(action, name, effect, r#"{"s":1}"#);
        self.drive(command);
        action.step(name)
    }

    pub(crate) fn step_command(
        &self,
        action: ActionId,
        name: &str,
        effect: Effect,
        arguments: &str,
    ) -> Command {
        Command::BeginStep {
            action,
            attempt: self.attempt(action),
            name: name.to_owned(),
            effect,
            params: params(arguments),
            epoch: 1,
        }
    }

    pub(crate) fn suspend(
        &mut self,
        action: ActionId,
        name: &str,
        on: Suspension,
    ) -> Result<Vec<Event>, Refusal> {
        let attempt = self.attempt(action);
        self.tell(
            driver(),
            Command::Suspend {
                action,
                attempt,
                name: name.to_owned(),
                on,
            },
        )
    }

    pub(crate) fn sleep(&mut self, action: ActionId, name: &str, seconds: u64) -> Vec<Event> {
        let time = Span::from_secs(seconds);
        self.suspend(action, name, Suspension::Sleep { time })
            .unwrap()
    }

    pub(crate) fn tick(&mut self) -> Vec<Event> {
        self.drive(Command::Tick)
    }

    /// The open call (not a compensation) with this call id.
    pub(crate) fn action(&self, call_id: &str) -> &Action {
        let mut found = self
            .state
            .actions
            .values()
            .filter(|action| action.call_id == call_id && action.parent.is_none());
        found.next().unwrap()
    }

    /// The open compensation.
    pub(crate) fn compensation(&self) -> &Action {
        let mut found = self
            .state
            .actions
            .values()
            .filter(|action| action.role == Role::Compensation);
        found.next().unwrap()
    }

    pub(crate) fn proof(&self, action: ActionId) -> Proof {
        proof_of(&self.state.actions[&action])
    }

    pub(crate) fn start(&mut self, action: ActionId) -> Vec<Event> {
        let proof = self.proof(action);
        self.drive(Command::StartAction {
            action,
            epoch: 1,
            proof,
        })
    }

    pub(crate) fn end(&mut self, action: ActionId, attempt: u32, outcome: Outcome) -> Vec<Event> {
        let command = self.ended(action, attempt, outcome);
        self.drive(command)
    }

    /// The report of an outcome, with what the journal says where the action is closed.
    pub(crate) fn ended(&self, action: ActionId, attempt: u32, outcome: Outcome) -> Command {
        let past = if self.state.actions.contains_key(&action) {
            None
        } else {
            past_action(&self.entries, action).map(Box::new)
        };
        Command::ActionEnded {
            action,
            attempt,
            outcome,
            artifact: None,
            past,
        }
    }

    /// Starts an action and lets it end so.
    pub(crate) fn run(&mut self, action: ActionId, outcome: Outcome) -> Vec<Event> {
        self.start(action);
        let attempt = self.state.actions[&action].attempts;
        self.end(action, attempt, outcome)
    }

    pub(crate) fn withhold(&mut self, action: ActionId, attempt: u32, reason: &str) -> Vec<Event> {
        let reason = reason.to_owned();
        self.drive(Command::ActionWithheld {
            action,
            attempt,
            reason,
        })
    }

    pub(crate) fn orphan(&mut self, action: ActionId, attempt: u32) -> Vec<Event> {
        self.drive(Command::ActionOrphaned { action, attempt })
    }

    /// Looks up once the absence of the effect can be trusted.
    pub(crate) fn look_up(&mut self, action: ActionId, lookup: Lookup) -> Vec<Event> {
        let settled = self
            .state
            .actions
            .get(&action)
            .and_then(|action| action.settle_at);
        self.now = self.now.max(settled.unwrap_or(self.now));
        self.drive(Command::LookedUp {
            action,
            lookup,
            artifact: None,
        })
    }

    /// The one pending interrupt.
    pub(crate) fn pending(&self) -> &Interrupt {
        assert_eq!(self.state.interrupts.len(), 1, "{:#?}", self.state);
        self.state.interrupts.values().next().unwrap()
    }

    /// The one thing that is asked.
    pub(crate) fn question(&self) -> &Ask {
        assert_eq!(self.pending().asks.len(), 1);
        &self.pending().asks[0]
    }

    /// What may be said to the one thing that is asked.
    pub(crate) fn allowed(&self) -> Vec<DecisionKind> {
        self.question().allowed.as_slice().to_vec()
    }

    pub(crate) fn answer(&mut self, decisions: Vec<Decision>) -> Result<Vec<Event>, Refusal> {
        let interrupt = self.pending().id;
        self.answer_to(interrupt, Answer::ByPosition(decisions))
    }

    pub(crate) fn answer_to(
        &mut self,
        interrupt: InterruptId,
        answer: Answer,
    ) -> Result<Vec<Event>, Refusal> {
        self.tell(
            user("bob"),
            Command::Answer {
                answers: vec![Reply {
                    interrupt,
                    answer,
                    misfits: vec![],
                    lacking: vec![],
                    shown: vec![],
                    bond: Bond::default(),
                }],
            },
        )
    }

    /// Several answers at once.
    pub(crate) fn answer_all(
        &mut self,
        answers: Vec<(InterruptId, Decision)>,
    ) -> Result<Vec<Event>, Refusal> {
        let replies = answers.into_iter().map(|(interrupt, decision)| Reply {
            interrupt,
            answer: Answer::ByPosition(vec![decision]),
            misfits: vec![],
            lacking: vec![],
            shown: vec![],
            bond: Bond::default(),
        });
        let answers = replies.collect();
        self.tell(user("bob"), Command::Answer { answers })
    }

    /// The pending interrupt that asks about this action.
    pub(crate) fn asked_about(&self, action: ActionId) -> InterruptId {
        let mut pending = self.state.interrupts.values();
        let found = pending.find(|it| it.asks.iter().any(|ask| ask.action_id == action));
        found.unwrap().id
    }

    /// The thread was found in a backup that was made now, and somebody adopts it.
    pub(crate) fn restore(&mut self) -> Vec<Event> {
        let command = restore_command(self.now);
        self.wait(10);
        self.drive(command)
    }

    /// As [`Thread::restore`], from another backup that was made later.
    pub(crate) fn restore_again(&mut self) -> Vec<Event> {
        self.wait(10);
        self.restore()
    }

    /// Whether a command of the driver is refused.
    pub(crate) fn drive_refused(&mut self, command: Command) -> bool {
        self.tell(driver(), command).is_err()
    }

    pub(crate) fn cancel(&mut self) -> Vec<Event> {
        self.tell(user("ann"), Command::Cancel { run: None })
            .unwrap()
    }

    pub(crate) fn restate(
        &mut self,
        interrupt: Option<InterruptId>,
        calls: Vec<RestatedCall>,
    ) -> Result<Vec<Event>, Refusal> {
        self.tell(
            driver(),
            Command::Restate {
                definition: Digest::of(b"new definition"),
                interrupt,
                calls,
            },
        )
    }

    pub(crate) fn work(&self) -> Vec<Work> {
        next(&self.state)
    }

    /// The status of every open action, in the order of their ids.
    pub(crate) fn is_ready(&self, call_id: &str) -> bool {
        matches!(self.action(call_id).status, ActionStatus::Ready { .. })
    }

    /// The tool messages of the transcript: call id, text.
    pub(crate) fn told(&self) -> Vec<(String, String)> {
        self.told_in(&FramePath::root())
    }

    pub(crate) fn told_in(&self, frame: &FramePath) -> Vec<(String, String)> {
        let tool = |message: Message| match message {
            Message::Tool {
                tool_call_id,
                content,
                ..
            } => Some((tool_call_id, content)),
            Message::User { .. } | Message::Assistant { .. } | _ => None,
        };
        let messages = self.transcript.frame(frame).unwrap().messages();
        messages.into_iter().filter_map(tool).collect()
    }
}

/// The attempt that a frame's model is busy with.
pub(crate) fn thinking(state: &State, of: &FramePath) -> Option<u32> {
    next(state).into_iter().find_map(|work| match work {
        Work::AwaitModel { frame, attempt } if frame == *of => Some(attempt),
        Work::AwaitModel { .. }
        | Work::CallModel { .. }
        | Work::Say { .. }
        | Work::Start { .. }
        | Work::Settle { .. }
        | Work::LookUp { .. } => None,
    })
}

pub(crate) fn restore_command(backup: Timestamp) -> Command {
    Command::Restore {
        backup,
        spelt: "noon".to_owned(),
    }
}

/// The names of events.
pub(crate) fn names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::name).collect()
}

/// What a driver finds when it looks at an action again before the call.
pub(crate) fn proof_of(action: &Action) -> Proof {
    Proof {
        tool_version: action.tool.version.clone(),
        params_hash: action.params.hash(&action.tool.name, &action.tool.version),
        granted: true,
        lacking: None,
    }
}

/// What a new definition says of a call.
pub(crate) fn restated(action: ActionId, tool: ToolFacts, verdict: Verdict) -> RestatedCall {
    RestatedCall {
        action,
        tool: ToolNow::There {
            tool,
            schema: Digest::of(b"new schema"),
            verdict,
            fits: true,
        },
        changes: vec!["it changed".to_owned()],
    }
}

pub(crate) fn gone(action: ActionId) -> RestatedCall {
    RestatedCall {
        action,
        tool: ToolNow::Gone,
        changes: vec!["it is gone".to_owned()],
    }
}
