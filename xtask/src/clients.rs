//! Clients of the server as others would write them, against the real binary.

use std::process::{Command, Stdio};

use anyhow::Context;

use crate::{
    env,
    step::{self, run},
    variants::Programs,
};

/// Installs what the clients in Node need, and runs them.
pub(crate) fn node(programs: &Programs) -> anyhow::Result<()> {
    if !is_there("node") || !is_there("npm") {
        install(&["nodejs", "npm"])?;
    }
    let folder = env::root().join("clients/node");
    let npm = |words: &[&str]| {
        let mut npm = Command::new("npm");
        npm.args(words).current_dir(&folder);
        npm
    };
    // Without a lock file, since its one dependency is named with its exact version and has none of its own.
    let quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--silent"];
    run(npm(&["install"]).args(quiet))?;
    let mut test = npm(&["test"]);
    programs.announce(&mut test);
    run(&mut test)
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
