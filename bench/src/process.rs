//! What the system says about another process.

use std::{fs, time::Duration};

use anyhow::Context as _;
use rustix::{
    param::clock_ticks_per_second,
    process::{Pid, Signal, kill_process},
};
use tokio::process::Child;

/// What a process has had of all processors so far, with what the kernel did for it.
///
/// # Errors
///
/// It is gone.
pub(crate) fn processor(pid: u32) -> anyhow::Result<Duration> {
    let had = Had::of(pid)?;
    Ok(in_seconds(had.itself))
}

/// What a process and its children have had, with those that have ended.
///
/// # Errors
///
/// It is gone.
pub(crate) fn processor_of_all(pid: u32) -> anyhow::Result<Duration> {
    let parent = Had::of(pid)?;
    let mut ticks = parent.itself + parent.ended;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(child) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // One that ends meanwhile is with the ended ones the next time.
        if let Ok(child) = Had::of(child)
            && child.parent == u64::from(pid)
        {
            ticks += child.itself;
        }
    }
    Ok(in_seconds(ticks))
}

/// What a process has had of all processors, in ticks.
struct Had {
    parent: u64,
    itself: u64,
    /// By its children that have ended.
    ended: u64,
}

impl Had {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may have spaces. After it the parent is the second, and utime, stime and what children
        // had of both are the 12th to the 15th.
        let (_, rest) = stat.rsplit_once(')').context("the system says nothing")?;
        let words: Vec<u64> = rest
            .split_whitespace()
            .map(|word| word.parse().unwrap_or(0))
            .collect();
        let at = |place: usize| words.get(place).copied().unwrap_or(0);
        Ok(Self {
            parent: at(1),
            itself: at(11) + at(12),
            ended: at(13) + at(14),
        })
    }
}

fn in_seconds(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
}

/// The memory of a process that is really there.
///
/// # Errors
///
/// It is gone.
pub(crate) fn rss_kb(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().next());
    Ok(kb
        .context("the system does not say how much memory is used")?
        .parse()?)
}

/// Asks a process to go, and waits until it is gone.
///
/// # Errors
///
/// It cannot be asked.
pub(crate) async fn stop(mut child: Child) -> anyhow::Result<()> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        kill_process(pid, Signal::TERM)?;
    }
    child.wait().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_and_one_that_is_gone_is_an_error() {
        let own = std::process::id();
        assert!(rss_kb(own).unwrap() > 0);
        // It may be too young to have had a whole tick.
        assert!(processor(own).unwrap() <= processor_of_all(own).unwrap());
        assert!(processor(u32::MAX).is_err());
        assert!(rss_kb(u32::MAX).is_err());
    }
}
