//! A Python of its own for the peer, so that what is installed on the machine neither helps nor hinders.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, ensure};
use tokio::process::Command;

/// What is said when it does not work.
const HELP: &str = "LangGraph could not be installed. It takes `python3`, 3.11 or newer, with its `venv`, and a package \
index that pip can reach; to measure without it: `cargo xtask bench --system holdpoint --system ceiling`";

/// Installs what a file lists, beneath a folder. Returns the Python that has it.
pub(super) async fn install(requirements: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    let wanted = fs::read_to_string(requirements)
        .with_context(|| format!("cannot read `{}`", requirements.display()))?;
    // Written last, so that it stands for all before it.
    let stamp = folder.join("installed.txt");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("installing LangGraph into `{}`", venv.display());
    fs::create_dir_all(folder)?;
    let is_new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    run(Command::new("python3").args(["-c", is_new_enough]))
        .await
        .context(HELP)?;
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&venv))
    .await
    .context(HELP)?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ];
    run(Command::new(&python).args(pip).arg(requirements))
        .await
        .context(HELP)?;
    fs::write(stamp, wanted)?;
    Ok(python)
}

async fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command
        .as_std()
        .get_program()
        .to_string_lossy()
        .into_owned();
    // What it says is for the person who waits; ours is the only data.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command
        .status()
        .await
        .with_context(|| format!("`{program}` cannot be started"))?;
    ensure!(status.success(), "`{program}` failed: {status}");
    Ok(())
}
