//! Documents for built-in tools: `GET`, through the same guard as everything else.

use std::{sync::Arc, sync::OnceLock, time::Duration};

use reqwest::{
    Client, Method, Request, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION},
};
use tokio::time::{Instant, timeout_at};

use super::{
    CONNECT,
    exchange::{client, explain},
    guard::{Guard, SystemNames},
};
use crate::quote::quote;

/// How often a document may be elsewhere.
const MAX_REDIRECTS: usize = 5;

/// Fetches documents. Each address on the way to one is looked at before it is connected to.
#[derive(Debug)]
pub(crate) struct Fetcher {
    guard: Guard,
    redirects: usize,
    /// Made when it is first needed: it reads the certificates of this machine.
    client: OnceLock<Client>,
}

/// A document.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Where it was in the end.
    pub(crate) url: String,
    /// Its media type, in lower case and without parameters; empty if that was not said.
    pub(crate) kind: String,
    pub(crate) bytes: Vec<u8>,
    /// Whether there is more of it.
    pub(crate) is_cut: bool,
}

/// Why there is no document.
#[derive(Debug)]
pub(crate) enum NotFetched {
    /// It may not be asked for, or the answer is that there is none.
    Refused(String),
    /// It is not known; asking again may help.
    Lost(String),
}

impl Fetcher {
    pub(crate) fn new(allow_private: &[String]) -> Result<Self, String> {
        let guard = Guard::new(Arc::new(SystemNames), allow_private)
            .map_err(|entry| format!("`{entry}` is not a host"))?;
        Ok(Self {
            guard,
            redirects: MAX_REDIRECTS,
            client: OnceLock::new(),
        })
    }

    /// Follows no redirects.
    pub(crate) fn without_redirects(self) -> Self {
        Self {
            redirects: 0,
            ..self
        }
    }

    /// Reads an address, as far as that can be done without asking anybody.
    pub(crate) fn check(&self, url: &str) -> Result<Url, String> {
        let url = Url::parse(url).map_err(|error| format!("not a URL: {error}"))?;
        self.may(&url)?;
        Ok(url)
    }

    fn may(&self, url: &Url) -> Result<(), String> {
        if !matches!(url.scheme(), "https" | "http") {
            return Err(format!(
                "`{}:` is neither `https:` nor `http:`",
                url.scheme()
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a name or password before the host is not allowed".to_owned());
        }
        self.guard
            .check_literal(url)
            .map_err(|refused| refused.to_string())
    }

    pub(crate) async fn get(
        &self,
        url: &str,
        most: usize,
        time: Duration,
    ) -> Result<Fetched, NotFetched> {
        let deadline = Instant::now() + time;
        let mut url = self.check(url).map_err(NotFetched::Refused)?;
        for _ in 0..=self.redirects {
            let response = self.ask(url.clone(), deadline).await?;
            let status = response.status();
            if !is_redirect(status) {
                return read(response, &url, most, deadline).await;
            }
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|it| it.to_str().ok()).ok_or_else(|| {
                NotFetched::Refused(format!("HTTP {}, but not where to", status.as_u16()))
            })?;
            let next = url.join(location).map_err(|error| {
                NotFetched::Refused(format!("it is redirected to what is no URL: {error}"))
            })?;
            // INVARIANT: what a server sends elsewhere is looked at as if it had been asked for.
            self.may(&next)
                .map_err(|why| NotFetched::Refused(format!("it is redirected: {why}")))?;
            if url.scheme() == "https" && next.scheme() == "http" {
                let why = "it is redirected from https to http, which is not followed";
                return Err(NotFetched::Refused(why.to_owned()));
            }
            url = next;
        }
        Err(NotFetched::Refused(format!(
            "it is redirected more than {} times",
            self.redirects
        )))
    }

    async fn ask(&self, url: Url, deadline: Instant) -> Result<Response, NotFetched> {
        let lost = NotFetched::Lost;
        let client = self.client().map_err(lost)?;
        let mut request = Request::new(Method::GET, url);
        let accept = HeaderValue::from_static("text/html, text/*;q=0.9, */*;q=0.5");
        request.headers_mut().insert(ACCEPT, accept);
        match timeout_at(deadline, client.execute(request)).await {
            Err(_) => Err(lost("a time-out: there was no answer in time".to_owned())),
            // Nothing was sent: the name, the address or the certificate is wrong, or nobody listens.
            Ok(Err(error)) if error.is_connect() || error.is_builder() => {
                Err(NotFetched::Refused(explain(&error)))
            }
            Ok(Err(error)) => Err(lost(explain(&error))),
            Ok(Ok(response)) => Ok(response),
        }
    }

    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = client(self.guard.clone(), CONNECT).map_err(|error| explain(&error))?;
        Ok(self.client.get_or_init(|| made))
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

async fn read(
    mut response: Response,
    url: &Url,
    most: usize,
    deadline: Instant,
) -> Result<Fetched, NotFetched> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    let mut bytes = Vec::new();
    let mut is_cut = false;
    loop {
        match timeout_at(deadline, response.chunk()).await {
            Err(_) => {
                let why = "a time-out: the document did not end in time";
                return Err(NotFetched::Lost(why.to_owned()));
            }
            Ok(Err(error)) => return Err(NotFetched::Lost(explain(&error))),
            Ok(Ok(None)) => break,
            Ok(Ok(Some(chunk))) => bytes.extend_from_slice(&chunk),
        }
        if bytes.len() > most {
            bytes.truncate(most);
            is_cut = true;
            break;
        }
    }
    if status.is_success() {
        return Ok(Fetched {
            url: url.to_string(),
            kind,
            bytes,
            is_cut,
        });
    }
    let said = quote(&String::from_utf8_lossy(&bytes));
    let why = format!("HTTP {}: {said}", status.as_u16());
    if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
        Err(NotFetched::Lost(why))
    } else {
        Err(NotFetched::Refused(why))
    }
}
