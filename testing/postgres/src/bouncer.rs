//! A private PgBouncer before a server.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};

use tempfile::TempDir;

use crate::{Database, Programs, free_port};

/// How often is looked whether it is there yet, and how many times.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: usize = 500;

/// A PgBouncer in transaction mode, gone when it is dropped.
#[derive(Debug)]
pub struct Bouncer {
    process: Child,
    folder: TempDir,
    address: SocketAddr,
}

impl Bouncer {
    /// Starts one before the server of a database, with no more than so many connections to it for all its clients.
    ///
    /// # Errors
    ///
    /// It is not installed and cannot be, or does not start.
    pub fn before(database: &Database, connections: usize) -> anyhow::Result<Self> {
        let server = database.address()?;
        let programs = Programs::find_or_install()?;
        let folder = tempfile::tempdir()?;
        programs.give(folder.path())?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let settings = format!(
            "[databases]\n* = host={} port={} user=postgres\n\
             [pgbouncer]\nlisten_addr = {}\nlisten_port = {}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = {connections}\nmax_client_conn = 500\n\
             logfile = {}\n",
            server.ip(),
            server.port(),
            address.ip(),
            address.port(),
            folder.path().join("log").display(),
        );
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, settings).with_context(|| file.display().to_string())?;
        let mut command = programs.pgbouncer(folder.path())?;
        command
            .arg("--quiet")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let bouncer = Self {
            process: command.spawn().context("pgbouncer")?,
            folder,
            address,
        };
        for _ in 0..LOOKS {
            if TcpStream::connect(address).is_ok() {
                return Ok(bouncer);
            }
            thread::sleep(LOOK);
        }
        let log = fs::read_to_string(bouncer.folder.path().join("log")).unwrap_or_default();
        bail!("PgBouncer does not listen: {log}")
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
