//! Reading typed values out of the tree; whatever does not fit becomes a problem.

use serde_json::{Map, Number, Value};

use crate::{
    problem::{Report, quoted},
    spelling::{is_spelling, nearest},
    tree::{Content, Entry, Node, Position},
};

/// A map of which only certain keys are known. Each may be written in snake_case or in camelCase.
#[derive(Debug)]
pub struct Fields<'a> {
    at: Position,
    path: String,
    entries: &'a [Entry],
    /// Which known keys the unknown ones were probably meant to be.
    meant: Vec<String>,
    has_unknown: bool,
}

/// Keys that are known, but not in this place.
#[derive(Debug, Clone, Copy)]
pub struct Elsewhere<'k> {
    /// The keys.
    pub keys: &'k [&'k str],
    /// Where they belong.
    pub help: &'k str,
}

/// How numbers become JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Only those that JSON has exactly, in its canonical form.
    Exact,
    /// As near as a JSON value can come: for what is only passed on.
    Near,
}

/// A value, where it stands in the file and in the tree.
#[derive(Debug, Clone)]
pub struct Field<'a> {
    /// The value.
    pub node: &'a Node,
    /// Where it is in the tree, for instance `spec.tools[0]`; empty at the root.
    pub path: String,
}

impl<'a> Fields<'a> {
    /// Opens a map, and reports every key that is not `known`, or is there in both spellings.
    pub fn open(field: &Field<'a>, known: &[&str], report: &mut Report) -> Option<Self> {
        Self::open_below(field, known, &[], report)
    }

    /// As [`Fields::open`], and says of some keys that they belong elsewhere.
    pub fn open_below(
        field: &Field<'a>,
        known: &[&str],
        elsewhere: &[Elsewhere<'_>],
        report: &mut Report,
    ) -> Option<Self> {
        let entries = field.entries(report)?;
        let mut fields = Self {
            at: field.node.at,
            path: field.path.clone(),
            entries,
            meant: Vec::new(),
            has_unknown: false,
        };
        let mut seen: Vec<(&str, &Entry)> = Vec::new();
        for entry in entries {
            if let Some(key) = known.iter().find(|key| is_spelling(&entry.key, key)) {
                match seen.iter().find(|(other, _)| other == key) {
                    None => seen.push((key, entry)),
                    Some((_, first)) => {
                        let message =
                            format!("`{}` and `{}` are the same key", first.key, entry.key);
                        report.problem(entry.at, &fields.path, &message, "keep one of them");
                    }
                }
                continue;
            }
            let is_one = |key: &&str| is_spelling(&entry.key, key);
            let mut others = elsewhere.iter();
            if let Some(other) = others.find(|it| it.keys.iter().any(is_one)) {
                let message = format!("`{}` does not belong here", entry.key);
                report.problem(entry.at, &fields.path, &message, other.help);
                continue;
            }
            let near = nearest(&entry.key, known.iter().copied());
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known.join(", ")),
            };
            let message = format!("unknown key {}", quoted(&entry.key));
            report.problem(entry.at, &fields.path, &message, &help);
            fields.has_unknown = true;
            fields.meant.extend(near.map(str::to_owned));
        }
        Some(fields)
    }

    /// Whether there were keys that are not known.
    #[must_use]
    pub const fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// The value of a key that may be missing.
    #[must_use]
    pub fn optional(&self, key: &str) -> Option<Field<'a>> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| is_spelling(&entry.key, key))?;
        Some(Field {
            node: &entry.value,
            path: join(&self.path, &entry.key),
        })
    }

    /// The value of a key that must be there.
    pub fn required(&self, key: &str, help: &str, report: &mut Report) -> Option<Field<'a>> {
        let found = self.optional(key);
        // A misspelt key is one problem, not two.
        if found.is_none() && !self.is_misspelt(key) {
            report.problem(self.at, &self.path, &format!("`{key}` is missing"), help);
        }
        found
    }

    /// Reports it unless the key has exactly this value: what `apiVersion` and `kind` say.
    pub fn expect_word(&self, key: &str, word: &str, report: &mut Report) {
        let help = format!("write `{key}: {word}`");
        let Some(field) = self.required(key, &help, report) else {
            return;
        };
        if !matches!(&field.node.content, Content::Text(text) if text == word) {
            let message = format!("must be `{word}`, not {}", field.node.describe());
            field.problem(&message, &help, report);
        }
    }

    /// Notes something about the map as a whole.
    pub fn warning(&self, message: &str, help: &str, report: &mut Report) {
        report.warning(self.at, &self.path, message, help);
    }

    /// Whether an unknown key was probably meant to be this one.
    #[must_use]
    pub fn is_misspelt(&self, key: &str) -> bool {
        self.meant.iter().any(|meant| meant == key)
    }

    /// A version, as its author counts: `1` if nothing is said.
    pub fn version(&self, report: &mut Report) -> Option<String> {
        match self.optional("version") {
            None => Some("1".to_owned()),
            Some(field) => field.some_text(report).map(str::to_owned),
        }
    }
}

