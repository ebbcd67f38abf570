//! A tool that takes steps and asks a person in between. What it did before the question is not done again after it,
//! even if another process goes on.
//!
//! ```console
//! $ cargo run -p holdpoint --example stepped_tool
//! ```

use std::{
    error::Error,
    path::Path,
    sync::{Arc, Mutex},
};

use holdpoint::{
    Answer, Decision, Definition, Effect, Engine, Kit, Options, Params, Principal, Question,
    Scripted, StepContext, StepTrouble, SteppedTool, ToolSpec, approved, reason,
};
use serde_json::{Value, json};

const SCENARIO: &str = "
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    call:
      - {tool: book_trip, args: {to: Lisbon}}
  - when: {tool: book_trip}
    say: 'Your trip: {result}'
";

/// What happened outside, in order.
type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, what: &str) -> Result<(), StepTrouble> {
    println!("  {what}");
    let mut log = log
        .lock()
        .map_err(|_| StepTrouble::no_effect("the log is broken"))?;
    log.push(what.to_owned());
    Ok(())
}

/// Reserves a flight, asks, pays. It is entered twice; each step is taken once.
#[derive(Debug)]
struct BookTrip(Log);

#[async_trait::async_trait]
impl SteppedTool for BookTrip {
    async fn run(
        &self,
        ctx: &StepContext,
        args: &Params,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let seat = ctx
            .step("reserve", Effect::Write, args, |_key| async {
                note(&self.0, "a seat is reserved")?;
                Ok(json!({"seat": "12A", "price": 180}))
            })
            .await?;
        let question = Question::approval("Pay for this seat?").data(&seat);
        let answer = ctx.interrupt("pay?", question).await?;
        if approved(&answer) != Some(true) {
            return Err(reason(&answer).unwrap_or("it was not approved").into());
        }
        let receipt = ctx
            .step("pay", Effect::Write, &seat, |_key| async {
                note(&self.0, "the seat is paid")?;
                Ok("receipt 77")
            })
            .await?;
        Ok(receipt)
    }
}

/// An engine as each process of the program makes it.
async fn engine(folder: &Path, log: &Log) -> Result<Engine, Box<dyn Error>> {
    let kit = Kit::new()
        .with_stepped("book_trip", BookTrip(Arc::clone(log)))
        .with_model("agent", Scripted::parse("scenario", SCENARIO)?);
    let url = format!("sqlite:{}", folder.join("runs.db").display());
    let store = holdpoint::open(&url, Default::default()).await?;
    Ok(Engine::new(store, kit, Options::default(), None))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let log = Log::default();
    let ann = Principal::local("ann");
    let book_trip = ToolSpec::stepped("book_trip", Effect::Write);
    let agent = Definition::new("agent", "agent").with_tool(book_trip);

    println!("The first process books until the tool asks.");
    let first = engine(folder.path(), &log).await?;
    let agent = first.publish("local", agent).await?;
    let run = first.start(&ann, &agent, "trip", "To Lisbon!").await?;
    let thread = run.key().clone();
    run.finish().await?;
    drop(first);

    println!("The second process has the answer.");
    let second = engine(folder.path(), &log).await?;
    let view = second.view(&thread).await?;
    let asked = &view.interrupts[0];
    let question = asked.value.question.as_ref().ok_or("nothing is asked")?;
    println!("  {} {}", question.prompt.title, question.prompt.data);
    assert_eq!(question.prompt.data["price"], 180);
    println!("  Ann: yes.");
    let answer = Answer::All(Decision::APPROVE);
    let answered = second.answer(&ann, &thread, asked.id, answer).await?;
    answered.finish().await?;

    let view = second.view(&thread).await?;
    println!("The agent: {}", view.output.clone().unwrap_or_default());
    assert_eq!(view.output.as_deref(), Some("Your trip: receipt 77"));
    let log = log.lock().map(|it| it.clone()).unwrap_or_default();
    assert_eq!(log, ["a seat is reserved", "the seat is paid"]);
    Ok(())
}
