//! A folder with an agent, a store and a ledger, and the processes that are started there.

use std::{
    ffi::OsString,
    fs::File,
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use holdpoint_test_postgres::Database;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    agent,
    ledger::Ledger,
    point::{CLOCK, LEDGER_ATTEMPTED, LEDGER_WRITTEN, is_inside},
    process::{Ended, Running, Watch},
    programs::{Build, example_tools},
    scenario::{Scenario, Shelf, Which},
    sink::SECRET,
};

/// How long leases last where nobody knows that a process is dead.
pub(crate) const LEASE: Duration = Duration::from_millis(300);

/// How a server is configured, where it is.
pub(crate) const CONFIG: &str = "server.yaml";

/// The session in which everything happens.
pub(crate) const SESSION: &str = "s";

/// When a tool's program acts within the time it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timing {
    /// It acts and ends at once.
    Prompt,
    /// It runs for a while before it acts.
    ActsLate(u32),
    /// It acts, and runs on for a while.
    EndsLate(u32),
}

impl Timing {
    /// Long enough for another process to come in between, and short beside the call's time-out.
    pub(crate) const ACTS_LATE: Self = Self::ActsLate(500);
    pub(crate) const ENDS_LATE: Self = Self::EndsLate(500);
}

/// Whom a server lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// Everybody, as one and the same user.
    Open,
    /// Whoever has a key.
    Locked,
}

/// How a process is started.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) timing: Timing,
    /// The point at which it is killed, and at the how-manieth time.
    pub(crate) kill_at: Option<(&'static str, usize)>,
    /// Where the points are noted that it passes.
    pub(crate) log: Option<PathBuf>,
    /// Another build than that of its world.
    pub(crate) build: Option<Build>,
    /// Another store than that of its world.
    pub(crate) store: Option<String>,
}

impl Setting {
    pub(crate) const PLAIN: Self = Self {
        timing: Timing::Prompt,
        kill_at: None,
        log: None,
        build: None,
        store: None,
    };
}

/// A folder of its own for one play.
#[derive(Debug)]
pub(crate) struct World {
    folder: TempDir,
    database: Option<Database>,
    build: Build,
    started: AtomicUsize,
    /// How long the last process was watched, in microseconds.
    took: AtomicU64,
}

impl World {
    pub(crate) fn new(build: Build, scenario: &Scenario) -> Self {
        let database = match scenario.shelf {
            Shelf::Sqlite => None,
            Shelf::Postgres => Some(Database::create().unwrap()),
        };
        Self::with(build, scenario, database)
    }

    /// With its store in this database.
    pub(crate) fn on(build: Build, scenario: &Scenario, database: Database) -> Self {
        Self::with(build, scenario, Some(database))
    }

    fn with(build: Build, scenario: &Scenario, database: Option<Database>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        agent::write(folder.path(), scenario);
        Self {
            folder,
            database,
            build,
            started: AtomicUsize::new(0),
            took: AtomicU64::new(0),
        }
    }

    pub(crate) const fn build(&self) -> Build {
        self.build
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::read(&self.path("ledger.jsonl"))
    }

    /// Keeps the folder for a person to look at, unless what went wrong there was meant to.
    pub(crate) fn keep(self) -> Option<PathBuf> {
        matches!(self.build, Build::Sound | Build::Shipped).then(|| self.folder.keep())
    }

    /// Keeps the folder and says where it is.
    pub(crate) fn keep_and_say(self) {
        if let Some(folder) = self.keep() {
            println!("{} shows what happened", folder.display());
        }
    }

    pub(crate) fn store(&self) -> String {
        match &self.database {
            None => format!("sqlite:{}", self.path("store.db").display()),
            Some(database) => database.url(),
        }
    }

    /// Starts `holdpoint` with these words.
    pub(crate) fn spawn(&self, words: &[&str], setting: &Setting) -> Running {
        self.start(&[words, &["--json"]].concat(), setting)
    }

    /// Starts a server of the agent.
    pub(crate) fn serve(&self, address: SocketAddr, door: Door, setting: &Setting) -> Running {
        let (agent, address) = (self.path("agent.yaml"), address.to_string());
        let agent = agent.to_str().unwrap();
        let mut words = vec!["serve", "--listen", &address, agent];
        let config = self.path(CONFIG);
        if config.exists() {
            words.extend(["--config", config.to_str().unwrap()]);
        }
        match door {
            Door::Open => words.push("--dev"),
            Door::Locked => {}
        }
        self.start(&words, setting)
    }

