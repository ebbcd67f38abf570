//! What a store is while everything in it moves to another.

use std::sync::Arc;

use holdpoint_core::{Digest, Index, IndexChange, Payload};

use super::world::{LASTS, World, append, drive, everything, key, row, take};
use crate::{
    Amendment, AppendError, CellChange, CellThen, Import, ImportedThread, LeaseError, Move, Part,
    Space, Store, ThreadKey,
};

fn moving() -> Move {
    Move {
        ticket: u32::MAX,
        other: "the 'other' store".to_owned(),
    }
}

fn set(key: &str, expect: u64) -> CellChange {
    CellChange {
        space: Space::Definition,
        key: key.to_owned(),
        expect,
        then: CellThen::Set {
            value: b"value".to_vec(),
            until: None,
        },
    }
}

fn rows(thread: &ThreadKey) -> Amendment {
    let row = row(Index::Outbox, "sink/1", 1, thread);
    Amendment {
        index: vec![IndexChange::Put(row)],
        cells: vec![],
    }
}

/// Everything that writes, and what it says.
async fn attempts(store: &dyn Store) -> Vec<Result<(), String>> {
    let thread = key("there");
    let spoken = |error: AppendError| error.to_string();
    let leased = |error: LeaseError| error.to_string();
    let put = store.put_blob("acme", Payload::json(vec![1]), Digest::of(b"new"));
    vec![
        store
            .append(append(&thread, 2))
            .await
            .map(drop)
            .map_err(spoken),
        store
            .append(drive(&thread, 2, 1))
            .await
            .map(drop)
            .map_err(spoken),
        store
            .append(append(&key("new"), 0))
            .await
            .map(drop)
            .map_err(spoken),
        store
            .append(take(&key("newer"), 0, 0))
            .await
            .map(drop)
            .map_err(spoken),
        store.renew(&thread, 1, LASTS).await.map_err(leased),
        store.release(&thread, 1, 2).await.map_err(leased),
        store
            .take(&key("free"), LASTS)
            .await
            .map(drop)
            .map_err(leased),
        store
            .set_cell("acme", set("new", 0))
            .await
            .map(drop)
            .map_err(spoken),
        store
            .set_cell("acme", set("there", 1))
            .await
            .map(drop)
            .map_err(spoken),
        store
            .amend("acme", rows(&thread))
            .await
            .map(drop)
            .map_err(spoken),
        put.await.map_err(|error| error.to_string()),
    ]
}

/// It is refused by every handle, also by one that was opened before, and with the reason.
pub async fn a_store_that_is_leaving_takes_nothing_until_that_is_given_up(
    World { here, there, .. }: World,
) {
    assert!(here.append(take(&key("there"), 0, 0)).await.is_ok());
    assert!(here.append(append(&key("free"), 0)).await.is_ok());
    assert_eq!(here.set_cell("acme", set("there", 0)).await, Ok(1));
    let before = everything(&*there, &key("there")).await;
    let leaving = Part::Leaving(moving());
    assert_eq!(there.part().await, Ok(None));
    assert_eq!(there.set_part(None, Some(&leaving)).await, Ok(true));
    assert_eq!(here.part().await, Ok(Some(leaving.clone())));
    for attempt in attempts(&*here).await {
        let Err(refusal) = attempt else {
            panic!("it was written");
        };
        assert!(refusal.contains(&leaving.refusal()), "{refusal}");
    }
    // It may be told first that it does not hold the lease.
    assert!(attempts(&*there).await.iter().all(Result::is_err));
    assert_eq!(everything(&*there, &key("there")).await, before);
    assert_eq!(here.load(&key("new")).await, Ok(None));
    assert_eq!(here.blob("acme", Digest::of(b"new")).await, Ok(None));

    assert_eq!(here.set_part(Some(&leaving), None).await, Ok(true));
    assert_eq!(there.part().await, Ok(None));
    let attempts = attempts(&*here).await;
    let done = attempts.iter().filter(|attempt| attempt.is_ok()).count();
    assert!(done > 5, "{attempts:?}");
}

