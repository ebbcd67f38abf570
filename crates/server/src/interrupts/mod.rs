//! Interrupts of anybody: raised by programs outside, and by the agents here.

pub(crate) mod commands;
pub(crate) mod reading;
mod wait;
pub(crate) mod wire;
