//! Guardrails at work: everything that looks at a case looks at once, and whoever cannot say what it thinks lets nothing pass.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt as _, future::join_all};
use holdpoint_core::{
    Action, Ask, Case, Definition, Finding, Flag, FramePath, Guardrail, JudgedCall, Params,
    Principal, Requester, Verdict,
};
use holdpoint_tools::{Checker, checker_of};

use crate::{Agent, Error, Kit, judge::Caller};

/// How many calls of a turn are looked at together: each may start a program for every guardrail.
const AT_ONCE: usize = 4;
/// How long after its time a checker is given to report that it was stopped.
const GRACE: Duration = Duration::from_millis(500);

/// A guardrail, made ready to look.
#[derive(Debug)]
pub(crate) struct Guard {
    name: String,
    rule: Guardrail,
    checker: Arc<dyn Checker>,
}

/// The guardrails of a definition itself, without those of the agents above it.
pub(crate) fn guards(definition: &Definition, kit: &Kit) -> Result<Vec<Guard>, Error> {
    let ready = definition.guardrails.iter().map(|(name, rule)| {
        let checker = checker_of(rule, &kit.registry, &kit.watchdog);
        let checker = checker.map_err(|why| Error::Definition {
            agent: definition.name.clone(),
            reason: format!("the guardrail `{name}`: {why}"),
        })?;
        Ok(Guard {
            name: name.clone(),
            rule: rule.clone(),
            checker,
        })
    });
    ready.collect()
}

impl Guard {
    async fn look(&self, case: &Case) -> Option<Flag> {
        let looking = AssertUnwindSafe(self.checker.check(case)).catch_unwind();
        let time = Duration::from(self.rule.timeout);
        let found = tokio::time::timeout(time + GRACE, looking).await;
        let failed = |how: &str| Some(Flag::failed(&self.name, how));
        match found {
            Ok(Ok(Ok(Finding::Pass))) => None,
            Ok(Ok(Ok(Finding::Review { reason }))) => Some(Flag::new(&self.name, &reason)),
            Ok(Ok(Err(how))) => failed(&how),
            Ok(Err(_)) => failed("it panicked"),
            Err(_) => failed(&format!("it took longer than {time:?}")),
        }
    }
}

/// The guardrails over a frame: its agent's own, and those of all agents above, which nobody below can take away.
fn over<'a>(root: &'a Agent, frame: &FramePath) -> Vec<&'a Guard> {
    let lineage = root.lineage(frame).unwrap_or_default();
    lineage.into_iter().flat_map(Agent::guards).collect()
}

async fn flags(root: &Agent, frame: &FramePath, case: &Case) -> Vec<Flag> {
    let mut looking = Vec::new();
    for guard in over(root, frame) {
        if guard.rule.looks_at(case) {
            looking.push(guard.look(case));
        }
    }
    let found = join_all(looking).await;
    found.into_iter().flatten().collect()
}

/// Whether what the model of a frame says is looked at before anybody is told.
pub(crate) fn looks_at_words(root: &Agent, frame: &FramePath) -> bool {
    let mut over = over(root, frame).into_iter();
    over.any(|guard| guard.rule.looks_at_output())
}

/// What guardrails find in the words of a frame's model.
pub(crate) async fn flags_of_words(
    root: &Agent,
    frame: &FramePath,
    text: &str,
    user: &Principal,
) -> Vec<Flag> {
    if text.is_empty() || !looks_at_words(root, frame) {
        return Vec::new();
    }
    let case = Case::Output {
        agent: name_at(root, frame),
        frame: frame.clone(),
        text: text.to_owned(),
        user: Requester::from(user),
    };
    flags(root, frame, &case).await
}

/// Has guardrails look at the calls of a turn. They only tighten what was said of them.
pub(crate) async fn look_at_calls(caller: Caller<'_>, calls: &mut [JudgedCall]) {
    for together in calls.chunks_mut(AT_ONCE) {
        let mut looking = Vec::with_capacity(together.len());
        for call in together {
            looking.push(look_at_call(caller, call));
        }
        join_all(looking).await;
    }
}

async fn look_at_call(caller: Caller<'_>, call: &mut JudgedCall) {
    let Ok(one) = &mut call.judged else { return };
    if one.verdict == Verdict::Deny {
        return;
    }
    let flags = flags_of_call(caller, &one.tool.name, &one.params).await;
    let verdict = std::mem::replace(&mut one.verdict, Verdict::Deny);
    one.verdict = verdict.flagged(flags);
}

/// Why edited arguments are not let through: guardrails find something in them that whoever answers was not shown.
///
/// The question shows what they found in the call as it was. An edit is an approval at the same time, so it must not carry
/// anything past them that this person has not seen.
pub(crate) async fn edit_problem(
    caller: Caller<'_>,
    action: &Action,
    ask: &Ask,
    args: &Params,
) -> Option<String> {
    let found = flags_of_call(caller, &action.tool.name, args).await;
    let seen = action.verdict.flags();
    let told = |flag: &Flag| {
        let shown = ask.description.as_deref().unwrap_or_default();
        flag.is_known_from(seen) && shown.contains(&flag.reason)
    };
    let unseen: Vec<Flag> = found.into_iter().filter(|flag| !told(flag)).collect();
    (!unseen.is_empty()).then(|| {
        let lines = unseen.iter().map(|flag| {
            format!(
                "the guardrail `{}` flags this: {}",
                flag.guardrail, flag.reason
            )
        });
        lines.collect::<Vec<_>>().join("; ")
    })
}

async fn flags_of_call(caller: Caller<'_>, tool: &str, args: &Params) -> Vec<Flag> {
    if over(caller.root, caller.frame).is_empty() {
        return Vec::new();
    }
    let case = Case::Call {
        agent: name_at(caller.root, caller.frame),
        frame: caller.frame.clone(),
        tool: tool.to_owned(),
        args: args.to_value(),
        user: Requester::from(caller.user),
    };
    flags(caller.root, caller.frame, &case).await
}

fn name_at(root: &Agent, frame: &FramePath) -> String {
    let agent = root.at(frame);
    agent.map_or_else(String::new, |agent| agent.definition.name.clone())
}
