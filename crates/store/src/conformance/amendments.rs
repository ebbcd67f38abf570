//! Rows and cells that change beside the threads.

use holdpoint_core::{Index, IndexChange};

use super::world::{World, all, append, everything, key, row, runnable};
use crate::{Amendment, AppendError, CellChange, CellThen, Space};

fn set(key: &str, expect: u64) -> CellChange {
    CellChange {
        space: Space::Outbox,
        key: key.to_owned(),
        expect,
        then: CellThen::Set {
            value: b"tried".to_vec(),
            until: None,
        },
    }
}

/// And the threads that the rows belong to stay as they are.
pub async fn an_amendment_changes_rows_and_cells_together(World { here, there, .. }: World) {
    let thread = key("a");
    let mut made = append(&thread, 0);
    made.index = vec![runnable(&thread, 1), runnable(&thread, 2)];
    assert!(here.append(made).await.is_ok());
    let (head, records, _) = everything(&*here, &thread).await;

    let moved = row(Index::DeadLetter, "sink/1", 2, &thread);
    let amendment = Amendment {
        index: vec![
            IndexChange::Remove(row(Index::Runnable, "", 1, &thread)),
            IndexChange::Put(moved.clone()),
        ],
        cells: vec![set("x", 0), set("y", 0)],
    };
    assert_eq!(there.amend("acme", amendment).await, Ok(vec![1, 1]));
    let left = vec![row(Index::Runnable, "", 2, &thread)];
    let after = everything(&*here, &thread).await;
    assert_eq!(after, (head, records, left));
    assert_eq!(
        here.scan("acme", all(Index::DeadLetter)).await,
        Ok(vec![moved])
    );
    let cell = here.cell("acme", Space::Outbox, "y").await;
    assert!(cell.is_ok_and(|cell| cell.is_some_and(|cell| cell.value == b"tried")));
}

/// Whatever comes first in it.
pub async fn an_amendment_with_a_changed_cell_changes_nothing(World { here, there, .. }: World) {
    let thread = key("a");
    let rows = vec![IndexChange::Put(row(Index::Outbox, "sink/1", 2, &thread))];
    assert_eq!(here.set_cell("acme", set("x", 0)).await, Ok(1));
    for cells in [
        vec![set("new", 0), set("x", 0)],
        vec![set("x", 2), set("new", 0)],
    ] {
        let index = rows.clone();
        let amended = there.amend("acme", Amendment { index, cells }).await;
        let conflict = AppendError::CellConflict {
            space: Space::Outbox,
            key: "x".to_owned(),
        };
        assert_eq!(amended, Err(conflict));
    }
    assert_eq!(here.cell("acme", Space::Outbox, "new").await, Ok(None));
    assert_eq!(here.scan("acme", all(Index::Outbox)).await, Ok(vec![]));
    let twice = Amendment {
        index: rows,
        cells: vec![set("new", 0), set("new", 0)],
    };
    assert!(matches!(
        here.amend("acme", twice).await,
        Err(AppendError::Malformed(_))
    ));
    assert_eq!(here.scan("acme", all(Index::Outbox)).await, Ok(vec![]));
}

/// Whoever does not know whether an amendment was committed makes it again.
pub async fn an_amendment_of_rows_made_twice_is_made_once(World { here, there, .. }: World) {
    let thread = key("a");
    let (gone, put) = (
        row(Index::Outbox, "sink/1", 2, &thread),
        row(Index::DeadLetter, "sink/1", 2, &thread),
    );
    let amendment = || Amendment {
        index: vec![
            IndexChange::Remove(gone.clone()),
            IndexChange::Put(put.clone()),
        ],
        cells: vec![],
    };
    for store in [&here, &there, &here] {
        assert_eq!(store.amend("acme", amendment()).await, Ok(vec![]));
    }
    assert_eq!(
        here.scan("acme", all(Index::DeadLetter)).await,
        Ok(vec![put])
    );
    assert_eq!(
        here.scan("evil", all(Index::DeadLetter)).await,
        Ok(vec![]),
        "of another tenant"
    );
}
