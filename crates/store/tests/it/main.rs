//! The promises of the store, backend by backend.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod backup;
mod file;
mod golden;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod process;
mod sqlite;
