//! What the tests are given by the environment.

use std::path::PathBuf;

/// A build of the binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// As it is shipped, with points at which it can be killed.
    Sound,
    /// As it is shipped.
    Shipped,
    /// Stands for the version before this one, which knows the stored formats up to the previous one.
    Previous,
    /// Wrong on purpose: an append need not name the version it was decided at.
    WeakVersionCheck,
    /// Wrong on purpose: a call that is found as started is repeated.
    WeakNoStarted,
}

impl Build {
    pub(crate) fn path(self) -> PathBuf {
        announced(match self {
            Self::Sound => "HOLDPOINT_BIN_FAILPOINTS",
            Self::Shipped => "HOLDPOINT_BIN",
            Self::Previous => "HOLDPOINT_BIN_PREVIOUS",
            Self::WeakVersionCheck => "HOLDPOINT_BIN_WEAK_VERSION_CHECK",
            Self::WeakNoStarted => "HOLDPOINT_BIN_WEAK_NO_STARTED",
        })
    }
}

/// The program that answers beside others.
pub(crate) fn rivals(build: Build) -> PathBuf {
    match build {
        Build::Sound | Build::Shipped | Build::Previous | Build::WeakNoStarted => {
            env!("CARGO_BIN_EXE_holdpoint-torture-rivals").into()
        }
        Build::WeakVersionCheck => announced("HOLDPOINT_RIVALS_WEAK_VERSION_CHECK"),
    }
}

/// The folder with the ledger program.
pub(crate) fn example_tools() -> PathBuf {
    announced("HOLDPOINT_EXAMPLE_TOOLS")
}

fn announced(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    match path.filter(|path| path.exists()) {
        Some(path) => path,
        None => panic!(
            "{variable} does not name what this test needs; run `cargo xtask test`, which builds and announces it"
        ),
    }
}

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// A seeded sample.
    Sample,
    /// Everything.
    Full,
}

impl Effort {
    pub(crate) fn asked_for() -> Self {
        match std::env::var_os("HOLDPOINT_TORTURE") {
            Some(value) if value == "1" => Self::Full,
            _ => Self::Sample,
        }
    }

    /// One figure for each.
    pub(crate) fn pick(self, sample: usize, full: usize) -> usize {
        match self {
            Self::Sample => sample,
            Self::Full => full,
        }
    }
}

/// What samples are drawn by.
pub(crate) fn seed() -> u64 {
    let given = std::env::var_os("HOLDPOINT_SEED").and_then(|seed| seed.into_string().ok());
    given.map_or(1, |seed| seed.parse().unwrap())
}
