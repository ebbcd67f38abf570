//! Runs that stop more than once, or for other reasons than one question: several questions, questions that nobody answers,
//! pauses, and grants by which a question is spared.

use serde_json::{Value, json};

use super::{Asks, Mode, Phase, Scenario, Turns, Which, approve, order};
use crate::agent::{BLIND_TRANSFER, GRANT, REFUND, TRANSFER};

/// Long enough for a process to start, ask and end before it is over.
const OPEN_FOR: &str = "2s";

impl Scenario {
    pub(crate) fn per_call() -> Self {
        Self::of_two_questions("per call, one by one")
            .approved(Which::Order("B"))
            .approved(Which::Order("A"))
    }

    pub(crate) fn per_call_by_map() -> Self {
        let yes = || json!([approve()]);
        Self::of_two_questions("per call, by one map").then(Phase::AnswerMap(vec![
            (Which::Order("A"), yes()),
            (Which::Order("B"), yes()),
        ]))
    }

    /// Two gated calls, each a question of its own, and one that runs beside them.
    fn of_two_questions(name: &'static str) -> Self {
        let calls = [(REFUND, "A"), (GRANT, "G"), (REFUND, "B")];
        let mut scenario = Self::at_once(name, &calls)
            .gate(REFUND, json!(true))
            .doing(&["A", "G", "B"])
            .asking(Asks::Exactly(2));
        scenario.mode = Mode::PerCall;
        scenario
    }

    pub(crate) fn chained() -> Self {
        let turns = vec![vec![order(REFUND, "A")], vec![order(REFUND, "B")]];
        Self::of("one question after the other", turns)
            .gated()
            .approved(Which::Order("A"))
            .approved(Which::Order("B"))
            .doing(&["A", "B"])
            .asking(Asks::Exactly(2))
    }

    pub(crate) fn stepped() -> Self {
        Self::of_three_steps("stepped tool that asks twice", TRANSFER)
    }

    pub(crate) fn stepped_without_lookup() -> Self {
        Self::of_three_steps("stepped tool without lookup", BLIND_TRANSFER)
            .asking_about(&[BLIND_TRANSFER])
    }

    fn of_three_steps(name: &'static str, tool: &'static str) -> Self {
        let amount = json!([{"type": "answer", "value": "5.00"}]);
        Self::at_once(name, &[(tool, "T")])
            .then(Phase::Answer(Which::Named("amount"), amount))
            .approved(Which::Named("sure"))
            .doing(&["T-held", "T"])
    }

    pub(crate) fn timeout_rejects() -> Self {
        let turns = vec![vec![order(REFUND, "A")], vec![order(GRANT, "G")]];
        Self::of_a_timeout("time-out that rejects", "reject", turns)
    }

    pub(crate) fn timeout_expires() -> Self {
        let turns = vec![vec![order(GRANT, "G")], vec![order(REFUND, "A")]];
        Self::of_a_timeout("time-out that ends the run", "expire", turns)
    }

    /// Among the calls is a gated one, which nobody allows in time.
    fn of_a_timeout(name: &'static str, on_timeout: &str, turns: Turns) -> Self {
        let decisions = ["approve", "reject"];
        let gate = json!({
            "allowed_decisions": decisions, "timeout": OPEN_FOR, "on_timeout": on_timeout,
        });
        Self::of(name, turns)
            .gate(REFUND, gate)
            .then(Phase::AwaitDue)
            .doing(&["G"])
            .asking(Asks::Exactly(1))
    }

    pub(crate) fn paused_while_waiting() -> Self {
        Self::at_once("paused while it waits", &[(REFUND, "A")])
            .gated()
            .then(Phase::Pause)
            .approved(Which::Only)
            .then(Phase::Continue)
            .doing(&["A"])
            .asking(Asks::Exactly(1))
    }

    pub(crate) fn paused_in_flight() -> Self {
        let turns = vec![vec![order(REFUND, "A")], vec![order(GRANT, "G")]];
        Self::of("paused while a call is in flight", turns)
            .gate(REFUND, json!(true))
            .then(Phase::PauseInFlight(json!([approve()])))
            .then(Phase::Continue)
            .doing(&["A", "G"])
            .asking(Asks::Exactly(1))
    }

    pub(crate) fn granted_in_the_thread() -> Self {
        Self::of_a_grant("grant for the thread, one use", "thread").asking(Asks::Exactly(2))
    }

    pub(crate) fn granted_to_the_agent() -> Self {
        Self::of_a_grant("grant for the agent, one use", "agent").asking(Asks::OnceMorePerDeath(2))
    }

    /// The first call is approved with a grant of one use, by which the second passes. The third is asked about.
    fn of_a_grant(name: &'static str, scope: &str) -> Self {
        let turns = ["A", "B", "C"].map(|about| vec![order(REFUND, about)]);
        Self::of(name, turns.to_vec())
            .gated()
            .answered(&[granting(scope, 1)])
            .approved(Which::Only)
            .then(Phase::ApproveRest)
            .doing(&["A", "B", "C"])
    }
}

/// An approval by which so many others of the same tool are spared.
pub(crate) fn granting(scope: &str, uses: usize) -> Value {
    json!({"type": "approve", "grant": {"scope": scope, "match": "tool", "uses": uses}})
}
