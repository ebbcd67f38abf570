//! YAML as a tree in which every value knows where it stood. The only place that knows the YAML parser.
//!
//! The events of the parser are folded by hand, not by a deserialiser, so that several faults can be reported at once.
//! What the file can make us do is bounded: its size, its depth, and what its aliases grow to.

use std::collections::HashMap;

use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag, options};

use crate::problem::{Report, quoted};

/// How large a file may be.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// How deep lists and maps may nest. As core has it for arguments.
const MAX_DEPTH: usize = holdpoint_core::MAX_DEPTH;
/// What the tree may weigh once aliases are followed.
const MAX_WEIGHT: usize = 16 << 20;
/// What a value weighs beside its text.
const NODE_WEIGHT: usize = 64;

/// Line and column, both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A value and where it stood.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it stood.
    pub at: Position,
    /// What it is.
    pub content: Content,
}

/// What a value is, by the core schema of YAML 1.2.
#[derive(Debug, Clone)]
pub enum Content {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// As it was written: whether it fits is for its reader to say.
    Number(String),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map, with unique keys in the order of the file.
    Map(Vec<Entry>),
}

/// A key, where it stood, and its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Where the key stood.
    pub at: Position,
    /// The key.
    pub key: String,
    /// The value.
    pub value: Node,
}

impl Node {
    /// What it is, for a message.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.content {
            Content::Null => "nothing".to_owned(),
            Content::Bool(value) => format!("`{value}`"),
            Content::Number(text) => format!("the number {}", quoted(text)),
            Content::Text(text) => quoted(text),
            Content::List(_) => "a list".to_owned(),
            Content::Map(_) => "a map".to_owned(),
        }
    }

    /// What it weighs, and how deep it is.
    fn measure(&self) -> (usize, usize) {
        let within = |parts: &mut dyn Iterator<Item = (usize, &Self)>| {
            parts.fold((NODE_WEIGHT, 1), |(weight, height), (key, node)| {
                let (more, below) = node.measure();
                (weight + key + more, height.max(below + 1))
            })
        };
        match &self.content {
            Content::Null | Content::Bool(_) => (NODE_WEIGHT, 0),
            Content::Number(text) | Content::Text(text) => (NODE_WEIGHT + text.len(), 0),
            Content::List(items) => within(&mut items.iter().map(|item| (0, item))),
            Content::Map(entries) => within(&mut entries.iter().map(|e| (e.key.len(), &e.value))),
        }
    }
}

/// The one document of a file, which should be of this `kind`. What is wrong goes to `report`; `None` if it cannot be read
/// on.
pub fn parse(text: &str, kind: &str, report: &mut Report) -> Option<Node> {
    let start = Position { line: 1, column: 1 };
    if text.len() > MAX_BYTES {
        let message = format!("the file has more than the {MAX_BYTES} bytes that are allowed");
        report.problem(start, "", &message, "");
        return None;
    }
    // Comments carry nothing, and reading them would add a limit of their own.
    let options: Options = options! { emit_comments: false, emit_unresolved_aliases: true };
    let mut builder = Builder::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for next in Parser::new_from_str_with_options(text, options) {
        let fault = match next {
            Ok((event, span)) => builder.take(event, &span, report).err(),
            Err(error) => Some(Fault {
                at: position(error.marker().line(), error.marker().col()),
                message: format!("not valid YAML: {}", error.kind()),
                help: "",
            }),
        };
        if let Some(fault) = fault {
            report.problem(fault.at, &builder.path(), &fault.message, fault.help);
            return None;
        }
    }
    if builder.root.is_none() {
        let help = format!("begin with `apiVersion: holdpoint/v1` and `kind: {kind}`");
        report.problem(start, "", "the file is empty", &help);
    }
    builder.root
}

const fn position(line: usize, column_from_zero: usize) -> Position {
    Position {
        line,
        column: column_from_zero + 1,
    }
}

/// What makes it pointless to read on.
struct Fault {
    at: Position,
    message: String,
    help: &'static str,
}

fn fault<T>(at: Position, message: impl Into<String>, help: &'static str) -> Result<T, Fault> {
    Err(Fault {
        at,
        message: message.into(),
        help,
    })
}

/// A list or map that is not closed yet. Anchor 0 is none.
enum Open {
    List {
        at: Position,
        anchor: usize,
        items: Vec<Node>,
    },
    Map {
        at: Position,
        anchor: usize,
        entries: Vec<Entry>,
        key: Option<Key>,
        lines: HashMap<String, usize>,
    },
}

