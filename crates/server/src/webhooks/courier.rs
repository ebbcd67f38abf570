//! The courier of one endpoint on one store.

use std::{collections::HashMap, sync::Arc, time::Duration};

use holdpoint_core::{InterruptId, Letter, Span, Timestamp};
use holdpoint_engine::{Engine, Error, Message};
use holdpoint_store::failpoint;
use tokio::{
    task::{self, JoinError, JoinSet},
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{Endpoint, breaker::Breaker};

/// How often the outbox is looked at where nothing says that there is something new.
const LOOK: Duration = Duration::from_secs(1);
/// How soon it is looked at again at most.
const SHORTEST: Duration = Duration::from_millis(10);
/// How many letters are looked at with one read.
const PAGE: usize = 500;
/// How much of an endpoint's attention one of several tenants gets.
const SHARE: usize = 4;
/// How often the log is told of an endpoint, or a store, that goes on failing.
const REMINDER: Duration = Duration::from_secs(60);

/// Delivers to an endpoint until the server goes.
pub(crate) async fn carry(engine: Engine, endpoint: Arc<Endpoint>, closing: CancellationToken) {
    let mut filled = engine.outbox_changes();
    let mut foreign = engine.store().foreign_changes();
    let mut courier = Courier {
        engine,
        endpoint,
        carries: None,
        breaker: Breaker::default(),
        aloft: JoinSet::new(),
        busy: HashMap::new(),
        resting: HashMap::new(),
        turn: 0,
        told: None,
    };
    loop {
        if let Err(error) = courier.send_what_is_due().await {
            courier.tell(&format!("the outbox cannot be looked at: {error}"));
        }
        let rest = courier.rest();
        tokio::select! {
            () = closing.cancelled() => break,
            Some(landed) = courier.aloft.join_next() => courier.land(landed),
            _ = filled.changed() => {}
            // A busy neighbour changes something all the time.
            _ = foreign.changed() => sleep(LOOK / 20).await,
            () = sleep(rest) => {}
        }
    }
    courier.finish().await;
}

/// What a question is told about, and to whose.
type Topic = (Arc<str>, InterruptId);

struct Courier {
    engine: Engine,
    endpoint: Arc<Endpoint>,
    /// When this server has to say again that it is the courier; `None` while another one is.
    carries: Option<Instant>,
    breaker: Breaker,
    aloft: JoinSet<Landed>,
    /// What something is under way about, by which task.
    busy: HashMap<Topic, task::Id>,
    /// What was tried in vain, and when it is tried again.
    resting: HashMap<Topic, Timestamp>,
    /// Whose turn it is to be first.
    turn: usize,
    /// When the log was last told of trouble.
    told: Option<Instant>,
}

/// A letter that was under way.
#[derive(Debug)]
struct Landed {
    topic: Topic,
    fate: Fate,
}

#[derive(Debug)]
enum Fate {
    /// It was delivered.
    Delivered,
    /// It was not, and is tried again then.
    Again { at: Timestamp, why: String },
    /// It was not, and is given up.
    GivenUp { why: String },
    /// The store did not say what it is about, or did not take what became of it.
    Unmarked(Error),
}

impl Courier {
    fn name(&self) -> &str {
        &self.endpoint.webhook.name
    }

    /// Sends as much as there is room for, where this server is the courier.
    async fn send_what_is_due(&mut self) -> Result<(), Error> {
        if !self.is_courier().await? {
            return Ok(());
        }
        if self.aloft.len() >= self.breaker.room(Instant::now()) {
            return Ok(());
        }
        let mut tenants = self.engine.tenants_to_tell().await?;
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn.checked_rem(tenants.len());
        tenants.rotate_left(turn.unwrap_or(0));
        let share = if tenants.len() > 1 { SHARE } else { usize::MAX };
        for tenant in tenants {
            self.send_of(&tenant, share).await?;
        }
        Ok(())
    }

    async fn is_courier(&mut self) -> Result<bool, Error> {
        let now = Instant::now();
        if self.carries.is_some_and(|renew| now < renew) {
            return Ok(true);
        }
        let lasts = self.engine.carry(self.name()).await?;
        // Several times before it would be forgotten.
        self.carries = lasts.map(|lasts| now + Duration::from(lasts) / 3);
        if self.carries.is_none() {
            // What another one tries is not known here.
            self.resting.clear();
        }
        Ok(self.carries.is_some())
    }

    /// Sends the first letter about each question of a tenant, unless it rests: what comes after waits for it.
    async fn send_of(&mut self, tenant: &Arc<str>, share: usize) -> Result<(), Error> {
        let now = self.engine.store().now();
        let mut after: Option<Letter> = None;
        let mut of_tenant = self.busy.keys().filter(|(it, _)| it == tenant).count();
        loop {
            let letters = self
                .engine
                .undelivered(tenant, self.name(), after.as_ref(), PAGE)
                .await?;
            let is_last = letters.len() < PAGE;
            let mut before = after.take().map(|letter| letter.interrupt);
            after = letters.last().cloned();
            for letter in letters {
                let is_first = before.replace(letter.interrupt) != Some(letter.interrupt);
                let topic = (Arc::clone(tenant), letter.interrupt);
                let rests = self.resting.get(&topic).is_some_and(|at| now < *at);
                if !is_first || rests || self.busy.contains_key(&topic) {
                    continue;
                }
                if of_tenant >= share || self.aloft.len() >= self.breaker.room(Instant::now()) {
                    return Ok(());
                }
                of_tenant += 1;
                let (engine, endpoint) = (self.engine.clone(), Arc::clone(&self.endpoint));
                let about = topic.clone();
                let task = self.aloft.spawn(async move {
                    let fate = deliver(&engine, &endpoint, &about.0, &letter).await;
                    Landed { topic: about, fate }
                });
                self.busy.insert(topic, task.id());
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn land(&mut self, landed: Result<Landed, JoinError>) {
        let Landed { topic, fate } = match landed {
            Ok(landed) => landed,
            Err(panic) => {
                // It was reported when it happened.
                self.busy.retain(|_, task| *task != panic.id());
                self.breaker.failed(Instant::now());
                return;
            }
        };
        self.busy.remove(&topic);
        self.resting.remove(&topic);
        match fate {
            Fate::Delivered => {
                self.breaker.succeeded();
                if self.told.take().is_some() {
                    tracing::info!(webhook = self.name(), "is reached again");
                }
            }
            Fate::Again { at, why } => {
                self.breaker.failed(Instant::now());
                self.resting.insert(topic, at);
                self.tell(&format!(
                    "a message was not accepted, and will be sent again: {why}"
                ));
            }
            Fate::GivenUp { why } => {
                self.breaker.failed(Instant::now());
                let (webhook, interrupt) = (self.name(), topic.1);
                tracing::error!(webhook, %interrupt, why, "given up; it is among the dead letters and can be sent again");
            }
            Fate::Unmarked(error) => {
                let soon = self.engine.store().now() + Span::from_secs(1);
                self.resting.insert(topic, soon);
                self.tell(&format!(
                    "what became of a delivery is not recorded: {error}"
                ));
            }
        }
    }

    /// How long until something is due that nobody announces.
    fn rest(&self) -> Duration {
        let now = self.engine.store().now();
        let due = self.resting.values().min();
        let until_due = due.map(|at| Duration::from(at.since(now)));
        let until_renewed = self.carries.map(|renew| renew - Instant::now());
        let soonest = until_due.into_iter().chain(until_renewed).min();
        soonest.map_or(LOOK, |soonest| soonest.clamp(SHORTEST, LOOK))
    }

    /// Tells the log, but not all the time.
    fn tell(&mut self, what: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= REMINDER) {
            self.told = Some(Instant::now());
            tracing::warn!(webhook = self.name(), "{what}");
        }
    }

    /// Lets what is under way come down, and lets another server deliver.
    async fn finish(mut self) {
        while let Some(landed) = self.aloft.join_next().await {
            self.land(landed);
        }
        if self.carries.is_some()
            && let Err(error) = self.engine.stop_carrying(self.name()).await
        {
            tracing::warn!(webhook = self.name(), %error, "others do not learn that this server delivers no more");
        }
    }
}

async fn deliver(engine: &Engine, endpoint: &Endpoint, tenant: &Arc<str>, letter: &Letter) -> Fate {
    #[cfg(feature = "weak-no-started")]
    forget_too_soon(engine, tenant, letter).await;
    let why = match engine.message(tenant, letter).await {
        Ok(message) => match send(engine, endpoint, message).await {
            Ok(()) => {
                failpoint::hit("webhook.sent");
                return match engine.delivered(tenant, letter).await {
                    Ok(()) => Fate::Delivered,
                    Err(error) => Fate::Unmarked(error),
                };
            }
            Err(why) => why,
        },
        Err(error @ Error::Unavailable(_)) => return Fate::Unmarked(error),
        // What cannot be read is not going to be, but nobody shall miss it.
        Err(error) => error.to_string(),
    };
    let give_up_after = endpoint.webhook.give_up_after;
    let noted = engine.not_delivered(tenant, letter, &why, give_up_after);
    match noted.await {
        Ok(Some(at)) => Fate::Again { at, why },
        Ok(None) => Fate::GivenUp { why },
        Err(error) => Fate::Unmarked(error),
    }
}

/// NEGATIVE CONTROL: whoever dies now has told nobody, and nobody knows.
#[cfg(feature = "weak-no-started")]
async fn forget_too_soon(engine: &Engine, tenant: &Arc<str>, letter: &Letter) {
    let _ = engine.delivered(tenant, letter).await;
    failpoint::hit("webhook.sent");
}

async fn send(engine: &Engine, endpoint: &Endpoint, message: Message) -> Result<(), String> {
    let Message { id, body } = message;
    let timestamp = (engine.store().now().as_millis() / 1_000).to_string();
    let signature = endpoint.signer.sign(&id, &timestamp, &body);
    let headers = [
        ("webhook-id", id),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", signature),
    ];
    let (url, timeout) = (&endpoint.webhook.url, endpoint.webhook.timeout.into());
    let answered = endpoint.outbound.post(url, &headers, body, timeout);
    match answered.await {
        Ok(200..=299) => Ok(()),
        Ok(status @ 300..=399) => Err(format!("HTTP {status}: redirects are not followed")),
        Ok(status) => Err(format!("HTTP {status}")),
        Err(error) => Err(error.to_string()),
    }
}
