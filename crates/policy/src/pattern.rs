//! The patterns of `matches`, compiled once.
//!
//! `args.path.matches("^/tmp/")` becomes a call of a function that is named after the pattern and has it at hand. So a
//! wrong pattern is found at load, and no call can bring its own.

use std::sync::Arc;

use cel::{
    Context, ExecutionError, Value,
    common::ast::{CallExpr, Expr, LiteralValue},
    extractors::This,
    parser::Macro,
};
use regex::{Regex, RegexBuilder};

use crate::unclear::brief;

/// The largest compiled pattern, in bytes: enough for a line of `\w` and `\d`, which are all of Unicode.
const MAX_SIZE: usize = 512 << 10;

/// What begins the name of such a function. The space keeps it apart from every name that can be written.
const PREFIX: &str = "matches ";

/// A pattern, under the name of its function.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    name: String,
    regex: Arc<Regex>,
}

/// The rewriting of `matches` with a text.
pub(crate) fn lift() -> Macro {
    Macro::receiver("matches", 1, |helper, target, args| {
        let [pattern] = args.as_slice() else {
            return Ok(None);
        };
        let Expr::Literal(LiteralValue::String(text)) = &pattern.expr else {
            return Ok(None);
        };
        let call = CallExpr {
            func_name: format!("{PREFIX}{}", text.inner()),
            target: target.take().map(Box::new),
            args: Vec::new(),
        };
        Ok(Some(helper.next_expr(Expr::Call(call))))
    })
}

/// The pattern in a function's name, if that is one of ours.
pub(crate) fn of(function: &str) -> Option<&str> {
    function.strip_prefix(PREFIX)
}

impl Pattern {
    /// Compiles it; what is wrong with it, and what would be right, if that fails.
    pub(crate) fn compile(pattern: &str) -> Result<Self, (String, &'static str)> {
        let shown = brief(pattern, 60);
        match RegexBuilder::new(pattern).size_limit(MAX_SIZE).build() {
            Ok(regex) => Ok(Self {
                name: format!("{PREFIX}{pattern}"),
                regex: Arc::new(regex),
            }),
            Err(regex::Error::CompiledTooBig(_)) => Err((
                format!("the pattern `{shown}` is too large when compiled"),
                r"repeat less often; `[a-z]` is smaller than `\w`, which is all of Unicode",
            )),
            Err(error) => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                let last = brief(last.trim_start_matches("error: "), 100);
                Err((
                    format!("the pattern `{shown}` is wrong: {last}"),
                    "mend the regular expression; look-around and back-references do not exist",
                ))
            }
        }
    }

    /// Makes its function known.
    pub(crate) fn declare(&self, context: &mut Context<'_, '_>) {
        let regex = Arc::clone(&self.regex);
        // Were it refused, the call would not find its function, and the answer be unclear.
        let _ = context.add_function(&self.name, move |This(value): This<Value>| {
            let Value::String(text) = &value else {
                let got = value.type_of().to_string();
                let want = "string".to_owned();
                return Err(ExecutionError::UnexpectedType { got, want });
            };
            Ok(regex.is_match(text))
        });
    }
}
