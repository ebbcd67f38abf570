//! `providers`: who provides models, beside those that everybody knows or in their place.

use std::{collections::BTreeMap, path::PathBuf};

use holdpoint_core::{Api, BadBase, KeyFrom, LimitField, Price, Provider, Providers, is_name};
use holdpoint_yaml::{Content, Field, Fields, Report, join, quoted};

use crate::{command::Base, http, model::SCRIPTED};

const KEYS: [&str; 10] = [
    "api",
    "base_url",
    "insecure",
    "key",
    "key_header",
    "headers",
    "query",
    "limit_field",
    "silence",
    "prices",
];
const API_HELP: &str = "say how it is spoken to: `api: openai-chat`, which most know, `openai-responses` or `anthropic`";
const BASE_HELP: &str = "say where it is, with the path up to the API, for instance `base_url: https://llm.example.com/v1`";
const KEY_HELP: &str = "say where it is found: `key: {env: NAME}` for a variable of the environment, or `key: {file: PATH}`";
const PRICES_HELP: &str = "write US dollars for a million tokens, for instance {input: 2.5, output: 10, cached_input: 1.25}";

/// What a query would carry a secret as.
const SECRET: [&str; 6] = [
    "key",
    "api_key",
    "api-key",
    "apikey",
    "token",
    "access_token",
];

