//! An agent stops before it pays, its process ends, and another process answers.
//!
//! ```console
//! $ cargo run -p holdpoint --example approval
//! ```

use std::{
    error::Error,
    path::Path,
    sync::{Arc, Mutex},
};

use holdpoint::{
    Answer, Decision, Definition, EditedAction, Effect, Engine, Kit, Options, Outcome, Params,
    Principal, Scripted, ToolSpec, function,
};
use serde_json::json;

/// What the model says. Any other model is used in the same way: see `holdpoint::Model`.
const SCENARIO: &str = "
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    say: I will pay that back.
    call:
      - {tool: refund, args: {order: 1001, amount: 50}}
  - when: {tool: refund}
    say: 'Done: {result}'
";

/// What was paid, and under which key.
type Ledger = Arc<Mutex<Vec<(String, i64)>>>;

/// An engine as each process of the program makes it.
async fn engine(folder: &Path, ledger: &Ledger) -> Result<Engine, Box<dyn Error>> {
    let ledger = Arc::clone(ledger);
    let refund = function(move |args: Params, key: String| {
        let ledger = Arc::clone(&ledger);
        async move {
            let amount = args.to_value()["amount"].as_i64().unwrap_or(0);
            match ledger.lock() {
                Ok(mut ledger) => ledger.push((key, amount)),
                Err(_) => return Outcome::failed("the ledger is broken"),
            }
            Outcome::done(format!("paid {amount}"))
        }
    });
    let kit = Kit::new()
        .with_tool("refund", refund)
        .with_model("clerk", Scripted::parse("scenario", SCENARIO)?);
    let url = format!("sqlite:{}", folder.join("runs.db").display());
    let store = holdpoint::open(&url, Default::default()).await?;
    Ok(Engine::new(store, kit, Options::default(), None))
}

fn clerk() -> Definition {
    let refund = ToolSpec::code("refund", Effect::Write)
        .with_description("Pays an order back.")
        .with_schema(json!({
            "type": "object",
            "properties": {"order": {"type": "integer"}, "amount": {"type": "integer"}},
            "required": ["order", "amount"],
        }));
    Definition::new("clerk", "clerk")
        .with_tool(refund)
        .ask("refund")
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let ledger = Ledger::default();
    let customer = Principal::local("customer");

    println!("The first process runs the agent until it stops.");
    let first = engine(folder.path(), &ledger).await?;
    let agent = first.publish("local", clerk()).await?;
    let run = first
        .start(&customer, &agent, "order-1001", "I want my money back")
        .await?;
    let thread = run.key().clone();
    run.finish().await?;
    drop(first);

    println!("The second process asks a person.");
    let second = engine(folder.path(), &ledger).await?;
    let view = second.view(&thread).await?;
    assert_eq!(view.status, "waiting");
    let question = &view.interrupts[0];
    let asked = &question.value.action_requests[0];
    println!("  {}? {}", asked.name, asked.args);
    assert_eq!(asked.args, json!({"order": 1001, "amount": 50}));
    assert_eq!(ledger.lock().map(|it| it.len()).ok(), Some(0));

    println!("  Ann: yes, but only 40.");
    let ann = Principal::local("ann");
    let edited_action = EditedAction {
        name: "refund".to_owned(),
        args: Params::parse(r#"{"order": 1001, "amount": 40}"#)?,
    };
    let answer = Answer::All(Decision::Edit { edited_action });
    let answered = second.answer(&ann, &thread, question.id, answer).await?;
    answered.finish().await?;

    println!("  Bob, a moment later: no!");
    let bob = Principal::local("bob");
    let no = Answer::All(Decision::Reject { message: None });
    let late = second.answer(&bob, &thread, question.id, no).await;
    let late = late.err().ok_or("only one answer can win")?;
    println!("  {late}");
    assert_eq!(late.code(), "already_decided");

    let view = second.view(&thread).await?;
    println!("The agent: {}", view.output.unwrap_or_default());
    assert_eq!(view.status, "finished");
    let paid = ledger.lock().map(|it| it.clone()).unwrap_or_default();
    println!("The ledger: {paid:?}");
    assert!(matches!(paid.as_slice(), [(_, 40)]));
    Ok(())
}
