//! A thread as a stream of bytes: what is seen of it is told, with a sign of life now and then, until it is over.

use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use futures::{StreamExt as _, stream};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until, timeout};

use crate::{
    caller::Pass,
    follow::{Follow, Seen},
    problem::Problem,
    streams::Permit,
    world::World,
};

/// How often a sign of life is given.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long what is held back waits for more of it, and the head of an answer for its first bytes: so that what happens
/// at once is one packet.
const BREATH: Duration = Duration::from_millis(50);

/// Who tells.
pub(crate) trait Story: Send + Sync + Sized + 'static {
    /// Tells what was seen.
    fn see(&mut self, seen: &Seen) -> impl Future<Output = ()> + Send;

    /// Tells that everybody is still there.
    fn beat(&mut self);

    /// Tells that it ends before its time.
    fn break_off(&mut self, why: &Interruption);

    /// What was told since this was last asked.
    fn take(&mut self) -> Vec<u8>;

    /// Whether nothing follows.
    fn is_over(&self) -> bool;

    /// Whether something is held back, because more of it may come.
    fn holds_back(&self) -> bool {
        false
    }

    /// Tells what is held back.
    fn let_go(&mut self) {}
}

/// Why a stream ends before its story does.
#[derive(Debug)]
pub(crate) enum Interruption {
    /// The server goes; the run goes on.
    Closing,
    /// The key or the token by which it was opened does not hold any more.
    Revoked,
    /// The thread cannot be followed.
    Failed(Problem),
}

/// What a stream needs besides its story.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) world: Arc<World>,
    pub(crate) follow: Follow,
    /// By what it was opened, which may end before it.
    pub(crate) pass: Pass,
    pub(crate) permit: Permit,
}

struct Telling<S> {
    story: S,
    world: Arc<World>,
    follow: Follow,
    pass: Pass,
    beat: Interval,
    _permit: Permit,
}

/// The next bytes and who tells on; nothing at the end. It is a future of its own because dropping it halfway would lose
/// what was seen.
type Turn<S> = Pin<Box<dyn Future<Output = Option<(Bytes, Box<Telling<S>>)>> + Send>>;

/// The answer that tells a story.
pub(crate) async fn respond<S: Story>(story: S, source: Source) -> Response {
    let mut beat = interval(HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.reset();
    let mut first = turn(Box::new(Telling {
        story,
        world: source.world,
        follow: source.follow,
        pass: source.pass,
        beat,
        _permit: source.permit,
    }));
    let (begun, rest) = match timeout(BREATH, &mut first).await {
        Err(_) => (None, Some(first)),
        Ok(None) => (None, None),
        Ok(Some((bytes, telling))) => (Some(bytes), Some(turn(telling))),
    };
    let rest = stream::unfold(rest, |rest| async {
        let (bytes, telling) = rest?.await?;
        Some((bytes, Some(turn(telling))))
    });
    let bytes = stream::iter(begun).chain(rest).map(Ok::<_, Infallible>);
    let mut response = Body::from_stream(bytes).into_response();
    let headers = response.headers_mut();
    // No proxy should keep or gather it.
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn turn<S: Story>(mut telling: Box<Telling<S>>) -> Turn<S> {
    Box::pin(async move {
        let bytes = telling.next().await?;
        Some((bytes, telling))
    })
}

impl<S: Story> Telling<S> {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let bytes = self.story.take();
            if !bytes.is_empty() {
                return Some(bytes.into());
            }
            if self.story.is_over() {
                return None;
            }
            self.step().await;
        }
    }

    async fn step(&mut self) {
        let closing = self.world.closing.cancelled();
        let holds_back = self.story.holds_back();
        let soon = sleep_until(Instant::now() + BREATH);
        tokio::select! {
            // What happened comes before what may be said about it.
            biased;
            seen = self.follow.next() => match seen {
                Ok(seen) => self.story.see(&seen).await,
                Err(error) => self.story.break_off(&Interruption::Failed(error.into())),
            },
            () = closing => self.story.break_off(&Interruption::Closing),
            () = soon, if holds_back => self.story.let_go(),
            _ = self.beat.tick() => {
                if self.pass.holds(&self.world).await {
                    self.story.beat();
                } else {
                    self.story.break_off(&Interruption::Revoked);
                }
            }
        }
    }
}
