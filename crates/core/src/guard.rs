//! Guardrails: checkers that look at calls before they are made, and at what models say before anybody is told. What one of
//! them does not like is put before a person, as a review.
//!
//! A guardrail only tightens. What the policy denies stays denied, and what it asks about is asked about. One that cannot
//! say what it thinks of something has not let it pass.
//!
//! ```
//! use holdpoint_core::{Case, Finding, Guardrail};
//! let careful = Guardrail::keywords(["wire transfer"]);
//! let case = Case::output("clerk", "I shall start the WIRE  transfer now.");
//! let found = careful.pure_finding(&case).unwrap();
//! assert_eq!(found, Finding::review("it says `wire transfer`"));
//! ```

mod case;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use case::{Case, Requester};

use crate::{Allowed, Carried, HttpHeader, Params, Span, Terms, ToolCall, Usage, Verdict};

/// A guardrail: what looks, at what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guardrail {
    /// What looks.
    pub by: CheckedBy,
    /// What it looks at.
    pub on: BTreeSet<Guarded>,
    /// Of calls, only those of these tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeSet<String>>,
    /// How long it may take to say what it thinks.
    pub timeout: Span,
}

/// What a guardrail can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guarded {
    /// Calls of tools, before they are made.
    Calls,
    /// What a model says, before anybody is told.
    Output,
}

/// What looks for a guardrail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CheckedBy {
    /// A program: the case as JSON on its standard input.
    Command {
        /// Program and arguments.
        command: Vec<String>,
        /// The folder it runs in.
        cwd: String,
    },
    /// A server: the case as the body of a `POST`.
    Http {
        /// Whom to ask.
        url: String,
        /// What is sent along.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, HttpHeader>,
        /// Hosts that may have private addresses, and addresses that are fine though they are not public.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allow_private: Vec<String>,
    },
    /// Words, any of which is enough. Upper and lower case are the same, and so is all white space.
    Keywords {
        /// The words.
        keywords: Vec<String>,
    },
    /// Code of the embedding program, registered under this name.
    Code {
        /// The name.
        name: String,
    },
}

/// Building one in code.
impl Guardrail {
    /// How long a checker may take, unless the definition says otherwise.
    pub const DEFAULT_TIMEOUT: Span = Span::from_secs(10);
    /// How many of them may look at one agent: its own, and those of the agents above it.
    pub const MAX: usize = 16;
    /// The longest keyword, in characters.
    pub const MAX_KEYWORD: usize = 200;

    /// Looks at calls and output alike.
    #[must_use]
    pub fn new(by: CheckedBy) -> Self {
        Self {
            by,
            on: BTreeSet::from([Guarded::Calls, Guarded::Output]),
            tools: None,
            timeout: Self::DEFAULT_TIMEOUT,
        }
    }

    /// By words, any of which is enough.
    #[must_use]
    pub fn keywords<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        let keywords = words.into_iter().map(Into::into).collect();
        Self::new(CheckedBy::Keywords { keywords })
    }

    /// By code of the embedding program, registered under this name.
    #[must_use]
    pub fn code(name: impl Into<String>) -> Self {
        Self::new(CheckedBy::Code { name: name.into() })
    }

    /// By a program, which runs in this folder.
    #[must_use]
    pub fn command<W: Into<String>>(
        command: impl IntoIterator<Item = W>,
        cwd: impl Into<String>,
    ) -> Self {
        Self::new(CheckedBy::Command {
            command: command.into_iter().map(Into::into).collect(),
            cwd: cwd.into(),
        })
    }

    /// Looks only at calls.
    #[must_use]
    pub fn only_calls(mut self) -> Self {
        self.on = BTreeSet::from([Guarded::Calls]);
        self
    }

    /// Looks only at what models say.
    #[must_use]
    pub fn only_output(mut self) -> Self {
        self.on = BTreeSet::from([Guarded::Output]);
        self
    }

    /// Of calls, looks only at those of these tools.
    #[must_use]
    pub fn of_tools<N: Into<String>>(mut self, tools: impl IntoIterator<Item = N>) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Gives its checker so long.
    #[must_use]
    pub const fn within(mut self, timeout: Span) -> Self {
        self.timeout = timeout;
        self
    }
}

impl Guardrail {
    /// Whether it looks at this.
    #[must_use]
    pub fn looks_at(&self, case: &Case) -> bool {
        match case {
            Case::Call { tool, .. } => {
                let named = |tools: &BTreeSet<String>| tools.contains(tool);
                self.on.contains(&Guarded::Calls) && self.tools.as_ref().is_none_or(named)
            }
            Case::Output { .. } => self.looks_at_output(),
        }
    }

