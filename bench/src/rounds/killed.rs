//! W4: what it takes to be back after `kill -9`.

use super::{Rounds, parked::Crowds, setting};
use crate::{database, program::Program, workload::Workload};

impl Rounds<'_> {
    /// Measures everyone once: a process is killed in the middle of its work, and another one starts.
    pub(super) async fn kill(&mut self, crowds: &Crowds) -> anyhow::Result<()> {
        for system in self.plan.systems(Workload::W4) {
            let (Some(program), Some(parked)) =
                (self.program(system)?, self.largest(crowds, system))
            else {
                continue;
            };
            let file = self.databases.copy(crowds.file(system, parked)?)?;
            let many = parked.to_string();
            let mut work = program.command("work", &file);
            work.args(["--parked", &many]);
            Program::kill_after(work, self.plan.killed_after).await?;
            let mut start = program.command("start", &file);
            start.args(["--parked", &many]);
            let times = Program::times(start).await?;
            database::remove(&file)?;
            let setting = setting(Workload::W4, system, 1, parked);
            for (word, time) in times {
                let ms = time.as_secs_f64() * 1e3;
                eprintln!(
                    "W4 with {parked} parked, {}: {word} after {ms:.0} ms",
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
