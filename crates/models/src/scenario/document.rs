//! A scenario file as it is written, and what must be true of it.

use std::{borrow::Cow, fmt, time::Duration};

use holdpoint_core::Span;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;
use serde_saphyr::{Localizer, Location, Spanned, UserMessageFormatter};

use super::{Fail, PlannedCall, Problems, Rule, Speech, Template, When, duration};
use crate::Failure;

const API_VERSION: &str = "holdpoint/v1";
const KIND: &str = "Scenario";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "apiVersion")]
    api_version: Spanned<String>,
    kind: Spanned<String>,
    rules: Spanned<Vec<Spanned<WrittenRule>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    #[serde(default)]
    when: WrittenWhen,
    say: Option<String>,
    chunks: Option<Vec<String>>,
    call: Option<Vec<Spanned<WrittenCall>>>,
    delay: Option<Spanned<String>>,
    pace: Option<Spanned<String>>,
    fail: Option<Spanned<WrittenFail>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWhen {
    user: Option<String>,
    turn: Option<Spanned<Turns>>,
    tool: Option<String>,
    result: Option<String>,
}

/// One turn, or a range of them.
struct Turns {
    from: u64,
    to: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnRange {
    #[serde(default = "first_turn")]
    from: u64,
    #[serde(default = "last_turn")]
    to: u64,
}

fn first_turn() -> u64 {
    1
}

fn last_turn() -> u64 {
    u64::MAX
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    tool: String,
    args: Option<Value>,
    raw: Option<String>,
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFail {
    with: FailureKind,
    times: Option<u32>,
    reason: Option<String>,
    retry_after: Option<Spanned<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FailureKind {
    Timeout,
    Unavailable,
    RateLimited,
    Rejected,
}

/// The rules; only to be used if no problem was added.
pub(super) fn read(text: &str, problems: &mut Problems<'_>) -> Vec<Rule> {
    // A scenario is a page or two; whoever writes more is playing with the parser.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            // A second one is refused with its own message.
            max_documents: 2,
            max_nodes: 100_000,
            max_events: 200_000,
            max_total_scalar_bytes: 4 << 20,
            max_anchors: 100,
            max_aliases: 1_000,
            max_merge_keys: 100,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        with_snippet: false,
        strict_booleans: true,
    };
    let document: Document = match serde_saphyr::from_str_with_options(text, options) {
        Ok(document) => document,
        Err(error) => {
            problems.add(error.location().map(|at| place(&at)), explain(&error));
            return Vec::new();
        }
    };
    for (written, right) in [(&document.api_version, API_VERSION), (&document.kind, KIND)] {
        if written.value != right {
            problems.add(
                at(written),
                format!("`{}` is not known here; write `{right}`", written.value),
            );
        }
    }
    if document.rules.value.is_empty() {
        problems.add(
            at(&document.rules),
            "there are no rules; write at least one, such as `- say: hello`",
        );
    }
    document
        .rules
        .value
        .into_iter()
        .map(|rule| check_rule(rule, problems))
        .collect()
}

/// The parser's message, without the place: that stands before it already.
fn explain(error: &serde_saphyr::Error) -> String {
    let text = error
        .render_with_formatter(&UserMessageFormatter.with_localizer(&Placeless))
        .replace('\n', " ");
    if text.contains("expected string scalar") {
        return "a text is expected here; put it in quotes if it begins with a brace or a bracket"
            .to_owned();
    }
    text
}

struct Placeless;

impl Localizer for Placeless {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}

fn place(location: &Location) -> (u64, u64) {
    (location.line(), location.column())
}

fn at<T>(spanned: &Spanned<T>) -> (u64, u64) {
    place(&spanned.referenced)
}

fn check_rule(written: Spanned<WrittenRule>, problems: &mut Problems<'_>) -> Rule {
    let here = at(&written);
    let line = written.referenced.line();
    let WrittenRule {
        when,
        say,
        chunks,
        call,
        delay,
        pace,
        fail,
    } = written.value;
    if say.is_some() && chunks.is_some() {
        problems.add(
            here,
            "`say` and `chunks` are two ways to say one text; keep one of them",
        );
    }
    let speaks = say.is_some() || chunks.is_some();
    let answers = speaks || call.is_some();
    match &fail {
        Some(fail) if fail.value.times.is_none() && answers => {
            problems.add(
                at(fail),
                "this fails at every attempt, so the rest of the rule is never used; add `times`",
            );
        }
        Some(fail) if fail.value.times.is_some() && !answers => {
            problems.add(
                at(fail),
                "after these failures the rule has no answer; add `say`, `chunks` or `call`",
            );
        }
        None if !answers => problems.add(
            here,
            "the rule does nothing; add `say`, `chunks`, `call` or `fail`",
        ),
        Some(_) | None => {}
    }
    if let Some(pace) = &pace
        && !speaks
    {
        problems.add(at(pace), "`pace` is the time between chunks, and there are none; remove it or add `say` or `chunks`");
    }
    let speech = match (say, chunks) {
        (Some(text), _) => Speech::Say(Template::new(&text)),
        (None, Some(chunks)) => {
            Speech::Chunks(chunks.iter().map(|chunk| Template::new(chunk)).collect())
        }
        (None, None) => Speech::Nothing,
    };
    Rule {
        line,
        when: check_when(when, problems),
        speech,
        calls: call
            .into_iter()
            .flatten()
            .map(|call| check_call(call, problems))
            .collect(),
        delay: check_duration(delay.as_ref(), problems).unwrap_or_default(),
        pace: check_duration(pace.as_ref(), problems).unwrap_or_default(),
        fail: fail.map(|fail| check_fail(fail, problems)),
    }
}

fn check_when(when: WrittenWhen, problems: &mut Problems<'_>) -> When {
    let WrittenWhen {
        user,
        turn,
        tool,
        result,
    } = when;
    let (mut from, mut to) = (first_turn(), last_turn());
    if let Some(turn) = turn {
        (from, to) = (turn.value.from, turn.value.to);
        if from == 0 || from > to {
            problems.add(
                at(&turn),
                "no turn is meant by this; turns count from 1, and `from` is not after `to`",
            );
        }
    }
    When {
        user,
        from,
        to,
        tool,
        result,
    }
}

fn check_call(written: Spanned<WrittenCall>, problems: &mut Problems<'_>) -> PlannedCall {
    let here = at(&written);
    let WrittenCall {
        tool,
        args,
        raw,
        id,
    } = written.value;
    let arguments = match (args, raw) {
        (Some(_), Some(_)) => {
            problems.add(
                here,
                "`args` and `raw` are two ways to give the arguments; keep one of them",
            );
            String::new()
        }
        (None, Some(raw)) => raw,
        (Some(args @ Value::Object(_)), None) => args.to_string(),
        (Some(args), None) => {
            problems.add(here, format!("`args` is {args}, but must be a mapping; to send something else write it as `raw`"));
            String::new()
        }
        (None, None) => "{}".to_owned(),
    };
    PlannedCall {
        tool,
        arguments,
        id,
    }
}

fn check_fail(written: Spanned<WrittenFail>, problems: &mut Problems<'_>) -> Fail {
    let here = at(&written);
    let WrittenFail {
        with,
        times,
        reason,
        retry_after,
    } = written.value;
    if times == Some(0) {
        problems.add(
            here,
            "`times: 0` never fails; remove `fail`, or `times` to fail always",
        );
    }
    if with == FailureKind::Timeout && reason.is_some() {
        problems.add(here, "a timeout has no reason; remove `reason`");
    }
    if with != FailureKind::RateLimited
        && let Some(retry_after) = &retry_after
    {
        problems.add(
            at(retry_after),
            "only `rate_limited` has `retry_after`; remove it",
        );
    }
    let reason = reason.unwrap_or_else(|| "the scenario says so".to_owned());
    let with = match with {
        FailureKind::Timeout => Failure::Timeout,
        FailureKind::Unavailable => Failure::Unavailable { reason },
        FailureKind::Rejected => Failure::Rejected { reason },
        FailureKind::RateLimited => {
            let retry_after = check_duration(retry_after.as_ref(), problems);
            let micros = |after: Duration| u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
            Failure::RateLimited {
                retry_after: retry_after.map(|after| Span::from_micros(micros(after))),
                reason,
            }
        }
    };
    Fail { times, with }
}

fn check_duration(
    written: Option<&Spanned<String>>,
    problems: &mut Problems<'_>,
) -> Option<Duration> {
    let written = written?;
    duration::parse(&written.value)
        .map_err(|text| problems.add(at(written), text))
        .ok()
}

impl<'de> Deserialize<'de> for Turns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TurnsVisitor)
    }
}

/// By hand, because what serde derives for "a number or a mapping" says of an error only that nothing fits.
struct TurnsVisitor;

impl<'de> Visitor<'de> for TurnsVisitor {
    type Value = Turns;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a turn such as `1`, or a range such as `{from: 1, to: 5}`")
    }

    fn visit_u64<E>(self, turn: u64) -> Result<Turns, E> {
        Ok(Turns {
            from: turn,
            to: turn,
        })
    }

    fn visit_i64<E: de::Error>(self, turn: i64) -> Result<Turns, E> {
        u64::try_from(turn)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(turn), &self))
            .and_then(|turn| self.visit_u64(turn))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Turns, A::Error> {
        let TurnRange { from, to } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Turns { from, to })
    }
}
