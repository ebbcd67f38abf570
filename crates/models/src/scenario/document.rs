//! A scenario file as it is written, and what must be true of it.
//!
//! Whatever is wrong is reported and reading goes on, so that all problems are told at once.

use std::time::Duration;

use holdpoint_core::Span;
use holdpoint_yaml::{Content, Field, Fields, Node, Numbers, Report};

use super::{Fail, PlannedCall, Rule, Speech, Template, When};
use crate::Failure;

const API_VERSION: &str = "holdpoint/v1";
pub(super) const KIND: &str = "Scenario";

/// The rules. `None` only if a problem was reported.
pub(super) fn read(root: &Node, report: &mut Report) -> Option<Vec<Rule>> {
    let fields = Fields::open(&Field::root(root), &["apiVersion", "kind", "rules"], report)?;
    fields.expect_word("apiVersion", API_VERSION, report);
    fields.expect_word("kind", KIND, report);
    let help = "write at least one rule, such as `- say: hello`";
    let rules = fields.required("rules", help, report)?;
    let items = rules.items(help, report)?;
    if items.is_empty() {
        rules.problem("there are no rules", help, report);
    }
    let read: Vec<_> = items.iter().map(|item| read_rule(item, report)).collect();
    read.into_iter().collect()
}

fn read_rule(item: &Field<'_>, report: &mut Report) -> Option<Rule> {
    let keys = ["when", "say", "chunks", "call", "delay", "pace", "fail"];
    let fields = Fields::open(item, &keys, report)?;
    check_sense(item, &fields, report);
    let when = match fields.optional("when") {
        None => Some(When::default()),
        Some(field) => read_when(&field, report),
    };
    let speech = read_speech(&fields, report);
    let calls = match fields.optional("call") {
        None => Some(Vec::new()),
        Some(field) => read_calls(&field, report),
    };
    let time = |key: &str, report: &mut Report| match fields.optional(key) {
        None => Some(Duration::ZERO),
        Some(field) => field.duration(report).map(Duration::from),
    };
    let delay = time("delay", report);
    let pace = time("pace", report);
    let fail = match fields.optional("fail") {
        None => Some(None),
        Some(field) => read_fail(&field, report).map(Some),
    };
    Some(Rule {
        line: item.node.at.line,
        when: when?,
        speech: speech?,
        calls: calls?,
        delay: delay?,
        pace: pace?,
        fail: fail?,
    })
}

/// What does not go together, whatever the single values are.
fn check_sense(item: &Field<'_>, fields: &Fields<'_>, report: &mut Report) {
    let has = |key: &str| fields.optional(key).is_some();
    let speaks = has("say") || has("chunks");
    let answers = speaks || has("call");
    if has("say") && has("chunks") {
        let message = "`say` and `chunks` are two ways to say one text";
        item.problem(message, "keep one of them", report);
    }
    // A key that is not known may have been meant to be the answer.
    if !answers && !has("fail") && !fields.has_unknown() {
        let help = "add `say`, `chunks`, `call` or `fail`";
        item.problem("the rule does nothing", help, report);
    }
    if let Some(pace) = fields.optional("pace")
        && !speaks
        && !fields.has_unknown()
    {
        let message = "`pace` is the time between chunks, and there are none";
        pace.problem(message, "remove it, or add `say` or `chunks`", report);
    }
    if let Some(fail) = fields.optional("fail") {
        let is_limited = fail.follow("/times").path != fail.path;
        if !is_limited && answers {
            let message = "this fails at every attempt, so the rest of the rule is never used";
            fail.problem(message, "add `times`", report);
        }
        if is_limited && !answers && !fields.has_unknown() {
            let message = "after these failures the rule has no answer";
            fail.problem(message, "add `say`, `chunks` or `call`", report);
        }
    }
}

fn read_when(field: &Field<'_>, report: &mut Report) -> Option<When> {
    let fields = Fields::open(field, &["user", "said", "turn", "tool", "result"], report)?;
    let text = |key: &str, report: &mut Report| match fields.optional(key) {
        None => Some(None),
        Some(field) => field.text(report).map(|text| Some(text.to_owned())),
    };
    let user = text("user", report);
    let said = text("said", report);
    let turns = match fields.optional("turn") {
        None => Some((When::FIRST_TURN, When::LAST_TURN)),
        Some(field) => read_turns(&field, report),
    };
    let tool = text("tool", report);
    let result = text("result", report);
    let (from, to) = turns?;
    Some(When {
        user: user?,
        said: said?,
        from,
        to,
        tool: tool?,
        result: result?,
    })
}

/// One turn, or a range of them.
fn read_turns(field: &Field<'_>, report: &mut Report) -> Option<(u64, u64)> {
    match &field.node.content {
        Content::Number(_) => field
            .count(report)
            .map(|turn| (u64::from(turn), u64::from(turn))),
        Content::Map(_) => {
            let fields = Fields::open(field, &["from", "to"], report)?;
            let end = |key: &str, unsaid: u64, report: &mut Report| match fields.optional(key) {
                None => Some(unsaid),
                Some(field) => field.count(report).map(u64::from),
            };
            let from = end("from", When::FIRST_TURN, report);
            let to = end("to", When::LAST_TURN, report);
            let (from, to) = (from?, to?);
            if from > to {
                let help = "`from` is not after `to`";
                field.problem("no turn is meant by this", help, report);
                return None;
            }
            Some((from, to))
        }
        Content::Null | Content::Bool(_) | Content::Text(_) | Content::List(_) => {
            let message = format!("must be a turn, not {}", field.node.describe());
            let help = "write a number such as `1`, or a range such as `{from: 1, to: 5}`";
            field.problem(&message, help, report);
            None
        }
    }
}

