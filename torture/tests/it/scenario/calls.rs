//! One turn of calls, which a person allows or not, or cancels.

use serde_json::json;

use super::{End, Phase, Scenario, Undo, approve, edit, order};
use crate::agent::{BLIND_STRAY, GRANT, LOOK, PAY, REFUND, STRAY, WIRE};

impl Scenario {
    /// A server's agent looks an order up, and asks for leave to pay it back.
    pub(crate) fn served() -> Self {
        let turns = vec![vec![order(LOOK, "L")], vec![order(GRANT, "G")]];
        Self::of("served", turns)
            .gate(GRANT, json!(true))
            .with_timeout("1s")
    }

    /// A server's agent asks for leave twice, one question after the other. Its calls have more time than a database is away:
    /// one whose time is over when its record is committed is not made, and its model is told so.
    pub(crate) fn served_twice() -> Self {
        let turns = vec![vec![order(GRANT, "G")], vec![order(GRANT, "H")]];
        Self::of("served, asking twice", turns)
            .gated()
            .with_timeout("30s")
    }

    pub(crate) fn approve() -> Self {
        Self::at_once("approve", &[(REFUND, "A")])
            .gated()
            .answered(&[approve()])
            .doing(&["A"])
    }

    pub(crate) fn reject() -> Self {
        let no = json!({"type": "reject", "message": "not this one"});
        Self::at_once("reject", &[(REFUND, "A")])
            .gated()
            .answered(&[no])
    }

    pub(crate) fn edit() -> Self {
        Self::at_once("edit", &[(REFUND, "A")])
            .gated()
            .answered(&[edit(REFUND, "B")])
            .leaving(&[("B", "2.50")])
    }

    pub(crate) fn respond() -> Self {
        let words = json!({"type": "respond", "message": "it was paid yesterday"});
        Self::at_once("respond", &[(REFUND, "A")])
            .gate(REFUND, json!({"allowed_decisions": ["approve", "respond"]}))
            .answered(&[words])
    }

    pub(crate) fn mixed_batch() -> Self {
        let no = json!({"type": "reject"});
        Self::at_once(
            "mixed batch of 3",
            &[(REFUND, "A"), (REFUND, "B"), (REFUND, "C")],
        )
        .gated()
        .answered(&[approve(), no, edit(REFUND, "D")])
        .leaving(&[("A", "5.00"), ("D", "2.50")])
    }

    pub(crate) fn every_effect_class() -> Self {
        Self::at_once(
            "every effect class at once",
            &[(LOOK, "L"), (PAY, "P"), (GRANT, "G"), (WIRE, "W")],
        )
        .doing(&["P", "G", "W"])
        .asking_about(&[WIRE])
    }

    pub(crate) fn every_findable_class() -> Self {
        Self::at_once(
            "all that can be found out at once",
            &[(LOOK, "L"), (PAY, "P"), (GRANT, "G"), (REFUND, "R")],
        )
        .doing(&["P", "G", "R"])
    }

    pub(crate) fn write_without_lookup() -> Self {
        Self::at_once("write without lookup", &[(WIRE, "W")])
            .gated()
            .answered(&[approve()])
            .doing(&["W"])
            .asking_about(&[WIRE])
    }

    pub(crate) fn outliving_programs() -> Self {
        Self::at_once(
            "programs that outlive their driver",
            &[(STRAY, "S"), (BLIND_STRAY, "B")],
        )
        .gated()
        .answered(&[approve(), approve()])
        .doing(&["S", "B"])
        .asking_about(&[BLIND_STRAY])
        // Long enough for a program that nobody watches to act even on a busy machine: what comes after is not believed.
        .with_timeout("4s")
    }

    pub(crate) fn read() -> Self {
        Self::at_once("read", &[(LOOK, "L")])
            .gated()
            .answered(&[approve()])
    }

    pub(crate) fn cancel_waiting() -> Self {
        Self::at_once("cancel of a waiting run", &[(REFUND, "A"), (WIRE, "W")])
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
        let mut scenario = Self::at_once(name, &[(tool, "A")])
            .gated()
            .then(Phase::CancelInFlight(json!([approve()])));
        scenario.end = End::CancelledInFlight(undo);
        match undo {
            Undo::Asked => scenario.asking_about(&[tool]),
            Undo::Compensated => scenario,
        }
    }
}
