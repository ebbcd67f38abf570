//! A private PostgreSQL server: a folder and a port of its own, and gone when it is dropped. One that is already there is never
//! touched.

mod bouncer;
mod certificate;
mod database;
mod programs;

use std::{
    env, fs, io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context as _, ensure};

pub use crate::{
    bouncer::Bouncer, certificate::Certificate, database::Database, programs::Programs,
};

/// The variable that names a server to use instead of a private one.
pub const VARIABLE: &str = "HOLDPOINT_TEST_POSTGRES";

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Connections are closed, what is not committed is undone, and everything is written.
    Fast,
    /// At once, as if the machine had crashed: what was committed is found again by recovery.
    Immediate,
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    programs: Programs,
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
}

impl Server {
    /// Makes a new server where temporary files are and starts it, with these settings (`name=value`) besides its own.
    ///
    /// # Errors
    ///
    /// PostgreSQL is not there, or does not start.
    pub fn start(programs: Programs, settings: &[&str]) -> anyhow::Result<Self> {
        Self::start_within(&env::temp_dir(), programs, settings)
    }

    /// The same in a folder beneath this one, which whoever runs PostgreSQL must be able to reach.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub fn start_within(
        place: &Path,
        programs: Programs,
        settings: &[&str],
    ) -> anyhow::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("holdpoint-postgres-{}-{nth}", std::process::id());
        let folder = place.join(name);
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        programs.give(&folder)?;
        let server = Self {
            programs,
            port: free_port()?,
            settings: settings.iter().map(|it| (*it).to_owned()).collect(),
            folder,
        };
        let mut initdb = server.programs.command("initdb", &server.folder);
        initdb
            .arg("--pgdata")
            .arg(server.data())
            .args(["--auth", "trust", "--username", "postgres"])
            .args(["--encoding", "UTF8", "--no-locale", "--no-instructions"]);
        run(&mut initdb)?;
        server.begin()?;
        Ok(server)
    }

    /// How it is reached, without a database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}", self.port)
    }

    /// Its first process, whose children are all the others.
    ///
    /// # Errors
    ///
    /// It does not run.
    pub fn pid(&self) -> anyhow::Result<u32> {
        let file = self.data().join("postmaster.pid");
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let pid = text.lines().next().unwrap_or_default();
        pid.parse().with_context(|| format!("`{pid}`"))
    }

    /// A program of PostgreSQL, run by whoever runs the server.
    #[must_use]
    pub fn program(&self, name: &str) -> Command {
        self.programs.command(name, &self.folder)
    }

    /// Asks it something: the first row of the answer, whose columns are all `bigint`.
    ///
    /// # Errors
    ///
    /// It cannot be asked, or answers with something else.
    pub fn numbers(&self, sql: &str) -> anyhow::Result<Vec<i64>> {
        database::numbers(format!("{}/postgres", self.url()), sql)
    }

    /// Stops it; [`Server::begin`] starts it again with what it had.
    ///
    /// # Errors
    ///
    /// It does not stop.
    pub fn stop(&self, how: Stop) -> anyhow::Result<()> {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        let mut stop = self.control("stop");
        stop.args(["--mode", mode, "--wait"]);
        run(&mut stop)
    }

    /// Starts it after it was stopped.
    ///
    /// # Errors
    ///
    /// It does not start; its log says why.
    pub fn begin(&self) -> anyhow::Result<()> {
        let mut options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=300",
            self.port
        );
        for setting in &self.settings {
            options.push_str(" -c ");
            options.push_str(setting);
        }
        let mut start = self.control("start");
        start
            .args(["--wait", "--options", &options, "--log"])
            .arg(self.folder.join("log"));
        run(&mut start).with_context(|| self.log())
    }

    /// Tells a command where the server is.
    pub fn announce(&self, command: &mut Command) {
        command.env(VARIABLE, self.url());
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn control(&self, what: &str) -> Command {
        let mut command = self.programs.command("pg_ctl", &self.folder);
        command.arg(what).arg("--pgdata").arg(self.data());
        command
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped before, and what cannot be removed is swept with other temporary files.
        let _ = self.stop(Stop::Immediate);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A port that nobody has.
fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = format!("{command:?}");
    // A server that is started keeps what it is given, so nobody could wait for its end.
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| shown.clone())?;
    ensure!(status.success(), "{shown}: {status}");
    Ok(())
}

/// Where a program of PostgreSQL lies in a folder.
fn program(folder: &Path, name: &str) -> Option<PathBuf> {
    let program = folder.join(name);
    program.is_file().then_some(program)
}
