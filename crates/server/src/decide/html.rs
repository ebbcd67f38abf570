//! The pages themselves.
//!
//! What would run is shown from what is stored, argument by argument, under the name of the tool. Words of a model, or of
//! whoever asks, stand beside it as what they are.

use std::fmt::Write as _;

use axum::{
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{
    Ask, DecisionKind, FieldKind, InputField, InterruptKind, InterruptStatus, Prompt, Subject,
    ThreadKind, Timestamp, parse_strict,
};
use holdpoint_engine::Question;
use serde_json::Value;

use super::{
    field::{self, Field, Need, Widget},
    form::{
        ANSWER, APPROVE, COMMENT, Complaint, Entered, OPTION, PAGE, REJECT, SAY, Sheet, confirmed,
        is_unchanged, name_of, name_of_input, nth, pretty, words,
    },
};
use crate::{
    clock::rfc3339,
    markup::{plain, safe, unseen},
};

const STYLE: &str = include_str!("style.css");

/// A page of ours. Nothing on it comes from elsewhere, nothing runs on it, nobody puts it into a frame, and nobody keeps it.
pub(super) fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><meta name=\"robots\" content=\"noindex\"><title>{}</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        safe(title)
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
        // The link is in the address, and is nobody else's business; but a form has to say where it comes from.
        (header::REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    (status, headers, html).into_response()
}

/// A page that says that something is not so.
pub(super) fn notice(status: StatusCode, title: &str, text: &str) -> Response {
    let body = format!("<h1>{}</h1>\n<p>{}</p>\n", safe(title), safe(text));
    page(status, title, &body)
}

/// Who looks at a question, and by what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) user: &'a str,
    /// What proves that the form is ours.
    pub(super) proof: &'a str,
    /// The tools whose calls nobody's approval lets run.
    pub(super) barred: &'a [String],
}

/// What was put in before, and what is wrong with it.
#[derive(Debug, Clone, Copy)]
struct Filled<'a> {
    entered: &'a Entered,
    complaint: Option<&'a Complaint>,
}

impl<'a> Filled<'a> {
    fn get(self, name: &str) -> Option<&'a str> {
        self.entered.get(name)
    }

    /// Whether something is wrong with a control.
    fn is_wrong(self, name: &str) -> bool {
        let complaint = self.complaint.as_ref();
        complaint.is_some_and(|it| it.of(name).next().is_some())
    }

    /// What is wrong with a control, beside it.
    fn wrong(self, body: &mut String, name: &str) {
        for why in self.complaint.into_iter().flat_map(|it| it.of(name)) {
            let _ = write!(body, "<span class=\"wrong\">{}</span>", safe(why));
        }
    }
}

/// The page of a question that is pending.
pub(super) fn question(
    status: StatusCode,
    visit: Visit<'_>,
    question: &Question,
    entered: &Entered,
    complaint: Option<&Complaint>,
) -> Response {
    let title = title(question);
    let mut body = format!("<h1>{}</h1>\n", safe(&title));
    if let Some(complaint) = complaint {
        let whole = complaint.whole.clone().unwrap_or_else(|| {
            let of: Vec<String> = labels(question, complaint);
            let of = if of.is_empty() {
                String::new()
            } else {
                format!(": {}", of.join(", "))
            };
            format!("Something is not filled in as it should be{of}.")
        });
        let _ = writeln!(
            body,
            "<p class=\"wrong\" role=\"alert\">{}</p>",
            safe(&whole)
        );
    } else if !visit.barred.is_empty() {
        let _ = writeln!(
            body,
            "<p class=\"wrong\">Nobody's approval lets this run now ({}): whoever asked for it has lost a permission that it \
             needs. It can be rejected.</p>",
            safe(&visit.barred.join(", "))
        );
    }
    about(&mut body, question, Some(visit.user));
    body.push_str("<form method=\"post\" autocomplete=\"off\">\n");
    // Enter presses the first button: so that one does nothing, and people decide by what they see.
    body.push_str("<button type=\"submit\" disabled hidden></button>\n");
    let _ = writeln!(
        body,
        "<input type=\"hidden\" name=\"{PAGE}\" value=\"{}\">",
        plain(visit.proof)
    );
    let filled = Filled { entered, complaint };
    match Sheet::of(question) {
        Sheet::Prompt(prompt, inputs) => {
            prompted(&mut body, prompt);
            options(&mut body, prompt, filled);
            introduced(&mut body, prompt);
            for field in &inputs {
                control(&mut body, field, filled);
            }
            comment(&mut body, filled);
            buttons(&mut body, question.interrupt.kind);
        }
        Sheet::Fields(inputs) => {
            said(&mut body, &question.text);
            fill(&mut body, inputs, filled);
        }
        Sheet::Decisions(asks) => decisions(&mut body, question, asks, filled),
    }
    body.push_str("</form>\n");
    page(status, &title, &body)
}

