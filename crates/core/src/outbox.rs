//! What is told to endpoints outside: who hears of which questions, and when it is tried again.
//!
//! A letter is one event for one endpoint. It is put into the outbox in the event's own commit, as a row of an index, and
//! stays there until it was delivered or given up.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    Digest, Entry, Event, Index, IndexRow, InterruptId, InterruptKind, Span, State, ThreadId,
    Timestamp, hex,
};

/// How long after each try in vain the next one comes; after the last of these it stays so.
const PAUSES: [Span; 8] = [
    Span::from_secs(1),
    Span::from_secs(5),
    Span::from_secs(30),
    Span::from_secs(2 * 60),
    Span::from_secs(10 * 60),
    Span::from_secs(60 * 60),
    Span::from_secs(3 * 60 * 60),
    Span::from_secs(6 * 60 * 60),
];

/// Stands between an endpoint and an interrupt. No name of an endpoint has it.
const SEPARATOR: char = '/';

/// Which questions an endpoint hears of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Of these tenants; of all where there are none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tenants: BTreeSet<String>,
    /// Of these kinds; of all where there are none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub kinds: BTreeSet<InterruptKind>,
}

impl Subscription {
    /// Whether it hears of this tenant.
    #[must_use]
    pub fn covers(&self, tenant: &str) -> bool {
        self.tenants.is_empty() || self.tenants.contains(tenant)
    }

    fn wants(&self, tenant: &str, kind: InterruptKind) -> bool {
        self.covers(tenant) && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }
}

/// Who hears of what, by the names of the endpoints.
pub type Subscriptions = BTreeMap<String, Subscription>;

/// One event for one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Letter {
    /// The endpoint.
    pub endpoint: String,
    /// The question that the event is about.
    pub interrupt: InterruptId,
    /// The event's place in its thread.
    pub seq: u64,
    /// The thread.
    pub thread: ThreadId,
}

impl Letter {
    /// Its row in the outbox, or among the dead letters.
    #[must_use]
    pub fn row(&self, index: Index) -> IndexRow {
        IndexRow {
            index,
            key: format!("{}{SEPARATOR}{}", self.endpoint, self.interrupt),
            sort: i64::try_from(self.seq).unwrap_or(i64::MAX),
            thread: self.thread,
        }
    }

    /// The letter that a row stands for.
    #[must_use]
    pub fn of_row(row: &IndexRow) -> Option<Self> {
        let (endpoint, interrupt) = row.key.split_once(SEPARATOR)?;
        Some(Self {
            endpoint: endpoint.to_owned(),
            interrupt: interrupt.parse().ok()?,
            seq: row.sort.try_into().ok()?,
            thread: row.thread,
        })
    }

    /// Comes before every row of an endpoint, and after those of the endpoints before it.
    #[must_use]
    pub fn before_all(endpoint: &str, index: Index) -> IndexRow {
        IndexRow {
            index,
            key: format!("{endpoint}{SEPARATOR}"),
            sort: i64::MIN,
            thread: ThreadId::from_bytes([0; 16]),
        }
    }

    /// What the letter is called, whenever it is sent: the endpoint knows by it that it has it already. It goes by the
    /// event's hash, so that what follows on a restored backup is never mistaken for what followed on the original.
    #[must_use]
    pub fn id(&self, event: &Digest) -> String {
        let mut named = event.as_bytes().to_vec();
        named.extend(self.endpoint.as_bytes());
        format!("msg_{}", hex(&Digest::of(&named).as_bytes()[..16]))
    }
}

/// The letters that follow from what happened in a thread that stood so before.
#[must_use]
pub fn letters(
    subscriptions: &Subscriptions,
    before: &State,
    after: &State,
    entries: &[Entry],
) -> Vec<Letter> {
    let mut letters = Vec::new();
    let mut raised: BTreeMap<InterruptId, InterruptKind> = BTreeMap::new();
    for entry in entries {
        let Some(interrupt) = told(&entry.event) else {
            continue;
        };
        if let Event::InterruptRaised(asked) = &entry.event {
            raised.insert(interrupt, asked.kind);
        }
        let known = before.interrupts.get(&interrupt).map(|it| it.kind);
        let Some(kind) = known.or_else(|| raised.get(&interrupt).copied()) else {
            continue;
        };
        let hearing = subscriptions
            .iter()
            .filter(|(_, it)| it.wants(&after.tenant, kind));
        letters.extend(hearing.map(|(endpoint, _)| Letter {
            endpoint: endpoint.clone(),
            interrupt,
            seq: entry.seq,
            thread: after.thread,
        }));
    }
    letters
}