/// A key whose value is still to come.
struct Key {
    at: Position,
    text: String,
    /// Reported already: its value is read and left out.
    repeated: bool,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    anchors: HashMap<usize, Node>,
    weight: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span, report: &mut Report) -> Result<(), Fault> {
        let at = position(span.start.line(), span.start.col());
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::Comment(..) | Event::Anchor(..) => Ok(()),
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return fault(
                        at,
                        "a second document begins",
                        "put each into a file of its own",
                    );
                }
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::UnresolvedAlias(name) => fault(
                at,
                format!("`*{name}` refers to nothing: no value before it is marked `&{name}`"),
                "put quotes around a `*` that is meant as it stands: \"*\"",
            ),
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at, report);
                self.charge(NODE_WEIGHT + text.len(), at)?;
                if self.awaits_key() {
                    self.key(at, text.into_owned(), style, report);
                    return Ok(());
                }
                let content = match style {
                    ScalarStyle::Plain => plain(&text),
                    ScalarStyle::SingleQuoted
                    | ScalarStyle::DoubleQuoted
                    | ScalarStyle::Literal
                    | ScalarStyle::Folded => Content::Text(text.into_owned()),
                };
                self.value(Node { at, content }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at, report);
                self.begin(
                    Open::List {
                        at,
                        anchor,
                        items: Vec::new(),
                    },
                    at,
                )
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), at, report);
                self.begin(
                    Open::Map {
                        at,
                        anchor,
                        entries: Vec::new(),
                        key: None,
                        lines: HashMap::new(),
                    },
                    at,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { at, anchor, items }) => self.value(
                    Node {
                        at,
                        content: Content::List(items),
                    },
                    anchor,
                ),
                Some(Open::Map {
                    at,
                    anchor,
                    entries,
                    ..
                }) => self.value(
                    Node {
                        at,
                        content: Content::Map(entries),
                    },
                    anchor,
                ),
                None => fault(at, "not valid YAML: an end without a beginning", ""),
            },
            unknown => fault(at, format!("not valid YAML here: {unknown:?}"), ""),
        }
    }

    fn begin(&mut self, open: Open, at: Position) -> Result<(), Fault> {
        if self.awaits_key() {
            return fault(at, "a key must be text, not a list or a map", "");
        }
        if self.open.len() >= MAX_DEPTH {
            return fault(
                at,
                format!("lists and maps are nested deeper than {MAX_DEPTH}"),
                "",
            );
        }
        self.charge(NODE_WEIGHT, at)?;
        self.open.push(open);
        Ok(())
    }

    fn value(&mut self, node: Node, anchor: usize) -> Result<(), Fault> {
        if anchor != 0 {
            let (weight, _) = node.measure();
            self.charge(weight, node.at)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => {
                if let Some(Key {
                    at,
                    text,
                    repeated: false,
                }) = key.take()
                {
                    entries.push(Entry {
                        at,
                        key: text,
                        value: node,
                    });
                }
            }
        }
        Ok(())
    }

    fn key(&mut self, at: Position, text: String, style: ScalarStyle, report: &mut Report) {
        if text == "<<" && style == ScalarStyle::Plain {
            let help = "write the keys out, or refer to a whole value with `*name`";
            report.problem(at, &self.path(), "merge keys are not supported", help);
        }
        let path = self.path();
        if let Some(Open::Map { key, lines, .. }) = self.open.last_mut() {
            let first = lines.get(&text).copied();
            if let Some(line) = first {
                let message = format!("the key {} appears twice", quoted(&text));
                report.problem(
                    at,
                    &path,
                    &message,
                    &format!("it was first given in line {line}; keep one of them"),
                );
            } else {
                lines.insert(text.clone(), at.line);
            }
            *key = Some(Key {
                at,
                text,
                repeated: first.is_some(),
            });
        }
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Fault> {
        let Some(node) = self.anchors.get(&anchor) else {
            return fault(at, "an alias refers to a value that contains it", "");
        };
        let (weight, height) = node.measure();
        if self.open.len() + height > MAX_DEPTH {
            return fault(
                at,
                format!("lists and maps are nested deeper than {MAX_DEPTH}"),
                "",
            );
        }
        if self.awaits_key() {
            return fault(at, "a key cannot be an alias", "write the key out");
        }
        // Charged first: the copy may be what is too large.
        self.charge(weight, at)?;
        match self.anchors.get(&anchor).cloned() {
            Some(copy) => self.value(copy, 0),
            None => Ok(()),
        }
    }

    fn charge(&mut self, weight: usize, at: Position) -> Result<(), Fault> {
        self.weight += weight;
        if self.weight > MAX_WEIGHT {
            return fault(
                at,
                "the file grows too large once its aliases are followed",
                "write less, or alias less",
            );
        }
        Ok(())
    }

    fn refuse_tag(&self, tag: Option<&Tag>, at: Position, report: &mut Report) {
        if let Some(tag) = tag {
            let message = format!("the tag {} is not supported", quoted(&tag.original()));
            report.problem(
                at,
                &self.path(),
                &message,
                "remove it; quotes make a value text",
            );
        }
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    /// The path to where the parser stands.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match open {
                Open::List { items, .. } => path.push_str(&format!("[{}]", items.len())),
                Open::Map { key: Some(key), .. } if path.is_empty() => path.push_str(&key.text),
                Open::Map { key: Some(key), .. } => path.push_str(&format!(".{}", key.text)),
                Open::Map { key: None, .. } => {}
            }
        }
        path
    }
}