impl<'a> Field<'a> {
    /// The whole file.
    #[must_use]
    pub const fn root(node: &'a Node) -> Self {
        Self {
            node,
            path: String::new(),
        }
    }

    /// Notes a problem of this value.
    pub fn problem(&self, message: &str, help: &str, report: &mut Report) {
        report.problem(self.node.at, &self.path, message, help);
    }

    fn wrong(&self, expected: &str, help: &str, report: &mut Report) {
        let message = format!("must be {expected}, not {}", self.node.describe());
        let unsaid = matches!(self.node.content, Content::Null) && help.is_empty();
        let help = if unsaid {
            "give it a value, or remove the key"
        } else {
            help
        };
        self.problem(&message, help, report);
    }

    /// The entries of a map.
    pub fn entries(&self, report: &mut Report) -> Option<&'a [Entry]> {
        if let Content::Map(entries) = &self.node.content {
            return Some(entries);
        }
        self.wrong("a map", "write `key: value` lines, indented", report);
        None
    }

    /// The key of a map that has one key without a value, as `{name}` is read where it should have been quoted.
    #[must_use]
    pub fn lone_key(&self) -> Option<&'a str> {
        match &self.node.content {
            Content::Map(entries) => match entries.as_slice() {
                [entry] if matches!(entry.value.content, Content::Null) => Some(&entry.key),
                _ => None,
            },
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::List(_) => None,
        }
    }

    /// The items of a list.
    pub fn items(&self, help: &str, report: &mut Report) -> Option<Vec<Self>> {
        if let Content::List(items) = &self.node.content {
            let item = |(at, node)| Field {
                node,
                path: format!("{}[{at}]", self.path),
            };
            return Some(items.iter().enumerate().map(item).collect());
        }
        self.wrong("a list", help, report);
        None
    }

    /// Text, and nothing that would have to be turned into it: `1.10` as a version would become `1.1`.
    pub fn text(&self, report: &mut Report) -> Option<&'a str> {
        if let Content::Text(text) = &self.node.content {
            return Some(text);
        }
        let help = match &self.node.content {
            Content::Bool(value) => format!("put it in quotes: \"{value}\""),
            Content::Number(text) => format!("put it in quotes: \"{text}\""),
            Content::Null | Content::Text(_) | Content::List(_) | Content::Map(_) => String::new(),
        };
        self.wrong("text", &help, report);
        None
    }

    /// Text that says something.
    pub fn some_text(&self, report: &mut Report) -> Option<&'a str> {
        let text = self.text(report)?;
        if text.trim().is_empty() {
            self.problem("must not be empty", "", report);
            return None;
        }
        Some(text)
    }

    /// Yes or no.
    pub fn flag(&self, report: &mut Report) -> Option<bool> {
        if let Content::Bool(value) = self.node.content {
            return Some(value);
        }
        self.wrong("true or false", "", report);
        None
    }

    /// A list of texts that all say something, and that a program can be given.
    pub fn texts(&self, help: &str, report: &mut Report) -> Option<Vec<&'a str>> {
        let items = self.items(help, report)?;
        let texts: Vec<_> = items.iter().map(|item| item.some_text(report)).collect();
        texts.into_iter().collect()
    }

    /// One of some words.
    pub fn one_of<T: Copy>(
        &self,
        what: &str,
        words: &[(&str, T)],
        report: &mut Report,
    ) -> Option<T> {
        let text = match &self.node.content {
            Content::Text(text) => text,
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::List(_)
            | Content::Map(_) => "",
        };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let known = format!("use {}", either(&names));
        let help = match nearest(text, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? {known}"),
            None => known,
        };
        self.problem(
            &format!("{} is not {what}", self.node.describe()),
            &help,
            report,
        );
        None
    }

    /// A whole number above zero.
    pub fn count(&self, report: &mut Report) -> Option<u32> {
        let number = match &self.node.content {
            Content::Number(text) => text.parse::<u32>().ok().filter(|number| *number > 0),
            Content::Null
            | Content::Bool(_)
            | Content::Text(_)
            | Content::List(_)
            | Content::Map(_) => None,
        };
        if number.is_none() {
            self.wrong(
                &format!("a whole number from 1 to {}", u32::MAX),
                "leave it out for the default",
                report,
            );
        }
        number
    }

    /// The value as JSON.
    pub fn json(&self, numbers: Numbers, report: &mut Report) -> Option<Value> {
        match &self.node.content {
            Content::Null => Some(Value::Null),
            Content::Bool(value) => Some(Value::Bool(*value)),
            Content::Text(text) => Some(Value::String(text.clone())),
            Content::Number(text) => {
                let near = match numbers {
                    Numbers::Exact => None,
                    Numbers::Near => text.parse().ok(),
                };
                let number = number(text).or(near).map(Value::Number);
                if number.is_none() {
                    self.problem(
                        &format!("{} does not fit into a JSON number", quoted(text)),
                        "use a smaller number, or put it in quotes",
                        report,
                    );
                }
                number
            }
            Content::List(_) => {
                let items: Vec<_> = self
                    .items("", report)?
                    .iter()
                    .map(|item| item.json(numbers, report))
                    .collect();
                items
                    .into_iter()
                    .collect::<Option<Vec<_>>>()
                    .map(Value::Array)
            }
            Content::Map(entries) => {
                let mut object = Map::new();
                let mut complete = true;
                for entry in entries {
                    let field = Field {
                        node: &entry.value,
                        path: join(&self.path, &entry.key),
                    };
                    match field.json(numbers, report) {
                        Some(value) => drop(object.insert(entry.key.clone(), value)),
                        None => complete = false,
                    }
                }
                complete.then_some(Value::Object(object))
            }
        }
    }

    /// The value that a JSON pointer leads to, or the last one on the way.
    #[must_use]
    pub fn follow(&self, pointer: &str) -> Self {
        let mut here = self.clone();
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let next = match &here.node.content {
                Content::Map(entries) => {
                    entries
                        .iter()
                        .find(|entry| entry.key == part)
                        .map(|entry| Field {
                            node: &entry.value,
                            path: join(&here.path, &part),
                        })
                }
                Content::List(items) => part
                    .parse::<usize>()
                    .ok()
                    .and_then(|at| items.get(at))
                    .map(|node| Field {
                        node,
                        path: format!("{}[{part}]", here.path),
                    }),
                Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => None,
            };
            match next {
                Some(next) => here = next,
                None => break,
            }
        }
        here
    }
}

