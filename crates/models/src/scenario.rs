//! What a scripted model plays: rules, checked and ready to be matched.

mod document;
mod duration;
mod template;

use std::{fmt, fs, path::Path, time::Duration};

use holdpoint_core::Message;

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
    pub(crate) line: u64,
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
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(error) => {
                let text = format!("the scenario cannot be read: {error}");
                Err(BadScenario {
                    problems: vec![Problem {
                        file,
                        place: None,
                        text,
                    }],
                })
            }
        }
    }

    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, BadScenario> {
        let mut problems = Problems {
            file,
            list: Vec::new(),
        };
        let rules = document::read(text, &mut problems);
        if problems.list.is_empty() {
            Ok(Self {
                file: file.to_owned(),
                rules,
            })
        } else {
            Err(BadScenario {
                problems: problems.list,
            })
        }
    }

    pub(crate) fn rule_at(&self, position: &Position<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.when.holds(position))
    }
}

impl When {
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
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BadScenario {}

/// One thing that is wrong with a scenario file. Prints as `file:line:column: what, and what would be right`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    file: String,
    place: Option<(u64, u64)>,
    text: String,
}

impl Problem {
    /// The line, counted from 1, unless it concerns the file as a whole.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.place.map(|(line, _)| line)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, place, text } = self;
        match place {
            Some((line, column)) => write!(f, "{file}:{line}:{column}: {text}"),
            None => write!(f, "{file}: {text}"),
        }
    }
}

/// What was found wrong so far.
struct Problems<'a> {
    file: &'a str,
    list: Vec<Problem>,
}

impl Problems<'_> {
    fn add(&mut self, place: impl Into<Option<(u64, u64)>>, text: impl Into<String>) {
        self.list.push(Problem {
            file: self.file.to_owned(),
            place: place.into(),
            text: text.into(),
        });
    }
}
