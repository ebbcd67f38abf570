//! Which words a condition may use. What is not known here would fail at every call, so it is refused at load.

use cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, SourceInfo, operators,
};

use crate::{
    BadCondition, Place,
    facts::Variable,
    pattern::{self, Pattern},
};

/// How many operations may hang on each other, as in `a + b + c`. Chains of `&&` and `||` are balanced by the parser,
/// and so never as deep.
const MAX_DEPTH: usize = 128;

/// Names of types, for `type(args.x) == string`.
const TYPES: [&str; 9] = [
    "bool",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

const OPERATORS: [&str; 19] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::SUBSTRACT,
    operators::ADD,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::NEGATE,
    operators::INDEX,
    operators::NOT_STRICTLY_FALSE,
    operators::IN,
];

/// Functions, with how each is written. The last five are macros: as calls they only appear if written otherwise.
const FUNCTIONS: [(&str, &str); 18] = [
    ("size", "size(args.items)"),
    ("contains", "args.text.contains(\"x\")"),
    ("startsWith", "args.path.startsWith(\"/tmp/\")"),
    ("endsWith", "args.path.endsWith(\".md\")"),
    ("matches", "args.text.matches(\"^[a-z]+$\")"),
    ("int", "int(args.x)"),
    ("uint", "uint(args.x)"),
    ("double", "double(args.x)"),
    ("string", "string(args.x)"),
    ("bool", "bool(args.x)"),
    ("type", "type(args.x)"),
    ("dyn", "dyn(args.x)"),
    ("has", "has(args.x)"),
    ("all", "args.items.all(item, item > 0)"),
    ("exists", "args.items.exists(item, item > 0)"),
    ("exists_one", "args.items.exists_one(item, item > 0)"),
    ("filter", "args.items.filter(item, item > 0)"),
    ("map", "args.items.map(item, item.price)"),
];

/// What a check finds out on its way.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The variables that are spoken of.
    pub(crate) variables: Vec<Variable>,
    /// The patterns that texts are matched with.
    pub(crate) patterns: Vec<Pattern>,
    /// How deep the expression is, which is what its evaluation recurses on.
    pub(crate) depth: usize,
}

/// Refuses unknown words, and what plainly is not a yes or no.
pub(crate) fn check(expr: &IdedExpr, source: &SourceInfo) -> Result<Found, BadCondition> {
    let mut check = Check {
        source,
        bound: Vec::new(),
        found: Found {
            variables: Vec::new(),
            patterns: Vec::new(),
            depth: 0,
        },
    };
    check.expr(expr, 1)?;
    if let Some(kind) = kind_of(expr) {
        return Err(BadCondition::new(
            format!("a condition must say yes or no, and this is {kind}"),
            None,
            "compare it with something, as in `size(args.items) > 3`",
        ));
    }
    Ok(check.found)
}

struct Check<'a> {
    source: &'a SourceInfo,
    /// Names that a macro binds.
    bound: Vec<&'a str>,
    found: Found,
}

