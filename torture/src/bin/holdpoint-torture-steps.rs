//! A stepped tool of three steps and two questions, which does every step in the ledger, under the step's own key.
//!
//! It looks (`read`), asks how much, holds that (`idempotent`), asks whether to go on, and pays (`write`). `LEDGER` and the
//! two delays are those of `holdpoint-example-ledger`; that a step is about to act is noted as an attempt.

use std::{
    io::{self, BufRead as _, Write as _},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use example_tools::{Call, Ledger, environment};
use serde_json::{Map, Value, json};

fn main() -> ExitCode {
    match transfer() {
        Ok(last) => match say(&last) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        },
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

fn transfer() -> anyhow::Result<Value> {
    let opening = hear()?;
    let order = opening["args"]["order_id"].as_str();
    let order = order.context("there is no order")?;
    let seen = step("look", "read", &json!({"order_id": order}))?;
    let schema = json!({"type": "string"});
    let amount = ask(
        "amount",
        &json!({"title": "How much?", "input_schema": schema}),
    )?;
    let held = json!({"order_id": format!("{order}-held"), "amount": amount});
    let held = step("hold", "idempotent", &held)?;
    let sure = ask("sure", &json!({"title": "Pay it?"}))?;
    if sure["approved"] != true {
        return Ok(json!({"error": "it was not to be paid"}));
    }
    let paid = json!({"order_id": order, "amount": amount});
    let paid = step("pay", "write", &paid)?;
    Ok(json!({"result": {"seen": seen, "held": held, "paid": paid}}))
}

/// Takes a step, or learns what came of it before.
fn step(name: &str, effect: &str, args: &Value) -> anyhow::Result<Value> {
    say(&json!({"step": {"name": name, "effect": effect, "args": args}}))?;
    let told = hear()?;
    if let Some(ended) = told.get("ended") {
        let result = ended.get("result").cloned();
        return result.with_context(|| format!("the step `{name}` failed: {ended}"));
    }
    let key = told["run"]["key"].as_str();
    let key = key.with_context(|| format!("not an answer to a step: {told}"))?;
    let result = act(effect, key, args)?;
    say(&json!({"done": {"name": name, "result": result}}))?;
    Ok(result)
}

fn act(effect: &str, key: &str, args: &Value) -> anyhow::Result<Value> {
    let epoch = environment("HOLDPOINT_EPOCH").unwrap_or_default();
    let call = Call {
        key: key.to_owned(),
        epoch: epoch.parse().context("HOLDPOINT_EPOCH is no number")?,
        args: args.as_object().cloned().unwrap_or_else(Map::new),
    };
    let ledger = environment("LEDGER").unwrap_or_else(|| "ledger.jsonl".to_owned());
    let ledger = Ledger::at(ledger);
    ledger.attempt(&call)?;
    pass("LEDGER_DELAY_BEFORE_MS")?;
    let result = match effect {
        "read" => json!({"order_id": args["order_id"], "status": "delivered"}),
        "idempotent" => ledger.act_once(&call)?,
        "write" => ledger.act(&call)?,
        _ => bail!("no such effect: {effect}"),
    };
    pass("LEDGER_DELAY_AFTER_MS")?;
    Ok(result)
}

/// Asks a person. Returns only if there is an answer: otherwise we are killed here.
fn ask(name: &str, question: &Value) -> anyhow::Result<Value> {
    say(&json!({"interrupt": {"name": name, "question": question}}))?;
    let told = hear()?;
    let answer = told["answered"].get("answer").cloned();
    answer.with_context(|| format!("not an answer to `{name}`: {told}"))
}

fn pass(delay: &str) -> anyhow::Result<()> {
    let millis = environment(delay).unwrap_or_else(|| "0".to_owned());
    let millis = millis.parse();
    let millis = millis.with_context(|| format!("{delay} is no number"))?;
    thread::sleep(Duration::from_millis(millis));
    Ok(())
}

fn say(line: &Value) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}").context("nobody listens")?;
    stdout.flush().context("nobody listens")
}

fn hear() -> anyhow::Result<Value> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    if read.context("stdin cannot be read")? == 0 {
        bail!("nobody speaks any more");
    }
    serde_json::from_str(&line).with_context(|| format!("not a line of the protocol: {line}"))
}
