//! One request and its answer.

use std::{
    error::Error,
    fmt::Write,
    sync::{Arc, OnceLock},
    time::Duration,
};

use holdpoint_core::{Fill, HttpHeader, HttpRequest, Scrub};
use reqwest::{
    Client, Method, Request, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use tokio::time::{Instant, timeout_at};

use super::{
    guard::{Guard, Refused, SystemNames},
    secret,
};
use crate::Call;

/// How many bytes of a response are read.
pub(super) const MAX_BODY: usize = 1 << 20;

const EPOCH: HeaderName = HeaderName::from_static("holdpoint-epoch");
const TIMED_OUT: &str = "a time-out: there was no response by the deadline";

/// How an exchange ended.
#[derive(Debug)]
pub(super) enum Exchange {
    /// Not a byte of the request left this process.
    NotSent(String),
    /// It was sent, or a part of it was, and there is no answer.
    Lost(String),
    Answered(Answer),
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The body, without secrets. What is not UTF-8 is replaced.
    pub(super) text: String,
    pub(super) extent: Extent,
}

/// How much of a body there is.
#[derive(Debug)]
pub(super) enum Extent {
    Whole,
    TooLong,
    Broken(String),
}

/// A request that can be sent again and again.
#[derive(Debug)]
pub(super) struct Line {
    request: HttpRequest,
    method: Method,
    /// Scheme, host and port, normalised.
    origin: Url,
    idempotency_header: Option<HeaderName>,
    headers: Vec<(HeaderName, HttpHeader)>,
    guard: Guard,
    connect: Duration,
    /// Made when it is first needed: it reads the certificates of this machine.
    client: OnceLock<Client>,
}

/// A request that is ready to be sent, and what must be taken out of its answer.
struct Letter {
    request: Request,
    scrub: Scrub,
}

impl Line {
    /// Checks all that can be checked without a call.
    pub(super) fn new(request: HttpRequest, connect: Duration) -> Result<Self, String> {
        let origin = Url::parse(request.url.origin())
            .map_err(|error| format!("`{}`: {error}", request.url.as_str()))?;
        let guard = Guard::new(Arc::new(SystemNames), &request.allow_private)
            .map_err(|entry| format!("`{entry}` in `allow_private` is not a host"))?;
        let name = |name: &str| {
            HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("`{name}` is not the name of a header"))
        };
        let mut headers = Vec::new();
        for (header, value) in &request.headers {
            if let HttpHeader::Text(text) = value {
                HeaderValue::from_str(text)
                    .map_err(|_| format!("the header `{header}` cannot have this value"))?;
            }
            headers.push((name(header)?, value.clone()));
        }
        let idempotency_header = request
            .idempotency_header
            .as_deref()
            .map(name)
            .transpose()?;
        let method = Method::from_bytes(request.method.as_str().as_bytes())
            .map_err(|error| error.to_string())?;
        Ok(Self {
            request,
            method,
            origin,
            idempotency_header,
            headers,
            guard,
            connect,
            client: OnceLock::new(),
        })
    }

    /// Sends it for one call. `key` is what the idempotency header carries.
    pub(super) async fn send(&self, call: Call<'_>, key: &str) -> Exchange {
        let deadline = Instant::now() + call.remaining;
        let (client, letter) = match self
            .client()
            .and_then(|client| Ok((client, self.letter(call, key)?)))
        {
            Ok(ready) => ready,
            Err(reason) => return Exchange::NotSent(reason),
        };
        let Letter { request, scrub } = letter;
        let response = match timeout_at(deadline, client.execute(request)).await {
            Err(_) => return Exchange::Lost(TIMED_OUT.to_owned()),
            // INVARIANT: a connection's errors come before a byte of the request is written to it, the handshake of TLS
            // included. It is never one that was used before, and nothing below us sends a request twice.
            Ok(Err(error)) if error.is_connect() || error.is_builder() => {
                return Exchange::NotSent(scrub.clean(explain(&error)));
            }
            Ok(Err(error)) => {
                let reason = format!("the connection was lost: {}", explain(&error));
                return Exchange::Lost(scrub.clean(reason));
            }
            Ok(Ok(response)) => response,
        };
        Exchange::Answered(read(response, deadline, &scrub).await)
    }

    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = client(self.guard.clone(), self.connect).map_err(|error| explain(&error))?;
        Ok(self.client.get_or_init(|| made))
    }

    fn letter(&self, call: Call<'_>, key: &str) -> Result<Letter, String> {
        let args = call.args.to_value();
        let fill = Fill {
            args: &args,
            key: call.key,
            epoch: call.epoch,
        };
        let target = self
            .request
            .target(&fill)
            .map_err(|error| error.to_string())?;
        let url = Url::parse(&target).map_err(|error| format!("`{target}`: {error}"))?;
        // INVARIANT: whatever the arguments are, they choose neither scheme nor host nor port.
        if url.origin() != self.origin.origin() || !url.username().is_empty() {
            return Err("the arguments lead to another host".to_owned());
        }
        self.guard
            .check_literal(&url)
            .map_err(|error| error.to_string())?;
        let mut scrub = Scrub::default();
        let headers = self.headers(call.epoch, key, &mut scrub)?;
        let mut request = Request::new(self.method.clone(), url);
        *request.headers_mut() = headers;
        if let Some(body) = self.request.payload(call.args) {
            request
                .headers_mut()
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(body.into());
        }
        Ok(Letter { request, scrub })
    }

    fn headers(&self, epoch: u64, key: &str, scrub: &mut Scrub) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (header, value) in &self.headers {
            let value = match value {
                HttpHeader::Text(text) => HeaderValue::from_str(text)
                    .map_err(|_| format!("the header `{header}` cannot have this value"))?,
                HttpHeader::Secret { name, prefix } => secret(name, prefix, scrub)?,
            };
            headers.insert(header.clone(), value);
        }
        if let Some(header) = &self.idempotency_header {
            let key = HeaderValue::from_str(key)
                .map_err(|_| "the action's key does not fit into a header".to_owned())?;
            headers.insert(header.clone(), key);
            headers.insert(EPOCH, epoch.into());
        }
        Ok(headers)
    }
}

