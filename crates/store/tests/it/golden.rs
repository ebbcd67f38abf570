//! Files of past formats, one for each, are still read whole. How they are made: `examples/golden.rs`.

use std::{path::Path, sync::Arc};

use holdpoint_store::{
    CellChange, CellThen, Holder, ManualClock, Options, Space, SqliteStore, Store as _,
};
use tempfile::TempDir;

#[path = "../golden/content.rs"]
mod content;

async fn open(path: &Path) -> SqliteStore {
    let clock = Arc::new(ManualClock::new(content::WRITTEN));
    SqliteStore::open(path, &Options::default().with_clock(clock)).unwrap()
}

#[tokio::test]
async fn a_database_of_format_1_is_read_whole() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("copy.db");
    std::fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/v1.sqlite"),
        &path,
    )
    .unwrap();
    let store = open(&path).await;
    content::check(&store, Holder::MaybeAlive).await;

    // And it goes on from there: the removed cell's version is not given again.
    let change = CellChange {
        space: Space::Definition,
        key: "removed".to_owned(),
        expect: 0,
        then: CellThen::Set {
            value: vec![],
            until: None,
        },
    };
    assert_eq!(store.set_cell("acme", change).await, Ok(3));
}

#[tokio::test]
async fn what_was_acknowledged_is_there_when_the_store_is_opened_again() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("test.db");
    let first = open(&path).await;
    content::write(&first).await;
    let owner = first.owner();
    drop(first);
    let second = open(&path).await;
    assert_ne!(second.owner(), owner);
    content::check(&second, Holder::Dead).await;
}
