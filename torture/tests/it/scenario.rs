//! What is played: the calls a model asks for, what people say to them, and what must have happened in the end.

mod calls;
mod stops;
mod teams;

pub(crate) use stops::granting;

use serde_json::{Value, json};

/// One story, told by one process after another.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) turns: Turns,
    pub(crate) team: Vec<Member>,
    /// `interrupt_on`.
    pub(crate) gates: Vec<(String, Value)>,
    pub(crate) mode: Mode,
    pub(crate) phases: Vec<Phase>,
    pub(crate) end: End,
    pub(crate) asks: Asks,
    /// The tools of which a person may be asked whether they took effect. All others must find out by themselves.
    pub(crate) doubtful: Vec<&'static str>,
    /// Instead of the usual one.
    pub(crate) timeout: Option<&'static str>,
    pub(crate) shelf: Shelf,
}

/// Where a scenario's store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shelf {
    /// In a file of its own.
    Sqlite,
    /// In a database of its own, with leases that end soon: nobody knows there that a process is dead.
    Postgres,
}

/// What a model asks for, turn by turn.
pub(crate) type Turns = Vec<Vec<Call>>;

/// A call the model asks for.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) args: Value,
}

/// A subagent.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) turns: Turns,
    pub(crate) team: Vec<Self>,
}

/// `interrupt_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Batched,
    PerCall,
}

/// What one process is started for.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// The user asks.
    Start,
    /// A person answers one question.
    Answer(Which, Value),
    /// A person answers several questions at once: all of the answers count, or none.
    AnswerMap(Vec<(Which, Value)>),
    /// A person approves what is asked only because somebody died.
    ApproveRest,
    /// The run is cancelled while it waits.
    Cancel,
    /// A person answers, and another process cancels while the call that was approved is in flight.
    CancelInFlight(Value),
    /// The run is paused while it waits.
    Pause,
    /// A person answers, and another process pauses the run while the call that was approved is in flight.
    PauseInFlight(Value),
    /// The run goes on.
    Continue,
    /// Nobody answers in time, and somebody sees that.
    AwaitDue,
}

/// Which of the pending questions is meant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which {
    /// There is one.
    Only,
    /// The one about this order.
    Order(&'static str),
    /// The one that a tool asks under this name.
    Named(&'static str),
}

/// What must have happened in the end.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// Exactly these effects, each once; all else as in the undisturbed run.
    Effects(Vec<(&'static str, &'static str)>),
    /// The run is cancelled, and what became of its call is known.
    CancelledInFlight(Undo),
}

/// What becomes of an effect that a cancel came too late for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undo {
    /// It is undone by the tool's compensation.
    Compensated,
    /// A person is shown it.
    Asked,
}

/// How often people must have been asked to allow something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// That is not what the scenario is about.
    Unsaid,
    /// So often, whoever dies.
    Exactly(usize),
    /// So often, and at most once more for every death: it may cost a use of a grant, and never gives one more.
    OnceMorePerDeath(usize),
}

/// A call about an order.
fn order(tool: &'static str, order: &str) -> Call {
    let args = json!({"order_id": order, "amount": "5.00"});
    Call { tool, args }
}

/// A task for a subagent.
fn task(member: &str) -> Call {
    let args = json!({"subagent_type": member, "description": "see to it"});
    Call { tool: "task", args }
}

fn approve() -> Value {
    json!({"type": "approve"})
}

fn edit(tool: &str, order: &str) -> Value {
    json!({"type": "edit", "edited_action": {"name": tool, "args": {"order_id": order, "amount": "2.50"}}})
}

impl Scenario {
    fn of(name: &'static str, turns: Turns) -> Self {
        Self {
            name,
            turns,
            team: Vec::new(),
            gates: Vec::new(),
            mode: Mode::Batched,
            phases: vec![Phase::Start],
            end: End::Effects(Vec::new()),
            asks: Asks::Unsaid,
            doubtful: Vec::new(),
            timeout: None,
            shelf: Shelf::Sqlite,
        }
    }

    pub(crate) fn on_postgres(mut self) -> Self {
        self.shelf = Shelf::Postgres;
        self
    }

    /// Whose model asks for everything at once.
    fn at_once(name: &'static str, calls: &[(&'static str, &'static str)]) -> Self {
        let calls = calls.iter().map(|(tool, about)| order(tool, about));
        Self::of(name, vec![calls.collect()])
    }

    fn gated(self) -> Self {
        self.gate("*", json!(true))
    }

    fn gate(mut self, tool: &str, gate: Value) -> Self {
        self.gates.push((tool.to_owned(), gate));
        self
    }

    fn then(mut self, phase: Phase) -> Self {
        self.phases.push(phase);
        self
    }

    fn answered(self, decisions: &[Value]) -> Self {
        self.then(Phase::Answer(Which::Only, json!(decisions)))
    }

    fn approved(self, which: Which) -> Self {
        self.then(Phase::Answer(which, json!([approve()])))
    }

    fn leaving(mut self, effects: &[(&'static str, &'static str)]) -> Self {
        self.end = End::Effects(effects.to_vec());
        self
    }

    /// Leaves the calls about these orders done as the model asked for them.
    fn doing(self, orders: &[&'static str]) -> Self {
        let effects: Vec<_> = orders.iter().map(|order| (*order, "5.00")).collect();
        self.leaving(&effects)
    }

    fn asking(mut self, asks: Asks) -> Self {
        self.asks = asks;
        self
    }

    fn asking_about(mut self, tools: &[&'static str]) -> Self {
        self.doubtful = tools.to_vec();
        self
    }

    pub(crate) fn with_timeout(mut self, timeout: &'static str) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Whether one process comes in between while a call of another is in flight, which must then take a while.
    pub(crate) fn is_disturbed_in_flight(&self) -> bool {
        let between =
            |phase: &Phase| matches!(phase, Phase::CancelInFlight(_) | Phase::PauseInFlight(_));
        self.phases.iter().any(between)
    }
}
