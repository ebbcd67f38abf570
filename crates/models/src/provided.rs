//! A model of a provider, reached over HTTP.

use std::{
    borrow::Cow,
    error::Error,
    fmt::Write,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_core::{Api, BadBase, HttpHeader, KeyFrom, Provider, Scrub, Secret};
use reqwest::{
    Client, Method, Request as Letter, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue},
};
use tokio::time::timeout;

use crate::{
    Delta, Failure, Model, Reply, Request,
    secret::{in_file, in_variable, variable_text},
    sse::Parser,
    trouble::{Complaint, retry_after},
    wire::{Flow, Question, Reading},
};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer may be.
const MAX_ANSWER: usize = 64 << 20;
/// How much is read of an answer that is none.
const MAX_COMPLAINT: usize = 64 << 10;
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A model of a provider.
#[derive(Debug)]
pub(crate) struct Provided {
    reference: String,
    /// The provider's name.
    name: String,
    /// The model, as the provider calls it.
    model: String,
    provider: Provider,
    clients: Arc<Clients>,
}

/// What makes connections. Made when they are first needed: they read the certificates of this machine.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    encrypted: OnceLock<Client>,
    bare: OnceLock<Client>,
}

impl Clients {
    /// Redirects are never followed, since the key would go along; and sending again is decided by the journal, and by
    /// nothing below it. A proxy that the environment names sees only what is encrypted.
    fn of(&self, url: &Url) -> Result<&Client, String> {
        let is_encrypted = url.scheme() == "https";
        let cell = if is_encrypted {
            &self.encrypted
        } else {
            &self.bare
        };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let builder = Client::builder()
            .user_agent(concat!("holdpoint/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT);
        let builder = if is_encrypted {
            builder
        } else {
            builder.no_proxy()
        };
        let client = builder.build().map_err(|error| explain(&error))?;
        Ok(cell.get_or_init(|| client))
    }
}

impl Provided {
    pub(crate) fn new(
        reference: &str,
        name: &str,
        model: &str,
        provider: &Provider,
        clients: Arc<Clients>,
    ) -> Self {
        Self {
            reference: reference.to_owned(),
            name: name.to_owned(),
            model: model.to_owned(),
            provider: provider.clone(),
            clients,
        }
    }
}

#[async_trait]
impl Model for Provided {
    async fn turn(
        &self,
        request: Request<'_>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        let mut scrub = Scrub::default();
        let asked = self.ask(request, deltas, &mut scrub).await;
        let mut reply = asked.map_err(|failure| self.told(failure, &scrub))?;
        let price = self.provider.prices.get(&self.model);
        reply.usage.cost_nano_usd = price.map_or(0, |price| price.of(&reply.usage));
        let said = if reply.model.is_empty() {
            &self.model
        } else {
            &reply.model
        };
        reply.model = format!("{}:{said}", self.name);
        Ok(reply)
    }

    fn silence(&self) -> Option<Duration> {
        Some(self.provider.silence.into())
    }
}

impl Provided {
    /// A failure with whose it is, and without what nobody else may see.
    fn told(&self, failure: Failure, scrub: &Scrub) -> Failure {
        let told = |reason: String| scrub.clean(format!("`{}`: {reason}", self.reference));
        match failure {
            Failure::Timeout => Failure::Timeout,
            Failure::Unavailable { reason } => Failure::Unavailable {
                reason: told(reason),
            },
            Failure::RateLimited {
                retry_after,
                reason,
            } => Failure::RateLimited {
                retry_after,
                reason: told(reason),
            },
            Failure::Rejected { reason } => Failure::Rejected {
                reason: told(reason),
            },
            Failure::Barred { reason } => Failure::Barred {
                reason: told(reason),
            },
            Failure::Withheld { reason } => Failure::Withheld {
                reason: told(reason),
            },
        }
    }

    async fn ask(
        &self,
        request: Request<'_>,
        deltas: &mut (dyn FnMut(Delta) + Send),
        scrub: &mut Scrub,
    ) -> Result<Reply, Failure> {
        let question = Question {
            provider: &self.provider,
            model: &self.model,
            reference: &self.reference,
            request,
        };
        let (path, body, reading) = question.written()?;
        let letter = self.letter(path, body.to_string(), scrub)?;
        let client = self.clients.of(letter.url());
        let client = client.map_err(|reason| Failure::Unavailable { reason })?;
        let silence: Duration = self.provider.silence.into();
        let response = timeout(silence, client.execute(letter)).await;
        let response = response
            .map_err(|_| Failure::Timeout)?
            .map_err(|error| lost(&error))?;
        deltas(Delta::Alive);
        if !response.status().is_success() || is_no_stream(&response) {
            return Err(complaint(response, silence).await);
        }
        read(response, reading, silence, deltas).await
    }

    fn letter(&self, path: &str, body: String, scrub: &mut Scrub) -> Result<Letter, Failure> {
        let barred = |reason: String| Failure::Barred { reason };
        let mut url = self.url(path).map_err(barred)?;
        if !self.provider.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.provider.query);
        }
        let mut letter = Letter::new(Method::POST, url);
        let headers = letter.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if self.provider.api == Api::Anthropic {
            let version = HeaderValue::from_static(ANTHROPIC_VERSION);
            headers.insert("anthropic-version", version);
        }
        for (header, value) in &self.provider.headers {
            let name = header_name(header).map_err(barred)?;
            let (value, secret) = match value {
                HttpHeader::Text(text) => (text.clone(), None),
                HttpHeader::Secret { name, prefix } => {
                    let secret = in_variable(name)
                        .ok_or_else(|| barred(not_set(name, "a header's value")))?;
                    (format!("{prefix}{}", secret.expose()), Some(secret))
                }
            };
            headers.insert(name, sent(&value, secret.as_ref(), scrub).map_err(barred)?);
        }
        if let Some(key) = self.key().map_err(barred)? {
            let (name, prefix) = match (&self.provider.key_header, self.provider.api) {
                (Some(header), _) => (header_name(header).map_err(barred)?, ""),
                (None, Api::Anthropic) => (HeaderName::from_static("x-api-key"), ""),
                (None, Api::OpenAiChat | Api::OpenAiResponses) => (AUTHORIZATION, "Bearer "),
            };
            let value = format!("{prefix}{}", key.expose());
            headers.insert(name, sent(&value, Some(&key), scrub).map_err(barred)?);
        }
        *letter.body_mut() = Some(body.into());
        Ok(letter)
    }

