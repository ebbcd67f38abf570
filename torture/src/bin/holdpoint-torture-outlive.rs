//! Starts a program in a process group of its own and waits for it, so that a watchdog that kills the group it knows does
//! not reach the program: it outlives its driver and acts when nobody is left to hear of it.

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: holdpoint-torture-outlive PROGRAM [ARGUMENTS]");
        return ExitCode::FAILURE;
    };
    let ended = Command::new(program).args(words).process_group(0).status();
    let code = ended.ok().and_then(|status| status.code());
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(70))
}