    /// Whether it looks at what models say.
    #[must_use]
    pub fn looks_at_output(&self) -> bool {
        self.on.contains(&Guarded::Output)
    }

    /// What it finds, where that takes nothing but the case itself; `None` if somebody else must be asked.
    #[must_use]
    pub fn pure_finding(&self, case: &Case) -> Option<Finding> {
        match &self.by {
            CheckedBy::Keywords { keywords } => {
                let said: Vec<String> = case
                    .those_of(keywords)
                    .map(|word| format!("`{word}`"))
                    .collect();
                Some(if said.is_empty() {
                    Finding::Pass
                } else {
                    Finding::review(format!("it says {}", said.join(", ")))
                })
            }
            CheckedBy::Command { .. } | CheckedBy::Http { .. } | CheckedBy::Code { .. } => None,
        }
    }

    /// Why it would guard nothing.
    pub(crate) fn flaw(&self, name: &str) -> Option<String> {
        if self.on.is_empty() {
            return Some(format!("the guardrail `{name}` looks at nothing"));
        }
        if self.timeout == Span::ZERO {
            return Some(format!("the guardrail `{name}` has no time to look"));
        }
        if self.tools.as_ref().is_some_and(BTreeSet::is_empty) {
            return Some(format!("the guardrail `{name}` looks at calls of no tool"));
        }
        if self.tools.is_some() && !self.on.contains(&Guarded::Calls) {
            return Some(format!(
                "the guardrail `{name}` names tools and does not look at calls"
            ));
        }
        match &self.by {
            CheckedBy::Command { command, .. } if command.is_empty() => {
                Some(format!("the command of the guardrail `{name}` is empty"))
            }
            CheckedBy::Keywords { keywords } => {
                let fits = |word: &String| {
                    !word.trim().is_empty() && word.chars().count() <= Self::MAX_KEYWORD
                };
                let bad = keywords.is_empty() || !keywords.iter().all(fits);
                bad.then(|| {
                    format!(
                        "the guardrail `{name}` needs keywords of 1 to {} characters that are not blank",
                        Self::MAX_KEYWORD
                    )
                })
            }
            CheckedBy::Command { .. } | CheckedBy::Http { .. } | CheckedBy::Code { .. } => None,
        }
    }
}

/// What a checker finds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Finding {
    /// Nothing: it may pass, as far as this one is concerned.
    Pass,
    /// A person must look at it.
    Review {
        /// Why, for that person to read.
        #[serde(default)]
        reason: String,
    },
}

impl Finding {
    /// A person must look at it, for this reason.
    #[must_use]
    pub fn review(reason: impl Into<String>) -> Self {
        Self::Review {
            reason: reason.into(),
        }
    }

    /// Reads what a program or a server answered.
    ///
    /// # Errors
    ///
    /// Why it is no answer. Whoever did not answer has not let anything pass.
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "its answer is neither {{\"verdict\":\"pass\"}} nor {{\"verdict\":\"review\",\"reason\":\"…\"}}: {why}"
            )
        };
        // A list of the same values would be read like it.
        if !text.trim_start().starts_with('{') {
            return Err(wrong("it is no JSON object"));
        }
        serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))
    }
}

/// That a guardrail wants a person to look at something, and why. It is data once it is committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// The guardrail.
    pub guardrail: String,
    /// Why, for that person to read.
    pub reason: String,
}

impl Flag {
    /// How much of a reason is kept, in characters.
    const MAX_REASON: usize = 400;
    /// How the reason begins where a checker did not look.
    const FAILED: &str = "its checker failed: ";
    /// How a reason ends of which more was said.
    const CUT: char = '…';

    /// A reason in one line, of bounded length: it stands in lists, and in the head.
    #[must_use]
    pub fn new(guardrail: impl Into<String>, reason: &str) -> Self {
        let words: Vec<&str> = reason
            .split(|it: char| it.is_whitespace() || it.is_control())
            .filter(|word| !word.is_empty())
            .collect();
        let mut line = words.join(" ");
        if let Some((end, _)) = line.char_indices().nth(Self::MAX_REASON) {
            line.truncate(end);
            line.push(Self::CUT);
        }
        if line.is_empty() {
            line.push_str("it gave no reason");
        }
        Self {
            guardrail: guardrail.into(),
            reason: line,
        }
    }

    /// The checker did not say what it thinks: nothing passes by that.
    #[must_use]
    pub fn failed(guardrail: impl Into<String>, how: &str) -> Self {
        Self::new(guardrail, &format!("{}{how}", Self::FAILED))
    }

