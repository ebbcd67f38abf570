//! A client of HTTP that costs as little as it can: one connection that stays open, one request at a time.

use std::net::SocketAddr;

use anyhow::Context as _;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    client::conn::http1::{SendRequest, handshake},
    header::{CONTENT_TYPE, HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// Nobody is there.
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        // Without it, the second part of a request would wait for an acknowledgement of the first.
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Where it breaks, the request that is under way says so.
        tokio::spawn(connection);
        let host = HeaderValue::from_str(&address.to_string())?;
        Ok(Self { sender, host })
    }

    /// Sends JSON. Returns what is answered.
    ///
    /// # Errors
    ///
    /// It is not sent, or the answer is not that all is well.
    pub(crate) async fn post(&mut self, path: &str, json: String) -> anyhow::Result<Bytes> {
        let answer = self.send(Method::POST, path, json).await?;
        Ok(answer.into_body().collect().await?.to_bytes())
    }

    /// Asks for something. Returns what is answered, as it comes.
    ///
    /// # Errors
    ///
    /// It is not sent, or the answer is not that all is well.
    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<Incoming> {
        let answer = self.send(Method::GET, path, String::new()).await?;
        Ok(answer.into_body())
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        json: String,
    ) -> anyhow::Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.host.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(Full::new(Bytes::from(json)))?;
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await;
        let answer = answer.with_context(|| format!("`{path}` was not answered"))?;
        let status = answer.status();
        if !status.is_success() {
            let body = answer.into_body().collect().await?.to_bytes();
            let body = String::from_utf8_lossy(&body);
            anyhow::bail!("`{path}` was answered with {status}: {body}");
        }
        Ok(answer)
    }
}