fn read_speech(fields: &Fields<'_>, report: &mut Report) -> Option<Speech> {
    if let Some(say) = fields.optional("say") {
        return speakable(&say, report).map(Speech::Say);
    }
    let Some(chunks) = fields.optional("chunks") else {
        return Some(Speech::Nothing);
    };
    let items = chunks.items("list the texts, for instance [\"one \", \"two\"]", report)?;
    let texts: Vec<_> = items.iter().map(|item| speakable(item, report)).collect();
    texts.into_iter().collect::<Option<_>>().map(Speech::Chunks)
}

fn speakable(field: &Field<'_>, report: &mut Report) -> Option<Template> {
    // `{result}` without quotes is a map to YAML.
    if let Content::Map(_) | Content::List(_) = &field.node.content {
        let message = format!("must be text, not {}", field.node.describe());
        let help = "put it in quotes if it begins with a brace or a bracket";
        field.problem(&message, help, report);
        return None;
    }
    field.text(report).map(Template::new)
}

fn read_calls(field: &Field<'_>, report: &mut Report) -> Option<Vec<PlannedCall>> {
    let items = field.items("begin every call with `- tool: …`", report)?;
    let calls: Vec<_> = items.iter().map(|item| read_call(item, report)).collect();
    calls.into_iter().collect()
}

fn read_call(item: &Field<'_>, report: &mut Report) -> Option<PlannedCall> {
    let fields = Fields::open(item, &["tool", "args", "raw", "id"], report)?;
    let tool = fields
        .required("tool", "say which tool is called", report)
        .and_then(|field| Some((field.clone(), field.some_text(report)?)));
    let arguments = match (fields.optional("args"), fields.optional("raw")) {
        (Some(_), Some(raw)) => {
            let message = "`args` and `raw` are two ways to give the arguments";
            raw.problem(message, "keep one of them", report);
            None
        }
        (None, Some(raw)) => raw.text(report).map(str::to_owned),
        (Some(args), None) => read_args(&args, report),
        (None, None) => Some("{}".to_owned()),
    };
    let id = match fields.optional("id") {
        None => Some(None),
        Some(field) => field.some_text(report).map(|id| Some(id.to_owned())),
    };
    let (field, tool) = tool?;
    Some(PlannedCall {
        tool: tool.to_owned(),
        at: field.node.at,
        path: field.path,
        arguments: arguments?,
        id: id?,
    })
}

fn read_args(args: &Field<'_>, report: &mut Report) -> Option<String> {
    let Content::Map(_) = &args.node.content else {
        let message = format!("must be a map, not {}", args.node.describe());
        args.problem(&message, "to send something else write it as `raw`", report);
        return None;
    };
    // What a model may not send is for whoever reads it to find out.
    let value = args.json(Numbers::Near, report)?;
    Some(value.to_string())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FailureKind {
    Timeout,
    Unavailable,
    RateLimited,
    Rejected,
}

const FAILURES: [(&str, FailureKind); 4] = [
    ("timeout", FailureKind::Timeout),
    ("unavailable", FailureKind::Unavailable),
    ("rate_limited", FailureKind::RateLimited),
    ("rejected", FailureKind::Rejected),
];

fn read_fail(field: &Field<'_>, report: &mut Report) -> Option<Fail> {
    let fields = Fields::open(field, &["with", "times", "reason", "retry_after"], report)?;
    let with = fields
        .required(
            "with",
            "say how it fails, for instance `with: timeout`",
            report,
        )
        .and_then(|field| field.one_of("a failure", &FAILURES, report));
    let times = match fields.optional("times") {
        None => Some(None),
        Some(field) => field.count(report).map(Some),
    };
    let given = fields.optional("reason");
    if let (Some(FailureKind::Timeout), Some(reason)) = (with, &given) {
        reason.problem("a timeout has no reason", "remove it", report);
    }
    let reason = match given {
        None => Some("the scenario says so".to_owned()),
        Some(field) => field.text(report).map(str::to_owned),
    };
    let retry_after = match fields.optional("retry_after") {
        None => Some(None),
        Some(field) => {
            if with.is_some_and(|with| with != FailureKind::RateLimited) {
                let message = "only `rate_limited` has `retry_after`";
                field.problem(message, "remove it", report);
            }
            field.duration(report).map(Some)
        }
    };
    let with = failure(with?, reason?, retry_after?);
    Some(Fail {
        times: times?,
        with,
    })
}

fn failure(kind: FailureKind, reason: String, retry_after: Option<Span>) -> Failure {
    match kind {
        FailureKind::Timeout => Failure::Timeout,
        FailureKind::Unavailable => Failure::Unavailable { reason },
        FailureKind::Rejected => Failure::Rejected { reason },
        FailureKind::RateLimited => Failure::RateLimited {
            retry_after,
            reason,
        },
    }
}
