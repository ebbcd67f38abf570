//! Whole lives of runs, told as sentences.

mod answers;
mod breakpoints;
mod confirm;
mod drift;
mod forks;
mod frames;
mod grants;
mod guardrails;
mod late;
mod limits;
mod outside;
mod passes;
mod pause;
mod per_call;
mod recovery;
mod restore;
mod spans;
mod steps;
mod stopping;
mod supersede;
mod tallies;
mod timers;
mod turns;