/// What an unquoted scalar is.
fn plain(text: &str) -> Content {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Content::Null,
        "true" | "True" | "TRUE" => Content::Bool(true),
        "false" | "False" | "FALSE" => Content::Bool(false),
        _ if is_number(text) => Content::Number(text.to_owned()),
        _ => Content::Text(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    if let Some(digits) = text.strip_prefix("0x") {
        return !digits.is_empty() && digits.chars().all(|char| char.is_ascii_hexdigit());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return !digits.is_empty() && digits.chars().all(|char| char.is_digit(8));
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    // What `f64` reads is the core schema's float, but for the names of what is not finite.
    unsigned.starts_with(|char: char| char.is_ascii_digit() || char == '.')
        && unsigned.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let mut report = Report::new("f");
        parse(text, "Agent", &mut report);
        report
            .finish()
            .map_or_else(|problems| problems.to_string(), |_| "fine".to_owned())
    }

    #[test]
    fn scalars_follow_the_core_schema_of_yaml_1_2() {
        for text in [
            "1", "-1", "+1", "007", "0x1F", "0o17", "1.5", "1.", ".5", "1e3", "-1E-3", ".inf",
            "-.INF", ".nan",
        ] {
            assert!(matches!(plain(text), Content::Number(_)), "{text}");
        }
        for text in [
            "yes", "no", "on", "1.2.3", "60s", "inf", "nan", "0x", "0o8", "-", ".", "1_000", "e3",
            "--1",
        ] {
            assert!(matches!(plain(text), Content::Text(_)), "{text}");
        }
        for text in ["", "~", "null"] {
            assert!(matches!(plain(text), Content::Null), "{text}");
        }
        assert!(matches!(plain("True"), Content::Bool(true)));
    }

    #[test]
    fn all_faults_that_leave_a_tree_are_reported_at_once() {
        let text = "a: 1\na: 2\nb: !x 3\nc: {d: 1, d: 2}\ne: {<<: {}}\n";
        assert_eq!(
            problems(text),
            "f:2:1: the key `a` appears twice\n  help: it was first given in line 1; keep one of them\n\
             f:3:7: b: the tag `!x` is not supported\n  help: remove it; quotes make a value text\n\
             f:4:11: c: the key `d` appears twice\n  help: it was first given in line 4; keep one of them\n\
             f:5:5: e: merge keys are not supported\n  help: write the keys out, or refer to a whole value with `*name`"
        );
    }

    #[test]
    fn what_cannot_be_read_is_one_clean_problem() {
        let deep_flow = "[".repeat(100_000);
        let deep_block = (0..200)
            .map(|depth| format!("{}a:\n", " ".repeat(depth)))
            .collect::<String>();
        let cases = [
            ("", "f:1:1: the file is empty"),
            ("# only a comment\n", "f:1:1: the file is empty"),
            ("a: 1\n---\nb: 2\n", "f:2:1: a second document begins"),
            ("a: [1\nb: 2\n", "not valid YAML"),
            ("a: *b\n", "f:1:4"),
            ("a: &a [*a]\n", "f:1:8"),
            ("? [1]\n: 2\n", "a key must be text"),
            (
                deep_flow.as_str(),
                "f:1:256: not valid YAML: recursion limit exceeded",
            ),
            (deep_block.as_str(), "nested deeper than 64"),
        ];
        for (text, expected) in cases {
            let found = problems(text);
            assert!(found.contains(expected), "{expected}: {found}");
        }
    }

    #[test]
    fn aliases_share_a_budget() {
        assert_eq!(problems("a: &x {k: v}\nb: *x\n"), "fine");
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let alias = format!("*a{}", level - 1);
            bomb.push_str(&format!(
                "a{level}: &a{level} [{}]\n",
                vec![alias; 10].join(", ")
            ));
        }
        assert!(
            problems(&bomb).contains("grows too large"),
            "{}",
            problems(&bomb)
        );
        let large = format!(
            "a: &a {}\nb: [{}]\n",
            "x".repeat(500_000),
            vec!["*a"; 1000].join(", ")
        );
        assert!(problems(&large).contains("grows too large"));
        let mut chain = "a0: &a0 [x]\n".to_owned();
        for level in 1..100 {
            chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
        }
        assert!(problems(&chain).contains("nested deeper than 64"));
    }

    #[test]
    fn a_byte_order_mark_and_crlf_are_fine() {
        assert_eq!(problems("\u{feff}a: 1\r\nb: 2\r\n"), "fine");
        assert!(problems(&"x".repeat(MAX_BYTES + 1)).contains("are allowed"));
    }
}
