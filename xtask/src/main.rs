//! What developers run: `cargo xtask COMMAND`. It needs nothing but Rust, and `bench` Python and npm for its peers.

mod check;
mod clients;
mod demo;
mod env;
mod listing;
mod requirements;
mod services;
mod step;
mod tables;
mod torture;
mod variants;
mod walk;

use std::process::{Command, ExitCode};

const HELP: &str = "usage: cargo xtask COMMAND

  check                          format, lints, and the map from requirements to tests
  test                           check, then every test; this is what CI runs
  torture [--only X] [--seed N]  the safety tests in full; fills docs/reliability.md
                                 --only those with X in their name: prints the tables instead
  bench [ARGUMENTS]              benchmarks; writes docs/performance.md
  demo                           the server on 127.0.0.1:8888 with all the examples, and what to try
  walk                           stop, kill -9, restart, approve: a narrated walk on the command line

Tests that start the binary need the builds that `test` makes. To run a single one again, name it after
`cargo xtask torture --only`, or set the variables that CONTRIBUTING.md lists.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> anyhow::Result<()> {
    let Some((command, rest)) = words.split_first() else {
        eprintln!("{HELP}");
        anyhow::bail!("no command was given");
    };
    if !rest.is_empty() && matches!(command.as_str(), "check" | "test" | "demo" | "walk") {
        anyhow::bail!(
            "`{command}` takes no arguments, but got `{}`",
            rest.join(" ")
        );
    }
    match command.as_str() {
        "check" => check::check(),
        "test" => check::test(),
        "torture" => torture::torture(&torture::Options::parse(rest)?),
        "bench" => bench(rest),
        "demo" => demo::demo(),
        "walk" => walk::walk(),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        unknown => {
            eprintln!("{HELP}");
            anyhow::bail!("`{unknown}` is not a command")
        }
    }
}

fn bench(arguments: &[String]) -> anyhow::Result<()> {
    step::run(&mut step::cargo(&[
        "build",
        "--release",
        "-p",
        "holdpoint-bench",
    ]))?;
    let bench = env::target_dir()?.join("release/holdpoint-bench");
    step::run(Command::new(bench).args(arguments).current_dir(env::root()))
}
