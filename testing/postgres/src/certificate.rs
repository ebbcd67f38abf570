//! A certificate for a private server.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use tempfile::TempDir;

use crate::{Programs, run};

/// A certificate for `localhost`, signed by nobody else, and its key.
#[derive(Debug)]
pub struct Certificate {
    folder: TempDir,
}

impl Certificate {
    /// Makes one that whoever runs these programs can use.
    ///
    /// # Errors
    ///
    /// There is no `openssl` to make it with.
    pub fn make(programs: &Programs) -> anyhow::Result<Self> {
        // One that may sign others is not taken for that of a server.
        Self::with(programs, "basicConstraints=critical,CA:FALSE")
    }

    /// Makes one that may sign others, which is how many make one for themselves.
    ///
    /// # Errors
    ///
    /// As [`Certificate::make`].
    pub fn make_authority(programs: &Programs) -> anyhow::Result<Self> {
        Self::with(programs, "basicConstraints=critical,CA:TRUE")
    }

    fn with(programs: &Programs, constraints: &str) -> anyhow::Result<Self> {
        let certificate = Self {
            folder: tempfile::tempdir()?,
        };
        let (file, key) = (certificate.file(), certificate.key());
        let mut openssl = Command::new("openssl");
        openssl
            .args(["req", "-x509", "-nodes", "-days", "7", "-newkey", "ec"])
            .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost"])
            .args(["-addext", constraints])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&file);
        run(&mut openssl).context("a certificate is made with `openssl`; install it")?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        for path in [certificate.folder.path(), &file, &key] {
            programs.give(path)?;
        }
        Ok(certificate)
    }

    /// What a server is told to use it.
    #[must_use]
    pub fn settings(&self) -> [String; 3] {
        let path = |path: &Path| path.display().to_string();
        [
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", path(&self.file())),
            format!("ssl_key_file={}", path(&self.key())),
        ]
    }

    /// Where the certificate is, for those who are to trust it.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("server.crt")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("server.key")
    }
}
