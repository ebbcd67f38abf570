//! Blobs and cells.

use std::sync::Arc;

use holdpoint_core::{Digest, Payload};

use super::world::World;
use crate::{AppendError, Cell, CellChange, CellThen, Space};

/// What is kept under a digest never changes.
pub async fn a_blob_is_kept_once_and_for_its_tenant_only(World { here, there, .. }: World) {
    let digest = Digest::of(b"definition");
    let payload = Payload::json(b"definition".to_vec());
    assert_eq!(here.blob("acme", digest).await, Ok(None));
    assert_eq!(here.put_blob("acme", payload.clone(), digest).await, Ok(()));
    assert_eq!(
        there
            .put_blob("acme", Payload::json(b"other".to_vec()), digest)
            .await,
        Ok(())
    );
    assert_eq!(here.blob("acme", digest).await, Ok(Some(payload)));
    assert_eq!(here.blob("evil", digest).await, Ok(None));
}

fn change(key: &str, expect: u64, value: Option<&str>) -> CellChange {
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

fn cell(version: u64, value: &str) -> Option<Cell> {
    Some(Cell {
        version,
        value: value.as_bytes().to_vec(),
        until: None,
    })
}

fn conflict<T>(key: &str) -> Result<T, AppendError> {
    Err(AppendError::CellConflict {
        space: Space::Definition,
        key: key.to_owned(),
    })
}

/// Compare-and-set.
pub async fn a_cell_is_created_once_and_changed_at_its_version(World { here, there, .. }: World) {
    assert_eq!(
        here.set_cell("acme", change("c", 1, Some("a"))).await,
        conflict("c")
    );
    assert_eq!(
        here.set_cell("acme", change("c", 0, Some("a"))).await,
        Ok(1)
    );
    assert_eq!(
        there.set_cell("acme", change("c", 0, Some("b"))).await,
        conflict("c")
    );
    assert_eq!(
        there.set_cell("acme", change("c", 1, Some(""))).await,
        Ok(2)
    );
    assert_eq!(
        here.set_cell("acme", change("c", 1, Some("c"))).await,
        conflict("c")
    );
    assert_eq!(
        here.cell("acme", Space::Definition, "c").await,
        Ok(cell(2, ""))
    );
}

/// Whoever read a value before it was removed cannot mistake its successor for it.
pub async fn a_removed_cell_is_absent_and_its_versions_do_not_come_back(World { here, .. }: World) {
    assert_eq!(
        here.set_cell("acme", change("c", 0, Some("a"))).await,
        Ok(1)
    );
    assert_eq!(here.set_cell("acme", change("c", 1, None)).await, Ok(2));
    assert_eq!(here.cell("acme", Space::Definition, "c").await, Ok(None));
    assert_eq!(
        here.set_cell("acme", change("c", 2, Some("b"))).await,
        conflict("c")
    );
    assert_eq!(
        here.set_cell("acme", change("c", 0, Some("b"))).await,
        Ok(3)
    );
    assert_eq!(
        here.set_cell("acme", change("c", 1, Some("c"))).await,
        conflict("c")
    );
    assert_eq!(
        here.cell("acme", Space::Definition, "c").await,
        Ok(cell(3, "b"))
    );
}

/// A cell is found by tenant, space and key.
pub async fn cells_of_other_tenants_spaces_and_keys_are_apart(World { here, .. }: World) {
    assert_eq!(
        here.set_cell("acme", change("c", 0, Some("a"))).await,
        Ok(1)
    );
    assert_eq!(here.cell("evil", Space::Definition, "c").await, Ok(None));
    assert_eq!(here.cell("acme", Space::Grant, "c").await, Ok(None));
    assert_eq!(here.cell("acme", Space::Definition, "d").await, Ok(None));
    let elsewhere = CellChange {
        space: Space::Grant,
        ..change("c", 0, Some("g"))
    };
    assert_eq!(here.set_cell("acme", elsewhere).await, Ok(1));
    assert_eq!(
        here.set_cell("evil", change("c", 0, Some("e"))).await,
        Ok(1)
    );
    assert_eq!(
        here.cell("acme", Space::Definition, "c").await,
        Ok(cell(1, "a"))
    );
}

/// A token is used once.
pub async fn of_concurrent_changes_to_a_cell_exactly_one_wins(World { here, there, .. }: World) {
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let store = Arc::clone(if number % 2 == 0 { &here } else { &there });
            tokio::spawn(async move { store.set_cell("acme", change("c", 0, Some("used"))).await })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.extend(task.await);
    }
    outcomes.sort_by_key(Result::is_err);
    let mut expected = vec![Ok(1)];
    expected.resize(40, conflict("c"));
    assert_eq!(outcomes, expected);
}
