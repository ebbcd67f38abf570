//! What a person is told.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
    sync::Arc,
};

use minijinja::{
    Environment, Error, ErrorKind, UndefinedBehavior, filters,
    syntax::SyntaxConfig,
    tests,
    value::{Serde, Value},
};

use crate::{
    Facts, Place, Unclear,
    facts::Variable,
    room::{self, Lost},
    unclear::brief,
};

/// The longest template, in bytes.
const MAX_LENGTH: usize = 4096;

/// The longest text that is made, in bytes.
const MAX_OUTPUT: usize = 8192;

/// How many instructions one rendering may take.
const FUEL: u64 = 10_000;

/// How deep `if` and `for` may nest, and a loop call itself.
const MAX_RECURSION: usize = 16;

const FILTERS: [&str; 17] = [
    "abs",
    "capitalize",
    "default",
    "first",
    "float",
    "int",
    "join",
    "last",
    "length",
    "lines",
    "lower",
    "reverse",
    "round",
    "sort",
    "tojson",
    "trim",
    "upper",
];

const TESTS: [&str; 12] = [
    "boolean",
    "defined",
    "endingwith",
    "false",
    "mapping",
    "none",
    "number",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
];

const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// The text that describes a call to a person: `Write {{ args.content | lines }} lines to {{ args.path }}`.
///
/// Jinja over the variables of [`Facts`], with `if` and `for` and no other statements. A text without `{{` and `{%` is
/// itself, to the byte. Nothing is escaped: the text is plain, and whoever shows it escapes it for the place where it
/// is shown.
///
/// Filters: `abs`, `capitalize`, `default`, `first`, `float`, `int`, `join`, `last`, `length`, `lines` (how many lines a
/// text has, and `?` for what is no text), `lower`, `reverse`, `round`, `sort`, `tojson`, `trim`, `upper`.
///
/// # Bounds
///
/// At most 4096 bytes, and 8192 bytes of output, which is cut there at a character. A rendering that takes more than a
/// fixed number of instructions is [`Unclear`].
#[derive(Clone)]
pub struct Template {
    source: Arc<str>,
    /// None for a plain text.
    environment: Option<Environment<'static>>,
}

/// Why a text is not a template: what is wrong, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", place.map(|place| format!(" at {place}")).unwrap_or_default())]
pub struct BadTemplate {
    what: String,
    place: Option<Place>,
    help: String,
}

impl BadTemplate {
    fn new(what: impl Into<String>, place: Option<Place>, help: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            place,
            help: help.into(),
        }
    }

    /// Where it is wrong, if that is one place.
    #[must_use]
    pub const fn place(&self) -> Option<Place> {
        self.place
    }

    /// What would be right.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl Template {
    const NAME: &'static str = "description";

    /// Reads a template.
    ///
    /// # Errors
    ///
    /// It is too long, is not Jinja, or speaks of a variable, a filter or a statement that does not exist.
    pub fn compile(source: &str) -> Result<Self, BadTemplate> {
        if source.len() > MAX_LENGTH {
            return Err(BadTemplate::new(
                format!(
                    "a description of {} bytes is longer than {MAX_LENGTH}",
                    source.len()
                ),
                None,
                "shorten it; the arguments are shown beside it anyway",
            ));
        }
        let environment = if source.contains("{{") || source.contains("{%") {
            Some(compile(source)?)
        } else {
            None
        };
        Ok(Self {
            source: source.into(),
            environment,
        })
    }

    /// The text that it was read from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text for a call.
    ///
    /// # Errors
    ///
    /// It speaks of an argument that this call does not have, or would take too long.
    pub fn render(&self, facts: &Facts<'_>) -> Result<String, Unclear> {
        let Some(environment) = &self.environment else {
            return Ok(self.source.to_string());
        };
        room::here(|| render(environment, facts))
            .unwrap_or_else(|_| Err(Unclear::new("the description cannot be rendered")))
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Template {}

fn render(environment: &Environment<'_>, facts: &Facts<'_>) -> Result<String, Unclear> {
    let variables: BTreeMap<_, _> = Variable::ALL
        .into_iter()
        .map(|variable| (variable.name(), Value::from(Serde(facts.value(variable)))))
        .collect();
    let mut page = Page::default();
    let rendered = environment
        .get_template(Template::NAME)
        .and_then(|template| template.render_captured_to(Value::from(variables), &mut page));
    match rendered {
        Err(error) if !page.full => Err(reason(&error)),
        // What was written before the page was full is what the person gets.
        Ok(_) | Err(_) => Ok(page.text()),
    }
}

/// Output that ends where the page does.
#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    full: bool,
}

