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
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may have spaces; utime and stime are the 12th and 13th after it.
    let (_, rest) = stat.rsplit_once(')').context("the system says nothing")?;
    let ticks = rest.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|word| word.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs_f64(
        ticks as f64 / clock_ticks_per_second() as f64,
    ))
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
        assert!(processor(own).is_ok());
        assert!(processor(u32::MAX).is_err());
        assert!(rss_kb(u32::MAX).is_err());
    }
}
