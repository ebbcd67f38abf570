//! Appending and reading.

use std::sync::Arc;

use holdpoint_core::{Codec, Digest, Payload, Record, ThreadId};

use super::world::{World, append, everything, head, key, record, runnable, take};
use crate::{
    Append, AppendError, Appended, Cell, CellChange, CellThen, Head, LeaseAfter, Space, ThreadKey,
};

/// A thread that was never written is absent, not empty.
pub async fn an_absent_thread_has_no_head_and_no_records(World { here, .. }: World) {
    assert_eq!(everything(&*here, &key("s")).await, (None, vec![], vec![]));
}

/// Records, head and index rows come back as they were given, on both handles.
pub async fn an_append_is_read_back_whole(World { here, there, .. }: World) {
    let key = key("s");
    let first = Append {
        index: vec![runnable(&key, 7)],
        ..append(&key, 0)
    };
    assert_eq!(
        here.append(first).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    let expected = (
        Some(Head {
            version: 2,
            epoch: 0,
            lease: None,
            payload: head(2, "someone"),
        }),
        vec![record(1), record(2)],
        vec![super::world::row(
            holdpoint_core::Index::Runnable,
            "",
            7,
            &key,
        )],
    );
    assert_eq!(everything(&*here, &key).await, expected);
    assert_eq!(everything(&*there, &key).await, expected);
}

/// Several heads are those of the threads one by one, in the order asked for; one that is absent or another tenant's is
/// missing in its place.
pub async fn heads_of_several_threads_come_in_the_order_asked_for(
    World { here, there, .. }: World,
) {
    let (first, second, absent) = (key("first"), key("second"), key("absent"));
    let foreign = ThreadKey {
        tenant: Arc::from("other"),
        thread: first.thread,
    };
    for append in [append(&first, 0), append(&first, 2), take(&second, 0, 0)] {
        assert!(here.append(append).await.is_ok());
    }
    let tenant = &first.tenant;
    let asked = [&second, &absent, &first, &second].map(|key| key.thread);
    for store in [&here, &there] {
        let heads = store.load_all(tenant, &asked).await;
        let mut one_by_one = Vec::new();
        for thread in asked {
            let tenant = Arc::clone(tenant);
            one_by_one.push(store.load(&ThreadKey { tenant, thread }).await);
        }
        assert_eq!(heads, one_by_one.into_iter().collect());
        let versions: Vec<_> = heads
            .unwrap_or_default()
            .into_iter()
            .map(|head| head.map(|head| head.version))
            .collect();
        assert_eq!(versions, [Some(2), None, Some(4), Some(2)]);
        let elsewhere = store.load_all(&foreign.tenant, &asked).await;
        assert_eq!(elsewhere, Ok(vec![None; 4]));
        assert_eq!(store.load_all(tenant, &[]).await, Ok(Vec::new()));
    }
}

/// A server asks every second which of the threads that it shows have moved on.
pub async fn versions_of_several_threads_come_in_the_order_asked_for(
    World { here, there, .. }: World,
) {
    let (first, second, absent) = (key("first"), key("second"), key("absent"));
    let foreign = ThreadKey {
        tenant: Arc::from("other"),
        thread: first.thread,
    };
    for append in [append(&first, 0), append(&first, 2), append(&second, 0)] {
        assert!(here.append(append).await.is_ok());
    }
    let asked = [&second, &absent, &first, &foreign, &second].map(Clone::clone);
    let many: Vec<_> = asked.iter().cycle().take(5_000).cloned().collect();
    for store in [&here, &there] {
        assert_eq!(store.versions(&asked).await, Ok(vec![2, 0, 4, 0, 2]));
        assert_eq!(store.versions(&[]).await, Ok(vec![]));
        assert_eq!(
            store.versions(&many).await,
            Ok([2, 0, 4, 0, 2].repeat(1_000))
        );
    }
    assert!(there.append(append(&absent, 0)).await.is_ok());
    assert_eq!(here.versions(&asked).await, Ok(vec![2, 2, 4, 0, 2]));
}

/// The head is replaced, the records are added to, by whichever handle.
pub async fn a_second_append_follows_on_the_first(World { here, there, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(append(&key, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    assert_eq!(
        there.append(append(&key, 2)).await,
        Ok(Appended {
            version: 4,
            epoch: 0
        })
    );
    let expected = (
        Some(Head {
            version: 4,
            epoch: 0,
            lease: None,
            payload: head(4, "someone"),
        }),
        (1..=4).map(record).collect(),
        vec![],
    );
    assert_eq!(everything(&*here, &key).await, expected);
}

/// A store sees bytes, and none of them means anything to it.
pub async fn every_byte_and_the_key_of_a_payload_survive(World { here, .. }: World) {
    let key = key("s");
    let payload = |bytes: Vec<u8>| Payload {
        codec: Codec::Json,
        key_id: Some("key-1".to_owned()),
        bytes,
    };
    let odd = Record {
        seq: 1,
        header: (0..=255).rev().collect(),
        salt: [255; 16],
        payload: payload((0..=255).cycle().take(100_000).collect()),
        hash: Digest::from_bytes([0; 32]),
    };
    let empty = Record {
        seq: 2,
        header: vec![],
        payload: payload(vec![]),
        ..odd.clone()
    };
    let first = Append {
        records: vec![odd.clone(), empty.clone()],
        head: payload(vec![0; 20_000]),
        ..append(&key, 0)
    };
    assert_eq!(
        here.append(first).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    let expected = Head {
        version: 2,
        epoch: 0,
        lease: None,
        payload: payload(vec![0; 20_000]),
    };
    assert_eq!(
        everything(&*here, &key).await,
        (Some(expected), vec![odd, empty], vec![])
    );
}

/// The refusal names the version to go on from.
pub async fn a_stale_version_is_refused_and_nothing_changes(World { here, there, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(append(&key, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    assert_eq!(
        here.append(append(&key, 2)).await,
        Ok(Appended {
            version: 4,
            epoch: 0
        })
    );
    let before = everything(&*here, &key).await;
    let stale = Append {
        head: head(4, "loser"),
        index: vec![runnable(&key, 1)],
        cells: vec![CellChange {
            space: Space::Grant,
            key: "g".into(),
            expect: 0,
            then: set(1),
        }],
        ..append(&key, 2)
    };
    assert_eq!(
        there.append(stale).await,
        Err(AppendError::Conflict { current: 4 })
    );
    assert_eq!(everything(&*here, &key).await, before);
    assert_eq!(here.cell("acme", Space::Grant, "g").await, Ok(None));
}

/// A gap between what is there and what is appended never comes to be.
pub async fn a_version_from_the_future_is_refused(World { here, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(append(&key, 3)).await,
        Err(AppendError::Conflict { current: 0 })
    );
    assert_eq!(everything(&*here, &key).await, (None, vec![], vec![]));
}

/// Two processes that open one session meet at the same thread.
pub async fn a_thread_is_created_only_once(World { here, there, .. }: World) {
    let key = key("s");
    assert_eq!(
        here.append(append(&key, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    assert_eq!(
        there.append(append(&key, 0)).await,
        Err(AppendError::Conflict { current: 2 })
    );
}

/// Whatever breaks the contract is said to do so, before anything is looked at.
pub async fn a_malformed_append_is_refused_and_nothing_changes(World { here, .. }: World) {
    let key = key("s");
    let cell = CellChange {
        space: Space::Grant,
        key: "g".into(),
        expect: 0,
        then: CellThen::Remove,
    };
    let malformed = [
        (
            Append {
                records: vec![],
                ..append(&key, 0)
            },
            "it has no records",
        ),
        (
            Append {
                records: vec![record(1), record(3)],
                ..append(&key, 0)
            },
            "record 3 does not follow on 1",
        ),
        (
            Append {
                records: vec![record(1)],
                ..append(&key, 1)
            },
            "record 1 does not follow on 1",
        ),
        (
            Append {
                records: vec![record(1)],
                ..append(&key, u64::MAX)
            },
            "record 1 does not follow on 18446744073709551615",
        ),
        (
            Append {
                lease: LeaseAfter::Release,
                ..append(&key, 0)
            },
            "it releases a lease without naming its epoch",
        ),
        (
            Append {
                cells: vec![cell.clone(), cell],
                ..append(&key, 0)
            },
            "it changes cell `g` twice",
        ),
    ];
    for (append, why) in malformed {
        assert_eq!(
            here.append(append).await,
            Err(AppendError::Malformed(why.to_owned()))
        );
    }
    assert_eq!(everything(&*here, &key).await, (None, vec![], vec![]));
}

/// A hundred people press approve at once.
pub async fn of_concurrent_appends_at_one_version_exactly_one_wins(
    World { here, there, .. }: World,
) {
    let key = key("s");
    assert_eq!(
        here.append(append(&key, 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let store = Arc::clone(if number % 2 == 0 { &here } else { &there });
            let append = Append {
                head: head(4, &number.to_string()),
                ..append(&key, 2)
            };
            tokio::spawn(async move { (number, store.append(append).await) })
        })
        .collect();
    let mut winners = Vec::new();
    for task in tasks {
        match task.await {
            Ok((number, Ok(appended))) => winners.push((number, appended)),
            Ok((_, refused)) => assert_eq!(refused, Err(AppendError::Conflict { current: 4 })),
            Err(fault) => panic!("{fault}"),
        }
    }
    let Some((winner, appended)) = winners.pop() else {
        panic!("nobody won")
    };
    assert_eq!(
        (appended, winners),
        (
            Appended {
                version: 4,
                epoch: 0
            },
            vec![]
        )
    );
    let expected = Head {
        version: 4,
        epoch: 0,
        lease: None,
        payload: head(4, &winner.to_string()),
    };
    assert_eq!(
        everything(&*there, &key).await,
        (Some(expected), (1..=4).map(record).collect(), vec![])
    );
}

/// A loser among appends that share a commit gets its own error, and the others are committed.
pub async fn appends_made_together_do_not_fail_together(World { here, .. }: World) {
    let tasks: Vec<_> = (0..60_u64)
        .map(|number| {
            let store = Arc::clone(&here);
            // Every third one expects a thread that does not exist.
            let expect = if number % 3 == 0 { 5 } else { 0 };
            let append = append(&key(&number.to_string()), expect);
            tokio::spawn(async move { store.append(append).await })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let (expected, records) = if number % 3 == 0 {
            (Err(AppendError::Conflict { current: 0 }), vec![])
        } else {
            (
                Ok(Appended {
                    version: 2,
                    epoch: 0,
                }),
                vec![record(1), record(2)],
            )
        };
        assert_eq!(task.await.ok(), Some(expected));
        assert_eq!(
            here.read(&key(&number.to_string()), 0, 10).await,
            Ok(records)
        );
    }
}

/// The tail of a journal is read without its beginning.
pub async fn records_are_read_after_a_point_and_up_to_a_limit(World { here, .. }: World) {
    let (one, other) = (key("one"), key("other"));
    for expect in [0, 2, 4] {
        for key in [&one, &other] {
            assert_eq!(
                here.append(append(key, expect)).await,
                Ok(Appended {
                    version: expect + 2,
                    epoch: 0
                })
            );
        }
    }
    let cases = [
        (0, 0, vec![]),
        (0, 2, vec![1, 2]),
        (2, 3, vec![3, 4, 5]),
        (5, usize::MAX, vec![6]),
        (6, 10, vec![]),
        (u64::MAX, 10, vec![]),
    ];
    for (after, limit, expected) in cases {
        let expected = expected.into_iter().map(record).collect();
        assert_eq!(
            here.read(&one, after, limit).await,
            Ok(expected),
            "after {after}, at most {limit}"
        );
    }
}

/// Knowing a thread's id is of no use without its tenant.
pub async fn one_thread_id_in_two_tenants_is_two_threads(World { here, .. }: World) {
    let thread = ThreadId::from_bytes([7; 16]);
    let in_tenant = |tenant: &str| ThreadKey {
        tenant: Arc::from(tenant),
        thread,
    };
    assert_eq!(
        here.append(append(&in_tenant("acme"), 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    assert_eq!(
        everything(&*here, &in_tenant("evil")).await,
        (None, vec![], vec![])
    );
    assert_eq!(
        here.append(append(&in_tenant("evil"), 0)).await,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    assert_eq!(
        here.append(append(&in_tenant("evil"), 2)).await,
        Ok(Appended {
            version: 4,
            epoch: 0
        })
    );
    assert_eq!(
        here.read(&in_tenant("acme"), 0, 10).await,
        Ok(vec![record(1), record(2)])
    );
}

fn set(byte: u8) -> CellThen {
    CellThen::Set {
        value: vec![byte],
        until: None,
    }
}

/// An append and its cells are one commit: if one cell is not as expected, none changes and nothing is appended.
pub async fn a_changed_cell_refuses_the_append_and_nothing_changes(World { here, .. }: World) {
    let key = key("s");
    let change = |name: &str, expect| CellChange {
        space: Space::Grant,
        key: name.to_owned(),
        expect,
        then: set(9),
    };
    assert_eq!(here.set_cell("acme", change("taken", 0)).await, Ok(1));
    let refused = Append {
        cells: vec![change("free", 0), change("taken", 0)],
        index: vec![runnable(&key, 1)],
        ..append(&key, 0)
    };
    assert_eq!(
        here.append(refused).await,
        Err(AppendError::CellConflict {
            space: Space::Grant,
            key: "taken".to_owned()
        })
    );
    assert_eq!(everything(&*here, &key).await, (None, vec![], vec![]));
    assert_eq!(here.cell("acme", Space::Grant, "free").await, Ok(None));
}

/// An append may depend on a cell without changing it.
pub async fn an_append_may_depend_on_a_cell(World { here, there, .. }: World) {
    let key = key("s");
    let change = |expect, then| CellChange {
        space: Space::Definition,
        key: "agent".to_owned(),
        expect,
        then,
    };
    assert_eq!(here.set_cell("acme", change(0, set(1))).await, Ok(1));
    let depends_on = |version| Append {
        cells: vec![change(version, CellThen::Keep)],
        ..append(&key, 0)
    };
    assert_eq!(here.set_cell("acme", change(1, set(2))).await, Ok(2));
    let conflict = AppendError::CellConflict {
        space: Space::Definition,
        key: "agent".to_owned(),
    };
    assert_eq!(there.append(depends_on(1)).await, Err(conflict));
    assert_eq!(everything(&*here, &key).await, (None, vec![], vec![]));
    assert!(there.append(depends_on(2)).await.is_ok());
    let unchanged = Some(Cell {
        version: 2,
        value: vec![2],
        until: None,
    });
    assert_eq!(
        here.cell("acme", Space::Definition, "agent").await,
        Ok(unchanged)
    );
}

/// Cells that are as expected change with the append.
pub async fn an_append_changes_its_cells(World { here, there, .. }: World) {
    let key = key("s");
    let change = |name: &str, expect, value: Option<u8>| CellChange {
        space: Space::Grant,
        key: name.to_owned(),
        expect,
        then: value.map_or(CellThen::Remove, set),
    };
    assert_eq!(
        here.set_cell("acme", change("old", 0, Some(1))).await,
        Ok(1)
    );
    assert_eq!(
        here.set_cell("acme", change("gone", 0, Some(1))).await,
        Ok(1)
    );
    let cells = vec![
        change("new", 0, Some(2)),
        change("old", 1, Some(3)),
        change("gone", 1, None),
    ];
    let appended = there
        .append(Append {
            cells,
            ..append(&key, 0)
        })
        .await;
    assert_eq!(
        appended,
        Ok(Appended {
            version: 2,
            epoch: 0
        })
    );
    let expected = [
        (
            "new",
            Some(Cell {
                version: 1,
                value: vec![2],
                until: None,
            }),
        ),
        (
            "old",
            Some(Cell {
                version: 2,
                value: vec![3],
                until: None,
            }),
        ),
        ("gone", None),
    ];
    for (name, cell) in expected {
        assert_eq!(
            here.cell("acme", Space::Grant, name).await,
            Ok(cell),
            "{name}"
        );
    }
}
