//! Index rows and scans.

use std::sync::Arc;

use holdpoint_core::{Index, IndexChange, IndexRow};

use super::world::{World, all, append, key, row};
use crate::{Append, Appended, Direction, Scan, SharedStore, ThreadKey};

/// Makes a thread with these index changes.
async fn put(store: &SharedStore, key: &ThreadKey, index: Vec<IndexChange>) {
    let appended = store
        .append(Append {
            index,
            ..append(key, 0)
        })
        .await;
    assert_eq!(
        appended,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
}

/// Rows of the workflow index in their order, after they were put in another one.
async fn some_rows(store: &SharedStore) -> Vec<IndexRow> {
    let (a, b) = (key("a"), key("b"));
    let (low, high) = if a.thread < b.thread { (a, b) } else { (b, a) };
    let rows = vec![
        row(Index::Workflow, "", i64::MIN, &low),
        row(Index::Workflow, "", 3, &high),
        row(Index::Workflow, "apple", -1, &low),
        row(Index::Workflow, "apple", 5, &low),
        row(Index::Workflow, "apple", 5, &high),
        row(Index::Workflow, "apple", 6, &low),
        row(Index::Workflow, "äpfel", i64::MAX, &low),
    ];
    let of = |key: &ThreadKey| {
        rows.iter()
            .rev()
            .filter(|row| row.thread == key.thread)
            .cloned()
            .map(IndexChange::Put)
            .collect()
    };
    put(store, &high, of(&high)).await;
    put(store, &low, of(&low)).await;
    rows
}

/// Whatever the order in which they were put.
pub async fn rows_come_in_the_order_of_key_then_sort_then_thread(World { here, there, .. }: World) {
    let rows = some_rows(&here).await;
    assert_eq!(
        here.scan("acme", all(Index::Workflow)).await,
        Ok(rows.clone())
    );
    assert_eq!(there.scan("acme", all(Index::Workflow)).await, Ok(rows));
}

/// The empty key is a key too.
pub async fn a_scan_keeps_to_one_key(World { here, .. }: World) {
    let rows = some_rows(&here).await;
    for (key, expected) in [
        ("", &rows[..2]),
        ("apple", &rows[2..6]),
        ("äpfel", &rows[6..]),
        ("app", &[]),
    ] {
        let scan = Scan {
            key: Some(key.to_owned()),
            ..all(Index::Workflow)
        };
        assert_eq!(
            here.scan("acme", scan).await,
            Ok(expected.to_vec()),
            "{key}"
        );
    }
}

/// What is due is found without what is not.
pub async fn a_scan_keeps_to_rows_up_to_a_point(World { here, .. }: World) {
    let rows = some_rows(&here).await;
    let up_to = |point: i64, key: Option<&str>| Scan {
        key: key.map(str::to_owned),
        up_to: Some(point),
        ..all(Index::Workflow)
    };
    let pick = |numbers: &[usize]| {
        numbers
            .iter()
            .map(|number| rows[*number].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        here.scan("acme", up_to(3, Some(""))).await,
        Ok(pick(&[0, 1]))
    );
    assert_eq!(here.scan("acme", up_to(2, Some(""))).await, Ok(pick(&[0])));
    assert_eq!(
        here.scan("acme", up_to(5, Some("apple"))).await,
        Ok(pick(&[2, 3, 4]))
    );
    assert_eq!(
        here.scan("acme", up_to(5, None)).await,
        Ok(pick(&[0, 1, 2, 3, 4]))
    );
    assert_eq!(
        here.scan("acme", up_to(i64::MIN, None)).await,
        Ok(pick(&[0]))
    );
}

/// Page after page, every row comes once.
pub async fn pages_of_a_scan_meet_without_gap_or_overlap(World { here, .. }: World) {
    let rows = some_rows(&here).await;
    for (key, expected) in [(None, &rows[..]), (Some("apple"), &rows[2..6])] {
        for limit in 1..=rows.len() {
            let mut seen: Vec<IndexRow> = Vec::new();
            loop {
                let scan = Scan {
                    key: key.map(str::to_owned),
                    after: seen.last().cloned(),
                    limit,
                    ..all(Index::Workflow)
                };
                match here.scan("acme", scan).await {
                    Ok(page) if page.is_empty() => break,
                    Ok(page) => {
                        assert!(page.len() <= limit);
                        seen.extend(page);
                    }
                    Err(unavailable) => panic!("{unavailable}"),
                }
            }
            assert_eq!(seen, expected, "{key:?} by {limit}");
        }
    }
    let none = Scan {
        limit: 0,
        ..all(Index::Workflow)
    };
    assert_eq!(here.scan("acme", none).await, Ok(vec![]));
}

/// The row need not be one of the scan, nor exist.
pub async fn a_scan_goes_on_after_a_row_of_another_key(World { here, .. }: World) {
    let rows = some_rows(&here).await;
    let after = |row: &str, key: Option<&str>| Scan {
        key: key.map(str::to_owned),
        after: Some(super::world::row(
            Index::Workflow,
            row,
            5,
            &super::world::key("a"),
        )),
        ..all(Index::Workflow)
    };
    assert_eq!(
        here.scan("acme", after("aaa", Some("apple"))).await,
        Ok(rows[2..6].to_vec())
    );
    assert_eq!(
        here.scan("acme", after("b", Some("apple"))).await,
        Ok(vec![])
    );
    assert_eq!(
        here.scan("acme", after("b", None)).await,
        Ok(rows[6..].to_vec())
    );
}

/// Whatever is asked for, the one direction gives what the other gives, in reverse.
pub async fn a_scan_backward_gives_the_rows_of_a_scan_forward_in_reverse(
    World { here, there, .. }: World,
) {
    let rows = some_rows(&here).await;
    for key in [None, Some(""), Some("apple"), Some("äpfel"), Some("app")] {
        for up_to in [
            None,
            Some(i64::MIN),
            Some(-2),
            Some(3),
            Some(5),
            Some(i64::MAX),
        ] {
            let scan = |direction| Scan {
                key: key.map(str::to_owned),
                up_to,
                direction,
                ..all(Index::Workflow)
            };
            let expected: Vec<_> = rows
                .iter()
                .rev()
                .filter(|row| key.is_none_or(|key| row.key == key))
                .filter(|row| up_to.is_none_or(|up_to| row.sort <= up_to))
                .cloned()
                .collect();
            for store in [&here, &there] {
                let backward = store.scan("acme", scan(Direction::Backward)).await;
                assert_eq!(backward, Ok(expected.clone()), "{key:?} up to {up_to:?}");
                let forward = store.scan("acme", scan(Direction::Forward)).await;
                let reversed = forward.map(|rows| rows.into_iter().rev().collect());
                assert_eq!(reversed, Ok(expected.clone()), "{key:?} up to {up_to:?}");
            }
        }
    }
}

/// Page after page, every row comes once, and the last one of a page may be above the point or of another key.
pub async fn pages_of_a_scan_backward_meet_without_gap_or_overlap(World { here, .. }: World) {
    let mut rows = some_rows(&here).await;
    rows.reverse();
    let backward = |key: Option<&str>, after: Option<IndexRow>, limit| Scan {
        key: key.map(str::to_owned),
        direction: Direction::Backward,
        after,
        limit,
        ..all(Index::Workflow)
    };
    for (key, expected) in [(None, &rows[..]), (Some("apple"), &rows[1..5])] {
        for limit in 1..=rows.len() {
            let mut seen: Vec<IndexRow> = Vec::new();
            loop {
                let scan = backward(key, seen.last().cloned(), limit);
                let page = here.scan("acme", scan).await.unwrap_or_default();
                assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                seen.extend(page);
            }
            assert_eq!(seen, expected, "{key:?} by {limit}");
        }
    }
    let elsewhere = |name: &str| Some(super::world::row(Index::Workflow, name, 5, &key("a")));
    for (key, after, expected) in [
        (Some("apple"), "b", &rows[1..5]),
        (Some("apple"), "aaa", &[]),
        (None, "b", &rows[1..]),
        (None, "", &rows[5..]),
    ] {
        let scan = backward(key, elsewhere(after), usize::MAX);
        assert_eq!(
            here.scan("acme", scan).await,
            Ok(expected.to_vec()),
            "{key:?} after {after}"
        );
    }
    let low = Scan {
        up_to: Some(5),
        ..backward(Some("apple"), rows.get(1).cloned(), usize::MAX)
    };
    assert_eq!(here.scan("acme", low).await, Ok(rows[2..5].to_vec()));
}

/// Putting what is there changes nothing.
pub async fn a_row_put_twice_is_there_once(World { here, .. }: World) {
    let key = key("s");
    let twice = row(Index::Session, "s", 0, &key);
    put(
        &here,
        &key,
        vec![
            IndexChange::Put(twice.clone()),
            IndexChange::Put(twice.clone()),
        ],
    )
    .await;
    assert_eq!(
        here.scan("acme", all(Index::Session)).await,
        Ok(vec![twice])
    );
}

/// A row is removed by naming all of it.
pub async fn a_removed_row_is_gone_and_an_absent_one_may_be_removed(
    World { here, there, .. }: World,
) {
    let key = key("s");
    let (gone, stays) = (row(Index::Due, "", 1, &key), row(Index::Due, "", 2, &key));
    put(
        &here,
        &key,
        vec![
            IndexChange::Put(gone.clone()),
            IndexChange::Put(stays.clone()),
        ],
    )
    .await;
    let absent = row(Index::Due, "", 3, &key);
    let index = vec![IndexChange::Remove(gone), IndexChange::Remove(absent)];
    let appended = there
        .append(Append {
            index,
            ..append(&key, 2)
        })
        .await;
    assert_eq!(
        appended,
        Ok(Appended {
            version: 4,
            epoch: 0
        })
    );
    assert_eq!(here.scan("acme", all(Index::Due)).await, Ok(vec![stays]));
}

/// A row that is removed and put again is there.
pub async fn changes_of_one_append_happen_in_their_order(World { here, .. }: World) {
    let key = key("s");
    let (back, gone) = (row(Index::Due, "", 1, &key), row(Index::Due, "", 2, &key));
    let changes = vec![
        IndexChange::Remove(back.clone()),
        IndexChange::Put(back.clone()),
        IndexChange::Put(gone.clone()),
        IndexChange::Remove(gone),
    ];
    put(&here, &key, changes).await;
    assert_eq!(here.scan("acme", all(Index::Due)).await, Ok(vec![back]));
}

/// Nothing of a tenant is reached without naming it.
pub async fn indexes_and_tenants_are_apart(World { here, .. }: World) {
    let ours = key("s");
    let theirs = ThreadKey {
        tenant: Arc::from("evil"),
        ..ours.clone()
    };
    put(
        &here,
        &ours,
        vec![IndexChange::Put(row(Index::Run, "r", 1, &ours))],
    )
    .await;
    put(
        &here,
        &theirs,
        vec![IndexChange::Put(row(Index::Workflow, "r", 2, &theirs))],
    )
    .await;
    assert_eq!(
        here.scan("acme", all(Index::Run)).await,
        Ok(vec![row(Index::Run, "r", 1, &ours)])
    );
    assert_eq!(here.scan("acme", all(Index::Workflow)).await, Ok(vec![]));
    assert_eq!(here.scan("evil", all(Index::Run)).await, Ok(vec![]));
    assert_eq!(
        here.scan("evil", all(Index::Workflow)).await,
        Ok(vec![row(Index::Workflow, "r", 2, &theirs)])
    );
}

/// A server finds the work of all tenants without knowing them.
pub async fn only_tenants_with_rows_are_listed(World { here, .. }: World) {
    assert_eq!(here.tenants(Index::Runnable).await, Ok(vec![]));
    for tenant in ["b", "", "a", "c"] {
        for session in ["one", "two"] {
            let thread = ThreadKey {
                tenant: Arc::from(tenant),
                ..key(session)
            };
            let index = if tenant == "b" {
                Index::Due
            } else {
                Index::Runnable
            };
            put(
                &here,
                &thread,
                vec![IndexChange::Put(row(index, "", 1, &thread))],
            )
            .await;
        }
    }
    let list = |tenants: &[&str]| Ok(tenants.iter().copied().map(Arc::from).collect());
    assert_eq!(here.tenants(Index::Runnable).await, list(&["", "a", "c"]));
    assert_eq!(here.tenants(Index::Due).await, list(&["b"]));
    assert_eq!(here.tenants(Index::Closed).await, list(&[]));
}
