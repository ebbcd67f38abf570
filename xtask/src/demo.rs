//! `cargo xtask demo`: the server with all the examples, and what to try.

use std::{
    fs,
    io::ErrorKind,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command},
    thread,
    time::Duration,
};

use anyhow::{Context, bail, ensure};

use crate::{env, variants::Programs};

const ADDRESS: &str = "127.0.0.1:8888";
const PATIENCE: Duration = Duration::from_secs(20);

/// Builds everything, starts the server, says what to do next, and waits until it is stopped.
pub(crate) fn demo() -> anyhow::Result<()> {
    let programs = Programs::build_plain()?;
    let address: SocketAddr = ADDRESS.parse()?;
    ensure!(
        TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err(),
        "something listens on {ADDRESS} already; stop it first"
    );
    let folder = env::target_dir()?.join("demo");
    // What waits there goes on waiting: that is what the demo is about.
    copy(&env::root().join("examples"), &folder)?;
    let mut server = start(&programs.built(), &folder)?;
    if let Err(error) = wait_for(&mut server, address) {
        let _ = server.kill();
        return Err(error);
    }
    println!("{}", what_next());
    let status = server.wait()?;
    ensure!(status.success(), "the server ended with {status}");
    Ok(())
}

/// Copies the examples to a folder to play in: their stores and ledgers are nobody else's.
pub(crate) fn copy_examples_to(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).context(folder.display().to_string());
        }
        Ok(()) | Err(_) => {}
    }
    copy(&env::root().join("examples"), folder)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            // The tools are programs, and what a server left behind is not part of an example.
            let name = entry.file_name();
            if name != "tools" && !name.to_string_lossy().ends_with(".owners") {
                copy(&source, &target)?;
            }
        } else if !is_leftover(&source) {
            fs::copy(&source, &target).with_context(|| source.display().to_string())?;
        }
    }
    Ok(())
}

fn is_leftover(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.contains(".db") || name.ends_with(".jsonl")
}

fn start(programs: &Path, folder: &Path) -> anyhow::Result<Child> {
    // Command tools of the examples are found beside the binary.
    let path = env::path_with(programs)?;
    Command::new(programs.join("holdpoint"))
        .args([
            "serve",
            "--dev",
            "--config",
            "server.yaml",
            "--listen",
            ADDRESS,
        ])
        .current_dir(folder)
        .env("PATH", path)
        // Somebody's own store is none to play in.
        .env_remove("HOLDPOINT_STORE")
        .spawn()
        .context("the server cannot be started")
}

fn wait_for(server: &mut Child, address: SocketAddr) -> anyhow::Result<()> {
    let pause = Duration::from_millis(50);
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        if let Some(status) = server.try_wait()? {
            bail!("the server ended with {status}");
        }
        if TcpStream::connect_timeout(&address, pause).is_ok() {
            return Ok(());
        }
        thread::sleep(pause);
        waited += pause;
    }
    bail!(
        "the server does not listen on {address} after {} s",
        PATIENCE.as_secs()
    )
}

fn what_next() -> String {
    let post = |path: &str, body: &str| {
        format!(
            "  curl --no-buffer -X POST http://{ADDRESS}/api/v1/chat/{path} \\\n    -H 'Content-Type: application/json' \\\n    -d '{body}'"
        )
    };
    let talk = post(
        "stream",
        r#"{"agent_id":"approval-agent","session_id":"deploy-123","message":"部署 v2.0 到生产环境"}"#,
    );
    let answer = |yes: bool| {
        post(
            "resume",
            &format!(
                r#"{{"agent_id":"approval-agent","session_id":"deploy-123","input":{{"confirm":{yes}}}}}"#
            ),
        )
    };
    format!(
        "
The approval agent's model `gpt-4o` and its store `redis` are mapped in examples/server.yaml: the model is played from a file,
the store is SQLite. In another terminal:

1. Talk to it. It asks before it deploys:
{talk}

2. See what it waits for:
  curl 'http://{ADDRESS}/api/v1/chat/interrupt_state?agent_id=approval-agent&session_id=deploy-123'

3. Confirm:
{}

4. Or refuse:
{}

What waits for somebody:   http://{ADDRESS}/
The API:                   http://{ADDRESS}/docs
The other examples:        curl http://{ADDRESS}/api/v1/agents
A walk with kill -9:       cargo xtask walk

Ctrl+C ends it. Everything is kept in target/demo, and there again at the next start; remove that folder to begin afresh.
",
        answer(true),
        answer(false)
    )
}
