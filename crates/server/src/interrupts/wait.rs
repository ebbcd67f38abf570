//! Waiting for an interrupt to be closed, here or by another process. Who waits changes nothing, and stands in nobody's way.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use holdpoint_core::{InterruptId, InterruptStatus, closing};
use holdpoint_engine::{Engine, Error, Question, question::Interrupt};
use tokio::time::sleep;

use crate::{
    caller::Pass,
    follow::{Follow, Seen},
    frames::run,
    problem::Problem,
    story::{self, HEARTBEAT, Interruption, Source, Story},
    streams::Permit,
    world::{Served, World},
};

/// How long a client waits before it comes back.
const RETRY: Duration = Duration::from_secs(1);

/// The interrupt once it is closed, or as it stands when the time is over.
pub(super) async fn poll(
    world: &World,
    served: &Served,
    question: Question,
    pass: &Pass,
    patience: Duration,
) -> Result<Question, Problem> {
    if question.status != InterruptStatus::Pending {
        return Ok(question);
    }
    let mut follow = follow(served, &question).await?;
    let id = question.interrupt.id;
    let closed = async {
        loop {
            if let Seen::Event(entry) = follow.next().await?
                && closing(&entry, id).is_some()
            {
                return Ok::<_, Error>(());
            }
        }
    };
    let revoked = async {
        loop {
            sleep(HEARTBEAT).await;
            if !pass.holds(world).await {
                return;
            }
        }
    };
    tokio::select! {
        closed = closed => closed?,
        () = sleep(patience) => {}
        () = world.closing.cancelled() => return Err(Problem::shutting_down()),
        () = revoked => {
            let error = "what you were let in by does not hold any more";
            return Err(Problem::new("unauthorized", error));
        }
    }
    let now = served.engine.question(&question.key.tenant, id).await?;
    Ok(now.unwrap_or(question))
}

/// From where it was pending on.
async fn follow(served: &Served, question: &Question) -> Result<Follow, Error> {
    let key = &question.key;
    // Listened to first, looked at after: nothing is missed in between.
    let listener = served.hub.listen(key);
    let state = served.engine.state(key).await?;
    let pending = state.filter(|it| it.interrupts.contains_key(&question.interrupt.id));
    Ok(match pending {
        Some(state) => Follow::with(&served.engine, listener, state.version),
        // It was closed meanwhile; the journal has the event.
        None => Follow::new(&served.engine, &served.hub, key, 0),
    })
}

/// The interrupt as it stands, and once more when it is closed.
pub(super) async fn stream(
    world: &Arc<World>,
    served: &Served,
    question: Question,
    pass: Pass,
    permit: Permit,
) -> Result<Response, Problem> {
    let follow = follow(served, &question).await?;
    let mut out = Vec::new();
    run::retry(&mut out, RETRY);
    let mut watching = Watching {
        engine: served.engine.clone(),
        id: question.interrupt.id,
        tenant: question.key.tenant.to_string(),
        out,
        over: false,
    };
    watching.show(question);
    let source = Source {
        world: Arc::clone(world),
        follow,
        pass,
        permit,
    };
    Ok(story::respond(watching, source).await)
}

struct Watching {
    engine: Engine,
    id: InterruptId,
    tenant: String,
    out: Vec<u8>,
    over: bool,
}

impl Watching {
    fn show(&mut self, question: Question) {
        self.over = question.status != InterruptStatus::Pending;
        run::interrupt(&mut self.out, &Interrupt::from(question));
    }

    fn close(&mut self) {
        run::closing(&mut self.out);
        self.over = true;
    }
}

impl Story for Watching {
    async fn see(&mut self, seen: &Seen) {
        let Seen::Event(entry) = seen else { return };
        if closing(entry, self.id).is_none() {
            return;
        }
        match self.engine.question(&self.tenant, self.id).await {
            Ok(Some(question)) => self.show(question),
            Ok(None) => self.close(),
            Err(error) => self.break_off(&Interruption::Failed(error.into())),
        }
    }

    fn beat(&mut self) {
        run::heartbeat(&mut self.out);
    }

    fn break_off(&mut self, why: &Interruption) {
        if let Interruption::Failed(problem) = why {
            tracing::error!(error = %problem.error, "an interrupt could not be followed");
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
