//! Clients of the server as others would write them, against the real binary.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::Context;

use crate::{
    demo, env,
    step::{self, run},
    variants::Programs,
};

/// Installs what the clients in Node need, a browser among it, and runs them.
pub(crate) fn node(programs: &Programs) -> anyhow::Result<()> {
    if !is_there("node") || !is_there("npm") {
        install(&["nodejs", "npm"])?;
    }
    if !is_there("chromium") {
        install(&["chromium"])?;
    }
    let folder = env::root().join("clients/node");
    let npm = |words: &[&str]| {
        let mut npm = Command::new("npm");
        npm.args(words).current_dir(&folder);
        npm
    };
    // Without a lock file, since what it depends on is named with its exact version.
    let quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--silent"];
    run(npm(&["install"]).args(quiet))?;
    let mut test = npm(&["test"]);
    programs.announce(&mut test);
    run(&mut test)
}

/// The fuzzer's version: another one may find more, but then at a time of our own choosing.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// Has a fuzzer read what the server says of itself, and hold it to that: no answer of a broken server, and none that is not
/// described.
pub(crate) fn schemathesis(programs: &Programs) -> anyhow::Result<()> {
    let venv = env::target_dir()?.join("schemathesis");
    let fuzzer = venv.join("bin/schemathesis");
    if !fuzzer.exists() {
        if !is_there("python3") {
            install(&["python3", "python3-venv"])?;
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let mut pip = Command::new(venv.join("bin/pip"));
        run(pip.args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            SCHEMATHESIS,
        ]))?;
    }
    let server = Served::start(programs)?;
    let mut fuzz = Command::new(fuzzer);
    fuzz.current_dir(server.folder())
        .args(["run", &format!("{}/openapi.json", server.url())])
        .args([
            "--header",
            &format!("Authorization: Bearer {}", server.key()),
        ])
        .args(["--phases", "examples,coverage,fuzzing", "--seed", "1"])
        .args(["--max-examples", "25", "--continue-on-failure"])
        .args(["--checks", CHECKS]);
    run(&mut fuzz)
}

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,\
                      negative_data_rejection";

/// A server with the examples, in a folder of its own, that ends with us.
#[derive(Debug)]
struct Served {
    process: Child,
    folder: PathBuf,
    url: String,
    key: String,
}

impl Served {
    fn start(programs: &Programs) -> anyhow::Result<Self> {
        let folder = env::target_dir()?.join("fuzzed");
        demo::copy_examples_to(&folder)?;
        let binary = programs.built().join("holdpoint");
        let command = |words: &[&str]| -> anyhow::Result<Command> {
            let mut command = Command::new(&binary);
            command
                .args(words)
                .current_dir(&folder)
                .env("PATH", env::path_with(&programs.built())?)
                .env("HOLDPOINT_LOG", "warn")
                .env_remove("HOLDPOINT_STORE");
            Ok(command)
        };
        let made = ["keys", "create", "--tenant", "acme", "--name", "fuzzer"];
        let made = command(&made)?.output()?;
        anyhow::ensure!(made.status.success(), "no key could be made");
        let key = String::from_utf8(made.stdout)?.trim().to_owned();
        let serve = [
            "serve",
            "--config",
            "server.yaml",
            "--listen",
            "127.0.0.1:0",
        ];
        let mut process = command(&serve)?.stderr(Stdio::piped()).spawn()?;
        let stderr = process.stderr.take().context("the server has no stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let url = loop {
            let line = lines.next().context("the server ended")??;
            if let Some((_, url)) = line.split_once("listens on ") {
                break url.to_owned();
            }
        };
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| eprintln!("{line}"))
        });
        Ok(Self {
            process,
            folder,
            url,
            key,
        })
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended needs no end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_there(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// Installs packages of the system. That takes a root user and a Debian.
fn install(packages: &[&str]) -> anyhow::Result<()> {
    let names = packages.join(" ");
    let missing = || format!("{names} must be installed, and could not be");
    run(Command::new("apt-get").args(["update", "-qq"])).with_context(missing)?;
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-qq"]).args(packages);
    step::run(&mut install).with_context(missing)
}
