//! How much work an expression could be, before it is done.
//!
//! CEL always ends, but `args.a.all(x, args.b.all(y, ..))` over a model's arguments may take minutes, or more memory
//! than there is, and its evaluator can be given no budget. So the most that an evaluation could cost is worked out
//! first, from the expression and this call's values, and what could cost too much is not begun.
//!
//! A path such as `args.items` stands for the very values that it leads to, and the variable of a loop for all elements
//! that it could be; the largest of them counts, each time. That is an upper bound, and errs towards asking a person.

use std::{collections::BTreeMap, rc::Rc};

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, operators,
};
use serde_json::Value;

use crate::{Unclear, facts::Variable, pattern, vocabulary::text_of};

/// The most work that is begun. A unit is about a nanosecond of an optimised build, or a byte that is copied.
pub(crate) const MAX_WORK: u64 = 100_000_000;

/// The deepest nesting of values.
const MAX_DEPTH: usize = holdpoint_core::MAX_DEPTH;

/// What a value weighs beside its text.
const NODE: u64 = 64;

/// What evaluating one operation costs, beside what it does.
const STEP: u64 = 128;

/// What matching a pattern costs for each byte of the text.
const MATCH: u64 = 64;

/// The measures of a value, or the most that they could be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Extent {
    /// What it takes to copy it or to compare it as a whole.
    weight: u64,
    /// How many elements it has, or any value within.
    width: u64,
    /// How long its text is, or any text within.
    text: u64,
}

impl Extent {
    const SMALL: Self = Self {
        weight: NODE,
        width: 0,
        text: 0,
    };

    fn text(length: usize) -> Self {
        let text = count(length);
        Self {
            weight: NODE.saturating_add(text),
            width: 0,
            text,
        }
    }

    /// Both in one: a sum of texts, or of lists.
    fn with(self, other: Self) -> Self {
        Self {
            weight: self.weight.saturating_add(other.weight),
            width: self.width.saturating_add(other.width),
            text: self.text.saturating_add(other.text),
        }
    }

    /// A collection with one more value in it.
    fn holding(self, one: Self) -> Self {
        Self {
            weight: self.weight.saturating_add(one.weight),
            ..self.or(one)
        }
    }

    /// A collection of so many elements, of which each is at most `self`.
    fn times(self, count: u64) -> Self {
        Self {
            weight: self.weight.saturating_mul(count).saturating_add(NODE),
            width: self.width.max(count),
            text: self.text,
        }
    }

    /// One or the other.
    fn or(self, other: Self) -> Self {
        Self {
            weight: self.weight.max(other.weight),
            width: self.width.max(other.width),
            text: self.text.max(other.text),
        }
    }
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A value with its measures.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    extent: Extent,
    parts: Parts<'a>,
}

#[derive(Debug)]
enum Parts<'a> {
    None,
    Items(Vec<Measured<'a>>),
    Fields(BTreeMap<&'a str, Measured<'a>>),
}

impl<'a> Measured<'a> {
    /// Measures a value.
    ///
    /// # Errors
    ///
    /// It nests too deeply.
    pub(crate) fn of(value: &'a Value) -> Result<Self, Unclear> {
        Self::at_depth(value, 0)
    }

    fn at_depth(value: &'a Value, depth: usize) -> Result<Self, Unclear> {
        if depth > MAX_DEPTH {
            return Err(Unclear::new(format!(
                "the arguments nest deeper than {MAX_DEPTH} levels"
            )));
        }
        let mut extent = Extent::SMALL;
        let parts = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Parts::None,
            Value::String(text) => {
                extent = Extent::text(text.len());
                Parts::None
            }
            Value::Array(items) => {
                let mut parts = Vec::with_capacity(items.len());
                for item in items {
                    let part = Self::at_depth(item, depth + 1)?;
                    extent = extent.holding(part.extent);
                    parts.push(part);
                }
                Parts::Items(parts)
            }
            Value::Object(map) => {
                let mut parts = BTreeMap::new();
                for (key, value) in map {
                    let part = Self::at_depth(value, depth + 1)?;
                    extent = extent.holding(Extent::text(key.len())).holding(part.extent);
                    parts.insert(key.as_str(), part);
                }
                Parts::Fields(parts)
            }
        };
        extent.width = extent.width.max(count(parts.len()));
        Ok(Self { extent, parts })
    }
}

impl Parts<'_> {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Items(items) => items.len(),
            Self::Fields(fields) => fields.len(),
        }
    }
}

/// What is known of a value before it is there.
#[derive(Debug, Clone)]
enum Known<'m> {
    /// It is one of these.
    OneOf(Rc<[&'m Measured<'m>]>),
    /// It is made on the way, and no larger than this.
    Made(Extent),
}

