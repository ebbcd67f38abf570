//! A run as a stream of its journal's events.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use holdpoint_core::{Event, RunId};
use holdpoint_store::ThreadKey;

use super::{reading::ends, wire::EventView};
use crate::{
    caller::Pass,
    follow::{Follow, Seen},
    frames::run::{self, Spoken},
    hub::Speech,
    story::{self, Interruption, Source, Story},
    streams::Permit,
    world::{Served, World},
};

/// How long a client waits before it comes back.
const RETRY: Duration = Duration::from_secs(1);

/// What is followed, and from where.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) key: ThreadKey,
    pub(super) run: RunId,
    pub(super) after: u64,
    /// By what it was opened.
    pub(super) pass: Pass,
    pub(super) permit: Permit,
}

struct Watching {
    run: RunId,
    out: Vec<u8>,
    over: bool,
}

/// The stream of a run from this place on.
pub(super) async fn respond(world: &Arc<World>, served: &Served, place: Place) -> Response {
    let mut out = Vec::new();
    run::retry(&mut out, RETRY);
    let watching = Watching {
        run: place.run,
        out,
        over: false,
    };
    let source = Source {
        world: Arc::clone(world),
        follow: Follow::new(&served.engine, &served.hub, &place.key, place.after),
        pass: place.pass,
        permit: place.permit,
    };
    story::respond(watching, source).await
}

impl Story for Watching {
    async fn see(&mut self, seen: &Seen) {
        match seen {
            Seen::Event(entry) => {
                let view = EventView::followed(entry);
                if let Err(error) = run::record(&mut self.out, view.seq, &view.name, &view) {
                    tracing::error!(%error, "an event could not be shown");
                    return self.close();
                }
                // A client may have text of an earlier try, from here or from another server: it is void.
                if let Event::ModelStarted { frame, attempt, .. } = &entry.event
                    && *attempt > 1
                {
                    let spoken = Spoken {
                        run_id: self.run,
                        frame,
                        attempt: *attempt,
                        text: "",
                    };
                    run::message_reset(&mut self.out, &spoken);
                }
                self.over = ends(&entry.event);
            }
            Seen::Said(speech) if speech.run == self.run => {
                run::delta(&mut self.out, &spoken(speech));
            }
            Seen::Reset(speech) if speech.run == self.run => {
                run::message_reset(&mut self.out, &spoken(speech));
            }
            Seen::Said(_) | Seen::Reset(_) => {}
        }
    }

    fn beat(&mut self) {
        run::heartbeat(&mut self.out);
    }

    fn break_off(&mut self, why: &Interruption) {
        if let Interruption::Failed(problem) = why {
            tracing::error!(error = %problem.error, "a run could not be followed");
        }
        self.close();
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

impl Watching {
    fn close(&mut self) {
        run::closing(&mut self.out);
        self.over = true;
    }
}

const fn spoken(speech: &Speech) -> Spoken<'_> {
    Spoken {
        run_id: speech.run,
        frame: &speech.frame,
        attempt: speech.attempt,
        text: speech.text.as_str(),
    }
}
