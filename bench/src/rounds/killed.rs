//! W4: what it takes to be back after `kill -9`.

use super::{Rounds, parked::Crowds, setting};
use crate::{program::Program, workload::Workload};

impl Rounds<'_> {
    /// Measures everyone once: a process is killed in the middle of its work, and another one starts.
    pub(super) async fn kill(&mut self, workload: Workload, crowds: &Crowds) -> anyhow::Result<()> {
        for system in self.plan.systems(workload) {
            let largest = crowds.largest(workload.backend(), system);
            let (Some(program), Some(parked)) = (self.program(system)?, largest) else {
                continue;
            };
            let crowd = crowds.get(workload.backend(), system, parked)?;
            let database = self.databases.copy(crowd)?;
            let url = database.url();
            let many = parked.to_string();
            let mut work = program.command("work", &url);
            work.args(["--parked", &many]);
            Program::kill_after(work, self.plan.killed_after).await?;
            let mut start = program.command("start", &url);
            start.args(["--parked", &many]);
            let times = Program::times(start).await?;
            database.remove()?;
            let setting = setting(workload, system, 1, parked);
            for (word, time) in times {
                let ms = time.as_secs_f64() * 1e3;
                eprintln!(
                    "{} with {parked} parked, {}: {word} after {ms:.0} ms",
                    workload.as_str(),
                    system.as_str()
                );
                let metric = match word.as_str() {
                    "ready" => "ready_ms",
                    "resumed" => "first_resume_ms",
                    unknown => anyhow::bail!("the process said `{unknown}`"),
                };
                self.add(setting, metric, "ms", ms);
            }
        }
        Ok(())
    }
}
