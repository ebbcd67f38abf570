//! Cells that end by themselves, and cells in lists.

use std::sync::Arc;

use holdpoint_core::{Span, Timestamp};

use super::world::{World, append, everything, key};
use crate::{Append, AppendError, Cell, CellChange, CellThen, SharedStore, Space};

const SECOND: Span = Span::from_secs(1);

fn change(key: &str, expect: u64, then: CellThen) -> CellChange {
    CellChange {
        space: Space::Request,
        key: key.to_owned(),
        expect,
        then,
    }
}

fn set(value: &str, until: Option<Timestamp>) -> CellThen {
    CellThen::Set {
        value: value.as_bytes().to_vec(),
        until,
    }
}

fn cell(version: u64, value: &str, until: Option<Timestamp>) -> Cell {
    Cell {
        version,
        value: value.as_bytes().to_vec(),
        until,
    }
}

fn conflict<T>(key: &str) -> Result<T, AppendError> {
    Err(AppendError::CellConflict {
        space: Space::Request,
        key: key.to_owned(),
    })
}

/// Sets a cell that must be absent.
async fn create(store: &SharedStore, key: &str, until: Option<Timestamp>) -> u64 {
    match store
        .set_cell("acme", change(key, 0, set(key, until)))
        .await
    {
        Ok(version) => version,
        Err(refusal) => panic!("{refusal}"),
    }
}

/// Its end comes back with its value, and each write says anew when it ends.
pub async fn a_cell_is_there_until_it_ends_and_absent_from_that_moment_on(
    World {
        here, there, clock, ..
    }: World,
) {
    let first = here.now() + SECOND;
    let second = first + SECOND;
    assert_eq!(create(&here, "c", Some(first)).await, 1);
    assert_eq!(
        there.cell("acme", Space::Request, "c").await,
        Ok(Some(cell(1, "c", Some(first))))
    );
    let longer = change("c", 1, set("longer", Some(second)));
    assert_eq!(there.set_cell("acme", longer).await, Ok(2));
    clock.set(Timestamp::from_micros(second.as_micros() - 1));
    assert_eq!(
        here.cell("acme", Space::Request, "c").await,
        Ok(Some(cell(2, "longer", Some(second))))
    );
    assert_eq!(create(&here, "unending", Some(second)).await, 1);
    let unending = change("unending", 1, set("unending", None));
    assert_eq!(here.set_cell("acme", unending).await, Ok(2));
    clock.set(second);
    for store in [&here, &there] {
        assert_eq!(store.cell("acme", Space::Request, "c").await, Ok(None));
        assert_eq!(
            store.cell("acme", Space::Request, "unending").await,
            Ok(Some(cell(2, "unending", None)))
        );
    }
}

/// Whoever finds it absent may create it, and whoever still knows its version may not go on with it.
pub async fn an_ended_cell_is_created_anew_and_its_versions_do_not_come_back(
    World { here, clock, .. }: World,
) {
    let until = here.now() + SECOND;
    assert_eq!(create(&here, "c", Some(until)).await, 1);
    let again = change("c", 0, set("again", None));
    assert_eq!(here.set_cell("acme", again.clone()).await, conflict("c"));
    clock.set(until);
    for then in [set("late", None), CellThen::Remove, CellThen::Keep] {
        assert_eq!(
            here.set_cell("acme", change("c", 1, then)).await,
            conflict("c")
        );
    }
    assert_eq!(here.set_cell("acme", again).await, Ok(2));
    assert_eq!(
        here.cell("acme", Space::Request, "c").await,
        Ok(Some(cell(2, "again", None)))
    );
}

/// The request that it stood for may be made once more, by an append too.
pub async fn an_append_sees_an_ended_cell_as_absent(World { here, clock, .. }: World) {
    let thread = key("s");
    let until = here.now() + SECOND;
    assert_eq!(create(&here, "c", Some(until)).await, 1);
    let with = |expect, then| Append {
        cells: vec![change("c", expect, then)],
        ..append(&thread, 0)
    };
    clock.set(until);
    assert_eq!(here.append(with(1, CellThen::Keep)).await, conflict("c"));
    assert_eq!(everything(&*here, &thread).await, (None, vec![], vec![]));
    let later = Some(until + SECOND);
    assert!(here.append(with(0, set("new", later))).await.is_ok());
    assert_eq!(
        here.cell("acme", Space::Request, "c").await,
        Ok(Some(cell(2, "new", later)))
    );
}