/// Reads all of them. Those that everybody knows are there without.
pub(super) fn read_all(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<Providers> {
    let mut providers = Providers::default();
    let mut complete = true;
    for entry in field.entries(report)? {
        let name = &entry.key;
        let value = Field {
            node: &entry.value,
            path: join(&field.path, name),
        };
        if !is_name(name) || format!("{name}:") == SCRIPTED {
            let message = format!("{} cannot be a provider's name", quoted(name));
            let help = "use letters, digits, `_`, `-` and `.`; `scripted` is taken";
            report.problem(entry.at, &field.path, &message, help);
            complete = false;
        }
        match read(&value, providers.get(name).cloned(), base, report) {
            Some(provider) => providers = providers.with(name.clone(), provider),
            None => complete = false,
        }
    }
    complete.then_some(providers)
}

/// Reads one. One that everybody knows stays as it is where nothing else is said; but where it is somewhere else, nothing of
/// it stays: its key is nobody else's business.
fn read(
    field: &Field<'_>,
    known: Option<Provider>,
    base: &Base,
    report: &mut Report,
) -> Option<Provider> {
    let fields = Fields::open(field, &KEYS, report)?;
    let known = known.filter(|_| fields.optional("base_url").is_none());
    let api = match (fields.optional("api"), &known) {
        (Some(field), _) => field.one_of("an API", &Api::WORDS, report),
        (None, Some(known)) => Some(known.api),
        (None, None) => {
            fields.required("api", API_HELP, report);
            None
        }
    };
    let insecure = match fields.optional("insecure") {
        None => Some(false),
        Some(field) => field.flag(report),
    };
    let base_url = match (fields.optional("base_url"), &known) {
        (Some(field), _) => read_base(&field, insecure, report),
        (None, Some(known)) => Some(known.base_url.clone()),
        (None, None) => {
            fields.required("base_url", BASE_HELP, report);
            None
        }
    };
    let key = fields
        .optional("key")
        .map(|field| read_key(&field, base, report));
    let key_header = fields.optional("key_header").map(|field| {
        let name = field.text(report)?;
        http::check_header_name(&field, name, report).then(|| name.to_owned())
    });
    let headers = fields
        .optional("headers")
        .map(|field| http::read_headers(&field, report));
    let query = fields
        .optional("query")
        .map(|field| read_query(&field, report));
    let limit_field = fields.optional("limit_field").map(|field| {
        let words = [
            ("max_completion_tokens", LimitField::MaxCompletionTokens),
            ("max_tokens", LimitField::MaxTokens),
        ];
        field.one_of("a field that limits an answer", &words, report)
    });
    let silence = fields
        .optional("silence")
        .map(|field| field.positive_duration(report));
    let prices = fields
        .optional("prices")
        .map(|field| read_prices(&field, report));
    let (api, base_url) = (api?, base_url?);
    let mut provider = known.unwrap_or_else(|| Provider::new(api, base_url.clone()));
    provider.api = api;
    provider.base_url = base_url;
    provider.insecure = insecure?;
    if let Some(key) = key {
        provider.key = key?;
    }
    if let Some(header) = key_header {
        provider.key_header = Some(header?);
    }
    if let Some(headers) = headers {
        provider.headers = headers?;
    }
    if let Some(query) = query {
        provider.query = query?;
    }
    if let Some(limit) = limit_field {
        provider.limit_field = limit?;
    }
    if let Some(silence) = silence {
        provider.silence = silence?;
    }
    if let Some(prices) = prices {
        provider.prices = prices?;
    }
    Some(provider)
}

fn read_base(field: &Field<'_>, insecure: Option<bool>, report: &mut Report) -> Option<String> {
    let text = field.some_text(report)?;
    // What stands there is not repeated: a password may be in it.
    let (message, help) = match Provider::base_flaw(text, insecure?) {
        None => return Some(text.to_owned()),
        Some(BadBase::NoUrl(why)) => (
            format!("no models can be asked for there: {why}"),
            BASE_HELP.to_owned(),
        ),
        Some(BadBase::More) => (
            "`{`, `}`, `?` and `#` cannot stand in it".to_owned(),
            "what belongs after a `?` goes into `query`".to_owned(),
        ),
        Some(BadBase::Bare(host)) => (
            format!("everybody on the way to `{host}` could read the key and all that is said"),
            "use https://, or add `insecure: true` if that is meant".to_owned(),
        ),
    };
    field.problem(&message, &help, report);
    None
}

fn read_key(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<KeyFrom> {
    if let Content::Text(text) = &field.node.content {
        if text == "none" {
            return Some(KeyFrom::Nowhere);
        }
        // It may be the key itself, and is not repeated.
        field.problem("a key must not stand in the file", KEY_HELP, report);
        return None;
    }
    let fields = Fields::open(field, &["env", "file"], report)?;
    match (fields.optional("env"), fields.optional("file")) {
        (Some(field), None) => http::read_variable(&field, KEY_HELP, report).map(KeyFrom::Variable),
        // It need not be there yet: it is read when it is used.
        (None, Some(field)) => {
            let path = base.resolve(field.some_text(report)?);
            Some(KeyFrom::File(PathBuf::from(path)))
        }
        (Some(_), Some(_)) => {
            let message = "the key is in a variable or in a file, not both";
            field.problem(message, KEY_HELP, report);
            None
        }
        (None, None) => {
            // A misspelt key is one problem, not two.
            if !fields.has_unknown() {
                field.problem("must say where the key is found", KEY_HELP, report);
            }
            None
        }
    }
}

fn read_query(field: &Field<'_>, report: &mut Report) -> Option<BTreeMap<String, String>> {
    let mut query = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        let value = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        if SECRET.contains(&entry.key.to_ascii_lowercase().as_str()) {
            let message =
                "a secret must not stand in the file, nor in a URL, which is logged on the way";
            value.problem(message, "use `key` and `key_header`", report);
            complete = false;
            continue;
        }
        match value.text(report) {
            Some(text) => drop(query.insert(entry.key.clone(), text.to_owned())),
            None => complete = false,
        }
    }
    complete.then_some(query)
}

fn read_prices(field: &Field<'_>, report: &mut Report) -> Option<BTreeMap<String, Price>> {
    let mut prices = BTreeMap::new();
    let mut complete = true;
    for entry in field.entries(report)? {
        let value = Field {
            node: &entry.value,
            path: join(&field.path, &entry.key),
        };
        match read_price(&value, report) {
            Some(price) => drop(prices.insert(entry.key.clone(), price)),
            None => complete = false,
        }
    }
    complete.then_some(prices)
}

fn read_price(field: &Field<'_>, report: &mut Report) -> Option<Price> {
    let fields = Fields::open(field, &["input", "output", "cached_input"], report)?;
    let input = fields
        .required("input", PRICES_HELP, report)
        .and_then(|field| read_dollars(&field, report));
    let output = fields
        .required("output", PRICES_HELP, report)
        .and_then(|field| read_dollars(&field, report));
    let cached = match fields.optional("cached_input") {
        None => input,
        Some(field) => read_dollars(&field, report),
    };
    Some(Price {
        input: input?,
        output: output?,
        cached_input: cached?,
    })
}

/// Reads US dollars, as millionths of one.
fn read_dollars(field: &Field<'_>, report: &mut Report) -> Option<u64> {
    const DECIMALS: usize = 6;
    let millionths = match &field.node.content {
        Content::Number(text) => {
            let (whole, part) = text.split_once('.').unwrap_or((text, ""));
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let fits = digits(whole) && digits(part) && part.len() <= DECIMALS;
            let number = fits.then(|| format!("{whole}{part:0<DECIMALS$}").parse::<u64>());
            number.and_then(Result::ok)
        }
        Content::Null
        | Content::Bool(_)
        | Content::Text(_)
        | Content::List(_)
        | Content::Map(_) => None,
    };
    if millionths.is_none() {
        let message = format!(
            "must be a number of dollars with {DECIMALS} decimals at most, not {}",
            field.node.describe()
        );
        field.problem(&message, PRICES_HELP, report);
    }
    millionths
}
