//! W1 over HTTP: the same runs, by clients of a server.

use std::{fs, time::Duration};

use super::{Rounds, setting};
use crate::{
    lean::alone,
    measurement::System,
    restate::Shape,
    served::{self, Door},
    workload::{Parking, Shared, Workload},
};

/// What the metrics are called.
#[derive(Debug, Clone, Copy)]
struct Names {
    rate: &'static str,
    server: &'static str,
    client: &'static str,
}

/// What counts: the chat API, and Restate as it is shipped.
const COUNTS: Names = Names {
    rate: "runs_per_s",
    server: "processor_us_per_run",
    client: "client_us_per_run",
};

/// The runs API.
const APART: Names = Names {
    rate: "apart_runs_per_s",
    server: "apart_processor_us_per_run",
    client: "apart_client_us_per_run",
};

/// Restate with a number of partitions that suits the machine.
const TUNED: Names = Names {
    rate: "tuned_runs_per_s",
    server: "tuned_processor_us_per_run",
    client: "tuned_client_us_per_run",
};

impl Rounds<'_> {
    /// Measures everyone once.
    pub(super) fn park_over_http(&mut self, concurrency: usize) -> anyhow::Result<()> {
        for system in self.plan.systems(Workload::W1Http) {
            if system == System::Restate {
                self.park_restate(concurrency, Shape::Shipped)?;
                self.park_restate(concurrency, Shape::Tuned)?;
            } else {
                self.park_at(concurrency, Door::Chat)?;
                self.park_at(concurrency, Door::Runs)?;
            }
        }
        self.compare(Workload::W1Http, concurrency);
        Ok(())
    }

    /// Restate, with what it keeps in a folder of its own.
    fn park_restate(&mut self, concurrency: usize, shape: Shape) -> anyhow::Result<()> {
        let folder = self.databases.path("restate");
        let runs = self.plan.restate_runs;
        let work = Parking { runs, concurrency };
        let spent = alone(self.restate()?.park(&folder, work, shape))?;
        fs::remove_dir_all(folder)?;
        let names = match shape {
            Shape::Shipped => COUNTS,
            Shape::Tuned => TUNED,
        };
        self.note(System::Restate, work, spent, names);
        Ok(())
    }

    /// Holdpoint, at one of its doors.
    fn park_at(&mut self, concurrency: usize, door: Door) -> anyhow::Result<()> {
        let database = self.databases.fresh(Workload::W1Http.backend())?;
        let runs = self.plan.runs;
        let work = Parking { runs, concurrency };
        let spent = alone(served::park(&database.url(), work, door))?;
        database.remove()?;
        let names = match door {
            Door::Runs => APART,
            Door::Chat => COUNTS,
        };
        self.note(System::Holdpoint, work, spent, names);
        Ok(())
    }

    fn note(&mut self, system: System, work: Parking, spent: Shared, names: Names) {
        let Parking { runs, concurrency } = work;
        let each = |whole: Duration| whole.as_secs_f64() * 1e6 / runs as f64;
        let (server, client) = (each(spent.server), each(spent.client));
        let rate = runs as f64 / spent.time.as_secs_f64();
        let (name, metric) = (system.as_str(), names.rate);
        eprintln!(
            "W1-http at {concurrency}, {name}: {metric} {rate:.0}, {server:.0} µs of processor each, and {client:.0} µs of the \
             client"
        );
        let setting = setting(Workload::W1Http, system, concurrency, 0);
        self.add(setting, names.rate, "1/s", rate);
        self.add(setting, names.server, "us", server);
        self.add(setting, names.client, "us", client);
        self.rates.note(setting, names.rate, rate);
    }
}
