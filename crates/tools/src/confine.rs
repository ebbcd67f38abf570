//! A program that the kernel confines to one folder.
//!
//! The watchdog does not start such a program itself. It starts this executable once more, which takes rights from itself
//! that it never gets back (Landlock for files, signals and TCP; seccomp for everything else) and then becomes the program.
//! The watchdog stays outside, so that it can kill what is inside.
//!
//! If that fails before the program runs, it ends with [`FAILED`] and says why on stderr, behind a word that only the
//! watchdog knows: so no program can claim that it never ran.

mod folder;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod kernel;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod syscalls;

use serde::{Deserialize, Serialize};

pub(crate) use folder::TemporaryFolder;

/// The first argument of a process that is to become a confined program.
pub(crate) const ARGUMENT: &str = "__confine";

/// The variables that a confined program may have.
pub(crate) const VARIABLES: [&str; 6] = ["PATH", "HOME", "LANG", "TZ", "TERM", "TMPDIR"];

/// The exit code of a process that did not become the program.
pub(crate) const FAILED: i32 = 125;

/// What to become, and what may be reached.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) argv: Vec<String>,
    /// The folder that it runs in, and may read, write and execute.
    pub(crate) folder: String,
    /// What is said before the reason where it fails.
    pub(crate) nonce: String,
}

impl Cell {
    /// A word that nobody can guess.
    ///
    /// # Errors
    ///
    /// The kernel gives no random numbers.
    pub(crate) fn nonce() -> std::io::Result<String> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(holdpoint_core::hex(&bytes))
    }

    /// Why it did not become the program, from what it said when it ended with [`FAILED`].
    pub(crate) fn failure(nonce: &str, stderr: &str) -> Option<String> {
        let reason = stderr.strip_prefix(nonce)?.trim();
        Some(reason.to_owned())
    }
}

/// Whether this kernel can confine programs.
///
/// # Errors
///
/// What it lacks, in words for whoever runs the agent.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) fn is_possible() -> Result<(), String> {
    kernel::is_possible()
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(crate) fn is_possible() -> Result<(), String> {
    Err("programs are confined on Linux only, on x86-64 and ARM64".to_owned())
}

/// Becomes the program that the arguments of this process say. Does not return unless that failed.
pub(crate) fn become_it() -> i32 {
    let cell = std::env::args().nth(2).unwrap_or_default();
    let cell: Cell = match serde_json::from_str(&cell) {
        Ok(cell) => cell,
        Err(_) => return FAILED,
    };
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    let reason = kernel::become_it(&cell);
    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    let reason = is_possible().err().unwrap_or_default();
    eprintln!("{} {reason}", cell.nonce);
    FAILED
}
