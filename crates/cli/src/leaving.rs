//! Being asked to go: by a person with Ctrl+C, or by whoever supervises this process.

use std::{future::pending, io};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

/// Hears SIGINT and SIGTERM from when it is made, and remembers: whoever waits later is told all the same.
#[derive(Debug)]
pub(crate) struct Leaving(watch::Receiver<Option<&'static str>>);

impl Leaving {
    /// Begins to listen. From here on these signals no longer end the process by themselves.
    pub(crate) fn listen() -> Self {
        let (say, heard) = watch::channel(None);
        let interrupt = signal(SignalKind::interrupt());
        let terminate = signal(SignalKind::terminate());
        tokio::spawn(async move {
            let name = tokio::select! {
                () = received(interrupt) => "SIGINT",
                () = received(terminate) => "SIGTERM",
            };
            say.send_replace(Some(name));
        });
        Self(heard)
    }

    /// Waits until this process is asked to go; returns by which signal.
    pub(crate) async fn asked(&self) -> &'static str {
        let mut heard = self.0.clone();
        let name = match heard.wait_for(Option::is_some).await {
            Ok(name) => *name,
            Err(_) => None,
        };
        match name {
            Some(name) => name,
            None => pending().await,
        }
    }
}

/// A signal that cannot be listened to ends the process, as it does by default.
async fn received(signal: io::Result<Signal>) {
    let heard = match signal {
        Ok(mut signal) => signal.recv().await,
        Err(_) => None,
    };
    if heard.is_none() {
        pending().await
    }
}