impl<'m> Known<'m> {
    fn extent(&self) -> Extent {
        match self {
            Self::OneOf(values) => values
                .iter()
                .fold(Extent::default(), |all, one| all.or(one.extent)),
            Self::Made(extent) => *extent,
        }
    }

    /// How often a loop over it runs.
    fn length(&self) -> u64 {
        match self {
            Self::OneOf(values) => values
                .iter()
                .map(|one| count(one.parts.len()))
                .max()
                .unwrap_or(0),
            Self::Made(extent) => extent.width,
        }
    }

    /// Its field, or any of its parts.
    fn part(&self, field: Option<&str>) -> Self {
        let Self::OneOf(values) = self else {
            return self.clone();
        };
        let mut parts: Vec<&'m Measured<'m>> = Vec::new();
        for value in values.iter() {
            match (&value.parts, field) {
                (Parts::None, _) | (Parts::Items(_), Some(_)) => {}
                (Parts::Items(items), None) => parts.extend(items),
                (Parts::Fields(fields), Some(field)) => parts.extend(fields.get(field)),
                (Parts::Fields(fields), None) => parts.extend(fields.values()),
            }
        }
        Self::OneOf(parts.into())
    }

    /// The variable of a loop over it: the elements of lists, the keys of maps.
    fn element(&self) -> Self {
        match self {
            Self::OneOf(values)
                if !values
                    .iter()
                    .any(|value| matches!(value.parts, Parts::Fields(_))) =>
            {
                self.part(None)
            }
            Self::OneOf(_) | Self::Made(_) => Self::Made(self.extent()),
        }
    }
}

