//! `mcp_servers`: servers of the Model Context Protocol whose tools an agent has. Nobody is connected to here.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{Effect, HttpMethod, McpServer, McpTransport, McpVariable};
use holdpoint_yaml::{Content, Field, Fields, Report, join, quoted, suggest};
use serde_json::json;

use crate::{
    bounds::{Bounds, read_effect},
    command::{self, Base},
    family::Family,
    http,
    parts::{Parts, Unsaid},
};

const KEYS: [&str; 11] = [
    "command",
    "env",
    "url",
    "headers",
    "allow_private",
    "tools",
    "effects",
    "trust_hints",
    "timeout",
    "settle",
    "permissions",
];

const FORM: &str =
    "say how it is reached: a `command: [program, argument]`, or a `url` with `headers`";

/// Reads the servers of an agent. A subagent may name servers of the agent above.
pub(crate) fn read_all(
    field: &Field<'_>,
    unsaid: Unsaid<'_>,
    family: &mut Family<'_>,
    report: &mut Report,
) -> Option<Vec<McpServer>> {
    if let (Content::List(_), Unsaid::Inherited(parent)) = (&field.node.content, unsaid) {
        return inherit(field, parent, family, report);
    }
    let mut servers = Vec::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        let value = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        let fits = check_name(&value, &entry.key, report);
        match read(&value, &entry.key, family.base, report) {
            Some(server) if fits => servers.push(server),
            Some(_) | None => complete = false,
        }
    }
    complete.then_some(servers)
}

fn inherit(
    field: &Field<'_>,
    parent: &Parts,
    family: &mut Family<'_>,
    report: &mut Report,
) -> Option<Vec<McpServer>> {
    const HELP: &str = "list servers of the agent above, or write out own ones as a map";
    let items = field.items(HELP, report)?;
    // Those that could not be read were reported.
    let above = parent.servers.as_ref()?;
    let names: Vec<&str> = above.iter().map(|it| it.name.as_str()).collect();
    let mut servers: Vec<McpServer> = Vec::new();
    let mut complete = true;
    for item in items {
        let Some(name) = item.text(report) else {
            complete = false;
            continue;
        };
        if servers.iter().any(|it| it.name == name) {
            let message = format!("{} is listed twice", quoted(name));
            item.problem(&message, "keep one of them", report);
            continue;
        }
        match above.iter().find(|it| it.name == name) {
            Some(server) => servers.extend(family.inherit(server, &item, report)),
            None => {
                let known = format!("it has {}", names.join(", "));
                let known = if names.is_empty() { HELP } else { &known };
                let message = format!("the agent above has no MCP server {}", quoted(name));
                item.problem(&message, &suggest(name, &names, known), report);
                complete = false;
            }
        }
    }
    complete.then_some(servers)
}

fn check_name(field: &Field<'_>, name: &str, report: &mut Report) -> bool {
    if McpServer::is_name(name) {
        return true;
    }
    let message = format!("{} cannot be the name of an MCP server", quoted(name));
    let help = format!(
        "use 1 to {} letters, digits and `-`, and no `__`: it stands before the names of its tools",
        McpServer::MAX_NAME
    );
    field.problem(&message, &help, report);
    false
}

fn read(field: &Field<'_>, name: &str, base: &Base, report: &mut Report) -> Option<McpServer> {
    let fields = Fields::open(field, &KEYS, report)?;
    let transport = read_transport(&fields, field, base, report);
    let only = match fields.optional("tools") {
        None => Some(None),
        Some(field) => read_tools(&field, report).map(Some),
    };
    let effects = match fields.optional("effects") {
        None => Some(BTreeMap::new()),
        Some(field) => read_effects(&field, report),
    };
    let trust_hints = match fields.optional("trust_hints") {
        None => Some(false),
        Some(field) => field.flag(report),
    };
    let bounds = Bounds::read(&fields, report);
    if let (Some(Some(only)), Some(effects)) = (&only, &effects)
        && let Some(idle) = effects.keys().find(|it| !only.contains(*it))
        && let Some(field) = fields.optional("effects")
    {
        let message = format!("{} is not among the `tools`", quoted(idle));
        field.problem(&message, "list it there, or leave it out here", report);
    }
    let bounds = bounds?;
    Some(McpServer {
        name: name.to_owned(),
        transport: transport?,
        only: only?,
        effects: effects?,
        trust_hints: trust_hints?,
        unasked: false,
        timeout: bounds.timeout,
        settle: bounds.settle,
        permissions: bounds.permissions,
        listed: false,
        seen: BTreeMap::new(),
    })
}

