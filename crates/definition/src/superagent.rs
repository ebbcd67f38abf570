//! The `spec` of `apiVersion: superagent/v1`: an agent without tools that asks people in plain words.

use holdpoint_core::{Confirmation, Definition, Span};
use holdpoint_yaml::{Content, Elsewhere, Field, Fields, Report};

use crate::{
    command::Base,
    confirm,
    frame::Agent,
    model,
    names::{self, Names},
    store,
};

pub(crate) const API_VERSION: &str = "superagent/v1";

const KEYS: [&str; 5] = ["type", "model", "system_prompt", "interrupt", "memory"];
const OURS: [Elsewhere<'_>; 2] = [
    Elsewhere {
        keys: &[
            "tools",
            "workspace",
            "interrupt_on",
            "default",
            "interrupt_mode",
            "context",
            "limits",
            "breakpoints",
            "subagents",
            "strict",
            "true_includes_respond",
            "guardrails",
        ],
        help: "agents of `superagent/v1` have none; write the agent with `apiVersion: holdpoint/v1`",
    },
    Elsewhere {
        keys: &["confirm"],
        help: "in `superagent/v1` it is called `interrupt`, and says `enabled: true`",
    },
];

/// How long a request for a confirmation stays open.
const TIMEOUT_SECONDS: u64 = 300;
/// A year: whoever means longer hardly means seconds.
const MAX_SECONDS: u64 = 31_536_000;

/// What `interrupt` says.
#[derive(Debug, Default)]
struct Interrupt {
    confirm: Option<Confirmation>,
    store: Option<String>,
}

/// Reads the `spec` of an agent that has this name and version. `None` only if a problem was reported.
pub(crate) fn read(
    spec: &Field<'_>,
    named: Option<(String, String)>,
    base: &Base,
    names: &Names,
    report: &mut Report,
) -> Option<Agent> {
    let fields = Fields::open_below(spec, &KEYS, &OURS, report)?;
    if let Some(field) = fields.optional("type") {
        field.one_of("a type of agents", &[("chat_model_agent", ())], report);
    }
    let model = fields
        .required("model", model::MISSING, report)
        .and_then(|field| model::read(&field, base, names, report));
    let prompt = match fields.optional("system_prompt") {
        None => Some(None),
        Some(field) => field.text(report).map(|text| Some(text.to_owned())),
    };
    let interrupt = match fields.optional("interrupt") {
        None => Some(Interrupt::default()),
        Some(field) => read_interrupt(&field, names, report),
    };
    if let Some(field) = fields.optional("memory") {
        read_memory(&field, report);
    }
    let (name, version) = named?;
    let Interrupt { confirm, store } = interrupt?;
    Some(Agent {
        definition: Definition {
            system_prompt: prompt?,
            confirm,
            ..model?.of(Definition::new(name, "").with_version(version))
        },
        store,
    })
}

/// What was said stays in the thread, which is the one memory there is.
fn read_memory(field: &Field<'_>, report: &mut Report) {
    let backend = Fields::open(field, &["backend"], report).and_then(|it| it.optional("backend"));
    if let Some(backend) = backend {
        backend.one_of("a memory", &[("builtin", ())], report);
    }
}

fn read_interrupt(field: &Field<'_>, names: &Names, report: &mut Report) -> Option<Interrupt> {
    const CHOICES: [&str; 6] = [
        "checkpoint_backend",
        "timeout_seconds",
        "keywords",
        "presets",
        "keywords_only",
        "fields",
    ];
    let known = [["enabled"].as_slice(), &CHOICES].concat();
    let fields = Fields::open(field, &known, report)?;
    let enabled = match fields.optional("enabled") {
        None => Some(false),
        Some(field) => field.flag(report),
    };
    let seconds = match fields.optional("timeout_seconds") {
        None => Some(TIMEOUT_SECONDS),
        Some(field) => read_seconds(&field, report),
    };
    let confirm = confirm::read_parts(&fields, report);
    if enabled == Some(false) {
        for field in CHOICES.iter().filter_map(|key| fields.optional(key)) {
            let message = "says nothing, because interrupts are not enabled";
            let help = "say `enabled: true` beside it, or remove it";
            report.warning(field.node.at, &field.path, message, help);
        }
    }
    // Where nobody is asked, there is nothing to keep, and a name need not stand for anything.
    let store = match fields.optional("checkpoint_backend") {
        Some(field) if enabled != Some(false) => read_backend(&field, names, report).map(Some),
        Some(field) => field.some_text(report).map(|_| None),
        None => Some(None),
    };
    let (confirm, seconds, store) = (confirm?, seconds?, store?);
    let confirm = Confirmation {
        timeout: Some(Span::from_secs(seconds)),
        ..confirm
    };
    Some(Interrupt {
        confirm: enabled?.then_some(confirm),
        store,
    })
}

fn read_backend(field: &Field<'_>, names: &Names, report: &mut Report) -> Option<String> {
    let is_memory = matches!(&field.node.content, Content::Text(name) if name == "memory");
    // Somebody may have given even that another meaning.
    if is_memory && !names.stores.contains_key("memory") {
        return Some(store::MEMORY.to_owned());
    }
    names::resolve(field, &names::STORE, &names.stores, report)
}

fn read_seconds(field: &Field<'_>, report: &mut Report) -> Option<u64> {
    let seconds = match &field.node.content {
        Content::Number(text) => text.parse().ok(),
        Content::Null
        | Content::Bool(_)
        | Content::Text(_)
        | Content::List(_)
        | Content::Map(_) => None,
    };
    let seconds = seconds.filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
    if seconds.is_none() {
        let message = format!(
            "must be a whole number of seconds from 1 to {MAX_SECONDS}, not {}",
            field.node.describe()
        );
        let help = format!("write it without a unit, or leave it out for {TIMEOUT_SECONDS}");
        field.problem(&message, &help, report);
    }
    seconds
}