/// The path of a key below `path`.
#[must_use]
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// `a, b or c`.
#[must_use]
pub fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// A number as YAML writes it, if JSON has it.
fn number(text: &str) -> Option<Number> {
    // Beyond this, canonical JSON would round it.
    let exact = |integer: i64| (integer.unsigned_abs() < 1 << 53).then(|| Number::from(integer));
    let integer = |digits: &str, radix| i64::from_str_radix(digits, radix).ok().and_then(exact);
    if let Some(digits) = text.strip_prefix("0x") {
        return integer(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return integer(digits, 8);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().and_then(exact);
    }
    // Infinities and what is not a number have no place in JSON.
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_exactly_or_not_at_all() {
        let cases = [
            ("1", "1"),
            ("+1", "1"),
            ("-7", "-7"),
            ("007", "7"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1.50", "1.5"),
            ("-9007199254740991", "-9007199254740991"),
        ];
        for (text, expected) in cases {
            assert_eq!(number(text).unwrap().to_string(), expected, "{text}");
        }
        for text in [
            ".inf",
            "-.inf",
            ".nan",
            "1e999",
            "9007199254740992",
            "-9223372036854775809",
            "0x20000000000000",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_is_found_in_either_spelling_and_refused_in_both() {
        let found = |text: &str| {
            let mut report = Report::new("f");
            let root = crate::parse(text, "Agent", &mut report).unwrap();
            let known = ["on_timeout", "apiVersion"];
            let elsewhere = Elsewhere {
                keys: &["max_turns"],
                help: "say it above",
            };
            let fields =
                Fields::open_below(&Field::root(&root), &known, &[elsewhere], &mut report).unwrap();
            let field = fields.required("on_timeout", "", &mut report);
            let path = field.map(|field| field.path);
            (
                path,
                report.finish().map_err(|problems| problems.to_string()),
            )
        };
        for (text, path) in [
            ("on_timeout: 1\napi_version: 2", "on_timeout"),
            ("onTimeout: 1\napiVersion: 2", "onTimeout"),
        ] {
            assert_eq!(found(text), (Some(path.to_owned()), Ok(Vec::new())));
        }
        let (_, both) = found("on_timeout: 1\nonTimeout: 2");
        let expected =
            "f:2:1: `on_timeout` and `onTimeout` are the same key\n  help: keep one of them";
        assert_eq!(both.unwrap_err(), expected);
        let (_, misplaced) = found("onTimeout: 1\nmaxTurns: 2");
        let expected = "f:2:1: `maxTurns` does not belong here\n  help: say it above";
        assert_eq!(misplaced.unwrap_err(), expected);
    }

    #[test]
    fn words_are_listed_as_people_do() {
        assert_eq!(either(&["a"]), "a");
        assert_eq!(either(&["a", "b", "c"]), "a, b or c");
    }
}
