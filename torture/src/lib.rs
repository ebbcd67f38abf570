//! Safety tests that kill real processes; see `tests/it`.
