//! Results that are too long for a conversation: kept apart, read again, and nobody else's.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use holdpoint_core::{
    Artifact, Builtin, Decision, DecisionKind, Definition, Effect, Event, Hooks, Lookup,
    MAX_ARTIFACT, MAX_RESULT, Message, Outcome, Params, ToolKind, ToolSpec,
};
use holdpoint_engine::{Agent, Engine, Kit, Options, Seen};
use holdpoint_models::{Failure, Reply};
use holdpoint_store::{MemoryStore, SharedStore};
use holdpoint_tools::{StepContext, SteppedTool};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    Counter, Place, Script, Scripted, answer, ask, calls, contents, definition, key, me, results,
    run, says, state, tool, view,
};

/// A million bytes and more, of which no line is like another.
fn long() -> String {
    (0..60_000).map(|at| format!("é line {at}\n")).collect()
}

/// Calls `big`, reads all of what it returned as it is told to, and says so.
fn reads_on(messages: &[Message], _: u32) -> Result<Reply, Failure> {
    let last_call = messages.iter().rev().find_map(|message| match message {
        Message::Assistant { tool_calls, .. } => tool_calls.first(),
        Message::User { .. } | Message::Tool { .. } | _ => None,
    });
    let Some(last_call) = last_call else {
        return calls(&[("big", "{}")]);
    };
    let last = results(messages).pop().unwrap();
    let asked: Value = serde_json::from_str(&last_call.arguments).unwrap();
    let told = last.split_once("`read_file` with the path `");
    let (path, offset) = match (asked["path"].as_str(), told) {
        (None, None) => return says("nothing was left out"),
        (None, Some((_, after))) => (after.split('`').next().unwrap(), "1"),
        // The conversation is long by now, and its begin is left out: a model goes by what it did last.
        (Some(path), _) => match last.rsplit_once("go on with offset ") {
            Some((_, after)) => (path, after.trim_end_matches("]\n")),
            None => return says("read"),
        },
    };
    let arguments = format!(r#"{{"path":"{path}","offset":{offset},"limit":2000}}"#);
    calls(&[("read_file", &arguments)])
}

/// Calls `big`, and then what the user says, as `read_file`'s path.
fn reads_what_it_is_told(messages: &[Message], _: u32) -> Result<Reply, Failure> {
    let path = messages.iter().rev().find_map(|message| match message {
        Message::User { content } => content.strip_prefix("read "),
        Message::Assistant { .. } | Message::Tool { .. } | _ => None,
    });
    match (path, results(messages).as_slice()) {
        (None, []) => calls(&[("big", "{}")]),
        (Some(path), []) => calls(&[("read_file", &format!(r#"{{"path":"{path}"}}"#))]),
        (_, [.., last]) => says(last),
    }
}

/// The lines that a reader has, put together again.
fn put_together(read: &[String]) -> String {
    let lines = read.iter().flat_map(|read| read.split_terminator('\n'));
    let lines = lines.filter(|line| !line.starts_with("[lines "));
    lines
        .map(|line| line.split_once('\t').unwrap().1.to_owned() + "\n")
        .collect()
}

fn reader(folder: &TempDir, effect: Effect, hooks: Hooks) -> Definition {
    let path = folder.path().canonicalize().unwrap();
    definition(vec![tool("big", effect, hooks)], &[]).with_builtin(Builtin::ReadFile, path.to_str())
}

fn returning(outcome: Outcome) -> Counter {
    let counter = Counter::default();
    counter.outcomes.lock().unwrap().push_back(outcome);
    counter
}

async fn kept(engine: &Engine, session: &str) -> Vec<Artifact> {
    let state = state(engine, session).await;
    engine.artifacts(&key(session), &state).await.unwrap()
}

/// The biggest row that a journal has.
fn biggest_row(place: &Place) -> i64 {
    let conn = place.database();
    conn.query_row("SELECT max(length(payload)) FROM events", [], |row| {
        row.get(0)
    })
    .unwrap()
}

async fn on_disk(script: Script, big: Counter) -> (Place, Engine, Arc<Agent>) {
    let place = Place::new(script, &[("big", big)]);
    let engine = place.engine();
    let folder = tempfile::tempdir().unwrap();
    let definition = reader(&folder, Effect::Write, Hooks::default());
    let agent = engine.publish("local", definition).await.unwrap();
    run(&engine, &agent, "s").await;
    (place, engine, agent)
}

#[tokio::test]
async fn a_long_result_is_kept_apart_and_read_again_byte_for_byte() {
    let long = long();
    let (place, engine, _) = on_disk(reads_on, returning(Outcome::done(&*long))).await;
    let view = view(&engine, "s").await;
    assert_eq!(view.output.as_deref(), Some("read"));
    let contents = contents(&view);
    let [ends, read @ ..] = contents.as_slice() else {
        panic!("no result")
    };
    assert!(ends.len() < 13_000, "{}", ends.len());
    assert!(ends.starts_with("é line 0\né line 1\n") && ends.ends_with("é line 59999\n"));
    assert!(put_together(read) == long);
    for result in &contents {
        assert!(result.len() <= MAX_RESULT);
    }
    // What is read is never kept apart again.
    let artifacts = kept(&engine, "s").await;
    assert_eq!(artifacts.len(), 1);
    assert_eq!(artifacts[0].size, long.len() as u64);
    let whole = engine.read_artifact("local", &artifacts[0]).await.unwrap();
    assert!(whole == long);
    assert!(biggest_row(&place) < 2 * MAX_RESULT as i64);
    let head = engine.store().load(&key("s")).await.unwrap().unwrap();
    assert!(head.payload.bytes.len() < 16 << 10);
}

#[tokio::test]
async fn it_is_the_same_on_a_store_that_forgets() {
    let folder = tempfile::tempdir().unwrap();
    let store: SharedStore = Arc::new(MemoryStore::new(&Default::default()));
    let tool = returning(Outcome::done(long()));
    let kit = Kit {
        models: BTreeMap::from([(
            "test".to_owned(),
            Arc::new(Scripted(reads_on)) as Arc<dyn holdpoint_models::Model>,
        )]),
        ..Kit::new().with_tool("big", tool)
    };
    let engine = Engine::new(store, kit, Options::default(), None);
    let definition = reader(&folder, Effect::Read, Hooks::default());
    let agent = engine.publish("local", definition).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    let contents = contents(&view);
    assert!(put_together(&contents[1..]) == long());
    assert_eq!(kept(&engine, "s").await.len(), 1);
}

#[tokio::test]
async fn what_has_the_limit_stays_in_the_conversation_and_a_byte_more_does_not() {
    for (bytes, count) in [(MAX_RESULT, 0), (MAX_RESULT + 1, 1)] {
        let text = "x".repeat(bytes);
        let (_place, engine, _) = on_disk(reads_on, returning(Outcome::done(&*text))).await;
        let view = view(&engine, "s").await;
        let artifacts = kept(&engine, "s").await;
        assert_eq!(artifacts.len(), count, "{bytes}");
        assert_eq!(contents(&view)[0] == text, count == 0, "{bytes}");
    }
}

#[tokio::test]
async fn a_long_error_is_kept_apart_as_a_result_is() {
    let text = long();
    let (_place, engine, _) = on_disk(reads_on, returning(Outcome::failed(&*text))).await;
    let view = view(&engine, "s").await;
    assert!(put_together(&contents(&view)[1..]) == text);
    assert_eq!(kept(&engine, "s").await.len(), 1);
}

#[tokio::test]
async fn what_is_too_much_to_be_kept_says_so_and_the_run_goes_on() {
    let text = "x".repeat(MAX_ARTIFACT + 1);
    let (place, engine, _) = on_disk(reads_on, returning(Outcome::done(text))).await;
    let view = view(&engine, "s").await;
    assert_eq!(view.output.as_deref(), Some("nothing was left out"));
    let ends = &contents(&view)[0];
    assert!(ends.contains("and were too much to be kept"), "{ends}");
    assert!(kept(&engine, "s").await.is_empty());
    assert!(biggest_row(&place) < MAX_RESULT as i64);
}

#[tokio::test]
async fn an_agent_that_cannot_read_it_is_not_told_to() {
    let place = Place::new(reads_on, &[("big", returning(Outcome::done(long())))]);
    let engine = place.engine();
    let big = tool("big", Effect::Read, Hooks::default());
    let agent = engine.publish("local", definition(vec![big], &[]));
    let view = run(&engine, &agent.await.unwrap(), "s").await;
    let ends = &contents(&view)[0];
    assert!(!ends.contains("read_file"), "{ends}");
    let address = kept(&engine, "s").await[0].address.to_string();
    let said = format!("people can read all of it as `{address}`");
    assert!(ends.contains(&said), "{ends}");
}

#[tokio::test]
async fn a_long_receipt_is_kept_apart_and_read_again() {
    let big = returning(Outcome::unknown("the connection was lost"));
    let receipt = Lookup::Committed {
        receipt: Value::String(long()),
    };
    big.lookups.lock().unwrap().push_back(receipt);
    let place = Place::new(reads_on, &[("big", big.clone())]);
    let engine = place.engine();
    let folder = tempfile::tempdir().unwrap();
    let hooks = Hooks {
        lookup: true,
        compensate: false,
    };
    let definition = reader(&folder, Effect::Write, hooks);
    let agent = engine.publish("local", definition).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    assert!(put_together(&contents(&view)[1..]) == long());
    assert_eq!(big.count(), 1);
    let artifacts = kept(&engine, "s").await;
    assert!(artifacts[0].address.name().ends_with("-receipt"));
    assert!(biggest_row(&place) < 2 * MAX_RESULT as i64);
}

/// A tool whose one step returns all that it returns itself.
#[derive(Debug)]
struct Collects;

#[async_trait]
impl SteppedTool for Collects {
    async fn run(
        &self,
        ctx: &StepContext,
        _: &Params,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let act = |_| async { Ok(long()) };
        Ok(ctx.step("collect", Effect::Read, json!({}), act).await?)
    }
}

#[tokio::test]
async fn what_a_step_returns_stays_whole_and_what_its_tool_returns_is_kept_apart() {
    let place = Place::new(reads_on, &[]);
    let engine = place.engine_stepping("big", Collects);
    let folder = tempfile::tempdir().unwrap();
    let mut definition = reader(&folder, Effect::Write, Hooks::default());
    definition.tools[0].kind = ToolKind::Stepped;
    definition.tools[0].timeout = holdpoint_core::Span::from_secs(5);
    let agent = engine.publish("local", definition).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    assert!(put_together(&contents(&view)[1..]) == long());
    let journal = engine.journal(&key("s")).await.unwrap();
    let results: Vec<_> = journal
        .iter()
        .filter(|entry| matches!(entry.event, Event::ActionFinished { .. }))
        .map(|entry| entry.event.artifact().is_some())
        .collect();
    assert_eq!(results[..2], [false, true], "the step, then its tool");
}

#[tokio::test]
async fn nobody_reads_what_another_conversation_has_kept() {
    let place = Place::new(
        reads_what_it_is_told,
        &[("big", returning(Outcome::done(long())))],
    );
    let engine = place.engine();
    let folder = tempfile::tempdir().unwrap();
    let publish = async |tenant| {
        let definition = reader(&folder, Effect::Read, Hooks::default());
        engine.publish(tenant, definition).await.unwrap()
    };
    let agent = publish("local").await;
    run(&engine, &agent, "s").await;
    let address = kept(&engine, "s").await[0].address.to_string();
    let read = async |agent, session| {
        let input = format!("read {address}");
        let submitted = engine.start(&me(), agent, session, &input).await.unwrap();
        submitted.finish().await.unwrap();
        contents(&view(&engine, session).await)
    };
    let refused = format!("there is no such artifact: `{address}`");
    assert_eq!(read(&agent, "other").await, [refused]);
    // The one that has it reads it in a later run, too.
    let own = read(&agent, "s").await;
    assert!(own[1].starts_with("     1\té line 0\n"), "{}", own[1]);
}

#[tokio::test]
async fn a_fork_reads_what_was_kept_before_it_and_not_what_its_parent_kept_after() {
    let big = returning(Outcome::done(long()));
    big.outcomes
        .lock()
        .unwrap()
        .push_back(Outcome::done(long() + "later"));
    let (_place, engine, agent) = on_disk(reads_what_it_is_told, big).await;
    let forked = engine.fork(&me(), &key("s"), None, "fork").await.unwrap();
    forked.finish().await.unwrap();
    run(&engine, &agent, "s").await;
    let artifacts = kept(&engine, "s").await;
    assert_eq!(artifacts.len(), 2);
    assert_eq!(kept(&engine, "fork").await, artifacts[..1]);
    let mut found = Vec::new();
    for artifact in &artifacts {
        let input = format!("read {}", artifact.address);
        let submitted = engine.start(&me(), &agent, "fork", &input).await.unwrap();
        submitted.finish().await.unwrap();
        let view = view(&engine, "fork").await;
        found.push(contents(&view).pop().unwrap());
    }
    assert!(found[0].starts_with("     1\té line 0\n"));
    assert!(found[1].starts_with("there is no such artifact"));
}

#[tokio::test]
async fn what_was_changed_or_is_gone_is_an_error_and_never_a_text() {
    for (sql, said) in [
        (
            "UPDATE blobs SET bytes = CAST(replace(CAST(bytes AS TEXT), 'line 7', 'lime 7') AS BLOB)",
            "it was changed since",
        ),
        (
            "DELETE FROM blobs WHERE CAST(bytes AS TEXT) LIKE '%line 7%'",
            "is not there any more",
        ),
    ] {
        let (place, engine, agent) =
            on_disk(reads_what_it_is_told, returning(Outcome::done(long()))).await;
        place.database().execute(sql, []).unwrap();
        let artifact = &kept(&engine, "s").await[0];
        let error = engine.read_artifact("local", artifact).await.unwrap_err();
        assert_eq!(error.code(), "damaged");
        assert!(error.to_string().contains(said), "{error}");
        let input = format!("read {}", artifact.address);
        let submitted = engine.start(&me(), &agent, "s", &input).await.unwrap();
        submitted.finish().await.unwrap();
        let view = view(&engine, "s").await;
        let last = contents(&view).pop().unwrap();
        assert!(last.contains(said), "{last}");
        let mut flaws = Vec::new();
        let mut tell = |seen| {
            if let Seen::Flaw(flaw) = seen {
                flaws.push(flaw.what);
            }
        };
        holdpoint_engine::check(&**engine.store(), &mut tell)
            .await
            .unwrap();
        assert_eq!(flaws.len(), 1, "{flaws:?}");
    }
}

#[tokio::test]
async fn a_check_tells_definitions_previews_and_long_results_apart() {
    let (_place, engine, _) = on_disk(reads_on, returning(Outcome::done(long()))).await;
    let mut tell = |seen| assert!(!matches!(seen, Seen::Flaw(_)), "{seen:?}");
    let checked = holdpoint_engine::check(&**engine.store(), &mut tell);
    let checked = checked.await.unwrap();
    assert_eq!(
        (checked.definitions, checked.previews, checked.artifacts),
        (1, 0, 1)
    );
}

#[tokio::test]
async fn reading_it_passes_the_gate_that_read_file_has() {
    let place = Place::new(reads_on, &[("big", returning(Outcome::done(long())))]);
    let engine = place.engine();
    let folder = tempfile::tempdir().unwrap();
    let mut definition = reader(&folder, Effect::Read, Hooks::default());
    let gate = ask(&[DecisionKind::Approve, DecisionKind::Reject]);
    definition
        .policy
        .interrupt_on
        .insert("read_file".to_owned(), gate);
    let agent = engine.publish("local", definition).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    assert_eq!(view.status, "waiting");
    assert_eq!(
        view.interrupts[0].value.action_requests[0].name,
        "read_file"
    );
    let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert!(contents(&view)[1].starts_with("     1\té line 0\n"));
}

#[tokio::test]
async fn a_backup_has_what_was_kept_apart() {
    let (place, engine, _) = on_disk(reads_on, returning(Outcome::done(long()))).await;
    let artifact = kept(&engine, "s").await.remove(0);
    let copy = place.copy().await.engine();
    assert_eq!(kept(&copy, "s").await, std::slice::from_ref(&artifact));
    assert!(copy.read_artifact("local", &artifact).await.unwrap() == long());
}

#[tokio::test]
async fn what_a_subagents_tool_returned_is_read_by_whoever_has_the_conversation_that_it_belongs_to()
{
    /// The boss gives a task; the worker, who knows nothing of files, says what its tool returned.
    fn script(messages: &[Message], _: u32) -> Result<Reply, Failure> {
        let user = messages.iter().rev().find_map(|message| match message {
            Message::User { content } => Some(content.as_str()),
            Message::Assistant { .. } | Message::Tool { .. } | _ => None,
        });
        match (user, results(messages).as_slice()) {
            (Some("work"), []) => calls(&[("big", "{}")]),
            (Some("work"), [ends, ..]) => says(ends),
            (_, []) => calls(&[("task", r#"{"description":"work","subagent_type":"worker"}"#)]),
            (_, [word]) => {
                let (_, after) = word.split_once("as `").unwrap();
                let path = after.split('`').next().unwrap();
                calls(&[("read_file", &format!(r#"{{"path":"{path}","limit":1}}"#))])
            }
            (_, [.., read]) => says(read),
        }
    }
    let place = Place::new(script, &[("big", returning(Outcome::done(long())))]);
    let engine = place.engine();
    let folder = tempfile::tempdir().unwrap();
    let mut worker = definition(vec![tool("big", Effect::Read, Hooks::default())], &[]);
    worker.name = "worker".to_owned();
    let path = folder.path().canonicalize().unwrap();
    let mut boss = definition(vec![], &[]).with_subagent("works", worker);
    boss.tools
        .push(ToolSpec::builtin(Builtin::ReadFile, path.to_str()));
    let agent = engine.publish("local", boss).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    let output = view.output.unwrap();
    assert!(
        output.starts_with("     1\té line 0\n[lines 1 to 1; "),
        "{output}"
    );
}

#[tokio::test]
async fn where_nothing_can_be_kept_apart_the_call_still_has_its_result() {
    let place = Place::new(reads_on, &[("big", returning(Outcome::done(long())))]);
    let engine = place.engine();
    let folder = tempfile::tempdir().unwrap();
    let definition = reader(&folder, Effect::Write, Hooks::default());
    let agent = engine.publish("local", definition).await.unwrap();
    let full = "CREATE TRIGGER full BEFORE INSERT ON blobs BEGIN SELECT RAISE(ABORT, 'the disk is full'); END";
    place.database().execute_batch(full).unwrap();
    let view = run(&engine, &agent, "s").await;
    assert_eq!(view.status, "finished");
    assert!(contents(&view) == [long()]);
    assert!(kept(&engine, "s").await.is_empty());
    assert_eq!(place.tools["big"].count(), 1);
}
