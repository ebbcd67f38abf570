//! The engine on a real store, with models and tools that are code of the test.

mod drift;
mod life;
mod recovery;
mod support;
