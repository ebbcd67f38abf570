//! The pure core, driven through whole lives without any I/O.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about"
)]

mod artifacts;
mod golden;
mod golden_guardrails;
mod head;
mod life;
mod mcp;
mod model;
mod thread;
