//! The rounds: every system in turn, on a new file each time, so that all of them see the same machine.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::Connection;

use crate::{
    ceiling, holdpoint,
    measurement::{Samples, Setting, System},
    recording::Recording,
    script::{Script, Weight},
    workload::{Parking, Steps, Tenths},
};

/// What is to be measured.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) workloads: Vec<&'static str>,
    pub(crate) systems: Vec<System>,
    pub(crate) rounds: usize,
    /// How many runs W1 has.
    pub(crate) runs: usize,
    pub(crate) concurrencies: Vec<usize>,
    /// What W3 is.
    pub(crate) steps: Steps,
}

impl Plan {
    /// What counts.
    pub(crate) fn full() -> Self {
        Self {
            workloads: vec!["W1", "W3"],
            systems: vec![System::Holdpoint, System::Ceiling],
            rounds: 5,
            runs: 2_000,
            concurrencies: vec![1, 32, 128],
            steps: Steps {
                steps: 2_000,
                characters: 500,
            },
        }
    }

    /// Just enough to see that everything works.
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 2,
            runs: 40,
            concurrencies: vec![1, 8],
            steps: Steps {
                steps: 40,
                characters: 500,
            },
            ..Self::full()
        }
    }
}

/// Measures round by round.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    plan: Plan,
    folder: &'a Path,
    files: usize,
    samples: Samples,
    weights: Vec<String>,
}

impl<'a> Rounds<'a> {
    /// With databases in this folder.
    pub(crate) fn new(plan: Plan, folder: &'a Path) -> Self {
        Self {
            plan,
            folder,
            files: 0,
            samples: Samples::default(),
            weights: Vec::new(),
        }
    }

    /// The samples, and what was written, in words.
    pub(crate) fn into_results(self) -> (Samples, Vec<String>) {
        (self.samples, self.weights)
    }

    /// Measures everything.
    ///
    /// # Errors
    ///
    /// Something failed, or did not do what it should.
    pub(crate) async fn run(&mut self) -> anyhow::Result<()> {
        let parked = self.record_parking().await?;
        let stepped = self.record_steps().await?;
        for _ in 0..self.plan.rounds {
            if self.plan.workloads.contains(&"W1") {
                for concurrency in self.plan.concurrencies.clone() {
                    self.park(concurrency, &parked).await?;
                }
            }
            if self.plan.workloads.contains(&"W3") {
                self.step(stepped.as_ref()).await?;
            }
        }
        Ok(())
    }

    fn needs_script(&self, workload: &str) -> bool {
        self.plan.systems.contains(&System::Ceiling) && self.plan.workloads.contains(&workload)
    }

    /// What Holdpoint writes in W1.
    async fn record_parking(&mut self) -> anyhow::Result<Arc<Vec<Arc<Script>>>> {
        if !self.needs_script("W1") {
            return Ok(Arc::default());
        }
        let file = self.new_file();
        let recording = Arc::new(Recording::new(holdpoint::open(&file)?));
        let work = Parking {
            runs: self.plan.runs,
            concurrency: 32,
        };
        holdpoint::park(recording.clone(), work).await?;
        let scripts = scripts(&recording);
        drop(recording);
        remove(&file)?;
        let weight = Weight::of(&scripts);
        self.weights
            .push(format!("W1, per run: {}.", weight.per(work.runs)));
        Ok(Arc::new(scripts))
    }

    /// What Holdpoint writes in W3.
    async fn record_steps(&mut self) -> anyhow::Result<Option<Arc<Script>>> {
        if !self.needs_script("W3") {
            return Ok(None);
        }
        let file = self.new_file();
        let recording = Arc::new(Recording::new(holdpoint::open(&file)?));
        let work = self.plan.steps;
        holdpoint::step(recording.clone(), work).await?;
        let scripts = scripts(&recording);
        drop(recording);
        remove(&file)?;
        let weight = Weight::of(&scripts);
        self.weights
            .push(format!("W3, per step: {}.", weight.per(work.steps)));
        Ok(scripts.into_iter().next())
    }

    async fn park(
        &mut self,
        concurrency: usize,
        scripts: &Arc<Vec<Arc<Script>>>,
    ) -> anyhow::Result<()> {
        let work = Parking {
            runs: self.plan.runs,
            concurrency,
        };
        let mut rates = Vec::new();
        for system in self.plan.systems.clone() {
            let file = self.new_file();
            let spent = match system {
                System::Holdpoint => holdpoint::park(holdpoint::open(&file)?, work).await?,
                System::Ceiling => ceiling::park(&file, scripts, work).await?,
            };
            remove(&file)?;
            let rate = work.runs as f64 / spent.time.as_secs_f64();
            let processor = spent.processor.as_secs_f64() * 1e6 / work.runs as f64;
            let name = system.as_str();
            eprintln!(
                "W1 at {concurrency}, {name}: {rate:.0} runs/s, {processor:.0} µs of processor each"
            );
            let setting = setting("W1", system, concurrency);
            self.samples.add(setting, "runs_per_s", "1/s", rate);
            self.samples
                .add(setting, "processor_us_per_run", "us", processor);
            rates.push(rate);
        }
        if let [holdpoint, ceiling] = *rates {
            let setting = setting("W1", System::Holdpoint, concurrency);
            self.samples
                .add(setting, "of_ceiling", "ratio", holdpoint / ceiling);
        }
        Ok(())
    }

    async fn step(&mut self, script: Option<&Arc<Script>>) -> anyhow::Result<()> {
        let work = self.plan.steps;
        for system in self.plan.systems.clone() {
            let file = self.new_file();
            let Tenths { first, last } = match (system, script) {
                (System::Holdpoint, _) => holdpoint::step(holdpoint::open(&file)?, work).await?,
                (System::Ceiling, Some(script)) => ceiling::step(&file, script, work).await?,
                (System::Ceiling, None) => continue,
            };
            let disk = remove(&file)? as f64;
            eprintln!("W3, {}: {first:.0} µs, {last:.0} µs", system.as_str());
            let setting = setting("W3", system, 1);
            let mut add = |metric, unit, value| self.samples.add(setting, metric, unit, value);
            add("step_us_first_tenth", "us", first);
            add("step_us_last_tenth", "us", last);
            add("last_over_first", "ratio", last / first);
            add("disk_bytes", "bytes", disk);
            add("disk_over_text", "ratio", disk / work.text() as f64);
        }
        Ok(())
    }

    fn new_file(&mut self) -> PathBuf {
        self.files += 1;
        self.folder.join(format!("{}.db", self.files))
    }
}

const fn setting(workload: &'static str, system: System, concurrency: usize) -> Setting {
    Setting {
        workload,
        system,
        concurrency,
        parked: 0,
    }
}

fn scripts(recording: &Recording) -> Vec<Arc<Script>> {
    let threads = recording.take();
    threads
        .into_iter()
        .map(|(key, commits)| Arc::new(Script::new(&key, commits)))
        .collect()
}

/// Removes a closed database. Returns how large it was with everything in its main file.
fn remove(file: &Path) -> anyhow::Result<u64> {
    let conn = Connection::open(file)?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(conn);
    let mut bytes = 0;
    for suffix in ["", "-wal", "-shm"] {
        let mut part = file.as_os_str().to_owned();
        part.push(suffix);
        if let Ok(meta) = fs::metadata(&part) {
            bytes += meta.len();
            fs::remove_file(&part)?;
        }
    }
    Ok(bytes)
}