/// The most work that evaluating `expr` could be.
pub(crate) fn most<'m>(expr: &IdedExpr, variables: &'m [(Variable, Measured<'m>)]) -> u64 {
    let mut estimate = Estimate {
        names: variables
            .iter()
            .map(|(variable, value)| (variable.name(), Known::OneOf([value].into())))
            .collect(),
        work: 0,
    };
    estimate.expr(expr);
    estimate.work
}

struct Estimate<'a, 'm> {
    /// What each name is; the last one counts.
    names: Vec<(&'a str, Known<'m>)>,
    work: u64,
}

impl<'a, 'm> Estimate<'a, 'm> {
    fn spend(&mut self, work: u64) {
        self.work = self.work.saturating_add(work);
    }

    /// Adds the work of an expression, and says what is known of its value.
    fn expr(&mut self, expr: &'a IdedExpr) -> Known<'m> {
        self.spend(STEP);
        let made = match &expr.expr {
            Expr::Ident(name) => {
                let named = self.names.iter().rev().find(|(known, _)| known == name);
                return named.map_or(Known::Made(Extent::SMALL), |(_, known)| known.clone());
            }
            Expr::Select(select) => {
                let of = self.expr(&select.operand);
                return self.take_part(&of, Some(&select.field));
            }
            Expr::Comprehension(loops) => return self.loops(loops),
            Expr::Call(call) => return self.call(call),
            Expr::Unspecified => Extent::default(),
            Expr::Literal(literal) => match literal {
                LiteralValue::String(text) => Extent::text(text.inner().len()),
                LiteralValue::Bytes(bytes) => Extent::text(bytes.inner().len()),
                LiteralValue::Boolean(_)
                | LiteralValue::Double(_)
                | LiteralValue::Int(_)
                | LiteralValue::Null
                | LiteralValue::UInt(_) => Extent::SMALL,
            },
            Expr::List(list) => {
                let mut all = Extent::default().times(count(list.elements.len()));
                for element in &list.elements {
                    all = self.put(all, element);
                }
                all
            }
            Expr::Map(map) => self.entries(&map.entries),
            Expr::Struct(structure) => self.entries(&structure.entries),
        };
        Known::Made(made)
    }

    /// Puts a copy of a value into a collection.
    fn put(&mut self, all: Extent, one: &'a IdedExpr) -> Extent {
        let one = self.expr(one).extent();
        self.spend(one.weight);
        all.holding(one)
    }

    fn entries(&mut self, entries: &'a [IdedEntryExpr]) -> Extent {
        let mut all = Extent::default().times(count(entries.len()));
        for entry in entries {
            all = match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    let all = self.put(all, &entry.key);
                    self.put(all, &entry.value)
                }
                EntryExpr::StructField(field) => self.put(all, &field.value),
            };
        }
        all
    }

    /// A part is borrowed from what is there, and copied out of what was made on the way.
    fn take_part(&mut self, of: &Known<'m>, field: Option<&str>) -> Known<'m> {
        if let Known::Made(extent) = of {
            self.spend(extent.weight);
        }
        of.part(field)
    }

    fn call(&mut self, call: &'a CallExpr) -> Known<'m> {
        let mut all: Vec<Known<'m>> = Vec::with_capacity(call.args.len() + 1);
        for operand in call.target.as_deref().into_iter().chain(&call.args) {
            all.push(self.expr(operand));
        }
        let made = match (call.func_name.as_str(), all.as_slice()) {
            (operators::INDEX, [of, key]) => {
                self.spend(key.extent().text);
                return self.take_part(of, call.args.get(1).and_then(text_of));
            }
            ("dyn", [one]) => return one.clone(),
            (operators::CONDITIONAL, [_, yes, no]) => yes.extent().or(no.extent()),
            (operators::ADD, [left, right]) => {
                let sum = left.extent().with(right.extent());
                self.spend(sum.weight);
                sum
            }
            (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => {
                self.spend(left.extent().weight.min(right.extent().weight));
                Extent::SMALL
            }
            (operators::IN, [one, all]) => {
                let each = NODE.saturating_add(one.extent().weight);
                let all_of_it = all.extent().weight.saturating_mul(2);
                self.spend(all.length().saturating_mul(each).min(all_of_it));
                Extent::SMALL
            }
            (function, [text]) if pattern::of(function).is_some() => {
                self.spend(text.extent().text.saturating_mul(MATCH));
                Extent::SMALL
            }
            ("string", [one]) => {
                let text = one.extent().text.max(32);
                self.spend(text);
                Extent {
                    weight: NODE.saturating_add(text),
                    width: 0,
                    text,
                }
            }
            // The rest makes something small, out of texts at most.
            (_, all) => {
                for one in all {
                    self.spend(one.extent().text);
                }
                Extent::SMALL
            }
        };
        Known::Made(made)
    }

    fn loops(&mut self, loops: &'a ComprehensionExpr) -> Known<'m> {
        let range = self.expr(&loops.iter_range);
        let start = self.expr(&loops.accu_init);
        // Each element is copied to be looked at.
        self.spend(range.extent().weight);

        let before = std::mem::take(&mut self.work);
        let outer = self.names.len();
        let gathers = matches!(loops.accu_init.expr, Expr::List(_));
        self.names.push((&loops.accu_var, start));
        self.names.push((&loops.iter_var, range.element()));
        self.expr(&loops.loop_cond);
        let step = self.expr(&loops.loop_step).extent();
        let times = range.length();
        self.work = before.saturating_add(self.work.saturating_mul(times));
        self.expr(&loops.result);
        self.names.truncate(outer);

        if !gathers {
            Known::Made(Extent::SMALL)
        } else if is_filter(loops) {
            // Some elements of the range are no more than all of them.
            range
        } else {
            Known::Made(step.times(times))
        }
    }
}

/// Whether a loop gathers elements as they are: `guard ? @result + [item] : @result`.
fn is_filter(loops: &ComprehensionExpr) -> bool {
    let Expr::Call(choice) = &loops.loop_step.expr else {
        return false;
    };
    let (operators::CONDITIONAL, [_, sum, _]) = (choice.func_name.as_str(), choice.args.as_slice())
    else {
        return false;
    };
    let Expr::Call(sum) = &sum.expr else {
        return false;
    };
    let (operators::ADD, [_, list]) = (sum.func_name.as_str(), sum.args.as_slice()) else {
        return false;
    };
    let Expr::List(list) = &list.expr else {
        return false;
    };
    matches!(list.elements.as_slice(), [item] if item.expr == Expr::Ident(loops.iter_var.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_measures_are_of_the_largest_part_and_of_all_together() {
        let value = json!({"a": ["xy", "xyz"], "key": {"b": 1, "c": null, "d": true}});
        let measured = Measured::of(&value).unwrap();
        let texts = count("a".len() + "xy".len() + "xyz".len() + "key".len() + "bcd".len());
        // The map, five keys, two collections, and five values in them.
        let nodes = 13 * NODE;
        assert_eq!(
            measured.extent,
            Extent {
                weight: texts + nodes,
                width: 3,
                text: 3
            }
        );
    }

    #[test]
    fn values_that_nest_too_deeply_are_unclear() {
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(Measured::of(&nested(MAX_DEPTH)).is_ok());
        let reason = Measured::of(&nested(MAX_DEPTH + 1)).unwrap_err();
        assert_eq!(reason.reason(), "the arguments nest deeper than 64 levels");
    }
}
