//! Starts a program in a process group of its own and waits for it, so that a watchdog that kills the group it knows does
//! not reach the program: it outlives its driver and acts when nobody is left to hear of it.
//!
//! Once the program is started, that is noted in the ledger as an attempt.

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use example_tools::{Call, Ledger, environment};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: holdpoint-torture-outlive PROGRAM [ARGUMENTS]");
        return ExitCode::FAILURE;
    };
    let started = Command::new(program).args(words).process_group(0).spawn();
    let Ok(mut program) = started else {
        return ExitCode::from(70);
    };
    note();
    let ended = program.wait();
    let code = ended.ok().and_then(|status| status.code());
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(70))
}

/// From here on nobody can stop it.
fn note() {
    let ledger = environment("LEDGER").unwrap_or_else(|| "ledger.jsonl".to_owned());
    let call = Call {
        key: environment("HOLDPOINT_IDEMPOTENCY_KEY").unwrap_or_default(),
        epoch: 0,
        args: serde_json::Map::new(),
    };
    if let Err(error) = Ledger::at(ledger).attempt(&call) {
        eprintln!("{error:#}");
    }
}
