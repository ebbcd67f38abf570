//! From decisions to sealed records, and back.
//!
//! A [`Batch`] gathers what several commands lead to, on top of one state, so that one append can commit it all. Sealing
//! encodes it: events to records, the state to a head, the difference to index rows. Reading goes the other way, and
//! checks the chain.

use std::sync::Arc;

use crate::{
    Codec, Command, Context, Digest, Event, FORMAT, Header, IndexChange, Payload, Record, Refusal,
    Seed, State, apply, decide::decide_on, index,
};

/// Room for most events and most heads, so that writing them seldom has to move what is written already.
const EVENT_ROOM: usize = 512;
const HEAD_ROOM: usize = 4_096;

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its position; the first is 1.
    pub seq: u64,
    /// When, and by whom.
    pub header: Header,
    /// What happened.
    pub event: Event,
    /// The chain up to here.
    pub hash: Digest,
}

/// Stored bytes cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damaged {
    /// The format is newer than this build.
    #[error("it was written in format {found}, and this build reads formats up to {FORMAT}")]
    Newer {
        /// The format that was found.
        found: u16,
    },
    /// The bytes are encrypted under a key this process does not have.
    #[error("it is encrypted under key `{key_id}`, which is not at hand")]
    Encrypted {
        /// The key.
        key_id: String,
    },
    /// The bytes are not what they should be.
    #[error("{} cannot be read: {reason}", place(*.seq))]
    Unreadable {
        /// Its position; 0 for the head.
        seq: u64,
        /// Why.
        reason: String,
    },
    /// The journal ends before, or otherwise than, the head says.
    #[error(
        "the journal does not lead to the head at event {version}: events were removed or changed"
    )]
    Incomplete {
        /// The version that the head has.
        version: u64,
    },
    /// The payload was erased on purpose.
    #[error("event {seq} was erased")]
    Erased {
        /// Its position; 0 for the head.
        seq: u64,
    },
    /// The hash does not follow from what comes before.
    #[error(
        "the hash chain is broken at event {seq}: the journal was changed after it was written"
    )]
    BrokenChain {
        /// Where.
        seq: u64,
    },
}

fn place(seq: u64) -> String {
    if seq == 0 {
        "the head".to_owned()
    } else {
        format!("event {seq}")
    }
}

/// What several commands lead to, for one append.
#[derive(Debug)]
pub struct Batch {
    base: Arc<State>,
    /// What was made of the base, once anything was decided.
    state: Option<State>,
    events: Vec<(Header, Event)>,
    seed: Option<Seed>,
}

/// A batch, encoded.
#[derive(Debug)]
pub struct Sealed {
    /// The version that the append must expect.
    pub expect: u64,
    /// The state after it.
    pub state: State,
    /// The events, with their places.
    pub entries: Vec<Entry>,
    /// The events, encoded.
    pub records: Vec<Record>,
    /// The state, encoded.
    pub head: Payload,
    /// What changes in the indexes.
    pub index: Vec<IndexChange>,
}

impl Batch {
    /// A batch on top of this state.
    #[must_use]
    pub fn new(base: impl Into<Arc<State>>) -> Self {
        Self {
            base: base.into(),
            state: None,
            events: Vec::new(),
            seed: None,
        }
    }

    /// The state after what was decided so far.
    #[must_use]
    pub fn state(&self) -> &State {
        self.state.as_ref().unwrap_or(&self.base)
    }

    /// Whether nothing was decided that needs an append.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Decides one more command on top of what was decided so far.
    ///
    /// # Errors
    ///
    /// The refusal. The batch is as it was before.
    pub fn decide(&mut self, command: Command, context: &mut Context) -> Result<(), Refusal> {
        let at = context.now.max(self.state().now);
        let state = self.state.take();
        let state = state.unwrap_or_else(|| State::clone(&self.base));
        let (state, events) = match decide_on(state, command, context) {
            Ok(decided) => decided,
            Err(refusal) => {
                self.state = Some(self.refold());
                return Err(refusal);
            }
        };
        self.state = Some(state);
        let by = &context.by.actor;
        self.events.extend(events.into_iter().map(|event| {
            let name = event.name().to_owned();
            let header = Header {
                format: FORMAT,
                name,
                end: false,
                at,
                by: by.clone(),
            };
            (header, event)
        }));
        self.seed = Some(context.seed.clone());
        Ok(())
    }

    /// The state again, after a command that was refused halfway.
    fn refold(&self) -> State {
        let mut state = State::clone(&self.base);
        for (header, event) in &self.events {
            apply(&mut state, header.at, &header.by, event);
        }
        state
    }

    /// Encodes the batch.
    ///
    /// # Errors
    ///
    /// An event or the state cannot be written as JSON.
    pub fn seal(self) -> Result<Sealed, Damaged> {
        let Self {
            base,
            state,
            events,
            seed,
        } = self;
        let (expect, mut previous) = (base.version, base.hash);
        let mut state = state.unwrap_or_else(|| State::clone(&base));
        let mut records = Vec::with_capacity(events.len());
        let mut entries = Vec::with_capacity(events.len());
        let seed = seed.unwrap_or_else(|| Seed::new([0; 16], state.now));
        let last = expect + events.len() as u64;
        for (seq, (mut header, event)) in (expect + 1..).zip(events) {
            header.end = seq == last;
            let unwritable = |error: serde_json::Error| Damaged::Unreadable {
                seq,
                reason: error.to_string(),
            };
            let header_bytes = serde_json::to_vec(&header).map_err(unwritable)?;
            let plain = write_event(&event).map_err(unwritable)?;
            let salt = seed.salt(seq);
            let hash = Record::link(
                &previous,
                seq,
                &header_bytes,
                &Record::payload_digest(&salt, &plain),
            );
            previous = hash;
            records.push(Record {
                seq,
                header: header_bytes,
                salt,
                payload: Payload::json(plain),
                hash,
            });
            entries.push(Entry {
                seq,
                header,
                event,
                hash,
            });
        }
        state.hash = previous;
        state.format = FORMAT;
        let index = index::changes(&base, &state, &entries);
        let head = encode_head(&state)?;
        Ok(Sealed {
            expect,
            state,
            entries,
            records,
            head,
            index,
        })
    }
}