    /// Whether whoever was shown these knows what this one says. Nobody knows what a checker would have found that failed, nor
    /// what was cut off.
    #[must_use]
    pub fn is_known_from(&self, shown: &[Self]) -> bool {
        let is_whole = !self.reason.ends_with(Self::CUT);
        is_whole && !self.reason.starts_with(Self::FAILED) && shown.contains(self)
    }
}

/// What guardrails say to a person, one line each.
#[must_use]
pub fn flag_lines(flags: &[Flag]) -> String {
    let line = |flag: &Flag| format!("Guardrail `{}`: {}", flag.guardrail, flag.reason);
    flags.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl Verdict {
    /// What it becomes where guardrails have flagged the call: it is asked about whatever else allows it, and never becomes
    /// less than it was.
    #[must_use]
    pub fn flagged(self, flags: Vec<Flag>) -> Self {
        if flags.is_empty() {
            return self;
        }
        let terms = match self {
            Self::Deny => return Self::Deny,
            Self::Allow => Terms::new(Allowed::standard()),
            Self::Ask(terms) => terms,
        };
        Self::Ask(Terms {
            always_ask: true,
            flags,
            ..terms
        })
    }

    /// What guardrails found about the call.
    #[must_use]
    pub fn flags(&self) -> &[Flag] {
        match self {
            Self::Ask(terms) => &terms.flags,
            Self::Allow | Self::Deny => &[],
        }
    }
}

impl Terms {
    /// What a person is told about a call under these terms, where it is not the default text.
    pub(crate) fn told(&self, tool: &str, params: &Params) -> Option<String> {
        if self.flags.is_empty() {
            return self.description.clone();
        }
        let words = self.description.clone();
        let words = words.unwrap_or_else(|| crate::default_description(tool, params));
        Some(format!("{}\n\n{words}", flag_lines(&self.flags)))
    }
}

/// What a model answered, while nobody is told: exactly what it was before its calls were judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldReply {
    /// What it said.
    pub text: String,
    /// What it wants done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// Which model it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// What that model wants to be given back together with this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Box<Carried>>,
    /// It came to the limit of what it may write, so that none of its calls is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
}

