//! Requests that the program itself makes: for an issuer's keys, or to tell somebody what happened.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{
    Client, Method, Request, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    CONNECT,
    exchange::{client, explain},
    guard::{Guard, Names, SystemNames},
};

/// Makes requests as carefully as tools do: every address of a host is looked at before it is connected to, only public ones
/// are talked to unless `allow_private` names them, redirects are not followed and proxies are not used. Only with hosts
/// that `allow_private` names is spoken without encryption.
#[derive(Debug)]
pub struct Outbound {
    guard: Guard,
    /// Made when it is first needed: it reads the certificates of this machine.
    client: OnceLock<Client>,
}

/// How much of a document is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How many bytes it may have.
    pub bytes: usize,
    /// How long it may take, from asking for it to its last byte.
    pub time: Duration,
}

/// Why somebody was not reached, for people. It names no URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReached(String);

impl fmt::Display for NotReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotReached {}

impl Outbound {
    /// Reaches public addresses, and those that `allow_private` names.
    ///
    /// # Errors
    ///
    /// An entry is not a host.
    pub fn new(allow_private: &[String]) -> Result<Self, NotReached> {
        Self::with_names(Arc::new(SystemNames), allow_private)
    }

    pub(super) fn with_names(
        names: Arc<dyn Names>,
        allow_private: &[String],
    ) -> Result<Self, NotReached> {
        let guard = Guard::new(names, allow_private)
            .map_err(|entry| NotReached(format!("`{entry}` in `allow_private` is not a host")))?;
        Ok(Self {
            guard,
            client: OnceLock::new(),
        })
    }

    /// The body of the answer to a `GET`.
    ///
    /// # Errors
    ///
    /// The host may not be talked to, or cannot be; the answer is not a 200, too long, too late, or no text.
    pub async fn get(&self, url: &str, patience: Patience) -> Result<String, NotReached> {
        let request = Request::new(Method::GET, self.url(url)?);
        self.body(request, patience).await
    }

    /// The body of the answer to a `POST` of this JSON.
    ///
    /// # Errors
    ///
    /// As [`Outbound::get`].
    pub(crate) async fn ask(
        &self,
        url: &str,
        headers: HeaderMap,
        json: String,
        patience: Patience,
    ) -> Result<String, NotReached> {
        let mut request = Request::new(Method::POST, self.url(url)?);
        *request.headers_mut() = headers;
        let sent = request.headers_mut().entry(CONTENT_TYPE);
        sent.or_insert(HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(json.into());
        self.body(request, patience).await
    }

    /// Whether this may be asked at all, as far as that is known without asking anybody.
    pub(crate) fn check_url(&self, url: &str) -> Result<(), NotReached> {
        self.url(url).map(drop)
    }

    async fn body(&self, request: Request, patience: Patience) -> Result<String, NotReached> {
        let deadline = Instant::now() + patience.time;
        let mut response = self.send(request, patience.time).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(NotReached(format!(
                "HTTP {}: redirects are not followed",
                status.as_u16()
            )));
        }
        if status != StatusCode::OK {
            return Err(NotReached(format!("HTTP {}", status.as_u16())));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = timeout_at(deadline, response.chunk())
            .await
            .map_err(|_| late(patience.time))?
            .map_err(|error| NotReached(explain(&error)))?
        {
            if bytes.len() + chunk.len() > patience.bytes {
                return Err(NotReached(format!(
                    "the answer is longer than {} bytes",
                    patience.bytes
                )));
            }
            bytes.extend_from_slice(&chunk);
        }
        String::from_utf8(bytes).map_err(|_| NotReached("the answer is no UTF-8".to_owned()))
    }

    /// The status of the answer to a `POST` of this JSON. What else the answer says is not read.
    ///
    /// # Errors
    ///
    /// The host may not be talked to, or cannot be; a header cannot be sent; there is no answer within this time.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        json: String,
        time: Duration,
    ) -> Result<u16, NotReached> {
        let mut request = Request::new(Method::POST, self.url(url)?);
        let sent = request.headers_mut();
        sent.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            let value = HeaderValue::from_str(value)
                .map_err(|_| NotReached(format!("the header `{name}` cannot have this value")))?;
            sent.insert(*name, value);
        }
        *request.body_mut() = Some(json.into());
        Ok(self.send(request, time).await?.status().as_u16())
    }

    /// A client that is as careful, for this address.
    pub(crate) fn client_for(&self, url: &str) -> Result<Client, NotReached> {
        self.url(url)?;
        self.client().cloned()
    }

    async fn send(&self, request: Request, time: Duration) -> Result<Response, NotReached> {
        let sent = timeout(time, self.client()?.execute(request)).await;
        sent.map_err(|_| late(time))?
            .map_err(|error| NotReached(explain(&error)))
    }

    fn url(&self, url: &str) -> Result<Url, NotReached> {
        let url = Url::parse(url).map_err(|error| NotReached(format!("not a URL: {error}")))?;
        self.check(&url)?;
        Ok(url)
    }

    fn check(&self, url: &Url) -> Result<(), NotReached> {
        match url.scheme() {
            "https" => {}
            "http" if self.guard.names(url) => {}
            "http" => {
                let host = url.host_str().unwrap_or_default();
                return Err(NotReached(format!(
                    "`{host}` is asked without encryption, and `allow_private` does not name it"
                )));
            }
            scheme => return Err(NotReached(format!("`{scheme}:` is not `https:`"))),
        }
        if !url.username().is_empty() || url.password().is_some() {
            let message = "a name or password before the host is not allowed";
            return Err(NotReached(message.to_owned()));
        }
        self.guard
            .check_literal(url)
            .map_err(|error| NotReached(error.to_string()))
    }

    fn client(&self) -> Result<&Client, NotReached> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = client(self.guard.clone(), CONNECT);
        let made = made.map_err(|error| NotReached(explain(&error)))?;
        Ok(self.client.get_or_init(|| made))
    }
}

fn late(time: Duration) -> NotReached {
    NotReached(format!("no whole answer within {time:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(allow: &[&str], url: &str) -> String {
        let allow: Vec<_> = allow.iter().map(|entry| (*entry).to_owned()).collect();
        let patience = Patience {
            bytes: 10,
            time: Duration::from_secs(1),
        };
        let outbound = Outbound::new(&allow).unwrap();
        outbound.get(url, patience).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn only_https_and_only_public_addresses_unless_others_are_named() {
        for (allow, url, said) in [
            (
                &[][..],
                "http://id.example.com/",
                "`id.example.com` is asked without encryption, and `allow_private` does not name it",
            ),
            (
                &["10.0.0.1"],
                "http://id.example.com/",
                "`id.example.com` is asked without encryption, and `allow_private` does not name it",
            ),
            (
                &[],
                "https://127.0.0.1/",
                "`127.0.0.1` has the private address 127.0.0.1, and `allow_private` names neither",
            ),
            (
                &[],
                "https://[::1]/",
                "`[::1]` has the private address ::1, and `allow_private` names neither",
            ),
            (
                &["id.example.com"],
                "file:///etc/passwd",
                "`file:` is not `https:`",
            ),
            (
                &[],
                "https://ann:secret@id.example.com/",
                "a name or password before the host is not allowed",
            ),
            (&[], "jwks.json", "not a URL: relative URL without a base"),
        ] {
            assert_eq!(refusal(allow, url).await, said, "{url}");
        }
        assert!(
            refusal(&[], "https://169.254.169.254/latest")
                .await
                .contains("not for tools")
        );
        assert!(
            refusal(&[], "https://localhost/")
                .await
                .contains("private address")
        );
    }
}
