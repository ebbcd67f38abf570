//! What a definition says of a model's calls, and what a newer definition changes.

use std::collections::BTreeSet;

use holdpoint_core::{
    Action, FramePath, Judged, JudgedCall, Judgement, Params, Principal, RestatedCall, Seed,
    ToolCall, ToolFacts, ToolNow, Verdict,
};

use crate::{Agent, words::CallFacts};

/// Whose calls are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// The run's own agent.
    pub(crate) root: &'a Agent,
    /// The frame that calls.
    pub(crate) frame: &'a FramePath,
    /// Who asked for the run.
    pub(crate) user: &'a Principal,
}

impl<'a> Caller<'a> {
    fn agent(&self) -> Option<&'a Agent> {
        self.root.at(self.frame)
    }

    /// What the policy says of a call: the agent's own, and as a floor those of the strict agents above it.
    pub(crate) fn verdict(&self, tool: &ToolFacts, params: &Params) -> Judgement {
        let lineage = self.root.lineage(self.frame).unwrap_or_default();
        let judge = |agent: &Agent| {
            let call = CallFacts {
                agent: &agent.definition.name,
                path: self.frame.as_str(),
                tool,
                params,
                user: self.user,
            };
            let policy = &agent.definition.policy;
            policy.judge(&tool.name, &agent.words().about(call))
        };
        let Some((agent, above)) = lineage.split_last() else {
            return Judgement {
                verdict: Verdict::Deny,
                rule: Some("there is no such subagent".to_owned()),
            };
        };
        if let Some(missing) = agent.forbids(&tool.name, self.user) {
            return Judgement {
                verdict: Verdict::Deny,
                rule: Some(format!("the requester lacks the permission `{missing}`")),
            };
        }
        let mut judgement = judge(agent);
        for strict in above.iter().filter(|agent| agent.definition.strict) {
            let floor = judge(strict);
            if floor.verdict.is_tighter_than(&judgement.verdict) {
                judgement.rule = floor.rule;
            }
            judgement.verdict = judgement.verdict.meet(&floor.verdict);
        }
        judgement
    }
}

/// Judges the calls of one turn. What cannot be done at all is an error for the model, and no reason to stop the run.
pub(crate) fn judge(caller: Caller<'_>, calls: Vec<ToolCall>, seed: &mut Seed) -> Vec<JudgedCall> {
    each(calls, seed, |call| judge_one(caller, call))
}

/// Refuses the calls of one turn, whatever they are.
pub(crate) fn refused(calls: Vec<ToolCall>, why: &str, seed: &mut Seed) -> Vec<JudgedCall> {
    each(calls, seed, |_| Err(why.to_owned()))
}

fn each(
    calls: Vec<ToolCall>,
    seed: &mut Seed,
    judge: impl Fn(&ToolCall) -> Result<Judged, String>,
) -> Vec<JudgedCall> {
    let mut ids = BTreeSet::new();
    let mut judged = Vec::with_capacity(calls.len());
    for (at, mut call) in calls.into_iter().enumerate() {
        // Results are matched to calls by their id, so a model that gives none or repeats one gets fresh ones.
        if call.id.is_empty() {
            call.id = format!("call_{}", at + 1);
        }
        while !ids.insert(call.id.clone()) {
            call.id.push_str("_again");
        }
        judged.push(JudgedCall {
            id: seed.action_id(),
            judged: judge(&call),
            call,
        });
    }
    judged
}

fn judge_one(caller: Caller<'_>, call: &ToolCall) -> Result<Judged, String> {
    let name = &call.name;
    let Some(agent) = caller.agent() else {
        return Err("There is no such subagent any more.".to_owned());
    };
    let Some(schema) = agent.schema(name) else {
        let known: Vec<&str> = agent
            .offered()
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        return Err(format!(
            "There is no tool `{name}`. Available tools: {}.",
            known.join(", ")
        ));
    };
    let arguments = if call.arguments.trim().is_empty() {
        "{}"
    } else {
        &call.arguments
    };
    let params = Params::parse(arguments).map_err(|error| {
        format!("The arguments for `{name}` were refused and nothing was executed: {error}.")
    })?;
    agent.check(name, &params).map_err(|misfit| {
        format!(
            "The arguments for `{name}` do not fit its schema and nothing was executed: {misfit}."
        )
    })?;
    let Some(tool) = agent.facts(name, &params) else {
        return Err(format!("The tool `{name}` cannot be used like this."));
    };
    let Judgement { verdict, rule } = caller.verdict(&tool, &params);
    Ok(Judged {
        tool,
        schema,
        params,
        verdict,
        rule,
        reserved: None,
        shown: None,
    })
}

/// What the current definition changes for an action that was judged by an older one; `None` if nothing that matters.
pub(crate) fn drift(action: &Action, pinned: &Agent, current: Caller<'_>) -> Option<RestatedCall> {
    let name = &action.tool.name;
    let mut changes = Vec::new();
    let agent = current.agent();
    let now = agent.and_then(|agent| Some((agent, agent.facts(name, &action.params)?)));
    let Some((agent, tool)) = now else {
        changes.push(format!("the tool `{name}` no longer exists"));
        return Some(RestatedCall {
            action: action.id,
            tool: ToolNow::Gone,
            changes,
        });
    };
    if tool.version != action.tool.version {
        changes.push(format!(
            "`{name}`: version `{}` became `{}`",
            action.tool.version, tool.version
        ));
        changes.extend(described_otherwise(name, pinned.at(&action.frame), agent));
    }
    let old = pinned
        .at(&action.frame)
        .and_then(|agent| agent.schema(name));
    let new = agent.schema(name).unwrap_or_default();
    if old != Some(new) {
        changes.push(format!("`{name}`: the schema of its arguments changed"));
    }
    let verdict = current.verdict(&tool, &action.params).verdict;
    if verdict.is_tighter_than(&action.verdict) {
        changes.push(match &verdict {
            Verdict::Deny => format!("`{name}`: the policy now denies it"),
            Verdict::Ask(terms) => {
                format!(
                    "`{name}`: the policy is stricter; it now allows {}",
                    terms.allowed
                )
            }
            Verdict::Allow => format!("`{name}`: the policy changed"),
        });
    }
    if changes.is_empty() {
        return None;
    }
    let misfit = agent.check(name, &action.params);
    if let Err(misfit) = &misfit {
        changes.push(format!("`{name}`: the arguments no longer fit: {misfit}"));
    }
    let tool = ToolNow::There {
        tool,
        schema: new,
        verdict,
        fits: misfit.is_ok(),
    };
    Some(RestatedCall {
        action: action.id,
        tool,
        changes,
    })
}

/// How a tool was described, and is now, where that differs. A tool of somebody else's server may be another one by now.
fn described_otherwise(name: &str, before: Option<&Agent>, now: &Agent) -> Option<String> {
    let described = |agent: &Agent| {
        let tool = agent.definition.tool(name)?;
        let text = tool.description.trim();
        let mut short: String = text.chars().take(MAX_DESCRIBED).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        Some(short)
    };
    let (before, now) = (described(before?)?, described(now)?);
    let differs = before != now;
    differs.then(|| format!("`{name}` was described as “{before}”, and now as “{now}”"))
}

/// How much of a description is shown, in characters.
const MAX_DESCRIBED: usize = 300;
