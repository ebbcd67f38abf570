//! A chat as a stream of bytes, from a command to the first time that the run stands still.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use futures::stream;
use holdpoint_core::{Event, RunId, State, Status, fold};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::{
    state,
    teller::{Format, Teller, When},
};
use crate::{
    follow::{Follow, Seen},
    hub::Listener,
    problem::Problem,
    streams::Permit,
    world::{Placed, Served, World},
};

/// How often a sign of life is given.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long text waits for more of it.
const BREATH: Duration = Duration::from_millis(50);

/// One client's chat.
struct Chat {
    world: Arc<World>,
    served: Served,
    follow: Follow,
    /// The thread up to what was told.
    thread: State,
    /// The first event after which the run may be said to stand still: the last one of the command's own append.
    from: u64,
    run: Option<RunId>,
    teller: Teller,
    beat: Interval,
    /// The key by which it was opened, which may be revoked.
    key: Option<String>,
    over: bool,
    _permit: Permit,
}

/// What a client of a chat reads.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) format: Format,
    pub(crate) when: When,
    pub(crate) key: Option<String>,
    pub(crate) permit: Permit,
    /// Who has listened since before the command was committed.
    pub(crate) listener: Listener,
}

/// The stream of what a command led to.
pub(crate) fn respond(
    world: &Arc<World>,
    served: &Served,
    placed: &Placed,
    reader: Reader,
) -> Response {
    let after = placed.before.version;
    let follow = if placed.replayed {
        Follow::new(&served.engine, &served.hub, &placed.key, after)
    } else {
        Follow::with(&served.engine, reader.listener, after)
    };
    let mut beat = interval(HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.reset();
    let chat = Chat {
        world: Arc::clone(world),
        served: served.clone(),
        follow,
        thread: State::clone(&placed.before),
        from: after + 1,
        run: placed.run,
        teller: Teller::new(reader.format, reader.when),
        beat,
        key: reader.key,
        over: false,
        _permit: reader.permit,
    };
    let bytes = stream::unfold(Box::new(chat), |mut chat| async move {
        let bytes = Box::pin(chat.next()).await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), chat))
    });
    let mut response = Body::from_stream(bytes).into_response();
    let headers = response.headers_mut();
    event_stream(headers);
    for (name, id) in [
        ("x-run-id", placed.run.map(|run| run.to_string())),
        ("x-thread-id", Some(placed.key.thread.to_string())),
        (
            "idempotency-replayed",
            placed.replayed.then(|| "true".to_owned()),
        ),
    ] {
        if let Some(value) = id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            headers.insert(name, value);
        }
    }
    response
}

/// The headers of a stream that no proxy should keep or gather.
pub(crate) fn event_stream(headers: &mut HeaderMap) {
    let fixed = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

impl Chat {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let bytes = self.teller.take();
            if !bytes.is_empty() {
                return Some(bytes.into());
            }
            if self.over {
                return None;
            }
            self.step().await;
        }
    }

    async fn step(&mut self) {
        let closing = self.world.closing.clone();
        let waits = self.teller.waits();
        let soon = tokio::time::sleep_until(Instant::now() + BREATH);
        tokio::select! {
            // What happened comes before what may be said about it.
            biased;
            seen = self.follow.next() => match seen {
                Ok(seen) => self.see(&seen).await,
                Err(error) => self.fail(&error.into()),
            },
            () = closing.cancelled() => {
                self.teller.at(self.served.engine.store().now());
                self.teller.error("shutting_down", "the server is closing; the run goes on");
                self.end();
            }
            () = soon, if waits => {
                self.teller.at(self.served.engine.store().now());
                self.teller.tick();
            }
            _ = self.beat.tick() => self.beat().await,
        }
    }

    async fn beat(&mut self) {
        self.teller.at(self.served.engine.store().now());
        if let Some(key) = &self.key
            && !self.world.keys.is_good(key).await.unwrap_or(false)
        {
            self.teller
                .error("unauthorized", "the API key does not hold any more");
            return self.end();
        }
        self.teller.beat();
    }

    async fn see(&mut self, seen: &Seen) {
        self.teller.at(self.served.engine.store().now());
        if self.is_ours(seen) {
            self.teller.see(seen, &self.thread);
        }
        let Seen::Event(entry) = seen else { return };
        fold(&mut self.thread, entry);
        // Between the events of one append nothing can be told of how the run stands.
        if entry.header.end && entry.seq >= self.from {
            self.judge().await;
        }
    }

    /// Whether it belongs to this chat's run, and not to one that made way for it.
    fn is_ours(&self, seen: &Seen) -> bool {
        let run = match seen {
            Seen::Said(speech) | Seen::Reset(speech) => Some(speech.run),
            Seen::Event(entry) => {
                if let Event::RunStarted { run, .. } = &entry.event {
                    Some(*run)
                } else {
                    self.thread.run.as_ref().map(|run| run.id)
                }
            }
        };
        run == self.run
    }

    /// Ends the chat where the run stands still.
    async fn judge(&mut self) {
        let current = self.thread.run.as_ref().map(|run| run.id);
        if self.run.is_some() && current != self.run {
            return self.end();
        }
        match self.thread.status() {
            None | Some(Status::Running) => {}
            Some(Status::Waiting(_)) => self.ask().await,
            Some(Status::Paused) => {
                self.teller.progress("the run is paused");
                self.end();
            }
            Some(Status::Sleeping) => {
                self.teller.progress("the run sleeps");
                self.end();
            }
            Some(_) => self.end(),
        }
    }

    async fn ask(&mut self) {
        // What is due is about to be closed.
        if state::pending(&self.served.engine, &self.thread).is_none() {
            return;
        }
        let key = holdpoint_store::ThreadKey {
            tenant: self.thread.tenant.as_str().into(),
            thread: self.thread.thread,
        };
        let asked = state::asked(&self.served.engine, &key, &self.thread).await;
        match asked {
            Ok(Some(asked)) => {
                self.teller.interrupt(&asked);
                self.end();
            }
            Ok(None) => {
                let missing = "the run waits for an answer that no form can give; use the runs API";
                self.teller.error("use_runs_api", missing);
                self.end();
            }
            Err(problem) => self.fail(&problem),
        }
    }

    fn fail(&mut self, problem: &Problem) {
        self.teller.error(problem.code, &problem.error);
        self.end();
    }

    fn end(&mut self) {
        self.teller.done();
        self.over = true;
    }
}