impl Write for Page {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let room = MAX_OUTPUT - self.bytes.len();
        self.bytes.extend_from_slice(&more[..room.min(more.len())]);
        if more.len() > room {
            self.full = true;
            return Err(io::Error::other("the page is full"));
        }
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(self) -> String {
        match String::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(error) => {
                let whole = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(whole);
                String::from_utf8(bytes).unwrap_or_default()
            }
        }
    }
}

fn compile(source: &str) -> Result<Environment<'static>, BadTemplate> {
    check_words(source)?;
    room::large(|| {
        let mut environment = environment();
        environment
            .add_template_owned(Template::NAME, source.to_owned())
            .map_err(|error| explain(source, &error))?;
        let template = environment
            .get_template(Template::NAME)
            .map_err(|error| explain(source, &error))?;
        let mut names: Vec<_> = template.undeclared_variables(true).into_iter().collect();
        names.sort();
        names.iter().try_for_each(|name| check_name(name))?;
        Ok(environment)
    })
    .unwrap_or_else(|lost| {
        Err(match lost {
            Lost::NoThread => BadTemplate::new(
                "the system gave no thread to read the description on",
                None,
                "try again when less is running",
            ),
            Lost::Panicked => BadTemplate::new(
                "the description cannot be read",
                None,
                "write it more simply",
            ),
        })
    })
}

/// An environment with what is listed above, and nothing else: no loader, no globals.
fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // The last newline of a text stays, as it does where nothing is filled in.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_debug(true);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(MAX_RECURSION);
    environment.add_filter("abs", filters::abs);
    environment.add_filter("capitalize", filters::capitalize);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("float", filters::float);
    environment.add_filter("int", filters::int);
    environment.add_filter("join", join);
    environment.add_filter("last", filters::last);
    environment.add_filter("length", filters::length);
    environment.add_filter("lines", lines);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("reverse", filters::reverse);
    environment.add_filter("round", filters::round);
    environment.add_filter("sort", filters::sort);
    environment.add_filter("tojson", tojson);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("false", tests::is_false);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("none", tests::is_none);
    environment.add_test("number", tests::is_number);
    environment.add_test("sequence", tests::is_sequence);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("string", tests::is_string);
    environment.add_test("true", tests::is_true);
    environment.add_test("undefined", tests::is_undefined);
    environment
}

/// How many lines a text has; `?` for what is no text.
fn lines(value: &Value) -> Value {
    value.as_str().map_or_else(
        || Value::from("?"),
        |text| Value::from(text.lines().count()),
    )
}

/// The elements of a list, one after the other. The engine's own would multiply a long separator by a long list.
fn join(list: &Value, between: Option<&str>) -> Result<String, Error> {
    let mut text = String::new();
    for (i, item) in list.try_iter()?.enumerate() {
        if text.len() > MAX_OUTPUT {
            break;
        }
        if i > 0 {
            text.push_str(between.unwrap_or_default());
        }
        match item.as_str() {
            Some(item) => text.push_str(item),
            None => text.push_str(&item.to_string()),
        }
    }
    Ok(text)
}

