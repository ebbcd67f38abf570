//! What is played: the calls a model asks for, what people say to them, and what must have happened in the end.

use serde_json::{Value, json};

use crate::agent::{BLIND_STRAY, GRANT, LOOK, PAY, REFUND, STRAY, WIRE};

/// One story, told by one process after another.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) calls: Vec<Call>,
    /// `interrupt_on`.
    pub(crate) gates: Vec<(String, Value)>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) end: End,
    /// The tools of which a person may be asked whether they took effect. All others must find out by themselves.
    pub(crate) doubtful: Vec<&'static str>,
    /// Instead of the usual one.
    pub(crate) timeout: Option<&'static str>,
}

/// A call the model asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) order: &'static str,
}

impl Call {
    pub(crate) fn args(self) -> Value {
        json!({"order_id": self.order, "amount": "5.00"})
    }
}

/// What one process is started for.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// The user asks.
    Start,
    /// A person answers.
    Answer(Value),
    /// The run is cancelled while it waits.
    Cancel,
    /// A person answers, and another process cancels while the call that was approved is in flight.
    CancelInFlight(Value),
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

fn approve() -> Value {
    json!({"type": "approve"})
}

fn edit(tool: &str, order: &str) -> Value {
    json!({"type": "edit", "edited_action": {"name": tool, "args": {"order_id": order, "amount": "2.50"}}})
}

impl Scenario {
    fn of(name: &'static str, calls: &[(&'static str, &'static str)]) -> Self {
        Self {
            name,
            calls: calls
                .iter()
                .map(|(tool, order)| Call { tool, order })
                .collect(),
            gates: Vec::new(),
            phases: vec![Phase::Start],
            end: End::Effects(Vec::new()),
            doubtful: Vec::new(),
            timeout: None,
        }
    }

    fn gated(mut self) -> Self {
        self.gates = vec![("*".to_owned(), json!(true))];
        self
    }

    fn then(mut self, phase: Phase) -> Self {
        self.phases.push(phase);
        self
    }

    fn answered(self, decisions: &[Value]) -> Self {
        self.gated().then(Phase::Answer(json!(decisions)))
    }

    fn leaving(mut self, effects: &[(&'static str, &'static str)]) -> Self {
        self.end = End::Effects(effects.to_vec());
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

    pub(crate) fn is_cancelled_in_flight(&self) -> bool {
        matches!(self.end, End::CancelledInFlight(_))
    }

    pub(crate) fn approve() -> Self {
        Self::of("approve", &[(REFUND, "A")])
            .answered(&[approve()])
            .leaving(&[("A", "5.00")])
    }

    pub(crate) fn reject() -> Self {
        let no = json!({"type": "reject", "message": "not this one"});
        Self::of("reject", &[(REFUND, "A")]).answered(&[no])
    }

    pub(crate) fn edit() -> Self {
        Self::of("edit", &[(REFUND, "A")])
            .answered(&[edit(REFUND, "B")])
            .leaving(&[("B", "2.50")])
    }

    pub(crate) fn respond() -> Self {
        let words = json!({"type": "respond", "message": "it was paid yesterday"});
        let mut scenario = Self::of("respond", &[(REFUND, "A")]).answered(&[words]);
        let gate = json!({"allowed_decisions": ["approve", "respond"]});
        scenario.gates = vec![(REFUND.to_owned(), gate)];
        scenario
    }

    pub(crate) fn mixed_batch() -> Self {
        let no = json!({"type": "reject"});
        Self::of(
            "mixed batch of 3",
            &[(REFUND, "A"), (REFUND, "B"), (REFUND, "C")],
        )
        .answered(&[approve(), no, edit(REFUND, "D")])
        .leaving(&[("A", "5.00"), ("D", "2.50")])
    }

    pub(crate) fn every_effect_class() -> Self {
        Self::of(
            "every effect class at once",
            &[(LOOK, "L"), (PAY, "P"), (GRANT, "G"), (WIRE, "W")],
        )
        .leaving(&[("P", "5.00"), ("G", "5.00"), ("W", "5.00")])
        .asking_about(&[WIRE])
    }

    pub(crate) fn every_findable_class() -> Self {
        Self::of(
            "all that can be found out at once",
            &[(LOOK, "L"), (PAY, "P"), (GRANT, "G"), (REFUND, "R")],
        )
        .leaving(&[("P", "5.00"), ("G", "5.00"), ("R", "5.00")])
    }

    pub(crate) fn write_without_lookup() -> Self {
        Self::of("write without lookup", &[(WIRE, "W")])
            .answered(&[approve()])
            .leaving(&[("W", "5.00")])
            .asking_about(&[WIRE])
    }

    pub(crate) fn outliving_programs() -> Self {
        Self::of(
            "programs that outlive their driver",
            &[(STRAY, "S"), (BLIND_STRAY, "B")],
        )
        .answered(&[approve(), approve()])
        .leaving(&[("S", "5.00"), ("B", "5.00")])
        .asking_about(&[BLIND_STRAY])
        // Long enough for a program that nobody watches to act even on a busy machine: what comes after is not believed.
        .with_timeout("4s")
    }

    pub(crate) fn read() -> Self {
        Self::of("read", &[(LOOK, "L")]).answered(&[approve()])
    }

    pub(crate) fn cancel_waiting() -> Self {
        Self::of("cancel of a waiting run", &[(REFUND, "A"), (WIRE, "W")])
            .gated()
            .then(Phase::Cancel)
    }

    pub(crate) fn cancel_with_compensation() -> Self {
        Self::cancel_in_flight("cancel in flight, compensated", REFUND, Undo::Compensated)
    }

    pub(crate) fn cancel_without_compensation() -> Self {
        Self::cancel_in_flight("cancel in flight, lookup only", GRANT, Undo::Asked)
    }

    pub(crate) fn cancel_of_a_blind_write() -> Self {
        Self::cancel_in_flight("cancel in flight, no hooks", WIRE, Undo::Asked)
    }

    fn cancel_in_flight(name: &'static str, tool: &'static str, undo: Undo) -> Self {
        let mut scenario = Self::of(name, &[(tool, "A")]).gated();
        scenario
            .phases
            .push(Phase::CancelInFlight(json!([approve()])));
        scenario.end = End::CancelledInFlight(undo);
        match undo {
            Undo::Asked => scenario.asking_about(&[tool]),
            Undo::Compensated => scenario,
        }
    }
}
