//! Whole lives of runs, told as sentences.

mod answers;
mod drift;
mod late;
mod limits;
mod recovery;
mod stopping;
mod turns;