/// The oldest go first, of whichever tenant, and only what has ended.
pub async fn a_sweep_clears_away_what_has_ended_and_nothing_else(
    World {
        here, there, clock, ..
    }: World,
) {
    let now = here.now();
    let later = now + Span::from_secs(60);
    for number in 1..=5 {
        let until = now + Span::from_secs(number);
        create(&here, &number.to_string(), Some(until)).await;
    }
    let abroad = change("1", 0, set("1", Some(now + SECOND)));
    assert_eq!(here.set_cell("other", abroad).await, Ok(1));
    create(&here, "later", Some(later)).await;
    create(&here, "unending", None).await;
    assert_eq!(here.sweep(10).await, Ok(0));
    clock.set(now + Span::from_secs(4));
    assert_eq!(there.sweep(0).await, Ok(0));
    assert_eq!(there.sweep(2).await, Ok(2));
    assert_eq!(here.sweep(usize::MAX).await, Ok(3));
    assert_eq!(here.sweep(10).await, Ok(0));
    let left = here.cells("acme", Space::Request, None, 10).await;
    let left: Vec<_> = left.iter().flatten().map(|(key, _)| key.as_str()).collect();
    assert_eq!(left, ["5", "later", "unending"]);
}

/// Whoever knows a version of a cell that was swept away cannot mistake its successor for it.
pub async fn versions_of_a_swept_cell_do_not_come_back(World { here, clock, .. }: World) {
    let until = here.now() + SECOND;
    assert_eq!(create(&here, "c", Some(until)).await, 1);
    let second = change("c", 1, set("second", Some(until)));
    assert_eq!(here.set_cell("acme", second).await, Ok(2));
    clock.set(until);
    assert_eq!(here.sweep(10).await, Ok(1));
    assert_eq!(create(&here, "c", None).await, 3);
    for expect in [0, 1, 2] {
        let change = change("c", expect, CellThen::Remove);
        assert_eq!(here.set_cell("acme", change).await, conflict("c"));
    }
}

/// Removing a cell before its end does not leave something behind for ever.
pub async fn what_is_left_of_a_removed_cell_is_swept_when_it_would_have_ended(
    World { here, clock, .. }: World,
) {
    let until = here.now() + SECOND;
    assert_eq!(create(&here, "c", Some(until)).await, 1);
    let removal = change("c", 1, CellThen::Remove);
    assert_eq!(here.set_cell("acme", removal).await, Ok(2));
    assert_eq!(here.sweep(10).await, Ok(0));
    clock.set(until);
    assert_eq!(here.sweep(10).await, Ok(1));
    assert_eq!(create(&here, "c", None).await, 3);
}

/// Page after page every cell that is there comes once; removed and ended ones do not count.
pub async fn cells_are_listed_in_the_order_of_their_keys(
    World {
        here, there, clock, ..
    }: World,
) {
    let until = here.now() + SECOND;
    for key in ["b", "", "ä", "removed", "a", "z"] {
        create(&here, key, None).await;
    }
    create(&here, "a-ended", Some(until)).await;
    create(&here, "c", Some(until + SECOND)).await;
    let removal = change("removed", 1, CellThen::Remove);
    assert_eq!(here.set_cell("acme", removal).await, Ok(2));
    let elsewhere = CellChange {
        space: Space::Server,
        ..change("b", 0, set("b", None))
    };
    assert_eq!(here.set_cell("acme", elsewhere).await, Ok(1));
    let abroad = change("b", 0, set("b", None));
    assert_eq!(here.set_cell("other", abroad).await, Ok(1));
    clock.set(until);

    let expected: Vec<_> = ["", "a", "b", "c", "z", "ä"]
        .map(|key| {
            let until = (key == "c").then_some(until + SECOND);
            (key.to_owned(), cell(1, key, until))
        })
        .into();
    for store in [&here, &there] {
        for limit in 1..=expected.len() + 1 {
            let mut seen: Vec<(String, Cell)> = Vec::new();
            loop {
                let after = seen.last().map(|(key, _)| key.clone());
                let page = store
                    .cells("acme", Space::Request, after.as_deref(), limit)
                    .await
                    .unwrap_or_default();
                assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                seen.extend(page);
            }
            assert_eq!(seen, expected, "by {limit}");
        }
        assert_eq!(
            store.cells("acme", Space::Request, Some("a+"), 1).await,
            Ok(vec![expected[2].clone()])
        );
        assert_eq!(
            store.cells("acme", Space::Request, None, 0).await,
            Ok(vec![])
        );
        assert_eq!(
            store.cells("nobody", Space::Request, None, 9).await,
            Ok(vec![])
        );
    }
}

/// Of those who find a cell ended, one gets it.
pub async fn of_concurrent_changes_to_an_ended_cell_exactly_one_wins(
    World {
        here, there, clock, ..
    }: World,
) {
    let until = here.now() + SECOND;
    assert_eq!(create(&here, "c", Some(until)).await, 1);
    clock.set(until);
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let store = Arc::clone(if number % 2 == 0 { &here } else { &there });
            let change = change("c", 0, set("taken", Some(until + SECOND)));
            tokio::spawn(async move { store.set_cell("acme", change).await })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.extend(task.await);
    }
    outcomes.sort_by_key(Result::is_err);
    let mut expected = vec![Ok(2)];
    expected.resize(40, conflict("c"));
    assert_eq!(outcomes, expected);
}
