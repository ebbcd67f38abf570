//! What a run waits for, as a person reads it, and how to go on.

use std::fmt::Write as _;

use holdpoint_core::{
    DecisionKind, FieldKind, InputField, InterruptKind, OnTimeout, Params, Prompt, State,
    Timestamp, Work, default_description, explain_cause, next,
};
use holdpoint_engine::{ActionRequest, InterruptView, RequestView, ReviewConfig, RunView};

use serde_json::json;

use crate::{
    place::Place,
    safe_text::{GUTTER, line},
    terminal, zone,
};

/// Everything that is pending, and the commands that answer it.
pub(crate) fn render(view: &RunView, place: &Place) -> String {
    let mut out = String::new();
    for interrupt in &view.interrupts {
        out.push_str(&heading(view, interrupt));
        let requests = &interrupt.value.action_requests;
        let configs = &interrupt.value.review_configs;
        for (at, (request, config)) in requests.iter().zip(configs).enumerate() {
            out.push('\n');
            out.push_str(&action(at + 1, request, config, &interrupt.value));
        }
        out.push('\n');
        out.push_str(&how_to_answer(view, interrupt, place));
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// Why a run stands still that nobody is asked about, and how it goes on.
pub(crate) fn stillness(view: &RunView, place: &Place) -> Option<String> {
    let name = thread_word(view);
    match (view.status, view.sleeps_until) {
        ("paused", _) => {
            let again = place.command(&format!("continue {name}"));
            Some(format!("{name} is paused; go on with: {again}"))
        }
        ("sleeping", Some(until)) => {
            let again = place.command("recover");
            let until = zone::short(until);
            Some(format!(
                "{name} sleeps until {until}; then go on with: {again}"
            ))
        }
        (_, _) => None,
    }
}

/// Until when a call that nobody awaits any more may still be at work, so that nothing is done about it before.
pub(crate) fn cut_off_until(state: &State) -> Option<Timestamp> {
    let work = next(state).into_iter();
    let settled = work.filter_map(|work| match work {
        Work::Settle { at, .. } => Some(at),
        Work::CallModel { .. }
        | Work::AwaitModel { .. }
        | Work::Say { .. }
        | Work::Start { .. }
        | Work::LookUp { .. } => None,
    });
    settled.max()
}

/// Which interrupt it is, why it is asked, and what has changed since it was asked before.
pub(crate) fn heading(view: &RunView, interrupt: &InterruptView) -> String {
    let mut out = format!(
        "⏸ {} waits: {}\n  interrupt {}\n",
        thread_word(view),
        explain_cause(interrupt.cause),
        interrupt.id
    );
    if !interrupt.frame.is_root() {
        let _ = writeln!(out, "  asked by {}", line(interrupt.frame.as_str()));
    }
    if let Some(at) = interrupt.expires_at {
        let at = zone::short(at);
        let _ = match interrupt.on_timeout {
            OnTimeout::Keep => writeln!(out, "  wanted by {at}, and open after it as well"),
            OnTimeout::Expire | OnTimeout::Reject | OnTimeout::Escalate => {
                writeln!(out, "  open until {at}")
            }
        };
    }
    if let Some(old) = interrupt.supersedes {
        let why = if interrupt.changes.is_empty() {
            ""
        } else {
            ", because this changed:"
        };
        let _ = writeln!(out, "  asked again, in place of {old}{why}");
    }
    for change in &interrupt.changes {
        let _ = writeln!(out, "  - {}", line(change));
    }
    out
}

/// One thing that is asked about.
pub(crate) fn action(
    number: usize,
    request: &ActionRequest,
    config: &ReviewConfig,
    asked: &RequestView,
) -> String {
    let indent = format!("     {GUTTER}");
    let mut out = format!(
        "  {number}. {}  ({})\n",
        line(&request.name),
        request.action_id
    );
    if !is_default_text(request) {
        let _ = writeln!(out, "{}", terminal::block(&request.description, &indent));
    }
    match &asked.question {
        Some(question) => out.push_str(&shown(&question.prompt, &indent)),
        None if asked.fields.is_empty() && request.args == json!({}) => {}
        None if asked.fields.is_empty() => out.push_str(&json_block(&request.args, &indent)),
        None => out.push_str(&form(&asked.fields)),
    }
    if let Some(preview) = &request.preview {
        let _ = writeln!(out, "     {}", line(&preview.title));
        let _ = writeln!(out, "{}", terminal::block(&preview.body, &indent));
    }
    let by = if config.requires_token {
        "  (to let it run: by a token or a link that a server gave)"
    } else {
        ""
    };
    let _ = writeln!(out, "     allowed: {}{by}", config.allowed_decisions);
    for kind in config.allowed_decisions.as_slice() {
        if let Some(meaning) = meaning(*kind) {
            let _ = writeln!(out, "       {kind}: {meaning}");
        }
    }
    out
}

/// What follows a decision whose name alone does not say so.
const fn meaning(kind: DecisionKind) -> Option<&'static str> {
    match kind {
        DecisionKind::Committed => Some("it happened; say what it returned"),
        DecisionKind::NotCommitted => Some("it did not happen; it is called again, now"),
        DecisionKind::Compensate => Some("it is undone"),
        DecisionKind::Approve
        | DecisionKind::Edit
        | DecisionKind::Reject
        | DecisionKind::Respond
        | DecisionKind::Answer => None,
    }
}

/// What a question shows besides its words, and what may be answered.
fn shown(prompt: &Prompt, indent: &str) -> String {
    let mut out = String::new();
    if !prompt.data.is_null() {
        out.push_str(&json_block(&prompt.data, indent));
    }
    for option in &prompt.options {
        let mut text = format!("{}: {}", option.id, option.label);
        if !option.description.is_empty() {
            let _ = write!(text, " ({})", option.description);
        }
        let _ = writeln!(out, "     choose {}", line(&text));
    }
    if let Some(schema) = &prompt.input_schema {
        let _ = writeln!(
            out,
            "     put in what fits this JSON Schema, or decline by {{\"approved\": false}}:"
        );
        out.push_str(&json_block(schema, indent));
    }
    out
}

/// The fields of a form, and what may be put into each.
fn form(fields: &[InputField]) -> String {
    let mut out = String::new();
    for field in fields {
        let what = match field.kind {
            FieldKind::Confirm => "true or false".to_owned(),
            FieldKind::Text => "a text".to_owned(),
            FieldKind::Select => format!("one of {}", field.options.join(", ")),
        };
        let need = if field.required { "" } else { ", if you like" };
        let text = format!("{}: {} ({what}{need})", field.name, field.label);
        let _ = writeln!(out, "     fill in {}", line(&text));
    }
    out
}

fn json_block(value: &serde_json::Value, indent: &str) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    terminal::block(&text, indent) + "\n"
}

