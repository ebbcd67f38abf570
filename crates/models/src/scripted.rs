//! The model that plays a scenario file; [`Scripted`] says how one is written.

use std::path::Path;

use async_trait::async_trait;
use holdpoint_core::{McpServer, Message, ToolCall, ToolSpec};

use crate::{
    BadScenario, Delta, Failure, Model, Problem, Reply, Request,
    scenario::{Position, Rule, Scenario, Speech},
};

/// How much of what was last said an error quotes.
const QUOTED_CHARS: usize = 200;

#[doc = include_str!("scripted.md")]
#[derive(Debug)]
pub struct Scripted {
    scenario: Scenario,
}

impl Scripted {
    /// Reads a scenario file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, each with file and line.
    pub fn load(path: &Path) -> Result<Self, BadScenario> {
        Scenario::load(path).map(|scenario| Self { scenario })
    }

    /// Takes a scenario's text; `file` is what errors call it.
    ///
    /// # Errors
    ///
    /// As [`Scripted::load`].
    pub fn parse(file: &str, text: &str) -> Result<Self, BadScenario> {
        Scenario::parse(file, text).map(|scenario| Self { scenario })
    }
}

impl Scripted {
    /// Warns of every call of a tool that is none of these, nor of a server whose tools are not known yet. It may be meant:
    /// real models do that.
    #[must_use]
    pub fn unknown_tools(&self, tools: &[ToolSpec], servers: &[McpServer]) -> Vec<Problem> {
        self.scenario.unknown_tools(tools, servers)
    }
}

#[async_trait]
impl Model for Scripted {
    async fn turn(
        &self,
        request: Request<'_>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        let position = Position::of(request.messages);
        let rule = self
            .scenario
            .rule_at(&position)
            .ok_or_else(|| self.no_rule(&position))?;
        if !rule.delay.is_zero() {
            tokio::time::sleep(rule.delay).await;
        }
        if let Some(failure) = rule.failure_of(request.attempt) {
            return Err(failure);
        }
        let mut text = String::new();
        for chunk in self.chunks(rule, &position)? {
            if !rule.pace.is_zero() && !text.is_empty() {
                tokio::time::sleep(rule.pace).await;
            }
            text.push_str(&chunk);
            deltas(Delta::Text(chunk));
        }
        Ok(Reply {
            text,
            calls: calls(rule, &position),
            ..Reply::default()
        })
    }
}

impl Scripted {
    fn chunks(&self, rule: &Rule, position: &Position<'_>) -> Result<Vec<String>, Failure> {
        let nothing_there = |place| {
            let (file, line) = (&self.scenario.file, rule.line);
            Failure::Rejected {
                reason: format!(
                    "{file}:{line}: there is nothing yet that `{place}` could stand for"
                ),
            }
        };
        match &rule.speech {
            Speech::Nothing => Ok(Vec::new()),
            Speech::Say(text) => {
                let text = text.fill(position).map_err(nothing_there)?;
                Ok(text
                    .split_inclusive(char::is_whitespace)
                    .map(str::to_owned)
                    .collect())
            }
            Speech::Chunks(chunks) => chunks
                .iter()
                .map(|chunk| chunk.fill(position).map_err(nothing_there))
                .collect(),
        }
    }

    fn no_rule(&self, position: &Position<'_>) -> Failure {
        let last = match position.last_message() {
            None => "nothing was said yet".to_owned(),
            Some(Message::User { content }) => format!("the user said {}", quote(content)),
            Some(Message::Assistant { content, .. }) => {
                format!("the model said {}", quote(content))
            }
            Some(Message::Tool { name, content, .. }) => {
                format!("the tool `{name}` returned {}", quote(content))
            }
            Some(_) => "the last message is of an unknown kind".to_owned(),
        };
        let (file, turn) = (&self.scenario.file, position.turn);
        Failure::Rejected {
            reason: format!("no rule of {file} fits turn {turn}, where {last}"),
        }
    }
}

fn calls(rule: &Rule, position: &Position<'_>) -> Vec<ToolCall> {
    let turn = position.overall_turn;
    let planned = rule.calls.iter().zip(1..);
    planned
        .map(|(call, number): (_, u64)| ToolCall {
            id: call
                .id
                .clone()
                .unwrap_or_else(|| format!("call_{turn}_{number}")),
            name: call.tool.clone(),
            arguments: call.arguments.clone(),
        })
        .collect()
}

fn quote(text: &str) -> String {
    let short: String = text.chars().take(QUOTED_CHARS).collect();
    let more = if short.len() < text.len() { " …" } else { "" };
    format!("`{}`{more}", short.escape_debug())
}
