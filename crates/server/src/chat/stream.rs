//! A chat as a stream of bytes, from a command to the first time that the run stands still.

use std::sync::Arc;

use axum::{http::HeaderValue, response::Response};
use holdpoint_core::{Event, RunId, State, Status, fold};

use super::{
    state,
    teller::{Format, Teller, When},
};
use crate::{
    caller::Pass,
    follow::{Follow, Seen},
    hub::Listener,
    story::{self, Interruption, Source, Story},
    streams::Permit,
    world::{Placed, Served, World},
};

/// One client's chat.
struct Chat {
    served: Served,
    /// The thread up to what was told.
    thread: State,
    /// The first event after which the run may be said to stand still: the last one of the command's own append.
    from: u64,
    run: Option<RunId>,
    teller: Teller,
    over: bool,
}

/// What a client of a chat reads.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) format: Format,
    pub(crate) when: When,
    pub(crate) pass: Pass,
    pub(crate) permit: Permit,
    /// Who has listened since before the command was committed.
    pub(crate) listener: Listener,
}

/// The stream of what a command led to.
pub(crate) async fn respond(
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
    let chat = Chat {
        served: served.clone(),
        thread: State::clone(&placed.before),
        from: after + 1,
        run: placed.run,
        teller: Teller::new(reader.format, reader.when),
        over: false,
    };
    let source = Source {
        world: Arc::clone(world),
        follow,
        pass: reader.pass,
        permit: reader.permit,
    };
    let mut response = story::respond(chat, source).await;
    for (name, id) in [
        ("x-run-id", placed.run.map(|run| run.to_string())),
        ("x-thread-id", Some(placed.key.thread.to_string())),
        (
            "idempotency-replayed",
            placed.replayed.then(|| "true".to_owned()),
        ),
    ] {
        if let Some(value) = id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

impl Story for Chat {
    async fn see(&mut self, seen: &Seen) {
        self.look_at_the_clock();
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

    fn beat(&mut self) {
        self.look_at_the_clock();
        self.teller.beat();
    }

    fn break_off(&mut self, why: &Interruption) {
        self.look_at_the_clock();
        match why {
            Interruption::Closing => {
                let goes_on = "the server is closing; the run goes on";
                self.teller.error("shutting_down", goes_on);
            }
            Interruption::Revoked => {
                let void = "the API key does not hold any more";
                self.teller.error("unauthorized", void);
            }
            Interruption::Failed(problem) => self.teller.error(problem.code, &problem.error),
        }
        self.end();
    }

    fn take(&mut self) -> Vec<u8> {
        self.teller.take()
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn holds_back(&self) -> bool {
        self.teller.waits()
    }

    fn let_go(&mut self) {
        self.look_at_the_clock();
        self.teller.tick();
    }
}

impl Chat {
    fn look_at_the_clock(&mut self) {
        self.teller.at(self.served.engine.store().now());
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
            Some(Status::Sleeping(cause)) => {
                self.teller.progress(match cause {
                    Some(_) => "the model's provider wants to be left alone, and the run sleeps",
                    None => "the run sleeps",
                });
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
            Err(problem) => self.break_off(&Interruption::Failed(problem)),
        }
    }

    fn end(&mut self) {
        self.teller.done();
        self.over = true;
    }
}
