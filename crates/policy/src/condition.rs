//! Whether a person is asked.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock},
};

use cel::{
    Context, Env, ExecutionError, IdedExpr, ParseErrors,
    common::{
        types::{
            CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
        },
        value::Val,
    },
};
use serde_json::Value;

use crate::{
    Facts, Place, Unclear,
    facts::Variable,
    guard, pattern,
    room::{self, Lost},
    unclear::brief,
    vocabulary::{self, Found},
    work::{self, Measured},
};

/// The most arguments that are looked at, in bytes of their canonical spelling.
const MAX_ARGS: usize = 256 << 10;

/// The deepest expression that is evaluated on the caller's stack; deeper ones get a thread. Without optimisation a level
/// takes up to 45 KB, so this is well within the 2 MB of a worker.
const MAX_DEPTH_HERE: usize = 10;

/// A yes-or-no question about one call, in CEL: `args.amount > 100 && !("payer" in user.roles)`.
///
/// The variables are those of [`Facts`]. What is written wrongly, or names what does not exist, is refused by
/// [`Condition::compile`].
///
/// # Numbers
///
/// An argument is an int if its canonical spelling has neither point nor exponent, else a double; `10.0` is spelled `10`
/// and so an int. Ints and doubles compare with each other by value: `args.amount < 100` means what it says of 99, 99.5
/// and 100. But CEL has no mixed arithmetic: where an argument may be either, say `double(args.price) * 1.5`.
///
/// # Absent and mistyped arguments
///
/// An argument that is absent makes the answer [`Unclear`], and so does a text where a number is compared by `<`. Where
/// it may be absent, ask `has(args.cc)` first. Only `==` and `!=` compare anything with anything, and say that a text is
/// not equal to a number.
///
/// Where one side of `&&` or `||` settles the answer, it does so even if the other is unclear, whichever comes first:
/// that is CEL.
///
/// # Bounds
///
/// At most 1024 bytes and 16 levels of nesting. Arguments beyond 256 KiB, or nested deeper than 64 levels, are unclear,
/// if the condition speaks of `args` at all. So is what could take more work than a fixed limit, in the order of a
/// tenth of a second: two loops within each other pass over 200 elements each, three over 40.
#[derive(Clone)]
pub struct Condition {
    source: Arc<str>,
    expr: Arc<IdedExpr>,
    found: Found,
}

/// Why a text is not a condition: what is wrong, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", place.map(|place| format!(" at {place}")).unwrap_or_default())]
pub struct BadCondition {
    what: String,
    place: Option<Place>,
    help: String,
}

impl BadCondition {
    pub(crate) fn new(
        what: impl Into<String>,
        place: Option<Place>,
        help: impl Into<String>,
    ) -> Self {
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

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    ///
    /// It is too long or too deeply nested, is not CEL, speaks of what does not exist, or is no yes-or-no question.
    pub fn compile(source: &str) -> Result<Self, BadCondition> {
        guard::admit(source)?;
        // INVARIANT: the parser never runs on a stack that somebody else chose.
        let compiled = room::large(|| {
            let program = ENV.compile(source).map_err(|errors| explain(&errors))?;
            let found = vocabulary::check(program.expression(), program.source_info())?;
            Ok((program.expression().clone(), found))
        });
        let (expr, found) = compiled.unwrap_or_else(|lost| {
            Err(match lost {
                Lost::NoThread => BadCondition::new(
                    "the system gave no thread to read the condition on",
                    None,
                    "try again when less is running",
                ),
                Lost::Panicked => {
                    BadCondition::new("the condition cannot be read", None, "write it more simply")
                }
            })
        })?;
        Ok(Self {
            source: source.into(),
            expr: Arc::new(expr),
            found,
        })
    }

    /// The text that it was read from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it holds for a call. Needs about half a megabyte of stack.
    ///
    /// # Errors
    ///
    /// There is no answer: an argument is absent or of the wrong type, a number overflows, or finding out could take too
    /// long. Ask a person.
    pub fn evaluate(&self, facts: &Facts<'_>) -> Result<bool, Unclear> {
        let speaks_of_args = self.found.variables.contains(&Variable::Args);
        let length = facts.args.canonical().len();
        if speaks_of_args && length > MAX_ARGS {
            return Err(Unclear::new(format!(
                "the arguments are {length} bytes long, and no more than {MAX_ARGS} are looked at"
            )));
        }
        let values: Vec<_> = self
            .found
            .variables
            .iter()
            .map(|variable| (*variable, facts.value(*variable)))
            .collect();
        let mut measured = Vec::with_capacity(values.len());
        for (variable, value) in &values {
            measured.push((*variable, Measured::of(value)?));
        }
        if work::most(&self.expr, &measured) > work::MAX_WORK {
            return Err(Unclear::new(
                "finding out could take too long with arguments of this size",
            ));
        }
        drop(measured);
        let run = || resolve(&self.expr, &self.found, &values);
        let answer = if self.found.depth <= MAX_DEPTH_HERE {
            room::here(run)
        } else {
            room::large(run)
        };
        answer.unwrap_or_else(|lost| {
            Err(Unclear::new(match lost {
                Lost::NoThread => "the system gave no thread to evaluate the condition on",
                Lost::Panicked => "the condition cannot be evaluated",
            }))
        })
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.source).finish()
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Condition {}

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(false);
    // Were it refused, every use of `matches` would be refused in turn.
    let _ = env.add_macro(pattern::lift());
    Arc::new(env)
});

