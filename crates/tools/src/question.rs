//! What a stepped tool asks a person, and how the answer is read.

use holdpoint_core::{Choice, InterruptKind, OnTimeout, Prompt, Recalled, Span, Suspension};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question of a stepped tool.
///
/// It must be the same each time the tool is entered: another question under a name that was used is refused, so that no
/// answer goes to a question that nobody saw. Only the time it stays open may differ.
///
/// ```
/// use holdpoint_core::Span;
/// use holdpoint_tools::Question;
/// let question = Question::approval("Delete 12 files?")
///     .description("They are older than a year.")
///     .data(["a.txt", "b.txt"])
///     .timeout(Span::from_secs(3_600));
/// # let _ = question;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a question that is not passed to `StepContext::interrupt` is not asked"]
pub struct Question {
    kind: InterruptKind,
    prompt: Prompt,
    timeout: Option<Span>,
    on_timeout: OnTimeout,
}

impl Question {
    /// May this be done? It can be approved and rejected, and the answer is `{"approved", "reason"}`; see [`approved`].
    pub fn approval(title: impl Into<String>) -> Self {
        Self::new(InterruptKind::Approval, title)
    }

    /// What should be put in here? The answer is what was put in.
    pub fn input(title: impl Into<String>) -> Self {
        Self::new(InterruptKind::Input, title)
    }

    /// Is this all right? Answered as an approval is, with whatever else there is to say.
    pub fn review(title: impl Into<String>) -> Self {
        Self::new(InterruptKind::Review, title)
    }

    fn new(kind: InterruptKind, title: impl Into<String>) -> Self {
        let prompt = Prompt {
            title: title.into(),
            ..Prompt::default()
        };
        Self {
            kind,
            prompt,
            timeout: None,
            // Whoever sets a time wants to know that it is over. Expiring would end the whole run.
            on_timeout: OnTimeout::Reject,
        }
    }

    /// In more words.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.prompt.description = description.into();
        self
    }

    /// What the person needs to see. What has no JSON spelling is shown as `null`.
    pub fn data(mut self, data: impl Serialize) -> Self {
        self.prompt.data = serde_json::to_value(data).unwrap_or(Value::Null);
        self
    }

    /// What they may choose from.
    pub fn options(mut self, options: impl IntoIterator<Item = Choice>) -> Self {
        self.prompt.options = options.into_iter().collect();
        self
    }

    /// One more thing that they may choose.
    pub fn option(mut self, id: impl Into<String>, label: impl Into<String>) -> Self {
        self.prompt.options.push(Choice {
            id: id.into(),
            label: label.into(),
            description: String::new(),
            is_default: false,
        });
        self
    }

    /// The JSON Schema of what they may put in.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.prompt.input_schema = Some(schema);
        self
    }

    /// How long it stays open. Then the tool is entered again, and gets [`Recalled::TimedOut`].
    pub fn timeout(mut self, timeout: Span) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// What happens at the time-out instead. Only with [`OnTimeout::Reject`], which is the default, the tool goes on.
    pub fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.on_timeout = on_timeout;
        self
    }

    /// Reads a question that a program asks: an object with a `title`. Anything else is shown as it is.
    pub(crate) fn read(name: &str, question: Value) -> Result<Self, String> {
        if question.get("title").is_none() {
            return Ok(Self::approval(name).data(question));
        }
        let spelled = serde_json::from_value(question).map_err(|error| error.to_string())?;
        let Spelled {
            kind,
            title,
            description,
            data,
            options,
            input_schema,
            timeout,
            on_timeout,
        } = spelled;
        let kind = match kind {
            Some(kind) => kind.into(),
            None if options.is_empty() && input_schema.is_none() => InterruptKind::Approval,
            None => InterruptKind::Input,
        };
        let timeout = timeout
            .map(|time| {
                Span::parse(&time).ok_or_else(|| format!("`{time}` is no time such as `10m`"))
            })
            .transpose()?;
        let mut read = Self::new(kind, title)
            .description(description)
            .data(data)
            .options(options);
        read.prompt.input_schema = input_schema;
        read.timeout = timeout;
        read.on_timeout = on_timeout.unwrap_or(read.on_timeout);
        Ok(read)
    }

    pub(crate) fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// What there is to wait for.
    ///
    /// # Errors
    ///
    /// Nobody could answer it.
    pub(crate) fn suspension(self, name: &str) -> Result<Suspension, String> {
        if let Some(reason) = unanswerable(&self.prompt, self.on_timeout) {
            return Err(format!("the question `{name}`: {reason}"));
        }
        Ok(Suspension::Question {
            kind: self.kind,
            prompt: Box::new(self.prompt),
            expiry: self.timeout.map(|time| (time, self.on_timeout)),
        })
    }
}

