//! Safety tests that kill real processes, and an oracle that no process of ours can fool: a ledger that is written and
//! synced by the tools' own program.
//!
//! Every test starts the binary in builds that `cargo xtask test` makes and announces. `HOLDPOINT_TORTURE=1` tries every
//! point instead of a sample; `HOLDPOINT_SEED` draws another sample.

#![expect(
    clippy::unwrap_used,
    reason = "a harness that cannot go on must fail where it stands"
)]

mod adoption;
mod agent;
mod any_moment;
mod client;
mod contest;
mod controls;
mod crowd;
mod double_kills;
mod duel;
mod follower;
mod frozen;
mod grants;
mod http;
mod judge;
mod kill_matrix;
mod ledger;
mod long_results;
mod moving;
mod on_postgres;
mod one_winner;
mod play;
mod point;
mod pool;
mod process;
mod programs;
mod rehearsal;
mod report;
mod restarts;
mod revival;
mod rolling;
mod scenario;
mod server_kills;
mod service;
mod sink;
mod storm;
mod takeover;
mod timers;
mod trace;
mod wal;
mod webhooks;
mod world;
