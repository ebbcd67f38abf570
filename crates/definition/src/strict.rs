//! `strict`: what a subagent's policy says may only tighten what the agent above says.
//!
//! Whoever judges a call keeps to both policies anyway. Here a file is refused that could not mean what it says: where
//! the agent above always says the same of a tool, and the subagent's own words would in some case allow more.

use holdpoint_core::{Allowed, Definition, Gate, Policy, Ruling, Terms, Verdict};
use holdpoint_yaml::{Field, Fields, Report, quoted};

use crate::{
    parts::{Parts, has_subagents},
    policy,
};

/// Reports every tool of the subagent with these `fields` and `parts` of which it says less than its strict `parent`.
pub(crate) fn check(
    fields: &Fields<'_>,
    parts: &Parts,
    parent: &Parts,
    asks: &Allowed,
    report: &mut Report,
) {
    let gates = fields.optional("interrupt_on");
    let default = fields.optional("default");
    let (Some(true), Some(above), Some(own), Some(tools)) =
        (parent.strict, &parent.policy, &parts.policy, &parts.tools)
    else {
        return;
    };
    let Some(place) = gates.as_ref().or(default.as_ref()) else {
        // It is the policy of the agent above.
        return;
    };
    let above = policy::complete(above.clone(), asks);
    let own = policy::complete(own.clone(), asks);
    let task = has_subagents(fields).then_some(Definition::TASK);
    for tool in tools.names.iter().map(String::as_str).chain(task) {
        let Some(floor) = settled(&above, tool) else {
            continue;
        };
        if outcomes(&own, tool)
            .iter()
            .any(|outcome| floor.is_tighter_than(outcome))
        {
            let message = format!(
                "the agent above is `strict`, and this allows more than it does of {}",
                quoted(tool)
            );
            let help =
                "ask at least as often and allow no other decisions, or take `strict` away above";
            entry(place, tool).problem(&message, help, report);
        }
    }
}

/// The entry of `interrupt_on` that is about a tool; the place itself if there is none.
fn entry<'a>(place: &Field<'a>, tool: &str) -> Field<'a> {
    let named = place.follow(&format!("/{tool}"));
    if named.path == place.path {
        place.follow(&format!("/{}", Policy::ANY))
    } else {
        named
    }
}

fn gate<'p>(policy: &'p Policy, tool: &str) -> Option<&'p Gate> {
    let gates = &policy.interrupt_on;
    gates.get(tool).or_else(|| gates.get(Policy::ANY))
}

/// What a policy says of a tool, where that is the same for every call.
fn settled(policy: &Policy, tool: &str) -> Option<Verdict> {
    let plain = gate(policy, tool).is_none_or(|gate| gate.rules.is_empty());
    plain
        .then(|| outcomes(policy, tool))
        .and_then(|mut one| one.pop())
}

/// Everything that a policy could say of a tool.
fn outcomes(policy: &Policy, tool: &str) -> Vec<Verdict> {
    let Some(gate) = gate(policy, tool) else {
        return vec![verdict(policy.default, &Terms::new(Allowed::standard()))];
    };
    let rulings = gate.rules.iter().map(|rule| rule.then);
    let rulings = rulings.chain([gate.otherwise]);
    rulings.map(|ruling| verdict(ruling, &gate.terms)).collect()
}

fn verdict(ruling: Ruling, terms: &Terms) -> Verdict {
    match ruling {
        Ruling::Allow if !terms.always_ask => Verdict::Allow,
        Ruling::Allow | Ruling::Interrupt => Verdict::Ask(terms.clone()),
        Ruling::Deny => Verdict::Deny,
    }
}
