//! Agents that give tasks to others.

use serde_json::json;

use super::{Asks, Member, Scenario, Which, order, task};
use crate::agent::{GRANT, REFUND};

impl Scenario {
    /// The innermost makes a gated write, and the one above it another one that is not.
    pub(crate) fn nested_team() -> Self {
        let helper = Member {
            name: "helper",
            turns: vec![vec![order(REFUND, "A")]],
            team: Vec::new(),
        };
        let worker = Member {
            name: "worker",
            turns: vec![vec![task("helper")], vec![order(GRANT, "G")]],
            team: vec![helper],
        };
        let mut scenario = Self::of("subagent in a subagent", vec![vec![task("worker")]])
            .gate(REFUND, json!(true))
            .approved(Which::Order("A"))
            .doing(&["A", "G"])
            .asking(Asks::Exactly(1));
        scenario.team = vec![worker];
        scenario
    }

    /// Two at once, each of which makes a gated write.
    pub(crate) fn team_of_two() -> Self {
        let member = |name, about| Member {
            name,
            turns: vec![vec![order(REFUND, about)]],
            team: Vec::new(),
        };
        let turns = vec![vec![task("worker"), task("helper")]];
        let mut scenario = Self::of("two subagents at once", turns)
            .gate(REFUND, json!(true))
            .approved(Which::Order("B"))
            .approved(Which::Order("A"))
            .doing(&["A", "B"])
            .asking(Asks::Exactly(2));
        scenario.team = vec![member("worker", "A"), member("helper", "B")];
        scenario
    }
}