/// What the controls that something is wrong with are called, for people.
fn labels(question: &Question, complaint: &Complaint) -> Vec<String> {
    let is_wrong = |name: &str| complaint.of(name).next().is_some();
    match Sheet::of(question) {
        Sheet::Prompt(_, inputs) => {
            let choice = is_wrong(OPTION).then(|| "Choose".to_owned());
            let wrong = inputs.iter().filter(|it| is_wrong(&name_of(it)));
            choice
                .into_iter()
                .chain(wrong.map(|it| it.label.clone()))
                .collect()
        }
        Sheet::Fields(inputs) => {
            let wrong = inputs.iter().filter(|it| is_wrong(&name_of_input(it)));
            wrong.map(|it| it.label.clone()).collect()
        }
        Sheet::Decisions(asks) => {
            let requests = question.shown.value.action_requests.iter();
            let wrong = requests.take(asks.len()).enumerate();
            let wrong = wrong.filter(|(at, _)| is_wrong(&nth("a", *at)));
            wrong
                .map(|(_, it)| format!("arguments of {}", it.name))
                .collect()
        }
    }
}

/// What the schema of an object says of all its fields.
fn introduced(body: &mut String, prompt: &Prompt) {
    let schema = prompt.input_schema.as_ref();
    let Some(schema) = schema.filter(|it| field::has_parts(it)) else {
        return;
    };
    let (title, text) = (
        field::said(schema, "title"),
        field::said(schema, "description"),
    );
    if !title.is_empty() {
        let _ = writeln!(body, "<h2>{}</h2>", safe(title));
    }
    if !text.is_empty() {
        let _ = writeln!(body, "<pre class=\"words\">{}</pre>", safe(text));
    }
}

/// The page of a question that is over.
pub(super) fn closed(status: StatusCode, question: &Question) -> Response {
    let how = match question.status {
        InterruptStatus::Pending | InterruptStatus::Resolved => "It is decided",
        InterruptStatus::Rejected => "It was rejected",
        InterruptStatus::Timeout => "Nobody answered in time",
        InterruptStatus::Canceled => "It was withdrawn",
    };
    let mut body = format!("<h1>{how}</h1>\n<p>{}</p>\n", safe(&title(question)));
    if let Some(closed) = &question.closed {
        let _ = writeln!(
            body,
            "<p>By <strong>{}</strong>, {}.</p>",
            safe(&closed.by.to_string()),
            time(closed.at)
        );
    }
    about(&mut body, question, None);
    if let Sheet::Prompt(prompt, _) = Sheet::of(question) {
        prompted(&mut body, prompt);
    } else {
        for (at, ask) in question.interrupt.asks.iter().enumerate() {
            thing(&mut body, question, at, ask);
        }
    }
    if let Some(response) = question.response() {
        let said = serde_json::to_value(&response).unwrap_or_default();
        body.push_str("<h2>What was said</h2>\n");
        let _ = writeln!(body, "<pre>{}</pre>", safe(&pretty(&said)));
    }
    page(status, how, &body)
}

