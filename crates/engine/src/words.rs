//! What a policy's own words say of one call: its conditions and texts, compiled once.

use std::collections::BTreeMap;

use holdpoint_core::{Conditions, Definition, Params, Principal, ToolFacts};
use holdpoint_policy::{Agent, Condition, Facts, Template, Tool};

use crate::Error;

/// The conditions and texts of one policy, by their source.
#[derive(Debug, Default)]
pub(crate) struct Words {
    conditions: BTreeMap<String, Condition>,
    templates: BTreeMap<String, Template>,
}

impl Words {
    pub(crate) fn new(definition: &Definition) -> Result<Self, Error> {
        let unusable = |reason: String| Error::Definition {
            agent: definition.name.clone(),
            reason,
        };
        let mut words = Self::default();
        for gate in definition.policy.interrupt_on.values() {
            for rule in &gate.rules {
                let condition = Condition::compile(&rule.when)
                    .map_err(|bad| unusable(format!("the condition `{}`: {bad}", rule.when)))?;
                words.conditions.insert(rule.when.clone(), condition);
            }
            if let Some(text) = &gate.terms.description {
                let template = Template::compile(text)
                    .map_err(|bad| unusable(format!("the description `{text}`: {bad}")))?;
                words.templates.insert(text.clone(), template);
            }
        }
        Ok(words)
    }

    /// What they say of this call.
    pub(crate) const fn about<'a>(&'a self, call: CallFacts<'a>) -> About<'a> {
        About { words: self, call }
    }
}

/// A call that is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallFacts<'a> {
    pub(crate) agent: &'a str,
    pub(crate) path: &'a str,
    pub(crate) tool: &'a ToolFacts,
    pub(crate) params: &'a Params,
    pub(crate) user: &'a Principal,
}

/// A policy's words about one call.
#[derive(Debug)]
pub(crate) struct About<'a> {
    words: &'a Words,
    call: CallFacts<'a>,
}

impl About<'_> {
    fn facts(&self) -> Facts<'_> {
        Facts {
            args: self.call.params,
            tool: Tool::from(self.call.tool),
            agent: Agent {
                name: self.call.agent,
                path: self.call.path,
            },
            user: self.call.user,
        }
    }
}

impl Conditions for About<'_> {
    fn holds(&self, condition: &str) -> Result<bool, String> {
        match self.words.conditions.get(condition) {
            Some(condition) => condition
                .evaluate(&self.facts())
                .map_err(|unclear| unclear.to_string()),
            None => Err("it was not compiled".to_owned()),
        }
    }

    fn describe(&self, template: &str) -> Option<String> {
        let template = self.words.templates.get(template)?;
        template.render(&self.facts()).ok()
    }
}