/// Whether the description only repeats name and arguments, which are shown anyway.
fn is_default_text(request: &ActionRequest) -> bool {
    Params::from_value(&request.args)
        .is_ok_and(|params| default_description(&request.name, &params) == request.description)
}

fn how_to_answer(view: &RunView, interrupt: &InterruptView, place: &Place) -> String {
    let mut start = format!("resume {}", thread_word(view));
    if view.interrupts.len() > 1 {
        let _ = write!(start, " --interrupt {}", interrupt.id);
    }
    let resume = place.command(&start);
    let configs = &interrupt.value.review_configs;
    let all_allow = |kind| {
        configs
            .iter()
            .all(|config| config.allowed_decisions.contains(kind))
    };
    let mut out = "  answer with one of:\n".to_owned();
    if all_allow(DecisionKind::Approve) {
        let _ = writeln!(out, "    {resume} --approve");
    }
    if all_allow(DecisionKind::Reject) {
        let _ = writeln!(out, "    {resume} --reject 'why not'");
    }
    for decisions in examples(interrupt) {
        let _ = writeln!(out, "    {resume} --decisions '[{decisions}]'");
    }
    out
}

/// Answers that neither `--approve` nor `--reject` can give: for one action each decision, for several a mixed one.
fn examples(interrupt: &InterruptView) -> Vec<String> {
    let by_flag = |kind: DecisionKind| matches!(kind, DecisionKind::Approve | DecisionKind::Reject);
    let requests = interrupt.value.action_requests.iter();
    let pairs: Vec<_> = requests.zip(&interrupt.value.review_configs).collect();
    if let [(request, config)] = pairs.as_slice() {
        let kinds = config.allowed_decisions.as_slice().iter();
        return kinds
            .filter(|kind| !by_flag(**kind))
            .map(|kind| match (kind, &interrupt.value.question) {
                (DecisionKind::Answer, Some(question)) => {
                    answer_example(interrupt.kind, &question.prompt)
                }
                (DecisionKind::Answer, None) => form_example(&interrupt.value.fields),
                (_, _) => example(request, *kind),
            })
            .collect();
    }
    let mixed: Vec<String> = pairs
        .iter()
        .filter_map(|(request, config)| {
            let kinds = config.allowed_decisions.as_slice();
            let kind = kinds
                .iter()
                .find(|kind| !by_flag(**kind))
                .or(kinds.first())?;
            Some(example(request, *kind))
        })
        .collect();
    vec![mixed.join(",")]
}

/// A decision, with its blanks left open: arguments that a model wrote are not for a shell.
fn example(request: &ActionRequest, kind: DecisionKind) -> String {
    match kind {
        DecisionKind::Edit => format!(
            r#"{{"type":"edit","edited_action":{{"name":"{}","args":{{…}}}}}}"#,
            line(&request.name)
        ),
        DecisionKind::Respond => r#"{"type":"respond","message":"…"}"#.to_owned(),
        DecisionKind::Committed => r#"{"type":"committed","result":…}"#.to_owned(),
        DecisionKind::Answer => r#"{"type":"answer","value":…}"#.to_owned(),
        DecisionKind::Approve
        | DecisionKind::Reject
        | DecisionKind::NotCommitted
        | DecisionKind::Compensate => format!(r#"{{"type":"{kind}"}}"#),
    }
}

/// An answer of the form that a question takes.
fn answer_example(kind: InterruptKind, prompt: &Prompt) -> String {
    let value = if kind.wants_yes_or_no() {
        r#"{"approved":true,…}"#
    } else if prompt.options.is_empty() {
        "…"
    } else {
        r#"{"option_id":"…"}"#
    };
    format!(r#"{{"type":"answer","value":{value}}}"#)
}

/// A form that is filled in.
fn form_example(fields: &[InputField]) -> String {
    let fields = fields.iter().map(|field| {
        let value = match field.kind {
            FieldKind::Confirm => "true",
            FieldKind::Text | FieldKind::Select => r#""…""#,
        };
        format!(r#""{}":{value}"#, line(&field.name))
    });
    let fields: Vec<String> = fields.collect();
    format!(r#"{{"type":"answer","value":{{{}}}}}"#, fields.join(","))
}

/// How the thread is named on a command line: readably if its name needs no quotes, else by its id.
pub(crate) fn thread_word(view: &RunView) -> String {
    let plain = |char: char| char.is_alphanumeric() || "-_.".contains(char);
    if !view.session.is_empty() && view.session.chars().all(plain) {
        format!("{}/{}", line(&view.agent), view.session)
    } else {
        view.thread_id.to_string()
    }
}
