//! Where journals live: the [`Store`] trait, its backends, and one conformance suite for all of them.

mod store;

pub use store::*;