/// Why nobody could answer this question, or nobody would be asked in the end.
#[must_use]
pub fn unanswerable(prompt: &Prompt, on_timeout: OnTimeout) -> Option<String> {
    if on_timeout == OnTimeout::Escalate {
        return Some("`escalate` is not possible; use `expire`, `reject` or `keep`".to_owned());
    }
    let (length, most) = (prompt.len(), Prompt::MAX_LEN);
    if length > most {
        return Some(format!(
            "it takes {length} bytes of JSON, and at most {most} are kept; show less data"
        ));
    }
    for (at, option) in prompt.options.iter().enumerate() {
        if option.id.is_empty() {
            return Some("an option has no id".to_owned());
        }
        if prompt.options[..at].iter().any(|it| it.id == option.id) {
            return Some(format!("two options have the id `{}`", option.id));
        }
    }
    let schema = prompt.input_schema.as_ref();
    if let Some(error) = schema.and_then(|it| jsonschema::validator_for(it).err()) {
        return Some(format!("`input_schema` is not a JSON Schema: {error}"));
    }
    // Lists show nothing else of a question.
    let is_blank = prompt.title.trim().is_empty();
    is_blank.then(|| "`title` is empty: say in a few words what is asked".to_owned())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spelled {
    kind: Option<Kind>,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    data: Value,
    #[serde(default)]
    options: Vec<Choice>,
    input_schema: Option<Value>,
    timeout: Option<String>,
    on_timeout: Option<OnTimeout>,
}

/// The kinds that are not for the engine alone.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Approval,
    Input,
    Review,
}

impl From<Kind> for InterruptKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Approval => Self::Approval,
            Kind::Input => Self::Input,
            Kind::Review => Self::Review,
        }
    }
}

/// What was said to an approval; `None` where nobody answered in time, or something else was said.
///
/// ```
/// use holdpoint_core::Recalled;
/// use holdpoint_tools::{approved, reason};
/// let answer = Recalled::Answer { value: serde_json::json!({"approved": false, "reason": "too much"}) };
/// assert_eq!(approved(&answer), Some(false));
/// assert_eq!(reason(&answer), Some("too much"));
/// assert_eq!(approved(&Recalled::TimedOut), None);
/// ```
#[must_use]
pub fn approved(recalled: &Recalled) -> Option<bool> {
    match recalled {
        Recalled::Answer { value } => value.get("approved")?.as_bool(),
        Recalled::TimedOut | Recalled::Slept => None,
    }
}

/// Why it was said, if that was said, too.
#[must_use]
pub fn reason(recalled: &Recalled) -> Option<&str> {
    match recalled {
        Recalled::Answer { value } => value.get("reason")?.as_str(),
        Recalled::TimedOut | Recalled::Slept => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(question: Value) -> Question {
        Question::read("q", question).unwrap()
    }

    #[test]
    fn a_question_that_a_program_asks_is_that_which_code_asks() {
        let full = json!({
            "kind": "review", "title": "Send it?", "description": "To all.", "data": {"to": 40},
            "options": [{"id": "now", "label": "Now"}], "input_schema": {"type": "string"},
            "timeout": "10m", "on_timeout": "expire",
        });
        let expected = Question::review("Send it?")
            .description("To all.")
            .data(json!({"to": 40}))
            .option("now", "Now")
            .input_schema(json!({"type": "string"}))
            .timeout(Span::from_secs(600))
            .on_timeout(OnTimeout::Expire);
        assert_eq!(read(full), expected);
        assert_eq!(read(json!({"title": "t"})), Question::approval("t"));
        assert_eq!(
            read(json!({"title": "t", "input_schema": {}})),
            Question::input("t").input_schema(json!({}))
        );
        assert_eq!(
            read(json!({"title": "t", "options": [{"id": "a", "label": "A"}]})),
            Question::input("t").option("a", "A")
        );
    }

    #[test]
    fn anything_without_a_title_is_shown_as_data() {
        for question in [
            json!("really?"),
            json!({"type": "approval_request", "message": "请批准"}),
            json!([1]),
            json!(null),
        ] {
            let expected = Question::approval("q").data(question.clone());
            assert_eq!(read(question), expected);
        }
    }

    #[test]
    fn a_question_with_a_title_must_be_right() {
        let cases = [
            (json!({"title": 4}), "invalid type"),
            (
                json!({"title": "t", "timeout": "soon"}),
                "`soon` is no time",
            ),
            (json!({"title": "t", "kind": "error"}), "unknown variant"),
            (
                json!({"title": "t", "on_timeout": "approve"}),
                "unknown variant",
            ),
            (json!({"title": "t", "options": [{"id": "a"}]}), "label"),
        ];
        for (question, expected) in cases {
            let error = Question::read("q", question).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_time_that_changes_is_not_another_question() {
        let short = Question::approval("t").timeout(Span::from_secs(1));
        let long = Question::approval("t").timeout(Span::from_secs(2));
        assert_eq!(short.prompt().digest(), long.prompt().digest());
        assert_eq!(
            short.suspension("q"),
            Ok(Suspension::Question {
                kind: InterruptKind::Approval,
                prompt: Box::new(long.prompt),
                expiry: Some((Span::from_secs(1), OnTimeout::Reject)),
            })
        );
    }

    #[test]
    fn a_question_that_is_too_long_is_refused() {
        let question = Question::approval("t").data("x".repeat(Prompt::MAX_LEN));
        let error = question.suspension("q").unwrap_err();
        assert!(error.contains("the question `q`: it takes 16"), "{error}");
    }

    #[test]
    fn a_question_that_nobody_could_answer_is_refused() {
        let cases = [
            (
                Question::input("t").option("a", "A").option("a", "B"),
                "two options have the id `a`",
            ),
            (Question::input("t").option("", "A"), "an option has no id"),
            (
                Question::input("t").input_schema(json!({"type": "zzz"})),
                "not a JSON Schema",
            ),
            (
                Question::approval("t").on_timeout(OnTimeout::Escalate),
                "`escalate` is not possible",
            ),
            (Question::approval(""), "`title` is empty"),
            (Question::review(" \n"), "`title` is empty"),
        ];
        for (question, expected) in cases {
            let error = question.suspension("q").unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
