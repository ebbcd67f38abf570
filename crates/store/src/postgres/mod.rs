//! Stores in PostgreSQL: many processes on many machines, one truth.
//!
//! Appends of concurrent runs share a statement ([`writer`], `append.sql`), in which the database checks versions and
//! epochs. Whatever it does not admit, and whatever else changes something, is decided at the [`desk`]: a transaction that
//! locks what it looks at, and asks [`crate::admission`] as every backend does.

mod address;
mod batch;
mod cells;
mod clock;
mod desk;
mod home;
mod leases;
mod line;
mod moving;
mod notice;
mod pack;
mod pipe;
mod pool;
mod query;
mod reader;
mod row;
mod schema;
mod store;
mod trouble;
mod writer;

pub use store::PostgresStore;