/// A list of what waits for somebody: title, who asks, since when, and where it is decided.
pub(super) fn waiting(user: &str, items: &[(&Question, String)], more: bool) -> Response {
    let mut body = format!("<h1>What waits for {}</h1>\n", safe(user));
    if items.is_empty() {
        body.push_str("<p>Nothing waits.</p>\n");
    }
    body.push_str("<ul class=\"list\">\n");
    for (question, link) in items {
        let _ = writeln!(
            body,
            "<li><a href=\"{}\">{}</a><br><small>{}, {}</small></li>",
            plain(link),
            safe(&title(question)),
            safe(&asker(question)),
            time(question.interrupt.asked_at)
        );
    }
    body.push_str("</ul>\n");
    if more {
        body.push_str("<p>There is more; it is shown once something of this is decided.</p>\n");
    }
    page(StatusCode::OK, "What waits", &body)
}

/// What is asked, in a line.
fn title(question: &Question) -> String {
    if let Some(prompt) = question.prompt() {
        return titled(&prompt.title, &question.workflow);
    }
    let asked = &question.shown.value.action_requests;
    let names: Vec<&str> = asked.iter().map(|it| it.name.as_str()).collect();
    match question.interrupt.kind {
        InterruptKind::Approval if question.shown.value.fields.is_empty() => {
            format!("Allow {}?", names.join(", "))
        }
        InterruptKind::Error => format!("Something is in doubt: {}", names.join(", ")),
        InterruptKind::Approval
        | InterruptKind::Input
        | InterruptKind::Review
        | InterruptKind::Breakpoint => format!("{} asks", question.workflow),
    }
}

/// The title of a question. Older ones may have none; but nobody can tap on what is not there.
fn titled(title: &str, workflow: &str) -> String {
    if title.trim().is_empty() {
        return format!("{workflow} asks something, without a title");
    }
    title.to_owned()
}

fn asker(question: &Question) -> String {
    let (workflow, node) = (&question.workflow, &question.node);
    match question.asker {
        ThreadKind::Agent => format!("agent {workflow}, session {node}"),
        ThreadKind::Outside | ThreadKind::Grant => format!("{workflow}, {node}"),
    }
}

/// Who asks, for whom, since when, and until when.
fn about(body: &mut String, question: &Question, user: Option<&str>) {
    let interrupt = &question.interrupt;
    body.push_str("<dl>\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(body, "<dt>{name}</dt><dd>{value}</dd>");
    };
    line("Asked by", &safe(&asker(question)));
    line("On behalf of", &safe(&interrupt.requester.to_string()));
    line("Since", &time(interrupt.asked_at));
    if let Some(at) = interrupt.expires_at {
        line("Until", &time(at));
    }
    if let Some(user) = user {
        line("You are", &safe(user));
    }
    body.push_str("</dl>\n");
    if !interrupt.changes.is_empty() {
        body.push_str("<h2>What has changed since it was asked before</h2>\n<ul>\n");
        for change in &interrupt.changes {
            let _ = writeln!(body, "<li>{}</li>", safe(change));
        }
        body.push_str("</ul>\n");
    }
}

fn time(at: Timestamp) -> String {
    let text = rfc3339(at);
    // To the second: nobody decides by more.
    let short = text.split('.').next().unwrap_or_default();
    let short = short.trim_end_matches('Z').replace('T', " ");
    format!("<time datetime=\"{text}\">{short} UTC</time>")
}

/// What whoever asks wants to be seen.
fn prompted(body: &mut String, prompt: &Prompt) {
    if !prompt.description.is_empty() {
        let _ = writeln!(
            body,
            "<pre class=\"words\">{}</pre>",
            safe(&prompt.description)
        );
    }
    if !prompt.data.is_null() {
        values(body, &prompt.data);
    }
}

/// Words of a model.
fn said(body: &mut String, text: &str) {
    body.push_str("<h2>In the agent's own words</h2>\n");
    let _ = writeln!(body, "<pre class=\"words\">{}</pre>", safe(text));
}

/// A value, field by field.
fn values(body: &mut String, value: &Value) {
    let Value::Object(fields) = value else {
        let _ = writeln!(body, "<pre>{}</pre>", safe(&shown(value)));
        return;
    };
    body.push_str("<table>\n");
    for (name, value) in fields {
        let _ = writeln!(
            body,
            "<tr><th scope=\"row\">{}</th><td><pre>{}</pre></td></tr>",
            safe(name),
            safe(&shown(value))
        );
    }
    body.push_str("</table>\n");
}