fn secret(name: &str, prefix: &str, scrub: &mut Scrub) -> Result<HeaderValue, String> {
    let secret = secret::named(name).ok_or_else(|| {
        format!("the secret `{name}` is not set in the environment of this process")
    })?;
    let mut value = HeaderValue::from_str(&format!("{prefix}{}", secret.expose()))
        .map_err(|_| format!("the secret `{name}` has a character that a header cannot hold"))?;
    value.set_sensitive(true);
    scrub.add(&secret);
    Ok(value)
}

/// A client that does what it is told and nothing else.
pub(super) fn client(guard: Guard, connect: Duration) -> reqwest::Result<Client> {
    Client::builder()
        .user_agent(concat!("holdpoint/", env!("CARGO_PKG_VERSION")))
        // A proxy would resolve names for itself.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        // INVARIANT: sending again is decided by the journal, and by nothing below it.
        .retry(reqwest::retry::never())
        .pool_max_idle_per_host(0)
        .referer(false)
        .connect_timeout(connect)
        .dns_resolver(guard)
        .build()
}

async fn read(mut response: Response, deadline: Instant, scrub: &Scrub) -> Answer {
    let status = response.status();
    let mut bytes = Vec::new();
    // So much more that a secret across the end is seen as one.
    let enough = MAX_BODY + scrub.longest();
    let extent = loop {
        match timeout_at(deadline, response.chunk()).await {
            Err(_) => break Extent::Broken(TIMED_OUT.to_owned()),
            Ok(Err(error)) => break Extent::Broken(scrub.clean(explain(&error))),
            Ok(Ok(None)) => break Extent::Whole,
            Ok(Ok(Some(chunk))) => bytes.extend_from_slice(&chunk),
        }
        if bytes.len() > enough {
            bytes.truncate(enough);
            break Extent::TooLong;
        }
    };
    let mut text = scrub.clean(String::from_utf8_lossy(&bytes).into_owned());
    let extent = if text.len() > MAX_BODY {
        let end = text.floor_char_boundary(MAX_BODY);
        text.truncate(end);
        match extent {
            Extent::Whole | Extent::TooLong => Extent::TooLong,
            broken @ Extent::Broken(_) => broken,
        }
    } else {
        extent
    };
    Answer {
        status,
        text,
        extent,
    }
}

/// An error with its causes. Its URL is left out: the arguments are told elsewhere.
pub(crate) fn explain(error: &reqwest::Error) -> String {
    if error.is_timeout() && error.is_connect() {
        return "no connection was made in time".to_owned();
    }
    let mut text = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        // What we said ourselves needs no frame.
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return refused.to_string();
        }
        let separator = if text.is_empty() { "" } else { ": " };
        // Writing into a text cannot fail.
        let _ = write!(text, "{separator}{cause}");
        source = cause.source();
    }
    if text.is_empty() {
        return "the request could not be made".to_owned();
    }
    text
}
