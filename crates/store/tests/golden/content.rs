//! What the golden databases hold. Never changed: a new format gets a new file and, if need be, more content.

use std::sync::Arc;

use holdpoint_core::{
    Codec, Digest, Index, IndexChange, IndexRow, Payload, Record, Span, ThreadId, Timestamp,
};
use holdpoint_store::{
    Append, Cell, CellChange, CellThen, Direction, Fence, Head, Holder, Lease, LeaseAfter, Scan,
    Space, Store, ThreadKey,
};

/// When everything in it happened.
pub(crate) const WRITTEN: Timestamp = Timestamp::from_millis(1_763_200_000_000);

const LASTS: Span = Span::from_secs(30);

fn key(session: &str) -> ThreadKey {
    ThreadKey {
        tenant: Arc::from("acme"),
        thread: ThreadId::of_session("acme", "helper", session),
    }
}

fn sealed(text: &str) -> Payload {
    Payload {
        codec: Codec::Json,
        key_id: Some("key-1".to_owned()),
        bytes: text.as_bytes().to_vec(),
    }
}

fn record(seq: u64, payload: Payload) -> Record {
    Record {
        seq,
        header: br#"{"v":1,"at":1763200000000000,"by":"alice"}"#.to_vec(),
        salt: [9; 16],
        payload,
        hash: Digest::of(&seq.to_be_bytes()),
    }
}

fn records() -> Vec<Record> {
    vec![
        record(1, Payload::json(br#"{"said":"hello"}"#.to_vec())),
        record(2, sealed("secret")),
    ]
}

fn row(key: &ThreadKey, index: Index, name: &str, sort: i64) -> IndexRow {
    IndexRow {
        index,
        key: name.to_owned(),
        sort,
        thread: key.thread,
    }
}

fn cell(key: &str, expect: u64, value: Option<&str>) -> CellChange {
    CellChange {
        space: Space::Definition,
        key: key.to_owned(),
        expect,
        then: value.map_or(CellThen::Remove, |text| CellThen::Set {
            value: text.as_bytes().to_vec(),
            until: None,
        }),
    }
}

fn append(session: &str, fence: Fence) -> Append {
    let key = key(session);
    Append {
        expect: 0,
        fence,
        records: records(),
        head: Payload::json(br#"{"open":[]}"#.to_vec()),
        index: vec![
            IndexChange::Put(row(&key, Index::Session, session, 0)),
            IndexChange::Put(row(&key, Index::Due, "", WRITTEN.as_micros())),
        ],
        cells: vec![],
        lease: LeaseAfter::Keep,
        key,
    }
}

/// Fills an empty store.
pub(crate) async fn write(store: &dyn Store) {
    store.append(append("parked", Fence::Open)).await.unwrap();
    store
        .append(append(
            "driven",
            Fence::Take {
                after: 0,
                lasts: LASTS,
            },
        ))
        .await
        .unwrap();
    store
        .put_blob("acme", sealed("definition"), Digest::of(b"definition"))
        .await
        .unwrap();
    store
        .set_cell("acme", cell("kept", 0, Some("one")))
        .await
        .unwrap();
    store
        .set_cell("acme", cell("removed", 0, Some("two")))
        .await
        .unwrap();
    store
        .set_cell("acme", cell("removed", 1, None))
        .await
        .unwrap();
    let lent = CellChange {
        space: Space::Request,
        then: CellThen::Set {
            value: b"three".to_vec(),
            until: Some(WRITTEN + LASTS),
        },
        ..cell("lent", 0, None)
    };
    store.set_cell("acme", lent).await.unwrap();
}

/// Reads all of it back. What is known of the lease's holder depends on where its file is.
pub(crate) async fn check(store: &dyn Store, holder: Holder) {
    let head = |epoch, lease| Head {
        version: 2,
        epoch,
        lease,
        payload: Payload::json(br#"{"open":[]}"#.to_vec()),
    };
    assert_eq!(store.load(&key("parked")).await, Ok(Some(head(0, None))));
    let driven = store.load(&key("driven")).await.unwrap().unwrap();
    // The owner was drawn at random when the file was made.
    let owner = driven.lease.as_ref().unwrap().owner;
    let lease = Lease {
        owner,
        until: WRITTEN + LASTS,
        holder,
    };
    assert_eq!(driven, head(1, Some(lease)));
    for session in ["parked", "driven"] {
        assert_eq!(store.read(&key(session), 0, 10).await, Ok(records()));
    }
    let scan = |index| Scan {
        index,
        key: None,
        up_to: None,
        direction: Direction::Forward,
        after: None,
        limit: 10,
    };
    let sessions =
        ["driven", "parked"].map(|session| row(&key(session), Index::Session, session, 0));
    assert_eq!(
        store.scan("acme", scan(Index::Session)).await,
        Ok(sessions.to_vec())
    );
    let mut due =
        ["driven", "parked"].map(|session| row(&key(session), Index::Due, "", WRITTEN.as_micros()));
    due.sort();
    assert_eq!(store.scan("acme", scan(Index::Due)).await, Ok(due.to_vec()));
    assert_eq!(store.tenants(Index::Due).await, Ok(vec![Arc::from("acme")]));
    assert_eq!(
        store.blob("acme", Digest::of(b"definition")).await,
        Ok(Some(sealed("definition")))
    );
    let kept = Cell {
        version: 1,
        value: b"one".to_vec(),
        until: None,
    };
    assert_eq!(
        store.cell("acme", Space::Definition, "kept").await,
        Ok(Some(kept))
    );
    assert_eq!(
        store.cell("acme", Space::Definition, "removed").await,
        Ok(None)
    );
    let lent = Cell {
        version: 1,
        value: b"three".to_vec(),
        until: Some(WRITTEN + LASTS),
    };
    assert_eq!(
        store.cells("acme", Space::Request, None, 10).await,
        Ok(vec![("lent".to_owned(), lent)])
    );
}
