//! `holdpoint`, the one binary: agents that stop before risky actions, and the people who decide.
//!
//! A door without logic of its own: it reads arguments, asks the engine, and prints. What may happen is decided in core.

mod agent_file;
mod args;
mod ask;
mod backups;
mod commands;
mod env;
mod exit;
mod failure;
mod kit;
mod leaving;
mod pending;
mod place;
mod safe_text;
mod screen;
mod session;
mod story;
mod terminal;
mod thread_name;
mod traces;
mod zone;

use std::process::ExitCode;

use holdpoint_store::{Trade, workers};

use crate::{exit::Exit, failure::Failure};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Must come first: the same executable is started again as the watchdog of every command tool.
    holdpoint_tools::enter();
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let trade = if matches!(cli.command, args::Command::Serve(_)) {
        Trade::Serving
    } else {
        Trade::Driving
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers(trade))
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            Failure::unusable("no_threads", format!("no thread can be started: {error}")).print();
            return Exit::Usage.into();
        }
    };
    let exit = runtime.block_on(async {
        let exit = commands::run(cli).await;
        traces::flush().await;
        exit
    });
    // A read of the terminal cannot be taken back, and nobody waits for its line any more.
    runtime.shutdown_background();
    if terminal::has_lost_output() {
        return Exit::Usage.into();
    }
    exit.into()
}