impl<'a> Check<'a> {
    fn bad<T>(
        &self,
        expr: &IdedExpr,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Result<T, BadCondition> {
        let place = self
            .source
            .offset_for(expr.id)
            .and_then(|(start, _)| usize::try_from(start).ok())
            .map(|start| Place::of(&self.source.source, start));
        Err(BadCondition::new(what, place, help))
    }

    fn expr(&mut self, expr: &'a IdedExpr, depth: usize) -> Result<(), BadCondition> {
        if depth > MAX_DEPTH {
            return self.bad(
                expr,
                format!("more than {MAX_DEPTH} operations hang on each other"),
                "say it in fewer steps; lists are searched with `x in [..]`",
            );
        }
        self.found.depth = self.found.depth.max(depth);
        let deeper = depth + 1;
        match &expr.expr {
            Expr::Unspecified => {
                self.bad(expr, "a part of the condition is missing", "complete it")
            }
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.name(expr, name),
            Expr::Select(select) => {
                self.expr(&select.operand, deeper)?;
                self.field(expr, &select.operand, &select.field)
            }
            Expr::Call(call) => {
                self.call(expr, call)?;
                if let Some(target) = &call.target {
                    self.expr(target, deeper)?;
                }
                call.args
                    .iter()
                    .try_for_each(|arg| self.expr(arg, deeper))?;
                self.index(expr, call)
            }
            Expr::List(list) => list
                .elements
                .iter()
                .try_for_each(|element| self.expr(element, deeper)),
            Expr::Map(map) => self.entries(&map.entries, deeper),
            Expr::Struct(structure) => self.bad(
                expr,
                format!(
                    "`{}{{…}}` makes a value of a type that is not known",
                    structure.type_name
                ),
                "a map is written `{\"key\": 1}`",
            ),
            Expr::Comprehension(loops) => {
                self.expr(&loops.iter_range, deeper)?;
                self.expr(&loops.accu_init, deeper)?;
                if Variable::named(&loops.iter_var).is_some() {
                    return self.bad(
                        expr,
                        format!("`{}` already means something here", loops.iter_var),
                        "give the element another name, such as `item`",
                    );
                }
                let bound = self.bound.len();
                self.bound.push(&loops.accu_var);
                self.bound.push(&loops.iter_var);
                self.expr(&loops.loop_cond, deeper)?;
                self.expr(&loops.loop_step, deeper)?;
                self.expr(&loops.result, deeper)?;
                self.bound.truncate(bound);
                Ok(())
            }
        }
    }

    fn entries(&mut self, entries: &'a [IdedEntryExpr], depth: usize) -> Result<(), BadCondition> {
        entries.iter().try_for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                self.expr(&entry.key, depth)?;
                self.expr(&entry.value, depth)
            }
            EntryExpr::StructField(field) => self.expr(&field.value, depth),
        })
    }

    fn name(&mut self, expr: &IdedExpr, name: &str) -> Result<(), BadCondition> {
        if self.bound.contains(&name) || TYPES.contains(&name) {
            return Ok(());
        }
        if let Some(variable) = Variable::named(name) {
            if !self.found.variables.contains(&variable) {
                self.found.variables.push(variable);
            }
            return Ok(());
        }
        let help = if name.starts_with('.') {
            "write it without its dot".to_owned()
        } else {
            format!(
                "a condition knows `args`, `tool`, `agent` and `user`; an argument is written `args.{name}`, and a text in quotes"
            )
        };
        self.bad(expr, format!("`{name}` is not known"), help)
    }

    /// Checks a field of what has known fields.
    fn field(&self, expr: &IdedExpr, of: &IdedExpr, field: &str) -> Result<(), BadCondition> {
        let Expr::Ident(name) = &of.expr else {
            return Ok(());
        };
        let known = Variable::named(name).and_then(Variable::fields);
        match known {
            Some(known) if !known.contains(&field) => self.bad(
                expr,
                format!("`{name}` has no `{field}`"),
                format!("it has `{}`", known.join("`, `")),
            ),
            Some(_) | None => Ok(()),
        }
    }

    fn index(&self, expr: &IdedExpr, call: &CallExpr) -> Result<(), BadCondition> {
        match call.args.as_slice() {
            [of, key] if call.func_name == operators::INDEX => match text_of(key) {
                Some(field) => self.field(expr, of, field),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr) -> Result<(), BadCondition> {
        let name = call.func_name.as_str();
        if let Some(text) = pattern::of(name) {
            return match Pattern::compile(text) {
                Ok(pattern) => {
                    self.found.patterns.push(pattern);
                    Ok(())
                }
                Err((what, help)) => self.bad(expr, what, help),
            };
        }
        if OPERATORS.contains(&name) {
            return Ok(());
        }
        let Some((_, shape)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = FUNCTIONS.iter().map(|(known, _)| *known).collect();
            return self.bad(
                expr,
                format!("there is no function `{name}`"),
                format!("there is `{}`", known.join("`, `")),
            );
        };
        let fits = matches!(
            (name, call.target.is_some(), call.args.len()),
            ("size", false, 1)
                | ("size", true, 0)
                | ("contains" | "startsWith" | "endsWith" | "matches", true, 1)
                | (
                    "int" | "uint" | "double" | "string" | "bool" | "type" | "dyn",
                    false,
                    1
                )
        );
        if !fits {
            return self.bad(
                expr,
                format!("`{name}` is not written like this"),
                format!("write it like `{shape}`"),
            );
        }
        if name == "matches" {
            return self.bad(
                expr,
                "the pattern of `matches` must be a text",
                "a pattern that comes with the call could be made to take long; use `contains`",
            );
        }
        Ok(())
    }
}

/// The text that an expression literally is.
pub(crate) fn text_of(expr: &IdedExpr) -> Option<&str> {
    let Expr::Literal(LiteralValue::String(text)) = &expr.expr else {
        return None;
    };
    Some(text.inner())
}

/// What an expression surely is, if that is no boolean.
fn kind_of(expr: &IdedExpr) -> Option<&'static str> {
    match &expr.expr {
        Expr::Literal(literal) => match literal {
            LiteralValue::Boolean(_) => None,
            LiteralValue::String(_) | LiteralValue::Bytes(_) => Some("a text"),
            LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => {
                Some("a number")
            }
            LiteralValue::Null => Some("nothing"),
        },
        Expr::List(_) => Some("a list"),
        Expr::Map(_) | Expr::Struct(_) => Some("a map"),
        Expr::Ident(name) => {
            if TYPES.contains(&name.as_str()) {
                Some("a type")
            } else {
                Variable::named(name).map(|_| "a map")
            }
        }
        Expr::Call(call) => match call.func_name.as_str() {
            "size"
            | "int"
            | "uint"
            | "double"
            | operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO
            | operators::NEGATE => Some("a number"),
            "string" => Some("a text"),
            "type" => Some("a type"),
            operators::ADD => Some("a sum"),
            operators::CONDITIONAL => call.args.iter().skip(1).find_map(kind_of),
            _ => None,
        },
        Expr::Comprehension(loops) => match &loops.accu_init.expr {
            Expr::List(_) => Some("a list"),
            Expr::Unspecified
            | Expr::Call(_)
            | Expr::Comprehension(_)
            | Expr::Ident(_)
            | Expr::Literal(_)
            | Expr::Map(_)
            | Expr::Select(_)
            | Expr::Struct(_) => None,
        },
        Expr::Select(_) | Expr::Unspecified => None,
    }
}
