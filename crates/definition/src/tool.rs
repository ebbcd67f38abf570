//! One tool of an agent.

use holdpoint_core::{Effect, Runner, ToolSpec};

use holdpoint_yaml::{Field, Fields, Report, quoted};

use crate::{
    command::{self, Base},
    schema,
};

const KEYS: [&str; 11] = [
    "name",
    "description",
    "version",
    "effect",
    "input_schema",
    "command",
    "timeout",
    "settle",
    "lookup",
    "compensate",
    "permissions",
];
const LONGEST_NAME: usize = 128;

/// All tools, and the names that could be read even where the tool could not.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(crate) specs: Vec<ToolSpec>,
    pub(crate) names: Vec<String>,
}

/// Reads the list of tools.
pub(crate) fn read_all(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<Tools> {
    let items = field.items("begin every tool with `- name: …`", report)?;
    let mut tools = Tools::default();
    for mut item in items {
        // A name says more than a number, in this and in every later message.
        if let Some(name) = peek_name(&item) {
            if is_name(&name) {
                item.path = format!("{}[{name}]", field.path);
            }
            if tools.names.contains(&name) {
                item.problem(
                    &format!("a second tool is called {}", quoted(&name)),
                    "give each tool its own name",
                    report,
                );
            } else {
                tools.names.push(name);
            }
        }
        tools.specs.extend(read(&item, base, report));
    }
    Some(tools)
}

fn peek_name(item: &Field<'_>) -> Option<String> {
    // Whatever is wrong with it is reported when the tool is read.
    let mut unread = Report::new("");
    let name = item.follow("/name");
    (name.path != item.path).then(|| name.text(&mut unread).map(str::to_owned))?
}

fn read(item: &Field<'_>, base: &Base, report: &mut Report) -> Option<ToolSpec> {
    let fields = Fields::open(item, &KEYS, report)?;
    let name = fields
        .required("name", "every tool needs a name", report)
        .and_then(|field| read_name(&field, report));
    let description = match fields.optional("description") {
        None => Some(""),
        Some(field) => field.text(report),
    };
    let version = fields.version(report);
    let effect = match fields.optional("effect") {
        None => Some(Effect::Write),
        Some(field) => {
            let words = [
                ("read", Effect::Read),
                ("idempotent", Effect::Idempotent),
                ("write", Effect::Write),
            ];
            field.one_of("an effect", &words, report)
        }
    };
    let input_schema = match fields.optional("input_schema") {
        None => Some(schema::unsaid()),
        Some(field) => schema::read(&field, report),
    };
    let timeout = match fields.optional("timeout") {
        None => Some(ToolSpec::DEFAULT_TIMEOUT),
        Some(field) => field.positive_duration(report),
    };
    let settle = match fields.optional("settle") {
        None => Some(ToolSpec::DEFAULT_SETTLE),
        Some(field) => field.duration(report),
    };
    let help = "name the program that does it, for instance `command: [./refund]`";
    let command = fields
        .required("command", help, report)
        .and_then(|field| command::read(&field, base, report));
    let hook = |key: &str, report: &mut Report| match fields.optional(key) {
        None => Some(None),
        Some(field) => command::read(&field, base, report).map(Some),
    };
    let lookup = hook("lookup", report);
    let compensate = hook("compensate", report);
    let permissions = match fields.optional("permissions") {
        None => Some(Vec::new()),
        Some(field) => field.texts("list the permissions, for instance [refunds]", report),
    };
    if effect == Some(Effect::Write) && lookup == Some(None) {
        warn_of_unknown(item, report);
    }
    Some(ToolSpec {
        name: name?,
        description: description?.to_owned(),
        version: version?,
        effect: effect?,
        input_schema: input_schema?,
        runner: Runner::Command {
            command: command?,
            cwd: base.as_str().to_owned(),
            lookup: lookup?,
            compensate: compensate?,
        },
        timeout: timeout?,
        settle: settle?,
        permissions: permissions?.into_iter().map(str::to_owned).collect(),
    })
}

fn warn_of_unknown(item: &Field<'_>, report: &mut Report) {
    let message = "a `write` tool without a `lookup`: when a call is cut off, a person has to find out what it did";
    let help = "add a `lookup`, or say `effect: idempotent` if it passes HOLDPOINT_IDEMPOTENCY_KEY on to a system that acts once per key";
    report.warning(item.node.at, &item.path, message, help);
}

fn read_name(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let name = field.text(report)?;
    if !is_name(name) {
        let help =
            format!("use 1 to {LONGEST_NAME} of the characters a-z, A-Z, 0-9, `_`, `-` and `.`");
        field.problem(
            &format!("{} cannot be a tool's name", quoted(name)),
            &help,
            report,
        );
        return None;
    }
    Some(name.to_owned())
}

/// What names of tools and agents are made of. No `/`, which separates agent and session in an address.
pub(crate) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(fits)
}
