//! What can happen in a random life, and what is made of a random number.

use holdpoint_core::{
    ActionId, Decision, DecisionKind, Digest, Effect, Hooks, JudgedCall, Lookup, Outcome, Proof,
    State, ToolCall, Verdict,
};
use proptest::prelude::*;

use crate::thread::{call, done, edit, failed, gated, lost, proof_of, reject, tool, unsure};

#[derive(Debug, Clone)]
pub(super) enum Move {
    /// The clock goes on, or jumps back.
    Tick(i64),
    StartRun(u8),
    Cancel,
    /// The driver does something that `next` says may go on.
    Work(u8, Reply, u8),
    /// An outcome comes, for any attempt ever made.
    Report(u8, u8),
    Answer {
        which: u8,
        decisions: Vec<u8>,
        who: u8,
        form: u8,
    },
    Restate {
        which: u8,
        actions: u8,
        how: u8,
    },
    /// A command about anything at all.
    Stray(u8, u8),
}

/// What a model says: its calls, each as (tool, arguments, verdict).
pub(super) type Reply = Vec<(u8, u8, u8)>;

pub(super) fn reply() -> impl Strategy<Value = Reply> {
    prop::collection::vec((0..6_u8, 0..3_u8, 0..8_u8), 0..4)
}

pub(super) fn a_move() -> impl Strategy<Value = Move> {
    let small = || any::<u8>();
    prop_oneof![
        2 => prop_oneof![Just(1), Just(61), Just(70), Just(10_000), Just(-40), Just(-100_000)].prop_map(Move::Tick),
        2 => small().prop_map(Move::StartRun),
        1 => Just(Move::Cancel),
        14 => (small(), reply(), small()).prop_map(|(which, reply, how)| Move::Work(which, reply, how)),
        4 => (small(), small()).prop_map(|(which, how)| Move::Report(which, how)),
        7 => (small(), prop::collection::vec(small(), 4), small(), small())
            .prop_map(|(which, decisions, who, form)| Move::Answer { which, decisions, who, form }),
        2 => (small(), small(), small()).prop_map(|(which, actions, how)| Move::Restate { which, actions, how }),
        1 => (small(), small()).prop_map(|(which, how)| Move::Stray(which, how)),
    ]
}

/// Moves, each with whether an append follows on it.
pub(super) fn moves() -> impl Strategy<Value = Vec<(Move, bool)>> {
    prop::collection::vec((a_move(), prop::bool::weighted(0.7)), 1..80)
}

pub(super) fn pick<T: Clone>(items: &[T], which: u8) -> Option<T> {
    (!items.is_empty()).then(|| items[usize::from(which) % items.len()].clone())
}

pub(super) fn some_tool(kind: u8, version: &str) -> holdpoint_core::ToolFacts {
    let hooks = |lookup, compensate| Hooks { lookup, compensate };
    let (name, effect, hooks) = match kind {
        0 => ("read", Effect::Read, hooks(false, false)),
        1 => ("put", Effect::Idempotent, hooks(false, false)),
        2 => ("write", Effect::Write, hooks(false, false)),
        3 => ("lookup", Effect::Write, hooks(true, false)),
        4 => ("undo", Effect::Write, hooks(false, true)),
        _ => ("both", Effect::Write, hooks(true, true)),
    };
    tool(name, version, effect, hooks)
}

pub(super) fn some_calls(reply: &Reply) -> Vec<JudgedCall> {
    let judged = |(at, (kind, arguments, verdict)): (usize, &(u8, u8, u8))| {
        let (id, tool) = (format!("c{at}"), some_tool(*kind, "1"));
        let arguments = ["{}", r#"{"a":1}"#, r#"{ "b" : 2.0 }"#][usize::from(*arguments)];
        match verdict {
            0..3 => call(&id, tool, arguments, Verdict::Allow),
            3..6 => call(&id, tool, arguments, gated()),
            6 => call(&id, tool, arguments, Verdict::Deny),
            _ => JudgedCall {
                call: ToolCall {
                    id,
                    name: "nonsense".to_owned(),
                    arguments: "{".to_owned(),
                },
                judged: Err("not valid JSON".to_owned()),
            },
        }
    };
    reply.iter().enumerate().map(judged).collect()
}

pub(super) fn some_outcome(how: u8) -> Outcome {
    match how % 4 {
        0 | 1 => done("ok"),
        2 => failed("no"),
        _ => lost(),
    }
}

pub(super) fn some_lookup(how: u8) -> Lookup {
    match how % 6 {
        0 => Lookup::Committed {
            receipt: "r1".into(),
        },
        1..=3 => Lookup::NotFound,
        4 => Lookup::Partial {
            receipt: "half".into(),
        },
        _ => unsure(),
    }
}

pub(super) fn some_proof(state: &State, action: ActionId, how: u8) -> Proof {
    let mut proof = proof_of(&state.actions[&action]);
    match how % 12 {
        0 => proof.params_hash = Digest::of(b"something else"),
        1 => proof.tool_version = "9".to_owned(),
        _ => {}
    }
    proof
}

pub(super) fn some_decision(
    kind: DecisionKind,
    state: &State,
    action: ActionId,
    how: u8,
) -> Decision {
    match kind {
        DecisionKind::Approve => Decision::Approve,
        DecisionKind::Edit => {
            let name = state
                .actions
                .get(&action)
                .map_or("gone", |action| &action.tool.name);
            edit(name, ["{}", r#"{"e":1}"#][usize::from(how) % 2])
        }
        DecisionKind::Reject => reject(["", "no"][usize::from(how) % 2]),
        DecisionKind::Respond => Decision::Respond {
            message: "said".to_owned(),
        },
        DecisionKind::Committed => Decision::Committed {
            result: "known".into(),
        },
        DecisionKind::NotCommitted => Decision::NotCommitted,
        DecisionKind::Compensate => Decision::Compensate,
    }
}