    fn url(&self, path: &str) -> Result<Url, String> {
        let base = base_of(&self.provider)?;
        let base = base.trim_end_matches('/');
        // Both spellings are common.
        let base = match self.provider.api {
            Api::Anthropic => base.strip_suffix("/v1").unwrap_or(base),
            Api::OpenAiChat | Api::OpenAiResponses => base,
        };
        Url::parse(&format!("{base}{path}")).map_err(|error| error.to_string())
    }

    /// The key, as it is now. Whoever is reached by a variable of the environment may need none.
    fn key(&self) -> Result<Option<Secret>, String> {
        match &self.provider.key {
            KeyFrom::Nowhere => Ok(None),
            KeyFrom::File(path) => in_file(path).map(Some),
            KeyFrom::Variable(name) => match in_variable(name) {
                Some(key) => Ok(Some(key)),
                None if is_elsewhere(&self.provider) => Ok(None),
                None => Err(not_set(name, "the key")),
            },
        }
    }
}

/// Where a provider is reached, as the environment says now.
///
/// # Errors
///
/// Why it cannot be reached there.
pub(crate) fn base_of(provider: &Provider) -> Result<Cow<'_, str>, String> {
    let variable = provider.base_url_variable;
    let elsewhere = variable.and_then(variable_text);
    let what = match (variable, &elsewhere) {
        (Some(variable), Some(_)) => format!("`{variable}`"),
        _ => "its base url".to_owned(),
    };
    let base = elsewhere.map_or(Cow::Borrowed(provider.base_url.as_str()), Cow::Owned);
    match Provider::base_flaw(&base, provider.insecure) {
        Some(flaw) => Err(format!("{what} cannot be used: {}", words(&flaw))),
        None => Ok(base),
    }
}