    fn start(&self, words: &[&str], setting: &Setting) -> Running {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let name = format!("{number:03}-{}", words.first().unwrap());
        let (stdout, stderr) = (
            self.path(&format!("{name}.out")),
            self.path(&format!("{name}.err")),
        );
        let build = setting.build.unwrap_or(self.build);
        let mut command = Command::new(build.path());
        command
            .args(words)
            .env(
                "HOLDPOINT_STORE",
                setting.store.clone().unwrap_or_else(|| self.store()),
            )
            .env("PATH", path_with_tools())
            .env("LEDGER", self.path("ledger.jsonl"))
            .env("SINK_SECRET", SECRET)
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap());
        for variable in ["HOLDPOINT_FAILPOINT", "HOLDPOINT_FAILPOINT_LOG"] {
            command.env_remove(variable);
        }
        if self.database.is_some() || self.path(CONFIG).exists() {
            command.env("HOLDPOINT_TEST_LEASE_MS", LEASE.as_millis().to_string());
        }
        if let Some((point, nth)) = setting.kill_at.filter(|(point, _)| is_inside(point)) {
            command.env("HOLDPOINT_FAILPOINT", format!("{point}:{nth}"));
        }
        if let Some(log) = &setting.log {
            command.env("HOLDPOINT_FAILPOINT_LOG", log);
        }
        match setting.timing {
            Timing::Prompt => {}
            Timing::ActsLate(millis) => {
                command.env("LEDGER_DELAY_BEFORE_MS", millis.to_string());
            }
            Timing::EndsLate(millis) => {
                command.env("LEDGER_DELAY_AFTER_MS", millis.to_string());
            }
        }
        Running {
            child: command.spawn().unwrap(),
            words: words.join(" "),
            stdout,
            stderr,
        }
    }

    /// Runs `holdpoint` with these words to its end.
    pub(crate) fn call(&self, words: &[&str], setting: &Setting) -> Ended {
        self.finish(self.spawn(words, setting), setting)
    }

    /// Lets a process run to its end, or to the point outside of it at which it is killed.
    pub(crate) fn finish(&self, running: Running, setting: &Setting) -> Ended {
        let watch = Watch::start();
        let ended = self.end(running, setting);
        let took = u64::try_from(watch.elapsed().as_micros()).unwrap();
        self.took.store(took, Ordering::Relaxed);
        ended
    }

    /// How long the last process took.
    pub(crate) fn last_took(&self) -> Duration {
        Duration::from_micros(self.took.load(Ordering::Relaxed))
    }

    fn end(&self, mut running: Running, setting: &Setting) -> Ended {
        match setting.kill_at {
            Some((CLOCK, micros)) => {
                thread::sleep(Duration::from_micros(micros.try_into().unwrap()));
                running.kill()
            }
            Some((LEDGER_ATTEMPTED, attempts)) => {
                running.wait_until(|| self.ledger().attempts() >= attempts);
                running.kill()
            }
            Some((LEDGER_WRITTEN, acts)) => {
                running.wait_until(|| self.ledger().acts() >= acts);
                running.kill()
            }
            Some(_) | None => running.wait(),
        }
    }

    /// Starts the run.
    pub(crate) fn run(&self, session: &str, setting: &Setting) -> Ended {
        let agent = self.path("agent.yaml");
        let agent = agent.to_str().unwrap();
        let words = ["run", agent, "--input", "please", "--thread", session];
        self.call(&words, setting)
    }

    /// The question that is meant, if it is pending.
    pub(crate) fn question(&self, which: Which) -> Option<String> {
        let view = self.show(SESSION);
        let pending = view["__interrupt__"].as_array()?.iter();
        let meant = pending
            .filter(|interrupt| interrupt["kind"] != "error")
            .filter(|interrupt| {
                let value = &interrupt["value"];
                match which {
                    Which::Only => true,
                    Which::Order(order) => value["action_requests"][0]["args"]["order_id"] == order,
                    Which::Named(name) => value["question"]["name"] == name,
                }
            });
        let mut ids = meant.filter_map(|interrupt| interrupt["id"].as_str());
        let id = ids.next();
        id.filter(|_| ids.next().is_none()).map(str::to_owned)
    }

    /// Waits until the first question that is pending is due, if any is.
    pub(crate) fn await_due(&self) {
        let view = self.show(SESSION);
        let pending = view["__interrupt__"].as_array().cloned();
        let due = pending.unwrap_or_default();
        let due = due.iter().filter_map(|it| it["expires_at"].as_u64()).min();
        while due.is_some_and(|due| now() <= Duration::from_micros(due)) {
            thread::sleep(Duration::from_millis(3));
        }
    }

    /// How the run stands; an error object if there is none.
    pub(crate) fn show(&self, session: &str) -> Value {
        let shown = self.call(&["show", session], &Setting::PLAIN);
        shown.only_line()
    }
}

/// Since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "what is due is due by the clock of other processes"
)]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

fn path_with_tools() -> OsString {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(example_tools()).chain(std::env::split_paths(&old));
    std::env::join_paths(folders).unwrap()
}
