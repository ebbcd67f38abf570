//! A run as a stream of its journal's events.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse as _, Response},
};
use futures::stream;
use holdpoint_core::{Event, RunId};
use holdpoint_store::ThreadKey;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{reading::ends, wire::EventView};
use crate::{
    chat::stream::{HEARTBEAT, event_stream},
    follow::{Follow, Seen},
    frames::run::{self, Spoken},
    hub::Speech,
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
    /// The key by which it was opened, which may be revoked.
    pub(super) api_key: Option<String>,
    pub(super) permit: Permit,
}

struct Watching {
    world: Arc<World>,
    follow: Follow,
    run: RunId,
    beat: Interval,
    api_key: Option<String>,
    out: Vec<u8>,
    over: bool,
    _permit: Permit,
}

/// The stream of a run from this place on.
pub(super) fn respond(world: &Arc<World>, served: &Served, place: Place) -> Response {
    let follow = Follow::new(&served.engine, &served.hub, &place.key, place.after);
    let mut beat = interval(HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.reset();
    let mut out = Vec::new();
    run::retry(&mut out, RETRY);
    let watching = Watching {
        world: Arc::clone(world),
        follow,
        run: place.run,
        beat,
        api_key: place.api_key,
        out,
        over: false,
        _permit: place.permit,
    };
    let bytes = stream::unfold(Box::new(watching), |mut watching| async move {
        let bytes = Box::pin(watching.next()).await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), watching))
    });
    let mut response = Body::from_stream(bytes).into_response();
    event_stream(response.headers_mut());
    response
}

impl Watching {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.out.is_empty() {
                return Some(std::mem::take(&mut self.out).into());
            }
            if self.over {
                return None;
            }
            self.step().await;
        }
    }

    async fn step(&mut self) {
        let closing = self.world.closing.clone();
        tokio::select! {
            biased;
            seen = self.follow.next() => match seen {
                Ok(seen) => self.see(&seen),
                Err(error) => {
                    tracing::error!(%error, "a run could not be followed");
                    self.close();
                }
            },
            () = closing.cancelled() => self.close(),
            _ = self.beat.tick() => self.beat().await,
        }
    }

    async fn beat(&mut self) {
        if let Some(key) = &self.api_key
            && !self.world.keys.is_good(key).await.unwrap_or(false)
        {
            return self.close();
        }
        run::heartbeat(&mut self.out);
    }

    fn close(&mut self) {
        run::closing(&mut self.out);
        self.over = true;
    }

    fn see(&mut self, seen: &Seen) {
        match seen {
            Seen::Event(entry) => {
                let view = EventView::new(entry);
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
}

const fn spoken(speech: &Speech) -> Spoken<'_> {
    Spoken {
        run_id: speech.run,
        frame: &speech.frame,
        attempt: speech.attempt,
        text: speech.text.as_str(),
    }
}