/// Whether the environment says that a provider is reached somewhere else.
pub(crate) fn is_elsewhere(provider: &Provider) -> bool {
    let variable = provider.base_url_variable;
    variable.and_then(variable_text).is_some()
}

fn not_set(variable: &str, what: &str) -> String {
    format!("`{variable}`, which should hold {what}, is not set in the environment of this process")
}

/// Why a base URL cannot be used.
fn words(flaw: &BadBase) -> String {
    match flaw {
        BadBase::NoUrl(why) => why.clone(),
        BadBase::More => "`{`, `}`, `?` and `#` cannot stand in it".to_owned(),
        BadBase::Bare(host) => format!(
            "`{host}` would be spoken to without encryption; use https://, or configure it with `insecure: true`"
        ),
    }
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{}` is not the name of a header", name.escape_debug()))
}

fn sent(value: &str, secret: Option<&Secret>, scrub: &mut Scrub) -> Result<HeaderValue, String> {
    let mut sent = HeaderValue::from_str(value)
        .map_err(|_| "a key has a character that a header cannot hold".to_owned())?;
    if let Some(secret) = secret {
        sent.set_sensitive(true);
        scrub.add(secret);
    }
    Ok(sent)
}

fn content_type(response: &Response) -> &str {
    let value = response.headers().get(CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok());
    text.unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
}

/// Whether an answer says itself that it is no stream. One that says nothing may be one.
fn is_no_stream(response: &Response) -> bool {
    ["application/json", "text/html"].contains(&content_type(response))
}

/// What an answer that is none means.
async fn complaint(mut response: Response, silence: Duration) -> Failure {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let kind = content_type(&response).to_owned();
    let mut bytes = Vec::new();
    // As much as there is: that it breaks off is the lesser trouble.
    while let Ok(Ok(Some(chunk))) = timeout(silence, response.chunk()).await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_COMPLAINT {
            bytes.truncate(MAX_COMPLAINT);
            break;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    if !status.is_success() {
        return Complaint::of_body(&text).means(Some(status.as_u16()), retry_after);
    }
    let complaint = Complaint::of_body(&text);
    if complaint.kinds.is_empty() && complaint.status.is_none() {
        let reason = format!("the answer is no stream of events but `{kind}`");
        return Failure::Unavailable { reason };
    }
    complaint.means(None, retry_after)
}

async fn read(
    mut response: Response,
    mut reading: Box<dyn Reading>,
    silence: Duration,
    deltas: &mut (dyn FnMut(Delta) + Send),
) -> Result<Reply, Failure> {
    let mut parser = Parser::default();
    let mut length = 0;
    loop {
        let chunk = match timeout(silence, response.chunk()).await {
            // What comes after the answer, or does not, no longer counts.
            Err(_) | Ok(Err(_)) if reading.is_whole() => return reading.reply(),
            Err(_) => return Err(Failure::Timeout),
            Ok(Err(error)) => return Err(lost(&error)),
            Ok(Ok(None)) => return reading.reply(),
            Ok(Ok(Some(chunk))) => chunk,
        };
        deltas(Delta::Alive);
        length += chunk.len();
        if length > MAX_ANSWER {
            let reason = format!("the answer is longer than {} MiB", MAX_ANSWER >> 20);
            return Err(Failure::Unavailable { reason });
        }
        let events = parser.push(&chunk).map_err(|broken| Failure::Unavailable {
            reason: broken.as_str().to_owned(),
        })?;
        for event in &events {
            if reading.take(event, deltas)? == Flow::Over {
                return reading.reply();
            }
        }
    }
}

fn lost(error: &reqwest::Error) -> Failure {
    Failure::Unavailable {
        reason: explain(error),
    }
}

/// An error with its causes. Its URL is left out: it is configured, and says nothing new.
fn explain(error: &reqwest::Error) -> String {
    if error.is_timeout() && error.is_connect() {
        return "no connection was made in time".to_owned();
    }
    let mut text = if error.is_connect() {
        "no connection".to_owned()
    } else {
        "the connection was lost".to_owned()
    };
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing into a text cannot fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}