/// A text in quotes would hide where it ends; so it is shown as JSON, unless it is plain.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && text.trim() == text => text.clone(),
        Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => pretty(value),
    }
}

/// One of several values: a text that could be taken for another of them stands in quotes.
fn choice(value: &Value) -> String {
    match value {
        Value::String(text) if parse_strict(text).is_ok() => value.to_string(),
        Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => shown(value),
    }
}

fn options(body: &mut String, prompt: &Prompt, filled: Filled<'_>) {
    if prompt.options.is_empty() {
        return;
    }
    body.push_str("<fieldset><legend>Choose</legend>\n");
    for option in &prompt.options {
        let is_chosen = filled.get(OPTION) == Some(option.id.as_str());
        let _ = writeln!(
            body,
            "<label><input type=\"radio\" name=\"{OPTION}\" value=\"{}\"{}> {}{}</label>",
            plain(&option.id),
            if is_chosen { " checked" } else { "" },
            safe(&option.label),
            described(&option.description)
        );
    }
    filled.wrong(body, OPTION);
    body.push_str("</fieldset>\n");
}

fn described(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("<small>{}</small>", safe(text))
}

/// An area for a text of several lines. The text stands there as it is, so what of it cannot be seen is told beside it.
fn area(body: &mut String, name: &str, rows: usize, text: &str) {
    // The first line break after the tag does not count, so that one is put there.
    let _ = write!(
        body,
        "<textarea name=\"{}\" rows=\"{rows}\">\n{}</textarea>",
        plain(name),
        plain(text)
    );
    warn(body, text);
}

fn warn(body: &mut String, text: &str) {
    let unseen = unseen(text);
    if !unseen.is_empty() {
        let _ = write!(
            body,
            "<span class=\"wrong\">In this text stand characters that cannot be seen, or turn its order: {}</span>",
            unseen.join(", ")
        );
    }
}

/// A field of a schema.
fn control(body: &mut String, field: &Field, filled: Filled<'_>) {
    let name = name_of(field);
    let given = filled.get(&name).map(str::to_owned);
    let given = given.unwrap_or_else(|| usual(field));
    let needed = match field.need {
        Need::Always => " *",
        Need::Within => " * <small>where anything of this is filled in</small>",
        Need::Never => "",
    };
    let _ = write!(body, "<label>{}{needed}", safe(&field.label));
    body.push_str(&described(&field.help));
    body.push_str(&described(&field.hint));
    match &field.widget {
        Widget::Text { long: false, kind } => {
            line(body, &format!("type=\"{kind}\""), &name, &given)
        }
        Widget::Number => line(body, "type=\"text\" inputmode=\"decimal\"", &name, &given),
        Widget::Flag => select(
            body,
            &plain(&name),
            &given,
            &[("true", "yes"), ("false", "no")],
        ),
        Widget::Choice(values) => {
            let shown: Vec<(String, String)> = values
                .iter()
                .enumerate()
                .map(|(at, value)| (at.to_string(), choice(value)))
                .collect();
            let shown: Vec<(&str, &str)> = shown
                .iter()
                .map(|(at, text)| (at.as_str(), text.as_str()))
                .collect();
            select(body, &plain(&name), &given, &shown);
        }
        Widget::Text { long: true, .. } | Widget::Lines { .. } | Widget::Json => {
            area(body, &name, 3, &given);
        }
    }
    filled.wrong(body, &name);
    body.push_str("</label>\n");
}

/// A text of one line.
fn line(body: &mut String, kind: &str, name: &str, text: &str) {
    let (name, value) = (plain(name), plain(text));
    let _ = write!(body, "<input {kind} name=\"{name}\" value=\"{value}\">");
    warn(body, text);
}

/// What stands in a field before anything is put in. Of what is chosen, nothing: nobody decides without doing so.
fn usual(field: &Field) -> String {
    match (&field.widget, &field.unsaid) {
        (Widget::Text { .. }, Some(Value::String(text))) => text.clone(),
        (Widget::Number | Widget::Json, Some(value)) => value.to_string(),
        (Widget::Lines { .. }, Some(Value::Array(entries))) => {
            let entries = entries.iter().map(|entry| match entry {
                Value::String(text) => text.clone(),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => entry.to_string(),
            });
            entries.collect::<Vec<_>>().join("\n")
        }
        (_, _) => String::new(),
    }
}