/// Two who move one store do not both believe that they do.
pub async fn a_part_in_a_move_changes_only_from_the_one_that_is_expected(
    World { here, there, .. }: World,
) {
    let (leaving, left) = (Part::Leaving(moving()), Part::Left(moving()));
    let other = Part::Leaving(Move {
        ticket: 7,
        ..moving()
    });
    assert_eq!(here.set_part(Some(&leaving), Some(&left)).await, Ok(false));
    assert_eq!(here.part().await, Ok(None));
    assert_eq!(here.set_part(None, Some(&leaving)).await, Ok(true));
    assert_eq!(there.set_part(None, Some(&other)).await, Ok(false));
    assert_eq!(there.set_part(Some(&other), None).await, Ok(false));
    assert_eq!(there.set_part(Some(&leaving), Some(&left)).await, Ok(true));
    assert_eq!(here.part().await, Ok(Some(left.clone())));
    let refused = here.append(append(&key("new"), 0)).await;
    let Err(AppendError::Unavailable(refusal)) = refused else {
        panic!("{refused:?}");
    };
    assert!(refusal.to_string().contains(&left.refusal()), "{refusal}");
}

/// It is not whole yet.
pub async fn a_store_that_is_arriving_takes_nothing_but_what_comes_by_its_ticket(
    World { here, there, .. }: World,
) {
    let arriving = Part::Arriving(moving());
    assert_eq!(there.set_part(None, Some(&arriving)).await, Ok(true));
    for store in [&here, &there] {
        for attempt in attempts(&**store).await {
            assert!(attempt.is_err(), "it was written");
        }
    }
    let import = |ticket| Import {
        ticket,
        threads: vec![ImportedThread {
            key: key("moved"),
            epoch: 7,
            head: append(&key("moved"), 0).head,
            records: append(&key("moved"), 0).records,
        }],
        ..Import::default()
    };
    assert!(here.import(import(7)).await.is_err());
    assert_eq!(there.count_threads().await, Ok(0));
    assert_eq!(here.import(import(moving().ticket)).await, Ok(()));
    assert_eq!(there.count_threads().await, Ok(1));
    // What let it in lets in nobody else.
    assert!(here.append(append(&key("new"), 0)).await.is_err());

    assert_eq!(here.set_part(Some(&arriving), None).await, Ok(true));
    assert!(here.import(import(moving().ticket)).await.is_err());
    assert_eq!(there.take(&key("moved"), LASTS).await, Ok(8));
}

/// So that a copy that was cut off can be gone on with.
pub async fn what_is_imported_twice_is_there_once(World { here, there, .. }: World) {
    let arriving = Part::Arriving(moving());
    assert_eq!(here.set_part(None, Some(&arriving)).await, Ok(true));
    let ticket = moving().ticket;
    let mut import = Import {
        ticket,
        ..Import::default()
    };
    let whole = append(&key("moved"), 0);
    let mut records = whole.records;
    let second = records.split_off(1);
    let thread = |records| ImportedThread {
        key: key("moved"),
        epoch: 7,
        head: whole.head.clone(),
        records,
    };
    import.threads = vec![thread(records)];
    import.cells.swept = 9;
    let digest = Digest::of(b"blob");
    import.blobs = vec![(Arc::from("acme"), digest, Payload::json(vec![1]))];
    assert_eq!(here.import(import.clone()).await, Ok(()));
    let rest = Import {
        ticket,
        threads: vec![thread(second)],
        ..Import::default()
    };
    assert_eq!(here.import(rest).await, Ok(()));
    assert_eq!(there.import(import).await, Ok(()));
    let (head, records, _) = everything(&*there, &key("moved")).await;
    let head = head.map(|head| (head.version, head.epoch, head.lease));
    assert_eq!(head, Some((2, 7, None)));
    assert_eq!(records, append(&key("moved"), 0).records);
    assert_eq!(there.count_threads().await, Ok(1));
    assert_eq!(
        there.blobs(None, 9).await,
        Ok(vec![(Arc::from("acme"), digest)])
    );
    assert_eq!(here.set_part(Some(&arriving), None).await, Ok(true));
    // Versions of the cells that were swept away in the other store do not come back here.
    assert_eq!(there.set_cell("acme", set("new", 0)).await, Ok(10));
}
