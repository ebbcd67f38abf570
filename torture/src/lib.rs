//! Safety tests that kill real processes.
