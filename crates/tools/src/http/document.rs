//! Documents that the program itself needs from the web, such as an issuer's keys.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{Client, Method, Request, StatusCode, Url};
use tokio::time::{Instant, timeout_at};

use super::{
    CONNECT,
    exchange::{client, explain},
    guard::{Guard, SystemNames},
};

/// Fetches documents as carefully as tools send their requests: every address of a host is looked at before it is
/// connected to, only public ones are talked to unless `allow_private` names them, redirects are not followed and
/// proxies are not used. What is not encrypted is fetched only from hosts that `allow_private` names.
#[derive(Debug)]
pub struct Documents {
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

/// Why a document was not fetched, for people. It names no URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFetched(String);

impl fmt::Display for NotFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotFetched {}

impl Documents {
    /// Fetches from public addresses, and from those that `allow_private` names.
    ///
    /// # Errors
    ///
    /// An entry is not a host.
    pub fn new(allow_private: &[String]) -> Result<Self, NotFetched> {
        let guard = Guard::new(Arc::new(SystemNames), allow_private)
            .map_err(|entry| NotFetched(format!("`{entry}` in `allow_private` is not a host")))?;
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
    pub async fn get(&self, url: &str, patience: Patience) -> Result<String, NotFetched> {
        let deadline = Instant::now() + patience.time;
        let url = Url::parse(url).map_err(|error| NotFetched(format!("not a URL: {error}")))?;
        self.check(&url)?;
        let late = |_| NotFetched(format!("no whole answer within {:?}", patience.time));
        let request = Request::new(Method::GET, url);
        let mut response = timeout_at(deadline, self.client()?.execute(request))
            .await
            .map_err(late)?
            .map_err(|error| NotFetched(explain(&error)))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(NotFetched(format!(
                "HTTP {}: redirects are not followed",
                status.as_u16()
            )));
        }
        if status != StatusCode::OK {
            return Err(NotFetched(format!("HTTP {}", status.as_u16())));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = timeout_at(deadline, response.chunk())
            .await
            .map_err(late)?
            .map_err(|error| NotFetched(explain(&error)))?
        {
            if bytes.len() + chunk.len() > patience.bytes {
                return Err(NotFetched(format!(
                    "the answer is longer than {} bytes",
                    patience.bytes
                )));
            }
            bytes.extend_from_slice(&chunk);
        }
        String::from_utf8(bytes).map_err(|_| NotFetched("the answer is no UTF-8".to_owned()))
    }

    fn check(&self, url: &Url) -> Result<(), NotFetched> {
        match url.scheme() {
            "https" => {}
            "http" if self.guard.names(url) => {}
            "http" => {
                let host = url.host_str().unwrap_or_default();
                return Err(NotFetched(format!(
                    "`{host}` is asked without encryption, and `allow_private` does not name it"
                )));
            }
            scheme => return Err(NotFetched(format!("`{scheme}:` is not `https:`"))),
        }
        if !url.username().is_empty() || url.password().is_some() {
            let message = "a name or password before the host is not allowed";
            return Err(NotFetched(message.to_owned()));
        }
        self.guard
            .check_literal(url)
            .map_err(|error| NotFetched(error.to_string()))
    }

    fn client(&self) -> Result<&Client, NotFetched> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = client(self.guard.clone(), CONNECT);
        let made = made.map_err(|error| NotFetched(explain(&error)))?;
        Ok(self.client.get_or_init(|| made))
    }
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
        let documents = Documents::new(&allow).unwrap();
        documents.get(url, patience).await.unwrap_err().to_string()
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
