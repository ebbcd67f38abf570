//! The tools of the refund agent, and the ledger in which a double effect can be seen.
//!
//! `LEDGER` names the ledger file (`ledger.jsonl` when unsaid). For tests of crashes, `LEDGER_DELAY_BEFORE_MS` is waited
//! before the effect and `LEDGER_DELAY_AFTER_MS` after it.

use std::{process::ExitCode, thread, time::Duration};

use example_tools::{Call, Ended, Ledger, environment, finish};
use serde_json::{Value, json};

const USAGE: &str = "usage: holdpoint-example-ledger COMMAND

  refund      act blindly: one more effect for every call
  pay-once    act once per key; every call is noted as an attempt
  read        print an order; no effect
  lookup      print whether the effect of the key stands
  compensate  reverse the effect of the key
  count       print the effects per key, and which were doubled

All but `count` are called by Holdpoint: arguments as JSON on stdin, HOLDPOINT_IDEMPOTENCY_KEY in the environment.";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match (words.next(), words.next()) {
        (Some(command), None) => finish(run(&command)),
        _ => finish(Err(misused())),
    }
}

fn run(command: &str) -> Result<Value, Ended> {
    let path = environment("LEDGER").unwrap_or_else(|| "ledger.jsonl".to_owned());
    let ledger = Ledger::at(path);
    Ok(match command {
        "refund" => around(|call| ledger.act(call))?,
        "pay-once" => around(|call| ledger.act_once(call))?,
        "compensate" => around(|call| ledger.reverse(call))?,
        "read" => around(|call| Ok(order(call)))?,
        "lookup" => ledger.look_up(&Call::receive()?.key)?,
        "count" => ledger.tally()?.to_value(),
        _ => return Err(misused()),
    })
}

/// Waits, acts, waits.
fn around(act: impl FnOnce(&Call) -> anyhow::Result<Value>) -> Result<Value, Ended> {
    let call = Call::receive()?;
    let (before, after) = (
        delay("LEDGER_DELAY_BEFORE_MS")?,
        delay("LEDGER_DELAY_AFTER_MS")?,
    );
    thread::sleep(before);
    let result = act(&call)?;
    thread::sleep(after);
    Ok(result)
}

fn delay(name: &str) -> Result<Duration, Ended> {
    let millis = environment(name).unwrap_or_else(|| "0".to_owned());
    let millis = millis
        .parse()
        .map_err(|_| Ended::Refused(format!("{name} `{millis}` is no number")))?;
    Ok(Duration::from_millis(millis))
}

/// Every order is the same one: what a read returns must not depend on what was written meanwhile.
fn order(call: &Call) -> Value {
    json!({"order_id": call.args.get("order_id"), "item": "teapot", "total": "49.90", "currency": "EUR", "status": "delivered"})
}

/// For a person on stderr; for Holdpoint, the promise that nothing was done.
fn misused() -> Ended {
    eprintln!("{USAGE}");
    Ended::Refused("the tool's command is not known".to_owned())
}
