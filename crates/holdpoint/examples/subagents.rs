//! A main agent may read freely; the subagent that it gives a task to must ask. A question of a subagent is a question
//! of the run, and shows who asks.
//!
//! ```console
//! $ cargo run -p holdpoint --example subagents
//! ```

use std::{
    error::Error,
    sync::{Arc, Mutex},
};

use holdpoint::{
    Allowed, Answer, Decision, DecisionKind, Definition, Effect, Engine, Gate, Kit, Options,
    Outcome, Params, Principal, Scripted, ToolSpec, function,
};

const RESEARCHER: &str = "
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    call:
      - {tool: read_file, args: {path: notes.txt}}
  - when: {tool: read_file}
    say: The notes are old. I will have them tidied up.
    call:
      - {tool: task, args: {subagent_type: file-manager, description: Delete notes.txt}}
  - when: {tool: task}
    say: 'My file manager says: {result}'
";

const FILE_MANAGER: &str = "
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    call:
      - {tool: delete_file, args: {path: notes.txt}}
  - when: {tool: delete_file, result: rejected}
    say: They want to keep it.
  - when: {tool: delete_file}
    say: It is gone.
";

fn researcher() -> Result<Definition, Box<dyn Error>> {
    let approve_or_reject = Allowed::new(vec![DecisionKind::Approve, DecisionKind::Reject])?;
    let file_manager = Definition::new("file-manager", "file-manager")
        .with_tool(ToolSpec::code("delete_file", Effect::Write))
        .gate("delete_file", Gate::ask(approve_or_reject));
    let researcher = Definition::new("researcher", "researcher")
        .with_tool(ToolSpec::code("read_file", Effect::Read))
        .with_subagent("Keeps the files in order.", file_manager);
    Ok(researcher)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let deleted = Arc::new(Mutex::new(Vec::new()));
    let kit = Kit::new()
        .with_tool(
            "read_file",
            function(|_, _| async { Outcome::done("to do: nothing") }),
        )
        .with_tool("delete_file", {
            let deleted = Arc::clone(&deleted);
            function(move |args: Params, _| {
                let path = args.to_value()["path"].to_string();
                let noted = deleted.lock().map(|mut it| it.push(path)).is_ok();
                async move {
                    match noted {
                        true => Outcome::done("deleted"),
                        false => Outcome::failed("the list is broken"),
                    }
                }
            })
        })
        .with_model("researcher", Scripted::parse("researcher", RESEARCHER)?)
        .with_model(
            "file-manager",
            Scripted::parse("file-manager", FILE_MANAGER)?,
        );
    let url = format!("sqlite:{}", folder.path().join("runs.db").display());
    let store = holdpoint::open(&url, Default::default()).await?;
    let engine = Engine::new(store, kit, Options::default(), None);
    let ann = Principal::local("ann");

    let agent = engine.publish("local", researcher()?).await?;
    let run = engine.start(&ann, &agent, "tidy", "Tidy up").await?;
    let thread = run.key().clone();
    run.finish().await?;

    let view = engine.view(&thread).await?;
    let question = &view.interrupts[0];
    let asked = &question.value.action_requests[0];
    println!("{} asks: {} {}?", question.frame, asked.name, asked.args);
    assert_eq!(question.frame.to_string(), "file-manager#1");
    assert_eq!(deleted.lock().map(|it| it.len()).ok(), Some(0));

    println!("Ann: go ahead.");
    let answer = Answer::All(Decision::APPROVE);
    let answered = engine.answer(&ann, &thread, question.id, answer).await?;
    answered.finish().await?;

    let view = engine.view(&thread).await?;
    println!("researcher: {}", view.output.clone().unwrap_or_default());
    assert_eq!(
        view.output.as_deref(),
        Some("My file manager says: It is gone.")
    );
    assert_eq!(deleted.lock().map(|it| it.len()).ok(), Some(1));
    Ok(())
}
