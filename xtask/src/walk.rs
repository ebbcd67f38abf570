//! `cargo xtask walk`: stop, kill -9, restart, approve. What it tells is also what it checks.

mod stage;

use std::os::unix::process::ExitStatusExt as _;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::variants::Programs;
use stage::Stage;

const THREAD: &str = "monday";
const LEDGER: &str = "holdpoint-example-ledger";
/// Long enough to be killed in, and shorter than the tool's time-out.
const DELAY: (&str, &str) = ("LEDGER_DELAY_AFTER_MS", "4000");
const KILLED: i32 = 9;

/// Walks through it.
pub(crate) fn walk() -> anyhow::Result<()> {
    let programs = Programs::build_plain()?;
    let stage = Stage::set(programs.built(), "examples/refund")?;
    stage.tell(
        "An agent that refunds orders. Its model is played from a file, so no account is needed;\n\
         its tool is a program that adds a line to a ledger for every refund.",
    );
    stage.show_setting();
    stop_at_the_gate(&stage)?;
    kill_in_the_middle(&stage)?;
    go_on(&stage)?;
    stage.tell("Everything that happened is in the journal: who decided, what started, what was found out.");
    stage.run(&["holdpoint", "trace", THREAD], &[], 0)?;
    whats_next(&stage);
    Ok(())
}

fn stop_at_the_gate(stage: &Stage) -> anyhow::Result<()> {
    stage.tell(
        "1. It looks the order up by itself, and stops before it pays: `issue_refund` is gated.\n   \
         The stop is on disk, the process ends with exit code 3, and nothing waits in memory.",
    );
    let input = "Please refund order 1001";
    let run = [
        "holdpoint",
        "run",
        "agent.yaml",
        "--input",
        input,
        "--thread",
        THREAD,
    ];
    stage.run(&run, &[], 3)?;
    let shown = stage.read(&["holdpoint", "show", THREAD, "--json"])?;
    let shown: Value = serde_json::from_str(&shown).context("`show --json` printed no JSON")?;
    ensure!(
        shown["__interrupt__"][0]["value"]["action_requests"][0]["name"] == "issue_refund",
        "no question about `issue_refund` is pending"
    );
    ensure!(
        refunds(stage)? == 0,
        "a refund was made before it was approved"
    );
    Ok(())
}

fn kill_in_the_middle(stage: &Stage) -> anyhow::Result<()> {
    stage.tell(
        "2. Another process approves and goes on. The payment program is made slow, so that there is\n   \
         time to pull the plug: kill -9, after the money has moved and before anyone has noted it.",
    );
    let started = stage.count_events("action_started")?;
    let resume = ["holdpoint", "resume", THREAD, "--approve"];
    let mut driver = stage.spawn(&resume, &[DELAY])?;
    let in_the_call = || {
        let called = stage.count_events("action_started")? > started;
        Ok(called && refunds(stage)? == 1)
    };
    let reached = stage.wait_until("the payment program has acted", in_the_call);
    // Whatever came of the wait, nobody is left behind.
    driver.kill().context("the process cannot be killed")?;
    let status = driver.wait()?;
    reached?;
    ensure!(
        status.signal() == Some(KILLED),
        "it was not killed, but ended with {status}"
    );
    stage.type_out(&format!("kill -9 {}", driver.id()), &[]);
    stage.tell(
        "   Now the ledger has a refund that the journal does not know of. A retry would pay twice,\n   \
         and giving up would forget a payment.",
    );
    stage.run(&[LEDGER, "count"], &[], 0)?;
    stage.run(&["holdpoint", "runs"], &[], 0)
}

fn go_on(stage: &Stage) -> anyhow::Result<()> {
    stage.tell(
        "3. `recover` finds what the dead process left. It waits until the call can no longer act\n   \
         (its time-out, 5 s, and 1 s to settle), asks the tool what became of it, and goes on.",
    );
    stage.run(&["holdpoint", "recover"], &[], 0)?;
    let found = stage.count_events("action_looked_up")?;
    ensure!(found == 1, "the call was looked up {found} times");
    stage.tell("4. The ledger, written by another program: one refund, none doubled.");
    stage.run(&[LEDGER, "count"], &[], 0)?;
    let refunds = refunds(stage)?;
    ensure!(refunds == 1, "there are {refunds} refunds");
    Ok(())
}

/// How many refunds the ledger holds, all keys together.
fn refunds(stage: &Stage) -> anyhow::Result<u64> {
    let tally: Value = serde_json::from_str(&stage.read(&[LEDGER, "count"])?)?;
    let effects = tally["effects"]
        .as_object()
        .context("the ledger counts nothing")?;
    Ok(effects.values().filter_map(Value::as_u64).sum())
}

fn whats_next(stage: &Stage) {
    stage.tell("All of this was checked as it went: exit codes, the journal, one refund. To try next, here:");
    stage.show_setting();
    println!(
        "
  holdpoint run agent.yaml --input \"Please refund order 1001\" --thread tuesday
                              on a terminal it asks, and you decide
  holdpoint show {THREAD}       how the run stands, and its checkpoint
  holdpoint check agent.yaml  what is wrong with a definition; break it and see

The agent is agent.yaml, its model's words are in scenario.yaml; both can be edited.
README.md and docs/index.md lead on."
    );
}
