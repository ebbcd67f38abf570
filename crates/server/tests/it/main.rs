//! What arrives when what happens in a chat is sent: bytes as the seed's examples have them, and texts that try to be more
//! than text; and the server as its clients meet it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod a2ui;
mod golden;
mod legacy;
mod run;
mod seed_client;
mod server;
mod sse;
mod texts;
