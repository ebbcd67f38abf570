//! Where it was measured: numbers mean nothing without it.

use std::{
    fmt,
    fs::{self, File},
    io::Write as _,
    path::Path,
};

use tokio::time::Instant;

use crate::measurement::median;

/// How often the disk is asked.
const SYNCS: usize = 200;

/// The machine, as far as it matters here.
#[derive(Debug)]
pub(crate) struct Machine {
    cores: usize,
    processor: String,
    kernel: String,
    file_system: String,
    /// How many processes wanted to run, on average over the last minute.
    load: String,
    /// How long it takes to append 4 KiB to a file and to be sure of it, in microseconds.
    sync_us: f64,
}

impl Machine {
    /// Looks around; `folder` is where the databases will be.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub(crate) fn look(folder: &Path) -> anyhow::Result<Self> {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpus
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or("unknown", |(_, name)| name.trim());
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        // A build's own suffix says nothing about speed.
        let kernel = kernel.trim().split('-').next().unwrap_or_default();
        Ok(Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor.to_owned(),
            kernel: format!("Linux {kernel}"),
            load: load(),
            file_system: file_system(&folder.canonicalize()?),
            sync_us: sync(folder)?,
        })
    }
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// The type of the file system with the longest mount point that leads to a folder.
fn file_system(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let found = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        folder.starts_with(point).then_some((point.len(), kind))
    });
    // Of several mounts on one point the last is the one that is seen.
    found
        .max_by_key(|(length, _)| *length)
        .map_or("unknown", |(_, kind)| kind)
        .to_owned()
}

fn sync(folder: &Path) -> anyhow::Result<f64> {
    let path = folder.join("sync");
    let mut file = File::create(&path)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let began = Instant::now();
        file.write_all(&[0x5a; 4096])?;
        file.sync_data()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    drop(file);
    fs::remove_file(path)?;
    Ok(median(&times))
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cores ({}), {}, {}, {:.0} µs to append 4 KiB to a file and fdatasync it (median of {SYNCS}); \
             load before it began: {}",
            self.cores, self.processor, self.kernel, self.file_system, self.sync_us, self.load
        )
    }
}