/// How the JSON of an event begins: with its name, which its header has already.
fn beginning(name: &str) -> String {
    format!(r#"{{"type":{}"#, serde_json::Value::from(name))
}

fn write_event(event: &Event) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(EVENT_ROOM);
    serde_json::to_writer(&mut bytes, event)?;
    // INVARIANT: serde writes the tag of an internally tagged enum first.
    if let Some(fields) = after_name(&bytes, event.name()) {
        bytes.drain(1..fields);
    }
    Ok(bytes)
}

/// Where the fields begin in the JSON of an event.
fn after_name(bytes: &[u8], name: &str) -> Option<usize> {
    let rest = bytes.strip_prefix(br#"{"type":""#)?;
    let rest = rest.strip_prefix(name.as_bytes())?.strip_prefix(b"\"")?;
    let fields = rest.strip_prefix(b",").unwrap_or(rest);
    Some(bytes.len() - fields.len())
}

fn read_event(name: &str, bytes: &[u8]) -> serde_json::Result<Event> {
    let fields = bytes.strip_prefix(b"{").unwrap_or(bytes);
    let comma: &[u8] = if fields == b"}" { b"" } else { b"," };
    serde_json::from_slice(&[beginning(name).as_bytes(), comma, fields].concat())
}

fn encode_head(state: &State) -> Result<Payload, Damaged> {
    let mut bytes = Vec::with_capacity(HEAD_ROOM);
    serde_json::to_writer(&mut bytes, state).map_err(|error| Damaged::Unreadable {
        seq: 0,
        reason: error.to_string(),
    })?;
    Ok(Payload::json(bytes))
}

fn plain(payload: &Payload, seq: u64) -> Result<&[u8], Damaged> {
    if let Some(key_id) = &payload.key_id {
        return Err(Damaged::Encrypted {
            key_id: key_id.clone(),
        });
    }
    match payload.codec {
        Codec::Erased => Err(Damaged::Erased { seq }),
        Codec::Json => Ok(&payload.bytes),
    }
}

/// Reads what carries its format. What a newer build wrote is never read, lest fields that this build does not know are
/// lost when it writes.
fn read_versioned<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    seq: u64,
    format: impl FnOnce(&T) -> u16,
) -> Result<T, Damaged> {
    #[derive(serde::Deserialize)]
    struct Format {
        v: u16,
    }
    let read = serde_json::from_slice(bytes);
    // The format is looked for by itself only where reading fails, since that means going over all bytes once more.
    let found = match &read {
        Ok(read) => Some(format(read)),
        Err(_) => serde_json::from_slice(bytes).ok().map(|Format { v }| v),
    };
    match found {
        Some(found) if found > FORMAT => Err(Damaged::Newer { found }),
        Some(_) | None => read.map_err(|error| Damaged::Unreadable {
            seq,
            reason: error.to_string(),
        }),
    }
}

/// Reads a head.
///
/// # Errors
///
/// It is of a newer format, encrypted, or not readable.
pub fn decode_head(payload: &Payload) -> Result<State, Damaged> {
    read_versioned(plain(payload, 0)?, 0, |state: &State| state.format)
}

/// Reads a definition that was stored by its digest.
///
/// # Errors
///
/// It is of a newer format, encrypted, or not readable.
pub fn decode_definition(payload: &Payload) -> Result<crate::Definition, Damaged> {
    let bytes = plain(payload, 0)?;
    read_versioned(bytes, 0, |definition: &crate::Definition| definition.format)
}

/// Reads records that follow on the event with hash `previous`, checking the chain.
///
/// # Errors
///
/// A record is of a newer format, encrypted, unreadable, or does not follow.
pub fn decode_records(previous: Digest, records: &[Record]) -> Result<Vec<Entry>, Damaged> {
    let mut previous = previous;
    let mut entries = Vec::with_capacity(records.len());
    for record in records {
        let seq = record.seq;
        let header = match read_versioned(&record.header, seq, |header: &Header| header.format) {
            Err(newer @ Damaged::Newer { .. }) => return Err(newer),
            // What cannot be read because it was tampered with is told by the chain.
            header => header,
        };
        let bytes = plain(&record.payload, seq)?;
        let payload = Record::payload_digest(&record.salt, bytes);
        if Record::link(&previous, seq, &record.header, &payload) != record.hash {
            return Err(Damaged::BrokenChain { seq });
        }
        previous = record.hash;
        let header = header?;
        let event = read_event(&header.name, bytes).map_err(|error| Damaged::Unreadable {
            seq,
            reason: error.to_string(),
        })?;
        entries.push(Entry {
            seq,
            header,
            event,
            hash: record.hash,
        });
    }
    Ok(entries)
}

/// Applies an entry that was read to a state that it follows on.
pub fn fold(state: &mut State, entry: &Entry) {
    apply(state, entry.header.at, &entry.header.by, &entry.event);
    state.hash = entry.hash;
    state.format = entry.header.format;
}