fn select(body: &mut String, name: &str, given: &str, values: &[(&str, &str)]) {
    let _ = write!(body, "<select name=\"{name}\"><option value=\"\"></option>");
    for (value, text) in values {
        let chosen = if *value == given { " selected" } else { "" };
        let _ = write!(
            body,
            "<option value=\"{}\"{chosen}>{}</option>",
            plain(value),
            plain(text)
        );
    }
    body.push_str("</select>");
}

fn comment(body: &mut String, filled: Filled<'_>) {
    body.push_str("<label>Comment");
    area(body, COMMENT, 2, filled.get(COMMENT).unwrap_or_default());
    body.push_str("</label>\n");
}

fn button(body: &mut String, name: &str, value: &str, class: &str, text: &str) {
    let _ = writeln!(
        body,
        "<button type=\"submit\" name=\"{name}\" value=\"{value}\" class=\"{class}\">{text}</button>"
    );
}

fn buttons(body: &mut String, kind: InterruptKind) {
    body.push_str("<div class=\"buttons\">\n");
    if kind.wants_yes_or_no() {
        button(body, SAY, APPROVE, "yes", "Approve");
        button(body, SAY, REJECT, "no", "Reject");
    } else {
        button(body, SAY, ANSWER, "yes", "Send");
        button(body, SAY, REJECT, "no", "Decline");
    }
    body.push_str("</div>\n");
}

/// A form of the model's.
fn fill(body: &mut String, fields: &[InputField], filled: Filled<'_>) {
    let by_button = confirmed(fields).map(|it| it.name.as_str());
    for field in fields
        .iter()
        .filter(|it| by_button != Some(it.name.as_str()))
    {
        let name = name_of_input(field);
        let given = filled.get(&name).unwrap_or_default();
        let needed = if field.required { " *" } else { "" };
        let _ = write!(body, "<label>{}{needed}", safe(&field.label));
        match field.kind {
            FieldKind::Text => area(body, &name, 2, given),
            FieldKind::Confirm => {
                select(
                    body,
                    &plain(&name),
                    given,
                    &[("true", "yes"), ("false", "no")],
                );
            }
            FieldKind::Select => {
                let options: Vec<(&str, &str)> = field
                    .options
                    .iter()
                    .map(|it| (it.as_str(), it.as_str()))
                    .collect();
                select(body, &plain(&name), given, &options);
            }
        }
        filled.wrong(body, &name);
        body.push_str("</label>\n");
    }
    body.push_str("<div class=\"buttons\">\n");
    let (yes, no) = match confirmed(fields) {
        Some(field) => (safe(&field.label), "Do not"),
        None => ("Send".to_owned(), "Decline"),
    };
    button(body, SAY, APPROVE, "yes", &yes);
    button(body, SAY, REJECT, "no", no);
    body.push_str("</div>\n");
}

/// One thing that is asked about, from what is stored.
fn thing(body: &mut String, question: &Question, at: usize, ask: &Ask) {
    let Some(request) = question.shown.value.action_requests.get(at) else {
        return;
    };
    match &ask.subject {
        Subject::Action { .. } => {
            let _ = writeln!(
                body,
                "<h2>Would run: <code>{}</code></h2>",
                safe(&request.name)
            );
            values(body, &request.args);
        }
        Subject::Effect { .. } => {
            let _ = writeln!(
                body,
                "<h2>May have run: <code>{}</code></h2>",
                safe(&request.name)
            );
            values(body, &request.args);
        }
        // These words are all that there is to it.
        Subject::Confirmation { .. } => return said(body, &question.text),
        Subject::Output { .. } => body.push_str("<h2>Held back</h2>\n"),
        Subject::Model
        | Subject::Node { .. }
        | Subject::Question { .. }
        | Subject::Restored { .. } => {
            let _ = writeln!(body, "<h2>{}</h2>", safe(&request.name));
        }
    }
    if let Some(note) = &ask.description {
        let _ = writeln!(body, "<pre class=\"words\">{}</pre>", safe(note));
    }
    if let Some(preview) = &request.preview {
        let (title, text) = (safe(&preview.title), safe(&preview.body));
        let _ = writeln!(body, "<h3>{title}</h3>\n<pre>{text}</pre>");
    }
}

