//! The promises of the store, backend by backend.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

mod backup;
mod copy;
#[cfg(feature = "postgres")]
mod depending;
#[cfg(feature = "postgres")]
mod differential;
mod file;
mod golden;
#[cfg(feature = "postgres")]
mod lost_replies;
mod memory;
#[cfg(feature = "postgres")]
mod pooled;
#[cfg(feature = "postgres")]
mod postgres;
mod process;
#[cfg(feature = "postgres")]
mod restored;
mod sqlite;
#[cfg(feature = "postgres")]
mod tls;
#[cfg(feature = "postgres")]
mod upgrade;
