//! PostgreSQL's own programs: found, and installed where that is possible.

use std::{
    env, fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use crate::program;

/// Where Debian puts them, a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// What Debian calls the package, and its user.
const PACKAGE: &str = "postgresql";
const USER: &str = "postgres";
/// Where PgBouncer is.
const PGBOUNCER: [&str; 2] = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
/// So that installing the package starts no server, and takes no port from anybody.
const NO_CLUSTER: (&str, &str) = (
    "/etc/postgresql-common/createcluster.d/holdpoint.conf",
    "create_main_cluster = false\n",
);

/// PostgreSQL's own programs.
#[derive(Debug, Clone)]
pub struct Programs {
    folder: PathBuf,
    /// The user to run them as, where we are the one that they refuse to run as.
    user: Option<(u32, u32)>,
}

impl Programs {
    /// Finds them, on the search path or where Debian puts them, and installs Debian's package if they are not there and
    /// that is possible.
    ///
    /// # Errors
    ///
    /// They are not there, with what to install.
    pub fn find_or_install() -> anyhow::Result<Self> {
        if let Some(folder) = find() {
            return Self::in_folder(folder);
        }
        if may_install() {
            install(PACKAGE)?;
            if let Some(folder) = find() {
                return Self::in_folder(folder);
            }
        }
        bail!(
            "PostgreSQL is not installed: there is no `initdb` on the search path or in {DEBIAN}/*/bin. Install it \
             (on Debian: `apt-get install {PACKAGE}`), or name a server with {}",
            crate::VARIABLE
        )
    }

    fn in_folder(folder: PathBuf) -> anyhow::Result<Self> {
        let user = if rustix::process::geteuid().is_root() {
            Some(user().with_context(|| {
                format!("PostgreSQL does not run as root, and there is no user `{USER}`")
            })?)
        } else {
            None
        };
        Ok(Self { folder, user })
    }

    /// One of them, to be run in a folder.
    pub(crate) fn command(&self, name: &str, within: &Path) -> Command {
        self.run_as_user(&self.folder.join(name), within)
    }

    /// Installs Debian's package of PgBouncer, if it is not there and that is possible.
    ///
    /// # Errors
    ///
    /// It cannot be installed.
    pub fn install_pgbouncer() -> anyhow::Result<()> {
        if find_pgbouncer().is_none() && may_install() {
            install("pgbouncer")?;
        }
        Ok(())
    }

    /// PgBouncer, to be run in a folder.
    pub(crate) fn pgbouncer(&self, within: &Path) -> anyhow::Result<Command> {
        let program = find_pgbouncer().context(
            "PgBouncer is not installed; install it (on Debian: `apt-get install pgbouncer`)",
        )?;
        Ok(self.run_as_user(program, within))
    }

    fn run_as_user(&self, program: &Path, within: &Path) -> Command {
        let mut command = match self.user {
            None => Command::new(program),
            Some((user, group)) => {
                let mut command = Command::new("setpriv");
                command
                    .args(["--reuid", &user.to_string(), "--regid", &group.to_string()])
                    .args(["--clear-groups", "--"])
                    .arg(program);
                command
            }
        };
        command.current_dir(within);
        command
    }

    /// Gives a folder to whoever runs them.
    pub(crate) fn give(&self, folder: &Path) -> anyhow::Result<()> {
        if let Some((user, group)) = self.user {
            chown(folder, Some(user), Some(group)).with_context(|| folder.display().to_string())?;
        }
        Ok(())
    }
}

fn find() -> Option<PathBuf> {
    let on_path = env::var_os("PATH")
        .into_iter()
        .flat_map(|path| env::split_paths(&path).collect::<Vec<_>>())
        // Debian's own `pg_ctl` on the path is a wrapper for its own servers; where `initdb` is, there is the real one.
        .find(|folder| program(folder, "initdb").is_some() && program(folder, "pg_ctl").is_some())
        // Where somebody has linked some of them to, all of them are.
        .map(|folder| {
            let real = folder.join("initdb").canonicalize().ok();
            let home = real.and_then(|file| Some(file.parent()?.to_owned()));
            home.unwrap_or(folder)
        });
    on_path.or_else(|| {
        let mut versions: Vec<PathBuf> = fs::read_dir(DEBIAN)
            .ok()?
            .flatten()
            .map(|entry| entry.path().join("bin"))
            .filter(|folder| program(folder, "initdb").is_some())
            .collect();
        versions.sort();
        versions.pop()
    })
}

fn find_pgbouncer() -> Option<&'static Path> {
    PGBOUNCER.iter().map(Path::new).find(|file| file.is_file())
}

fn may_install() -> bool {
    rustix::process::geteuid().is_root() && Path::new("/usr/bin/apt-get").exists()
}

fn install(package: &str) -> anyhow::Result<()> {
    let (file, text) = NO_CLUSTER;
    if let Some(folder) = Path::new(file).parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text).with_context(|| file.to_owned())?;
    for words in [
        vec!["update"],
        vec!["install", "--yes", "--no-install-recommends", package],
    ] {
        eprintln!("$ apt-get {}", words.join(" "));
        let status = Command::new("apt-get")
            .args(&words)
            .env("DEBIAN_FRONTEND", "noninteractive")
            // So that nothing is started by being installed.
            .env("RUNLEVEL", "1")
            .status()
            .context("apt-get")?;
        anyhow::ensure!(status.success(), "`apt-get {}`: {status}", words.join(" "));
    }
    Ok(())
}

/// The user that the package makes.
fn user() -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let (user, group) = (fields.nth(1)?, fields.next()?);
        (name == USER).then_some(())?;
        Some((user.parse().ok()?, group.parse().ok()?))
    })
}
