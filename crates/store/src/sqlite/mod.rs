//! Threads in one SQLite file, shared by the processes of one machine.
//!
//! All writes of a process go through one thread, which commits what has queued up in one transaction; reads go to
//! connections of their own and never wait for it. Which processes are alive is told by files beside the database.

mod adopt;
mod append;
mod backup;
mod cells;
mod connection;
mod keeper;
mod lease;
mod marks;
mod moving;
mod opening;
mod owners;
mod query;
mod reader;
mod row;
mod scan;
mod schema;
mod store;
mod trouble;
mod writer;

pub use store::SqliteStore;
