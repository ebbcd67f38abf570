//! What a definition says of a model's calls, and what a newer definition changes.

use std::collections::BTreeSet;

use holdpoint_core::{
    Action, Judged, JudgedCall, Params, RestatedCall, ToolCall, ToolNow, Verdict,
};

use crate::{Agent, agent::facts};

/// Judges the calls of one turn. What cannot be done at all is an error for the model, and no reason to stop the run.
pub(crate) fn judge(agent: &Agent, calls: Vec<ToolCall>) -> Vec<JudgedCall> {
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
            judged: judge_one(agent, &call),
            call,
        });
    }
    judged
}

fn judge_one(agent: &Agent, call: &ToolCall) -> Result<Judged, String> {
    let name = &call.name;
    let (Some(spec), Some(schema)) = (agent.definition.tool(name), agent.schema(name)) else {
        let known: Vec<&str> = agent
            .definition
            .tools
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
    let verdict = agent.definition.policy.judge(name);
    Ok(Judged {
        tool: facts(spec),
        schema,
        params,
        verdict,
    })
}

/// What the current definition changes for an action that was judged by an older one; `None` if nothing that matters.
pub(crate) fn drift(action: &Action, pinned: &Agent, current: &Agent) -> Option<RestatedCall> {
    let name = &action.tool.name;
    let mut changes = Vec::new();
    let Some(spec) = current.definition.tool(name) else {
        changes.push(format!("the tool `{name}` no longer exists"));
        return Some(RestatedCall {
            action: action.id,
            tool: ToolNow::Gone,
            changes,
        });
    };
    if spec.version != action.tool.version {
        changes.push(format!(
            "`{name}`: version `{}` became `{}`",
            action.tool.version, spec.version
        ));
    }
    let (old, new) = (pinned.schema(name), spec.schema_digest());
    if old != Some(new) {
        changes.push(format!("`{name}`: the schema of its arguments changed"));
    }
    let verdict = current.definition.policy.judge(name);
    if verdict.is_tighter_than(&action.verdict) {
        changes.push(match &verdict {
            Verdict::Deny => format!("`{name}`: the policy now denies it"),
            Verdict::Ask { allowed, .. } => {
                format!("`{name}`: the policy is stricter; it now allows {allowed}")
            }
            Verdict::Allow => format!("`{name}`: the policy changed"),
        });
    }
    if changes.is_empty() {
        return None;
    }
    let misfit = current.check(name, &action.params);
    if let Err(misfit) = &misfit {
        changes.push(format!("`{name}`: the arguments no longer fit: {misfit}"));
    }
    let tool = ToolNow::There {
        tool: facts(spec),
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
