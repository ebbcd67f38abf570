//! Runs as OpenTelemetry traces: what takes its time in a run is sent to a collector, as OTLP over HTTP.
//!
//! [`Traces`] watches engines. What an append ended is said by core ([`holdpoint_core::spans`]), with ids that follow from the
//! journal; so every process sends its part, and a run is one trace through all of them. Sending is a task of its own behind a
//! queue that is bounded: an engine never waits for a collector, and a collector that is away changes nothing but what is seen.
//!
//! It is set up by the variables that OpenTelemetry defines ([`Wish`]), and by nothing else.

mod queue;
mod span;
mod traces;
mod wish;

pub use queue::Complaint;
pub use traces::Traces;
pub use wish::Wish;