fn resolve(expr: &IdedExpr, found: &Found, values: &[(Variable, Value)]) -> Result<bool, Unclear> {
    let mut context = Context::with_env(Arc::clone(&ENV));
    for pattern in &found.patterns {
        pattern.declare(&mut context);
    }
    for (variable, value) in values {
        context.add_variable_as_val(variable.name(), to_cel(value));
    }
    let value = cel::Value::resolve(expr, &context).map_err(|error| reason(&error))?;
    if let cel::Value::Bool(answer) = value {
        return Ok(answer);
    }
    Err(Unclear::new(format!(
        "the condition gave {}, neither true nor false",
        a(&value.type_of().to_string())
    )))
}

fn to_cel(value: &Value) -> Box<dyn Val + '_> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => {
            if let Some(int) = number.as_i64() {
                Box::new(CelInt::from(int))
            } else if let Some(uint) = number.as_u64() {
                Box::new(CelUInt::from(uint))
            } else {
                Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN)))
            }
        }
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(items) => {
            Box::new(CelList::from(items.iter().map(to_cel).collect::<Vec<_>>()))
        }
        Value::Object(map) => {
            let entries: HashMap<_, _> = map
                .iter()
                .map(|(key, value)| {
                    (
                        CelMapKey::String(CelString::from(key.as_str())),
                        to_cel(value),
                    )
                })
                .collect();
            Box::new(CelMap::from(entries))
        }
    }
}

/// What the parser says, in fewer words.
fn explain(errors: &ParseErrors) -> BadCondition {
    let Some(error) = errors.errors.first() else {
        return BadCondition::new("the condition cannot be read", None, "write it more simply");
    };
    let place = match (usize::try_from(error.pos.0), usize::try_from(error.pos.1)) {
        (Ok(line @ 1..), Ok(column @ 1..)) => Some(Place::new(line, column)),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => None,
    };
    let text = error.msg.trim_start_matches("Syntax error: ");
    let text = text.split(" expecting ").next().unwrap_or(text);
    if text.contains("has() macro") {
        return BadCondition::new(
            "`has` asks about a field",
            place,
            "write `has(args.name)`; for a name with other characters, `\"a-name\" in args`",
        );
    }
    if text.contains("argument must be a simple name") {
        return BadCondition::new(
            "the first thing in a loop is the name of its element",
            place,
            "write `args.items.all(item, item > 0)`",
        );
    }
    let what = if text.contains("<EOF>") {
        "the condition ends too early".to_owned()
    } else if let Some(word) = quoted(text) {
        format!("`{}` was not expected here", brief(word, 40))
    } else {
        brief(&text.to_lowercase(), 100)
    };
    BadCondition::new(
        what,
        place,
        "a condition is CEL, such as `args.amount > 100 && args.currency == \"EUR\"`",
    )
}

/// What stands between the first and the last single quote.
fn quoted(text: &str) -> Option<&str> {
    let (start, end) = (text.find('\'')?, text.rfind('\'')?);
    text.get(start + 1..end).filter(|word| !word.is_empty())
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "another crate's errors, which may become more: the rest speaks for itself"
)]
fn reason(error: &ExecutionError) -> Unclear {
    let text = match error {
        ExecutionError::NoSuchKey(key) => format!("there is no `{}`", brief(key, 60)),
        ExecutionError::NoSuchOverload(overload) => {
            let types: Vec<_> = overload.argument_types().iter().map(|one| a(one)).collect();
            let operator = overload.function().trim_start_matches('@').replace('_', "");
            format!("`{operator}` does not work on {}", types.join(" and "))
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            let operator = match *operator {
                "add" => "+",
                "sub" => "-",
                "mul" => "*",
                "div" => "/",
                "rem" => "%",
                other => other,
            };
            let types = [left, right].map(|one| a(&one.type_of().to_string()));
            let mend = if types.contains(&a("int")) && types.contains(&a("double")) {
                "; make both `double(…)`"
            } else {
                ""
            };
            format!(
                "`{operator}` does not work on {}{mend}",
                types.join(" and ")
            )
        }
        ExecutionError::UnexpectedType { got, want } => {
            format!("{} stands where {} is needed", a(got), a(want))
        }
        ExecutionError::Overflow(..) => "a number became too large".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "something is divided by zero".to_owned()
        }
        ExecutionError::IndexOutOfBounds(_) => "a list has no element at that index".to_owned(),
        ExecutionError::FunctionError { function, message } => {
            format!("`{function}` failed: {message}")
        }
        other => other.to_string(),
    };
    Unclear::new(text)
}

/// A type's name in a sentence.
fn a(name: &str) -> String {
    match name {
        "string" => "a text".to_owned(),
        "null_type" | "null" => "null".to_owned(),
        "int" | "uint" => format!("a whole number ({name})"),
        "double" | "float" => "a fraction (double)".to_owned(),
        "bool" => "a boolean".to_owned(),
        "iterable" => "a list or a map".to_owned(),
        other => format!("a {other}"),
    }
}
