//! Work on files, on threads that may wait for a disk.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// Whether somebody still waits for a piece of work. What nobody waits for begins nothing any more.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    dropped: Arc<AtomicBool>,
    deadline: Instant,
}

impl Wanted {
    /// Whether it may go on: it has time, and its call was not let go of.
    pub(super) fn holds(&self) -> bool {
        !self.dropped.load(Ordering::Acquire) && Instant::now() < self.deadline
    }

    #[cfg(test)]
    pub(super) fn for_long() -> Self {
        Self {
            dropped: Arc::default(),
            deadline: Instant::now() + Duration::from_secs(600),
        }
    }
}

struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Does a piece of work elsewhere. `None` if it came to no end that is known.
///
/// # Cancel safety
///
/// Dropping the future ends the work before its next effect.
pub(super) async fn elsewhere<T: Send + 'static>(
    remaining: Duration,
    work: impl FnOnce(&Wanted) -> T + Send + 'static,
) -> Option<T> {
    let dropped = Arc::new(AtomicBool::new(false));
    let wanted = Wanted {
        dropped: Arc::clone(&dropped),
        deadline: Instant::now() + remaining,
    };
    let _guard = Guard(dropped);
    tokio::task::spawn_blocking(move || work(&wanted))
        .await
        .ok()
}