/// What a model is told whose answer a person did not let pass.
pub(crate) fn withheld(flags: Option<&str>, message: Option<&str>) -> String {
    let why = match (message, flags) {
        (Some(message), _) if !message.is_empty() => format!("They said: {message}"),
        (_, Some(flags)) => flags.to_owned(),
        (_, None) => String::new(),
    };
    let why = if why.is_empty() {
        why
    } else {
        format!(" {why}\n")
    };
    format!(
        "A reviewer held your last answer back: nobody was told, and no call in it was executed.{why} Give another answer."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::DecisionKind;

    fn flag(reason: &str) -> Vec<Flag> {
        vec![Flag::new("cards", reason)]
    }

    #[test]
    fn only_an_answer_that_says_so_lets_anything_pass() {
        assert_eq!(
            Finding::read(r#" {"verdict":"pass","score":3} "#),
            Ok(Finding::Pass)
        );
        assert_eq!(
            Finding::read(r#"{"verdict":"review","reason":"a card"}"#),
            Ok(Finding::review("a card"))
        );
        assert_eq!(
            Finding::read(r#"{"verdict":"review"}"#),
            Ok(Finding::review(""))
        );
        for text in [
            "",
            "pass",
            "null",
            "[]",
            r#"["pass"]"#,
            r#" ["review","x"]"#,
            "{}",
            r#"{"verdict":"PASS"}"#,
            r#"{"verdict":"allow"}"#,
            r#"{"verdict":true}"#,
            r#"{"verdict":"pass"} {"verdict":"pass"}"#,
            r#"{"verdict":"pass","verdict":"review"}"#,
            r#"{"verdict":"review","verdict":"pass"}"#,
            r#"{"verdict":"review","reason":7}"#,
        ] {
            let error = Finding::read(text).unwrap_err();
            assert!(
                error.starts_with("its answer is neither"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn what_a_person_was_shown_of_another_call_is_known_and_nothing_else_is() {
        let shown = [Flag::new("g", "a card"), Flag::failed("h", "no answer")];
        assert!(Flag::new("g", "a card").is_known_from(&shown));
        for unknown in [
            Flag::new("g", "an account"),
            Flag::new("h", "a card"),
            // Nobody knows what it would have found.
            Flag::failed("h", "no answer"),
        ] {
            assert!(!unknown.is_known_from(&shown), "{unknown:?}");
        }
        let long = Flag::new("g", &"x".repeat(401));
        assert!(!long.is_known_from(std::slice::from_ref(&long)));
        assert!(!Flag::new("g", "a card").is_known_from(&[]));
    }

    #[test]
    fn all_words_that_stand_in_it_are_told() {
        let words = Guardrail::keywords(["wire transfer", "iban", "cheque"]);
        let found = |args| words.pure_finding(&Case::call("a", "pay", args));
        assert_eq!(
            found(json!({"note": "an IBAN, for a Wire  Transfer"})),
            Some(Finding::review("it says `wire transfer`, `iban`"))
        );
        assert_eq!(
            found(json!({"note": "a wire transfer"})),
            Some(Finding::review("it says `wire transfer`"))
        );
        assert_eq!(found(json!({"note": "cash"})), Some(Finding::Pass));
    }

    #[test]
    fn a_flag_tightens_and_never_loosens() {
        assert_eq!(Verdict::Deny.flagged(flag("x")), Verdict::Deny);
        assert_eq!(Verdict::Allow.flagged(vec![]), Verdict::Allow);
        let asked = Verdict::Allow.flagged(flag("x"));
        let Verdict::Ask(terms) = &asked else {
            panic!("it passed")
        };
        assert!(terms.always_ask && terms.allowed == Allowed::standard());
        let own = Terms {
            allowed: Allowed::new(vec![DecisionKind::Reject]).unwrap(),
            requires_token: true,
            timeout: Some(Span::from_secs(3)),
            description: Some("look".to_owned()),
            ..Terms::new(Allowed::standard())
        };
        let flagged = Verdict::Ask(own.clone()).flagged(flag("x"));
        let expected = Terms {
            always_ask: true,
            flags: flag("x"),
            ..own
        };
        assert_eq!(flagged, Verdict::Ask(expected));
        // A newer policy knows nothing of the flags, and does not take them away.
        for newer in [
            Verdict::Allow,
            Verdict::Ask(Terms::new(Allowed::standard())),
        ] {
            assert_eq!(newer.meet(&asked).flags(), flag("x"));
            assert!(!newer.is_tighter_than(&asked));
        }
    }

    #[test]
    fn a_person_is_told_every_reason_and_the_call_all_the_same() {
        let params = Params::parse(r#"{"to":"a"}"#).unwrap();
        let mut terms = Terms::new(Allowed::standard());
        assert_eq!(terms.told("mail", &params), None);
        terms.flags = vec![Flag::new("a", "one"), Flag::failed("b", "exit code 1")];
        let told = terms.told("mail", &params).unwrap();
        assert_eq!(
            told,
            "Guardrail `a`: one\nGuardrail `b`: its checker failed: exit code 1\n\n\
             Tool execution requires approval\n\nTool: mail\nArgs: {\"to\":\"a\"}"
        );
        terms.description = Some("Send it?".to_owned());
        assert!(
            terms
                .told("mail", &params)
                .unwrap()
                .ends_with("\n\nSend it?")
        );
    }

    #[test]
    fn a_reason_is_one_line_with_an_end() {
        let reason = |text: &str| Flag::new("g", text).reason;
        assert_eq!(reason("a\nTool: x\u{1b}[1m\r\n b"), "a Tool: x [1m b");
        assert_eq!(reason(" \n"), "it gave no reason");
        assert_eq!(reason(&"é".repeat(401)), format!("{}…", "é".repeat(400)));
    }

    #[test]
    fn what_guards_nothing_is_a_flaw() {
        let good = Guardrail::keywords(["a"]);
        assert_eq!(good.flaw("g"), None);
        let nothing = Guardrail {
            on: BTreeSet::new(),
            ..good.clone()
        };
        for (bad, why) in [
            (nothing, "looks at nothing"),
            (good.clone().within(Span::ZERO), "no time"),
            (good.clone().of_tools([""; 0]), "of no tool"),
            (good.only_output().of_tools(["x"]), "names tools"),
            (Guardrail::keywords([""; 0]), "needs keywords"),
            (Guardrail::keywords(["a", " "]), "needs keywords"),
            (Guardrail::command([""; 0], "/"), "is empty"),
        ] {
            let flaw = bad.flaw("g").unwrap_or_default();
            assert!(flaw.contains(why), "{flaw}");
        }
    }

    #[test]
    fn it_looks_at_what_it_is_told_to_look_at() {
        let call = Case::call("clerk", "mail", json!({}));
        let said = Case::output("clerk", "hello");
        let both = Guardrail::keywords(["a"]);
        assert!(both.looks_at(&call) && both.looks_at(&said));
        let calls = both.clone().only_calls();
        assert!(calls.looks_at(&call) && !calls.looks_at(&said));
        let output = both.clone().only_output();
        assert!(!output.looks_at(&call) && output.looks_at(&said));
        let others = both.of_tools(["fax"]);
        assert!(!others.looks_at(&call) && others.looks_at(&said));
    }
}