/// The question that an event raises or closes.
fn told(event: &Event) -> Option<InterruptId> {
    match event {
        Event::InterruptRaised(interrupt) => Some(interrupt.id),
        Event::Answered { interrupt, .. } | Event::InterruptClosed { interrupt, .. } => {
            Some(*interrupt)
        }
        Event::ThreadCreated { .. }
        | Event::Forked { .. }
        | Event::RunStarted { .. }
        | Event::ModelStarted { .. }
        | Event::ModelReplied { .. }
        | Event::OutputHeld { .. }
        | Event::ModelFailed { .. }
        | Event::ActionStarted { .. }
        | Event::ActionFinished { .. }
        | Event::ActionUnknown { .. }
        | Event::ActionWithheld { .. }
        | Event::ActionLookedUp { .. }
        | Event::LateOutcome { .. }
        | Event::WarrantVoided { .. }
        | Event::CompensationBound { .. }
        | Event::Repinned { .. }
        | Event::StopRequested { .. }
        | Event::Restored { .. }
        | Event::Paused
        | Event::Continued
        | Event::FrameOpened { .. }
        | Event::FrameClosed { .. }
        | Event::StepStarted { .. }
        | Event::Suspended { .. }
        | Event::Slept { .. }
        | Event::FrameWoken { .. }
        | Event::Woken { .. }
        | Event::Yielded { .. }
        | Event::GrantKept(_)
        | Event::GrantUsed { .. }
        | Event::GrantRevoked { .. }
        | Event::RunEnded { .. } => None,
    }
}

/// What was tried in vain with a letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tries {
    /// How often.
    pub count: u32,
    /// When first.
    pub first_at: Timestamp,
    /// When last.
    pub last_at: Timestamp,
    /// Why not, the last time.
    pub error: String,
}

impl Tries {
    /// With one more try, which came to nothing.
    #[must_use]
    pub fn one_more(before: Option<Self>, at: Timestamp, error: String) -> Self {
        let (count, first_at) = before.map_or((0, at), |before| (before.count, before.first_at));
        Self {
            count: count.saturating_add(1),
            first_at,
            last_at: at,
            error,
        }
    }

    /// When it is tried again; never, once it was tried for so long. The last try is at the end of that time.
    #[must_use]
    pub fn next_at(&self, give_up_after: Span) -> Option<Timestamp> {
        let end = self.first_at + give_up_after;
        let done = usize::try_from(self.count).unwrap_or(usize::MAX);
        let pause = PAUSES[done.saturating_sub(1).min(PAUSES.len() - 1)];
        (self.last_at < end).then(|| end.min(self.last_at + pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_letter_is_read_again_from_its_row_and_lies_behind_the_first_of_its_endpoint() {
        let letter = Letter {
            endpoint: "pager".to_owned(),
            interrupt: format!("int_{}", "0".repeat(32)).parse().unwrap(),
            seq: 7,
            thread: ThreadId::of_session("acme", "agent", "a"),
        };
        let row = letter.row(Index::Outbox);
        assert_eq!(Letter::of_row(&row), Some(letter));
        assert!(Letter::before_all("pager", Index::Outbox) < row);
        for other in ["page", "pager-2", "pager.x"] {
            let first = Letter::before_all(other, Index::Outbox);
            assert!(
                first < Letter::before_all("pager", Index::Outbox),
                "{other}"
            );
        }
        assert!(Letter::before_all("pagers", Index::Outbox) > row);
    }

    #[test]
    fn a_letter_has_one_name_for_each_endpoint_and_event() {
        let letter = |endpoint: &str| Letter {
            endpoint: endpoint.to_owned(),
            interrupt: format!("int_{}", "0".repeat(32)).parse().unwrap(),
            seq: 7,
            thread: ThreadId::of_session("acme", "agent", "a"),
        };
        let (one, other) = (Digest::of(b"one"), Digest::of(b"other"));
        let id = letter("pager").id(&one);
        assert_eq!(id, letter("pager").id(&one));
        assert_ne!(id, letter("pager").id(&other));
        assert_ne!(id, letter("mail").id(&one));
        assert_eq!(id.len(), "msg_".len() + 32);
    }

    #[test]
    fn tries_grow_apart_and_end_with_one_at_the_end() {
        let give_up = Span::from_secs(60);
        let mut tries: Option<Tries> = None;
        let mut now = at(1_000);
        let mut times = Vec::new();
        for _ in 0..20 {
            let tried = Tries::one_more(tries.take(), now, "HTTP 500".to_owned());
            times.push(now.since(at(1_000)));
            let Some(next) = tried.next_at(give_up) else {
                assert_eq!(tried.count, 5);
                break;
            };
            now = next;
            tries = Some(tried);
        }
        let seconds = [0, 1, 6, 36, 60].map(Span::from_secs);
        assert_eq!(times, seconds);
    }

    #[test]
    fn after_many_tries_the_pause_stays_the_longest() {
        let tries = Tries {
            count: u32::MAX,
            first_at: at(0),
            last_at: at(100),
            error: String::new(),
        };
        let never = Span::from_secs(10_000_000);
        assert_eq!(tries.next_at(never), Some(at(100 + 6 * 60 * 60)));
        assert_eq!(tries.next_at(Span::ZERO), None);
    }
}