fn read_transport(
    fields: &Fields<'_>,
    field: &Field<'_>,
    base: &Base,
    report: &mut Report,
) -> Option<McpTransport> {
    let (command, url) = (fields.optional("command"), fields.optional("url"));
    match (command, url) {
        (Some(command), None) => {
            for key in ["headers", "allow_private"] {
                if let Some(idle) = fields.optional(key) {
                    let message = format!("`{key}` says nothing of a program");
                    idle.problem(&message, "leave it out, or say a `url`", report);
                }
            }
            let env = match fields.optional("env") {
                None => Some(BTreeMap::new()),
                Some(field) => read_env(&field, report),
            };
            Some(McpTransport::Stdio {
                command: command::read(&command, base, report)?,
                cwd: base.as_str().to_owned(),
                env: env?,
            })
        }
        (None, Some(_)) => {
            if let Some(idle) = fields.optional("env") {
                let help =
                    "leave it out, or say a `command`; what is sent along stands in `headers`";
                idle.problem("`env` says nothing of an address", help, report);
            }
            let nothing = json!({"type": "object"});
            let read = http::read_from(fields, HttpMethod::Post, Some(&nothing), report)?;
            Some(McpTransport::Http {
                url: read.url.as_str().to_owned(),
                headers: read.headers,
                allow_private: read.allow_private,
            })
        }
        (Some(_), Some(url)) => {
            url.problem("it is a `command` already", FORM, report);
            None
        }
        (None, None) => {
            field.problem("it is not said how this server is reached", FORM, report);
            None
        }
    }
}

fn read_tools(field: &Field<'_>, report: &mut Report) -> Option<BTreeSet<String>> {
    const HELP: &str = "list tools as the server calls them, for instance [read_file]";
    let names = field.texts(HELP, report)?;
    if names.is_empty() {
        let help = "leave it out for all of them, or take the server out";
        field.problem("no tool is listed", help, report);
        return None;
    }
    Some(names.into_iter().map(str::to_owned).collect())
}

fn read_effects(field: &Field<'_>, report: &mut Report) -> Option<BTreeMap<String, Effect>> {
    let mut effects = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        let value = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        match read_effect(&value, report) {
            Some(effect) => drop(effects.insert(entry.key.clone(), effect)),
            None => complete = false,
        }
    }
    complete.then_some(effects)
}

fn read_env(field: &Field<'_>, report: &mut Report) -> Option<BTreeMap<String, McpVariable>> {
    const HELP: &str = "use letters, digits and `_`";
    const SECRET_HELP: &str = "name the variable that holds it: {secret: NAME}";
    let mut variables = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        let value = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if entry.key.is_empty() || !entry.key.bytes().all(fits) {
            let message = format!("{} cannot be the name of a variable", quoted(&entry.key));
            value.problem(&message, HELP, report);
            complete = false;
            continue;
        }
        let read = if let Content::Map(_) = &value.node.content {
            let secret = Fields::open(&value, &["secret"], report)
                .and_then(|fields| fields.required("secret", SECRET_HELP, report))
                .and_then(|field| http::read_variable(&field, SECRET_HELP, report));
            secret.map(|name| McpVariable::Secret { name })
        } else {
            read_plain(&value, &entry.key, report).map(McpVariable::Text)
        };
        match read {
            Some(read) => drop(variables.insert(entry.key.clone(), read)),
            None => complete = false,
        }
    }
    complete.then_some(variables)
}

fn read_plain(field: &Field<'_>, name: &str, report: &mut Report) -> Option<String> {
    let text = field.text(report)?;
    if text.contains('\0') {
        field.problem("must not contain a NUL character", "", report);
        return None;
    }
    let secret = ["token", "secret", "password", "passwd", "api_key", "apikey"];
    let named = name.to_ascii_lowercase();
    if !text.is_empty() && secret.iter().any(|it| named.contains(it)) {
        field.problem(
            "a secret must not stand in the file, because definitions are stored",
            "name the variable that holds it: {secret: NAME}",
            report,
        );
        return None;
    }
    Some(text.to_owned())
}
