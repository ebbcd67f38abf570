//! What can happen in a random life, and what is made of a random number.

use holdpoint_core::{
    ActionId, Allowed, Decision, DecisionKind, Digest, Effect, Flag, GrantTerms, Hooks, JudgedCall,
    Lookup, Matches, OnTimeout, Outcome, Proof, Scope, Span, State, Terms, ToolCall, ToolKind,
    Verdict,
};
use proptest::prelude::*;

use crate::thread::{
    call, done, edit, failed, gated, gated_for, lost, proof_of, reject, tool, unsure,
};

#[derive(Debug, Clone)]
pub(super) enum Move {
    /// The clock goes on, or jumps back.
    Clock(i64),
    /// Somebody looks whether something is due; perhaps when it is.
    Tick(bool),
    StartRun(u8),
    Cancel,
    Pause,
    Continue,
    /// A grant is taken back.
    Revoke(u8),
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
    /// The store is restored from a backup that was made now; perhaps somebody adopts it twice.
    Restore(bool),
    /// A command about anything at all.
    Stray(u8, u8),
}

/// What a model says: its calls, each as (tool, arguments, verdict).
pub(super) type Reply = Vec<(u8, u8, u8)>;

pub(super) fn reply() -> impl Strategy<Value = Reply> {
    prop::collection::vec((0..9_u8, 0..3_u8, 0..12_u8), 0..4)
}

pub(super) fn a_move() -> impl Strategy<Value = Move> {
    let small = || any::<u8>();
    prop_oneof![
        2 => prop_oneof![Just(1), Just(61), Just(70), Just(10_000), Just(-40), Just(-100_000)].prop_map(Move::Clock),
        2 => small().prop_map(Move::StartRun),
        1 => Just(Move::Cancel),
        1 => Just(Move::Pause),
        2 => Just(Move::Continue),
        3 => any::<bool>().prop_map(Move::Tick),
        1 => small().prop_map(Move::Revoke),
        20 => (small(), reply(), small()).prop_map(|(which, reply, how)| Move::Work(which, reply, how)),
        4 => (small(), small()).prop_map(|(which, how)| Move::Report(which, how)),
        7 => (small(), prop::collection::vec(small(), 4), small(), small())
            .prop_map(|(which, decisions, who, form)| Move::Answer { which, decisions, who, form }),
        2 => (small(), small(), small()).prop_map(|(which, actions, how)| Move::Restate { which, actions, how }),
        1 => any::<bool>().prop_map(Move::Restore),
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
        6 => ("order", Effect::Write, hooks(false, false)),
        7 => ("trip", Effect::Read, hooks(true, true)),
        8 => ("task", Effect::Read, hooks(false, false)),
        0 => ("read", Effect::Read, hooks(false, false)),
        1 => ("put", Effect::Idempotent, hooks(false, false)),
        2 => ("write", Effect::Write, hooks(false, false)),
        3 => ("lookup", Effect::Write, hooks(true, false)),
        4 => ("undo", Effect::Write, hooks(false, true)),
        _ => ("both", Effect::Write, hooks(true, true)),
    };
    holdpoint_core::ToolFacts {
        kind: match kind {
            6 | 7 => ToolKind::Stepped,
            8 => ToolKind::Task,
            _ => ToolKind::Plain,
        },
        ..tool(name, version, effect, hooks)
    }
}

/// What a model at this depth wants done.
pub(super) fn some_calls(reply: &Reply, depth: usize) -> Vec<JudgedCall> {
    let judged = |(at, (kind, arguments, verdict)): (usize, &(u8, u8, u8))| {
        let kind = if *kind == 8 && depth >= 3 { 0 } else { *kind };
        let (id, tool) = (format!("c{at}"), some_tool(kind, "1"));
        let arguments = if kind == 8 {
            r#"{"description":"do it","subagent_type":"a"}"#
        } else {
            ["{}", r#"{"a":1}"#, r#"{ "b" : 2.0 }"#][usize::from(*arguments)]
        };
        match verdict {
            0..3 => call(&id, tool, arguments, Verdict::Allow),
            3..6 => call(&id, tool, arguments, gated()),
            6 => call(&id, tool, arguments, Verdict::Deny),
            7 => call(&id, tool, arguments, gated_for(60, OnTimeout::Reject)),
            8 => call(&id, tool, arguments, gated_for(60, OnTimeout::Expire)),
            9 => {
                let terms = Terms {
                    always_ask: true,
                    ..Terms::new(Allowed::standard())
                };
                call(&id, tool, arguments, Verdict::Ask(terms))
            }
            10 => {
                let flags = vec![Flag::new("cards", "a number")];
                let verdict = [Verdict::Allow, gated()][at % 2].clone();
                call(&id, tool, arguments, verdict.flagged(flags))
            }
            _ => JudgedCall {
                id: ActionId::from_bytes([0; 16]),
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
    match how % 16 {
        0 => proof.params_hash = Digest::of(b"something else"),
        1 => proof.tool_version = "9".to_owned(),
        2 => proof.granted = false,
        3 => proof.lacking = Some("money".to_owned()),
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
        DecisionKind::Approve => Decision::Approve {
            grant: some_grant(state, action, how),
        },
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
        DecisionKind::Answer => Decision::Answer { value: "so".into() },
    }
}

/// Something that is allowed for further calls, where the approval of a call can.
fn some_grant(state: &State, action: ActionId, how: u8) -> Option<GrantTerms> {
    let asked = match &state.actions.get(&action)?.verdict {
        Verdict::Ask(terms) => !terms.always_ask,
        Verdict::Allow | Verdict::Deny => true,
    };
    let matches = [Matches::Tool, Matches::Args, Matches::All][usize::from(how) % 3];
    let scope = if how % 11 == 10 && matches != Matches::All {
        Scope::Agent
    } else {
        Scope::Thread
    };
    (asked && how % 4 == 1).then(|| GrantTerms {
        scope,
        matches,
        expires_in: how.is_multiple_of(5).then(|| Span::from_secs(60)),
        uses: how.is_multiple_of(3).then_some(2),
    })
}
