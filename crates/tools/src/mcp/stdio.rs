//! A server that is a program, spoken to line by line under its watchdog.

use std::{io, sync::Arc, time::Duration};

use holdpoint_core::Scrub;
use rmcp::{
    RoleClient,
    model::JsonRpcMessage,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    sync::{self, mpsc, watch},
    time::timeout,
};

use crate::{
    Watchdog,
    quote::quote,
    watchdog::{Environment, Job, Kept, Leash, News, Run, Speech},
};

/// A server runs for as long as it is wanted. The watchdog wants a number.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// How many lines may wait to be read.
const LINES: usize = 64;

/// How many answers a program may want that it does not read.
const UNREAD: usize = 64;

/// How long a program whose end is noticed may take until it is known how it ended.
const DYING: Duration = Duration::from_secs(2);

/// What a server that has ended left to say, for people.
#[derive(Debug, Clone, Default)]
pub(super) struct Epitaph(Arc<watch::Sender<Option<String>>>);

impl Epitaph {
    pub(super) fn text(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// The same, of a program that seems to have ended.
    pub(super) async fn text_soon(&self) -> Option<String> {
        let mut written = self.0.subscribe();
        let written = timeout(DYING, written.wait_for(Option::is_some)).await;
        written.ok()?.ok()?.clone()
    }

    fn write(&self, text: String) {
        self.0.send_replace(Some(text));
    }
}

/// What a program is started with.
pub(super) struct Start<'a> {
    pub(super) command: &'a [String],
    pub(super) cwd: &'a str,
    pub(super) env: Vec<(&'a str, Option<String>)>,
    pub(super) scrub: Arc<Scrub>,
}

/// The program. Dropping this kills it, with all that it has started.
#[derive(Debug)]
pub(super) struct Stdio {
    leash: Arc<sync::Mutex<Option<Leash>>>,
    /// Whether it is let go of. A program that does not read must not keep us from that.
    is_over: watch::Sender<bool>,
    lines: mpsc::Receiver<String>,
    /// Held by each answer that is on its way to the program.
    unread: Arc<()>,
}

impl Stdio {
    pub(super) async fn start(
        watchdog: &Watchdog,
        start: Start<'_>,
        epitaph: &Epitaph,
    ) -> Result<Self, String> {
        let job = Job {
            argv: start.command,
            cwd: start.cwd,
            env: start.env,
            stdin: "",
            speech: Speech::Served,
            remaining: FOREVER,
            environment: Environment::Listed,
            stderr: Kept::Little,
        };
        let started = match watchdog.start(&job).await {
            Ok(watched) => watched.started().await,
            Err(run) => Err(run),
        };
        let (leash, mut watched) = started.map_err(|run| ended(run, &start.scrub))?;
        let (tell, lines) = mpsc::channel(LINES);
        let epitaph = epitaph.clone();
        // Waiting for a line must not be dropped in the middle of one.
        tokio::spawn(async move {
            loop {
                match watched.next().await {
                    News::Line(line) => {
                        if tell.send(line).await.is_err() {
                            // Nobody is left to tell. The leash is gone, too, and so will be the program.
                            drop(watched.over().await);
                            return;
                        }
                    }
                    News::Over(run) => {
                        epitaph.write(ended(run, &start.scrub));
                        return;
                    }
                }
            }
        });
        Ok(Self {
            leash: Arc::new(sync::Mutex::new(Some(leash))),
            is_over: watch::Sender::default(),
            lines,
            unread: Arc::default(),
        })
    }
}

/// How a server ended, for people.
fn ended(run: Run, scrub: &Scrub) -> String {
    match run {
        Run::NotStarted { reason } => reason,
        Run::Lost => "its watchdog is gone".to_owned(),
        Run::Ended { end, stderr, .. } => {
            let stderr = quote(scrub.clean(stderr).trim());
            let how = crate::command::reason(end, "", "");
            match stderr.as_str() {
                "" => how,
                said => format!("{how}; it said: {said}"),
            }
        }
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let leash = Arc::clone(&self.leash);
        let mut is_over = self.is_over.subscribe();
        let is_answer = matches!(
            message,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
        );
        let unread = is_answer.then(|| Arc::clone(&self.unread));
        async move {
            let _unread = unread;
            let line = serde_json::to_string(&message)?;
            let say = async {
                match leash.lock().await.as_mut() {
                    Some(leash) => leash.say(&line).await,
                    None => Err(io::ErrorKind::BrokenPipe.into()),
                }
            };
            tokio::select! {
                said = say => said,
                _ = is_over.wait_for(|it| *it) => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // Every question of a program is something to keep until it has read the answer. Who asks and never reads is over.
            if Arc::strong_count(&self.unread) > UNREAD {
                return None;
            }
            let line = self.lines.recv().await?;
            // Many a server says something of its own before it begins. What should have been an answer is missed in time.
            if let Ok(message) = serde_json::from_str(&line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.is_over.send_replace(true);
        *self.leash.lock().await = None;
        Ok(())
    }
}
