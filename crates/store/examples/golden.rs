//! Makes a golden database: `cargo run -p holdpoint-store --example golden -- crates/store/tests/golden/vN.sqlite`.
//!
//! Run once for each new format, when it is released; the file is checked in and never made again.

#![expect(
    clippy::unwrap_used,
    reason = "whoever runs it wants to see what went wrong"
)]

#[path = "../tests/golden/content.rs"]
mod content;

use std::{path::PathBuf, sync::Arc};

use holdpoint_store::{Holder, ManualClock, Options, SqliteStore};

#[tokio::main]
async fn main() {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("say where to make the file");
        return;
    };
    let open = || {
        let clock = Arc::new(ManualClock::new(content::WRITTEN));
        SqliteStore::open(&path, &Options::default().with_clock(clock)).unwrap()
    };
    content::write(&open()).await;
    content::check(&open(), Holder::Dead).await;
}
