//! How a tool is run: by a program or by an HTTP request, and its hooks by the same.

use holdpoint_core::{Effect, HttpMethod, HttpRequest, Runner, ToolKind};
use holdpoint_yaml::{Content, Field, Fields, Report};
use serde_json::Value;

use crate::{
    command::{self, Base},
    http,
};

const UNKNOWN: &str = "a `write` tool without a `lookup`: when a call is cut off, a person has to find out what it did";

/// What else is said of a tool, as far as it could be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits<'a> {
    pub(crate) effect: Option<Effect>,
    pub(crate) kind: Option<ToolKind>,
    pub(crate) schema: Option<&'a Value>,
}

/// Reads what runs a tool.
pub(crate) fn read(
    fields: &Fields<'_>,
    traits: Traits<'_>,
    base: &Base,
    report: &mut Report,
) -> Option<Runner> {
    match (fields.optional("command"), fields.optional("http")) {
        (Some(_), Some(http)) => {
            let message = "a tool has a `command` or an `http`, and not both";
            http.problem(message, "keep one of them", report);
            None
        }
        (Some(command), None) => read_command(fields, &command, traits, base, report),
        (None, Some(http)) => read_http(fields, &http, traits, report),
        (None, None) => {
            if !fields.is_misspelt("http") {
                let help = "name the program that does it, for instance `command: [./refund]`, or the request, for instance `http: {url: …}`";
                fields.required("command", help, report);
            }
            None
        }
    }
}

fn read_command(
    fields: &Fields<'_>,
    command: &Field<'_>,
    traits: Traits<'_>,
    base: &Base,
    report: &mut Report,
) -> Option<Runner> {
    let command = command::read(command, base, report);
    let hook = |key: &str, report: &mut Report| match fields.optional(key) {
        None => Some(None),
        Some(field) if field.follow("/http").path != field.path => {
            field.problem(
                &format!("the tool is a `command`, so its `{key}` must be one too"),
                "list the program and its arguments, for instance [./refund, --fast]",
                report,
            );
            None
        }
        Some(field) => command::read(&field, base, report).map(Some),
    };
    let lookup = hook("lookup", report);
    let compensate = hook("compensate", report);
    if traits.effect == Some(Effect::Write) && lookup == Some(None) {
        match traits.kind.unwrap_or_default() {
            ToolKind::Plain | ToolKind::Task => {
                let help = "add a `lookup`, or say `effect: idempotent` if it passes HOLDPOINT_IDEMPOTENCY_KEY on to a system that acts once per key";
                fields.warning(UNKNOWN, help, report);
            }
            ToolKind::Stepped => {
                let message = "a stepped tool without a `lookup`: when a `write` step is cut off, a person has to find out what it did";
                let help = "add a `lookup`, or say `effect: idempotent` or `effect: read` if no step is a `write`";
                fields.warning(message, help, report);
            }
        }
    }
    Some(Runner::Command {
        command: command?,
        cwd: base.as_str().to_owned(),
        lookup: lookup?,
        compensate: compensate?,
    })
}

fn read_http(
    fields: &Fields<'_>,
    request: &Field<'_>,
    traits: Traits<'_>,
    report: &mut Report,
) -> Option<Runner> {
    let Traits { effect, schema, .. } = traits;
    if traits.kind == Some(ToolKind::Stepped)
        && let Some(stepped) = fields.optional("stepped")
    {
        let help = "leave it out, or make the tool a `command`";
        stepped.problem("only a command can take steps", help, report);
    }
    let read = http::read(request, HttpMethod::Post, schema, report);
    let lookup = read_hook(fields, "lookup", HttpMethod::Get, schema, report);
    let compensate = read_hook(fields, "compensate", HttpMethod::Post, schema, report);
    if effect == Some(Effect::Write) && lookup == Some(None) {
        let help = "add a `lookup`, or say `effect: idempotent` if an `idempotency_header` goes to a server that acts once per key";
        fields.warning(UNKNOWN, help, report);
    }
    if let Some(read) = &read
        && effect == Some(Effect::Idempotent)
        && matches!(read.method, HttpMethod::Post | HttpMethod::Patch)
        && !read.carries_key()
    {
        let message = "an `idempotent` tool that does not send the key: a call that is repeated looks like a second one";
        let help = "add an `idempotency_header`, or say `effect: write`";
        report.warning(request.node.at, &request.path, message, help);
    }
    Some(Runner::Http {
        request: Box::new(read?),
        lookup: lookup?.map(Box::new),
        compensate: compensate?.map(Box::new),
    })
}

fn read_hook(
    fields: &Fields<'_>,
    key: &str,
    unsaid: HttpMethod,
    schema: Option<&Value>,
    report: &mut Report,
) -> Option<Option<HttpRequest>> {
    let Some(field) = fields.optional(key) else {
        return Some(None);
    };
    let help = format!("write `{key}: {{http: {{url: …}}}}`");
    if matches!(field.node.content, Content::List(_)) {
        let message = format!("the tool is an `http` request, so its `{key}` must be one too");
        field.problem(&message, &help, report);
        return None;
    }
    let inner = Fields::open(&field, &["http"], report)?;
    let request = inner.required("http", &help, report)?;
    http::read(&request, unsaid, schema, report).map(Some)
}
