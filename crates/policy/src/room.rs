//! Room for code that recurses more deeply than a worker's stack allows.
//!
//! A stack that overflows aborts the process; nothing can catch it. So what might need more than a small stack runs on a
//! thread of its own, and what goes wrong there, panics included, comes back as a value.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

/// The large stack. Measured without optimisation, nesting of 16 needs 4 MB of it to be parsed, and the deepest
/// expression that is accepted 6 MB to be evaluated. It is address space: only what is used is ever backed by memory.
const STACK: usize = 32 << 20;

/// Something did not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The system gave no thread.
    NoThread,
    /// It panicked.
    Panicked,
}

/// Runs on a large stack.
pub(crate) fn large<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Lost> {
    thread::scope(|scope| {
        thread::Builder::new()
            .name("holdpoint-policy".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(|_| Lost::NoThread)?
            .join()
            .map_err(|_| Lost::Panicked)
    })
}

/// Runs right here, on the caller's stack.
pub(crate) fn here<T>(work: impl FnOnce() -> T) -> Result<T, Lost> {
    // What a panic leaves half done is dropped with it: the work owns what it changes.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Lost::Panicked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_comes_back_as_a_value() {
        assert_eq!(large(|| panic!("on purpose")), Err::<(), _>(Lost::Panicked));
        assert_eq!(here(|| panic!("on purpose")), Err::<(), _>(Lost::Panicked));
        assert_eq!((large(|| 1), here(|| 2)), (Ok(1), Ok(2)));
    }
}
