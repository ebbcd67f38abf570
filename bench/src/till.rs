//! The service that a server's `write` tool talks to: it counts its calls, and says that all is done.

use std::{
    convert::Infallible,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Context as _;
use http_body_util::Full;
use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;

/// The service. Its address stays the same for as long as the bench runs, because parked runs know it.
#[derive(Debug)]
pub(crate) struct Till {
    listener: TcpListener,
    calls: Arc<AtomicUsize>,
}

impl Till {
    /// Takes an address of this machine.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .context("no address for the tool")?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            calls: Arc::default(),
        })
    }

    /// Its port.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub(crate) fn port(&self) -> anyhow::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// How often it was called so far.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Answers calls for as long as this future is awaited.
    ///
    /// # Errors
    ///
    /// The address fails.
    pub(crate) async fn serve(&self) -> anyhow::Result<Infallible> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let calls = Arc::clone(&self.calls);
            let count = service_fn(move |_| {
                calls.fetch_add(1, Ordering::Relaxed);
                let done = Full::new(Bytes::from_static(b"transferred"));
                std::future::ready(Ok::<_, Infallible>(Response::new(done)))
            });
            // A caller that goes away has said so itself.
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), count));
        }
    }
}
