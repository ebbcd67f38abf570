//! Runs and what can be seen of them and done with them.

pub(crate) mod artifacts;
pub(crate) mod commands;
pub(crate) mod reading;
mod stream;
pub(crate) mod wire;
