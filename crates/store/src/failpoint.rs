//! Places at which a test can have the process killed, as by `kill -9`.
//!
//! Only with the feature `failpoints`; without it a point is nothing at all. The environment says what happens:
//!
//! - `HOLDPOINT_FAILPOINT=name:n`: the process kills itself when it comes to the point `name` for the n-th time.
//! - `HOLDPOINT_FAILPOINT_LOG=path`: the name of every point that is passed is added to that file, a line each.

/// Passes the point `name`.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub const fn hit(_name: &str) {}

#[cfg(feature = "failpoints")]
pub use armed::hit;

#[cfg(feature = "failpoints")]
mod armed {
    use std::{
        fs::OpenOptions,
        io::Write as _,
        sync::{
            OnceLock,
            atomic::{AtomicU64, Ordering},
        },
    };

    static PLAN: OnceLock<Plan> = OnceLock::new();

    #[derive(Debug)]
    struct Plan {
        name: String,
        /// How often the point is passed until it kills; 0 = never.
        left: AtomicU64,
        log: Option<String>,
    }

    impl Plan {
        #[expect(
            clippy::disallowed_methods,
            reason = "these two are for tests, which start any binary with them"
        )]
        fn from_environment() -> Self {
            let target = std::env::var("HOLDPOINT_FAILPOINT").unwrap_or_default();
            let (name, count) = target.rsplit_once(':').unwrap_or_default();
            Self {
                name: name.to_owned(),
                left: AtomicU64::new(count.parse().unwrap_or(0)),
                log: std::env::var("HOLDPOINT_FAILPOINT_LOG").ok(),
            }
        }
    }

    /// Passes the point `name`.
    pub fn hit(name: &str) {
        let plan = PLAN.get_or_init(Plan::from_environment);
        if let Some(path) = &plan.log {
            // One write, so that lines of several threads and processes do not mix.
            let line = format!("{name}\n");
            let logged = OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .and_then(|mut file| file.write_all(line.as_bytes()));
            drop(logged);
        }
        if plan.name == name && plan.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            die();
        }
    }

    fn die() -> ! {
        loop {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
            std::thread::yield_now();
        }
    }
}
