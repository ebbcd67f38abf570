//! What a scripted model plays: rules, checked and ready to be matched.

mod document;
mod template;

use std::{fmt, path::Path, time::Duration};

use holdpoint_core::{McpServer, Message, ToolSpec};
use holdpoint_yaml::{Position as Place, Problem, Report, suggest};

pub(crate) use template::Template;

use crate::Failure;

/// A scenario, in the order in which its rules are tried.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) file: String,
    pub(crate) rules: Vec<Rule>,
}

/// What is said when.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) line: usize,
    when: When,
    pub(crate) speech: Speech,
    pub(crate) calls: Vec<PlannedCall>,
    pub(crate) delay: Duration,
    pub(crate) pace: Duration,
    fail: Option<Fail>,
}

/// All that is given must hold.
#[derive(Debug)]
struct When {
    user: Option<String>,
    said: Option<String>,
    from: u64,
    to: u64,
    tool: Option<String>,
    result: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Speech {
    Nothing,
    /// Streamed word by word.
    Say(Template),
    /// Streamed as given.
    Chunks(Vec<Template>),
}

#[derive(Debug)]
pub(crate) struct PlannedCall {
    pub(crate) tool: String,
    /// Where the tool is named: in the file, and in its tree.
    at: Place,
    path: String,
    pub(crate) arguments: String,
    pub(crate) id: Option<String>,
}

#[derive(Debug)]
struct Fail {
    /// The attempts that fail; all if absent.
    times: Option<u32>,
    with: Failure,
}

impl Scenario {
    pub(crate) fn load(path: &Path) -> Result<Self, BadScenario> {
        let file = path.display().to_string();
        let text = holdpoint_yaml::read_file(path, &file).map_err(|problem| BadScenario {
            problems: vec![problem],
        })?;
        Self::parse(&file, &text)
    }

    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, BadScenario> {
        let mut report = Report::new(file);
        let root = holdpoint_yaml::parse(text, document::KIND, &mut report);
        let rules = root.and_then(|root| document::read(&root, &mut report));
        match (report.finish(), rules) {
            (Ok(_), Some(rules)) => Ok(Self {
                file: file.to_owned(),
                rules,
            }),
            (Err(problems), _) => Err(BadScenario {
                problems: problems.as_slice().to_vec(),
            }),
            // INVARIANT: nothing is left out without a problem, which `finish` has returned.
            (Ok(_), None) => Err(BadScenario {
                problems: vec![Problem::of_file(file, "cannot be read")],
            }),
        }
    }

    /// The calls of tools that are none of these, nor of servers whose tools are not known yet.
    pub(crate) fn unknown_tools(&self, tools: &[ToolSpec], servers: &[McpServer]) -> Vec<Problem> {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut report = Report::new(&self.file);
        for call in self.rules.iter().flat_map(|rule| &rule.calls) {
            let mut unlisted = servers.iter().filter(|server| !server.listed);
            if !names.contains(&call.tool.as_str())
                && !unlisted.any(|server| server.has_named(&call.tool))
            {
                let message = format!("the agent has no tool `{}`", call.tool);
                let otherwise = "the model is told so and goes on; correct it unless that is meant";
                let help = suggest(&call.tool, &names, otherwise);
                report.warning(call.at, &call.path, &message, &help);
            }
        }
        // INVARIANT: only warnings were noted.
        report.finish().unwrap_or_default()
    }

    pub(crate) fn rule_at(&self, position: &Position<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.when.holds(position))
    }
}

impl Default for When {
    fn default() -> Self {
        Self {
            user: None,
            said: None,
            from: Self::FIRST_TURN,
            to: Self::LAST_TURN,
            tool: None,
            result: None,
        }
    }
}

impl When {
    const FIRST_TURN: u64 = 1;
    const LAST_TURN: u64 = u64::MAX;

    /// The cheap conditions come first: a loop of many turns is decided by its turn alone.
    fn holds(&self, position: &Position<'_>) -> bool {
        (self.from..=self.to).contains(&position.turn)
            && self
                .tool
                .as_ref()
                .is_none_or(|tool| position.tool() == Some(tool))
            && self
                .user
                .as_ref()
                .is_none_or(|part| position.user.is_some_and(|user| user.contains(part)))
            && self
                .said
                .as_ref()
                .is_none_or(|part| position.said().is_some_and(|said| said.contains(part)))
            && self
                .result
                .as_ref()
                .is_none_or(|part| position.results().any(|result| result.contains(part)))
    }
}

impl Rule {
    pub(crate) fn failure_of(&self, attempt: u32) -> Option<Failure> {
        let fail = self.fail.as_ref()?;
        fail.times
            .is_none_or(|times| attempt <= times)
            .then(|| fail.with.clone())
    }
}

/// Where a conversation stands. Made in one pass that looks at no text.
#[derive(Debug)]
pub(crate) struct Position<'a> {
    messages: &'a [Message],
    since_user: &'a [Message],
    pub(crate) user: Option<&'a str>,
    /// The turn now to come, counted from the last user message.
    pub(crate) turn: u64,
    /// The turn now to come, counted from the beginning.
    pub(crate) overall_turn: u64,
}

impl<'a> Position<'a> {
    pub(crate) fn of(messages: &'a [Message]) -> Self {
        let last_user = messages.iter().enumerate().rev().find_map(|(at, message)| {
            if let Message::User { content } = message {
                Some((at, content.as_str()))
            } else {
                None
            }
        });
        let (before, since_user) = messages.split_at(last_user.map_or(0, |(at, _)| at));
        let turn = turns(since_user) + 1;
        let user = last_user.map(|(_, content)| content);
        Self {
            messages,
            since_user,
            user,
            turn,
            overall_turn: turns(before) + turn,
        }
    }

    /// The tool whose result was the last message.
    fn tool(&self) -> Option<&'a String> {
        if let Some(Message::Tool { name, .. }) = self.messages.last() {
            Some(name)
        } else {
            None
        }
    }

    /// What the model said last.
    fn said(&self) -> Option<&'a str> {
        self.messages.iter().rev().find_map(|message| {
            if let Message::Assistant { content, .. } = message {
                Some(content.as_str())
            } else {
                None
            }
        })
    }

    fn results(&self) -> impl Iterator<Item = &'a str> {
        self.since_user.iter().filter_map(result_of)
    }

    pub(crate) fn last_result(&self) -> Option<&'a str> {
        self.messages.iter().rev().find_map(result_of)
    }

    pub(crate) fn last_message(&self) -> Option<&'a Message> {
        self.messages.last()
    }
}

fn result_of(message: &Message) -> Option<&str> {
    if let Message::Tool { content, .. } = message {
        Some(content)
    } else {
        None
    }
}

fn turns(messages: &[Message]) -> u64 {
    messages
        .iter()
        .filter(|message| matches!(message, Message::Assistant { .. }))
        .count() as u64
}

/// A scenario file that cannot be played, with all that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadScenario {
    problems: Vec<Problem>,
}

impl BadScenario {
    /// Everything that is wrong; never empty.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for BadScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{}", problem.in_one_line())?;
        }
        Ok(())
    }
}

impl std::error::Error for BadScenario {}