/// What may be said of each thing.
fn decisions(body: &mut String, question: &Question, asks: &[Ask], filled: Filled<'_>) {
    let is_only = asks.len() == 1;
    for (at, ask) in asks.iter().enumerate() {
        body.push_str("<section>\n");
        thing(body, question, at, ask);
        let kinds = ask.allowed.as_slice();
        let decision = nth("d", at);
        if !is_only {
            body.push_str("<fieldset><legend>Decide</legend>\n");
            for kind in kinds {
                let (value, text) = (kind.as_str(), words(*kind));
                let chosen = filled.get(&decision) == Some(value);
                let chosen = if chosen { " checked" } else { "" };
                let _ = writeln!(
                    body,
                    "<label><input type=\"radio\" name=\"{decision}\" value=\"{value}\" required{chosen}> {text}</label>"
                );
            }
            filled.wrong(body, &decision);
            body.push_str("</fieldset>\n");
        }
        if kinds.contains(&DecisionKind::Edit) {
            let args = question.shown.value.action_requests.get(at);
            let args = args.map(|it| &it.args).unwrap_or_default();
            let name = nth("a", at);
            let text = filled.get(&name);
            let is_changed = text.is_some_and(|text| !is_unchanged(text, args));
            let open = if is_changed || filled.is_wrong(&name) {
                " open"
            } else {
                ""
            };
            let text = text.map_or_else(|| pretty(args), str::to_owned);
            let _ = write!(
                body,
                "<details{open}><summary>Other arguments</summary><label>As JSON"
            );
            area(body, &name, 8, &text);
            filled.wrong(body, &name);
            body.push_str("</label>");
            if is_only {
                let kind = DecisionKind::Edit;
                button(body, &decision, kind.as_str(), "yes", words(kind));
            }
            body.push_str("</details>\n");
        }
        let wants_message = [DecisionKind::Reject, DecisionKind::Respond];
        if kinds.iter().any(|kind| wants_message.contains(kind)) {
            let label = match ask.subject {
                Subject::Output { .. } => {
                    "Message<small>What is said instead; or why not, which the agent reads.</small>"
                }
                Subject::Action { .. }
                | Subject::Effect { .. }
                | Subject::Model
                | Subject::Node { .. }
                | Subject::Question { .. }
                | Subject::Confirmation { .. }
                | Subject::Restored { .. } => "Message<small>The agent reads it.</small>",
            };
            written(body, label, &nth("m", at), filled);
        }
        let wants_result = [DecisionKind::Committed, DecisionKind::Answer];
        if kinds.iter().any(|kind| wants_result.contains(kind)) {
            written(body, "What it returned, as JSON", &nth("r", at), filled);
        }
        body.push_str("</section>\n");
    }
    body.push_str("<div class=\"buttons\">\n");
    if let (true, Some(ask)) = (is_only, asks.first()) {
        let kinds = ask.allowed.as_slice().iter();
        // That one stands with the arguments.
        for kind in kinds.filter(|kind| **kind != DecisionKind::Edit) {
            let class = if *kind == DecisionKind::Reject {
                "no"
            } else {
                "yes"
            };
            button(body, &nth("d", 0), kind.as_str(), class, words(*kind));
        }
    } else {
        button(body, SAY, ANSWER, "yes", "Send");
    }
    body.push_str("</div>\n");
}

/// Something that is written besides.
fn written(body: &mut String, label: &str, name: &str, filled: Filled<'_>) {
    let _ = write!(body, "<label>{label}");
    area(body, name, 2, filled.get(name).unwrap_or_default());
    filled.wrong(body, name);
    body.push_str("</label>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_a_title_can_be_tapped_all_the_same() {
        for title in ["", " \n"] {
            assert_eq!(titled(title, "w"), "w asks something, without a title");
        }
        assert_eq!(titled("Go on?", "w"), "Go on?");
    }
}
