//! W2 over HTTP: what a resume costs through a server while others are parked.

use super::{Rounds, parked::Crowds, setting};
use crate::{lean::alone, served, workload::Workload};

impl Rounds<'_> {
    /// Measures a server of each size once.
    pub(super) fn resume_over_http(&mut self, crowds: &Crowds) -> anyhow::Result<()> {
        for system in self.plan.systems(Workload::W2Http) {
            let mut fewest = None;
            for parked in self.plan.parked(system) {
                let crowd = crowds.get(Workload::W2Http.backend(), system, parked)?;
                let database = self.databases.copy(crowd)?;
                let resumes = self.plan.resumes(system);
                let measured = alone(served::resume(&database.url(), parked, resumes))?;
                database.remove()?;
                let setting = setting(Workload::W2Http, system, 1, parked);
                self.note_resumes(setting, &measured.resume_ms, measured.rss_kb, &mut fewest);
            }
        }
        Ok(())
    }
}