/// The value as JSON on one line. The engine's own escapes it for HTML, which a plain text is not.
fn tojson(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// Refuses statements, filters and tests that do not exist: the engine would only find out in the branch that uses them.
fn check_words(source: &str) -> Result<(), BadTemplate> {
    // Even inside of what may be a comment: no other statement must ever reach the engine.
    for (open, _) in source.match_indices("{%") {
        let rest = source[open + 2..]
            .trim_start_matches(['-', '+'])
            .trim_start();
        let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
        check_word(
            source,
            source.len() - rest.len(),
            &rest[..length],
            Expected::Statement,
        )?;
    }
    let mut at = 0;
    while let Some(open) = source[at..].find('{') {
        let inside = at + open + 2;
        at = match source.as_bytes().get(inside - 1) {
            Some(b'#') => source[inside..]
                .find("#}")
                .map_or(source.len(), |end| inside + end + 2),
            Some(b'%') => check_tag(source, inside, b"%}")?,
            Some(b'{') => check_tag(source, inside, b"}}")?,
            Some(_) => inside - 1,
            None => return Ok(()),
        };
    }
    Ok(())
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Checks the words of one tag, and gives where it ends.
fn check_tag(source: &str, start: usize, end: &[u8]) -> Result<usize, BadTemplate> {
    let bytes = source.as_bytes();
    // Braces of a map in the expression; only outside of them does `}}` end it.
    let mut braces = 0_usize;
    let mut expected = Expected::Anything;
    let mut at = start;
    while at < bytes.len() {
        if braces == 0 && bytes[at..].starts_with(end) {
            return Ok(at + end.len());
        }
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                expected = Expected::Anything;
            }
            b'|' => expected = Expected::Filter,
            b'{' => braces += 1,
            b'}' => braces = braces.saturating_sub(1),
            byte if is_word(byte) => {
                let from = at;
                while at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
                expected = check_word(source, from, &source[from..at], expected)?;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => expected = Expected::Anything,
        }
        at += 1;
    }
    // Not closed: the engine says so, and where.
    Ok(bytes.len())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Anything,
    Statement,
    Filter,
    Test,
}

fn check_word(
    source: &str,
    at: usize,
    word: &str,
    expected: Expected,
) -> Result<Expected, BadTemplate> {
    let (kind, known): (_, &[&str]) = match expected {
        Expected::Anything if word == "is" => return Ok(Expected::Test),
        Expected::Anything => return Ok(Expected::Anything),
        Expected::Test if word == "not" => return Ok(Expected::Test),
        Expected::Statement => ("statement", &STATEMENTS),
        Expected::Filter => ("filter", &FILTERS),
        Expected::Test => ("test", &TESTS),
    };
    if known.contains(&word) {
        return Ok(Expected::Anything);
    }
    Err(BadTemplate::new(
        format!("there is no {kind} `{word}`"),
        Some(Place::of(source, at)),
        format!("there is `{}`", known.join("`, `")),
    ))
}

/// Checks a name with its fields, such as `user.name`.
fn check_name(name: &str) -> Result<(), BadTemplate> {
    let mut parts = name.split('.');
    let first = parts.next().unwrap_or_default();
    let Some(variable) = Variable::named(first) else {
        return Err(BadTemplate::new(
            format!("`{first}` is not known"),
            None,
            format!(
                "a description knows `args`, `tool`, `agent` and `user`; an argument is written `args.{first}`"
            ),
        ));
    };
    match (variable.fields(), parts.next()) {
        (Some(known), Some(field)) if !known.contains(&field) => Err(BadTemplate::new(
            format!("`{first}` has no `{field}`"),
            None,
            format!("it has `{}`", known.join("`, `")),
        )),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

fn explain(source: &str, error: &Error) -> BadTemplate {
    let place = error.range().map(|range| Place::of(source, range.start));
    BadTemplate::new(
        brief(
            error.detail().unwrap_or("the description cannot be read"),
            200,
        ),
        place,
        "a description is Jinja, such as `Pay {{ args.amount }} to {{ args.to }}`",
    )
}

fn reason(error: &Error) -> Unclear {
    if error.kind() == ErrorKind::OutOfFuel {
        return Unclear::new("the description would take too long with these arguments");
    }
    Unclear::new(error.detail().map_or_else(
        || error.kind().to_string(),
        |detail| format!("{}: {detail}", error.kind()),
    ))
}
