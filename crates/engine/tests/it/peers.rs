//! What people lose with the systems they use today: each known defect, and that it is not here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_core::{
    Answer, Answers, Decision, DecisionKind, Definition, EditedAction, Effect, Event, Gate, Hooks,
    InterruptId, Message, Params, Recalled, Span, ToolKind,
};
use holdpoint_engine::{Engine, Error, Kit, Options};
use holdpoint_models::{Failure, Reply};
use holdpoint_store::{MemoryStore, SharedStore};
use holdpoint_tools::{Question, Registry, StepContext, StepRefused, SteppedTool, Watchdog};
use serde_json::{Value, json};

use crate::support::{
    Counter, Place, Scripted, answer, ask, calls, definition, key, me, params, pending, results,
    run, says, state, tool, view,
};

const ALL: [DecisionKind; 3] = [
    DecisionKind::Approve,
    DecisionKind::Edit,
    DecisionKind::Reject,
];

fn pays_once(messages: &[Message], _: u32) -> Result<Reply, Failure> {
    if results(messages).is_empty() {
        calls(&[("pay", r#"{"n":1}"#)])
    } else {
        says("done")
    }
}

fn gated() -> Definition {
    let pay = tool("pay", Effect::Write, Hooks::default());
    definition(vec![pay], &[("pay", ask(&ALL))])
}

async fn waiting() -> (Place, Engine) {
    let place = Place::new(pays_once, &[("pay", Counter::default())]);
    let engine = place.engine();
    let agent = engine.publish("local", gated()).await.unwrap();
    run(&engine, &agent, "s").await;
    (place, engine)
}

fn code(result: Result<impl Sized, Error>) -> &'static str {
    result.err().map_or("taken", |error| error.code())
}

#[tokio::test]
async fn defect_1_a_bad_answer_does_not_poison_the_thread() {
    let (place, engine) = waiting().await;
    let respond = Decision::Respond {
        message: "x".to_owned(),
    };
    let other = Decision::Edit {
        edited_action: EditedAction {
            name: "other".to_owned(),
            args: params("{}"),
        },
    };
    for bad in [
        vec![],
        vec![Decision::APPROVE; 2],
        vec![respond],
        vec![other],
    ] {
        assert_eq!(code(answer(&engine, "s", bad).await), "misfit");
    }
    let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!((view.status, place.tools["pay"].count()), ("finished", 1));
}

/// Asks twice; a second question must not get the first one's answer.
#[derive(Debug, Clone, Default)]
struct AsksTwice {
    released: Arc<Mutex<Vec<String>>>,
    swapped: Arc<Mutex<bool>>,
}

async fn told(ctx: &StepContext, name: &str) -> Result<String, StepRefused> {
    match ctx.interrupt(name, Question::input(name)).await? {
        Recalled::Answer { value } => Ok(value.as_str().unwrap_or_default().to_owned()),
        other @ (Recalled::TimedOut | Recalled::Slept) => panic!("{other:?}"),
    }
}

type Ran<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[async_trait]
impl SteppedTool for AsksTwice {
    async fn run(&self, ctx: &StepContext, _args: &Params) -> Ran<Value> {
        let swapped = *self.swapped.lock().unwrap();
        let order = if swapped { ["B", "A"] } else { ["A", "B"] };
        let mut said = BTreeMap::new();
        for name in order {
            said.insert(name, told(ctx, name).await?);
        }
        self.released.lock().unwrap().push(format!("{said:?}"));
        Ok(json!(format!("{said:?}")))
    }
}

async fn asking(tool: impl SteppedTool + 'static) -> (Place, Engine) {
    fn script(messages: &[Message], _: u32) -> Result<Reply, Failure> {
        match results(messages).first() {
            None => calls(&[("stepped", "{}")]),
            Some(result) => says(result),
        }
    }
    let place = Place::new(script, &[]);
    let engine = place.engine_stepping("stepped", tool);
    let mut spec = crate::support::tool("stepped", Effect::Write, Hooks::default());
    spec.kind = ToolKind::Stepped;
    spec.timeout = Span::from_secs(5);
    let agent = engine.publish("local", definition(vec![spec], &[])).await;
    run(&engine, &agent.unwrap(), "s").await;
    (place, engine)
}

fn value(text: &str) -> Decision {
    Decision::Answer { value: text.into() }
}

#[tokio::test]
async fn defect_2_an_answer_is_never_delivered_to_the_next_question() {
    let tool = AsksTwice::default();
    let (_place, engine) = asking(tool.clone()).await;
    let first = pending(&engine, "s").await;
    let view = answer(&engine, "s", vec![value("yes")]).await.unwrap();
    assert_eq!(view.status, "waiting");
    // What people do after a crash: they let it go on. The second question stays.
    engine.drive(&key("s")).await.unwrap();
    let second = pending(&engine, "s").await;
    assert_ne!(first, second);
    assert!(tool.released.lock().unwrap().is_empty());
    let yes = Answer::All(value("yes"));
    let again = engine.answer(&me(), &key("s"), first, yes).await;
    assert_eq!(code(again), "already_decided");
}

#[tokio::test]
async fn defect_3_a_crash_after_the_approval_does_not_repeat_the_effect() {
    let slow = Counter {
        takes: Duration::from_millis(150),
        ..Counter::default()
    };
    let place = Place::new(pays_once, &[("pay", slow)]);
    let engine = place.engine();
    let agent = engine.publish("local", gated()).await.unwrap();
    run(&engine, &agent, "s").await;
    let interrupt = pending(&engine, "s").await;
    let approved = Answer::All(Decision::APPROVE);
    let submitted = engine.answer(&me(), &key("s"), interrupt, approved).await;
    // The process dies in the middle of the call, whose effect comes to pass all the same.
    let driver = tokio::spawn(submitted.unwrap().finish());
    tokio::time::sleep(Duration::from_millis(50)).await;
    driver.abort();
    drop(engine);
    tokio::time::sleep(Duration::from_millis(400)).await;
    let engine = place.engine();
    engine.drive(&key("s")).await.unwrap();
    let view = view(&engine, "s").await;
    assert_eq!(view.cause.as_deref(), Some("write_unknown"));
    assert!(place.tools["pay"].count() <= 1);
}

#[tokio::test]
async fn defect_4_of_two_answers_at_once_one_wins_and_the_effect_happens_once() {
    let (place, engine) = waiting().await;
    let other = place.engine();
    let interrupt = pending(&engine, "s").await;
    let send = |engine: Engine| async move {
        let approved = Answer::All(Decision::APPROVE);
        let sent = engine.answer(&me(), &key("s"), interrupt, approved).await;
        match sent {
            Ok(submitted) => {
                submitted.finish().await.unwrap();
                "taken"
            }
            Err(error) => error.code(),
        }
    };
    let (one, two) = tokio::join!(send(engine.clone()), send(other));
    let mut both = [one, two];
    both.sort_unstable();
    assert_eq!(both, ["already_decided", "taken"]);
    assert_eq!(place.tools["pay"].count(), 1);
}

#[tokio::test]
async fn defect_5_what_answers_nothing_is_refused_and_not_ignored() {
    let (_place, engine) = waiting().await;
    let interrupt = pending(&engine, "s").await;
    let approved = || Answer::All(Decision::APPROVE);
    let unknown = InterruptId::from_bytes([7; 16]);
    let sent = engine.answer(&me(), &key("s"), unknown, approved()).await;
    assert_eq!(code(sent), "not_pending");
    let none = engine.answer_all(&me(), &key("s"), vec![]).await;
    assert_eq!(code(none), "stale");
    let elsewhere = engine.answer(&me(), &key("t"), interrupt, approved()).await;
    assert!(elsewhere.is_err());
    answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    let late = engine.answer(&me(), &key("s"), interrupt, approved()).await;
    assert_eq!(code(late), "already_decided");
}

#[test]
fn defect_6_an_answer_whose_keys_look_like_ids_is_still_an_answer() {
    let id = "int_00000000000000000000000000000001";
    let text = format!(r#"[{{"type":"answer","value":{{"{id}":"x"}}}}]"#);
    let answers = Answers::parse(&text).unwrap();
    let said = Decision::Answer {
        value: json!({id: "x"}),
    };
    assert_eq!(answers, Answers::Only(Answer::ByPosition(vec![said])));
    // And a map of answers is one only where every key is an id.
    assert!(Answers::parse(&format!(r#"{{"{id}":[],"x":[]}}"#)).is_err());
}

#[tokio::test]
async fn defect_7_new_input_does_not_abandon_a_pending_call() {
    let (_place, engine) = waiting().await;
    let agent = engine.publish("local", gated()).await.unwrap();
    let input = engine.start(&me(), &agent, "s", "something else").await;
    assert_eq!(code(input), "interrupt_pending");
    let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(view.status, "finished");
}

/// Catches everything that comes out of its question, and goes on.
#[derive(Debug, Clone, Default)]
struct Swallows {
    acted: Arc<Mutex<u32>>,
}

#[async_trait]
impl SteppedTool for Swallows {
    async fn run(&self, ctx: &StepContext, _args: &Params) -> Ran<Value> {
        let asked = ctx.interrupt("may I", Question::input("may I"));
        let answer = tokio::time::timeout(Duration::from_millis(50), asked).await;
        if answer.is_err() {
            // The worst that code can do: it pretends that it was not asked.
            let act = |_| async {
                *self.acted.lock().unwrap() += 1;
                Ok("acted")
            };
            let _ = ctx.step("act", Effect::Write, json!({}), act).await;
        }
        Ok(json!("went on"))
    }
}

#[tokio::test]
async fn defect_8_no_code_can_swallow_a_question() {
    let tool = Swallows::default();
    let (_place, engine) = asking(tool.clone()).await;
    let view = view(&engine, "s").await;
    assert_eq!(view.cause.as_deref(), Some("human_input"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(*tool.acted.lock().unwrap(), 0);
    assert_eq!(state(&engine, "s").await.interrupts.len(), 1);
}

#[tokio::test]
async fn defect_9_answers_go_by_name_and_not_by_order() {
    let tool = AsksTwice::default();
    let (_place, engine) = asking(tool.clone()).await;
    answer(&engine, "s", vec![value("for A")]).await.unwrap();
    // When it is entered again, the code asks in another order.
    *tool.swapped.lock().unwrap() = true;
    let view = answer(&engine, "s", vec![value("for B")]).await.unwrap();
    let expected = r#"{"A": "for A", "B": "for B"}"#;
    assert_eq!(view.output.as_deref(), Some(expected));
}

#[tokio::test]
async fn defect_10_an_approval_holds_for_the_very_arguments_that_were_shown() {
    let (place, engine) = waiting().await;
    // The tool changes under the question: the approval of what was shown does not count for it.
    let mut changed = gated();
    changed.tools[0].version = "2".to_owned();
    engine.publish("local", changed).await.unwrap();
    let stale = answer(&engine, "s", vec![Decision::APPROVE]).await;
    assert_eq!(code(stale), "stale_question");
    assert_eq!(place.tools["pay"].count(), 0);
    answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    let journal = engine.journal(&key("s")).await.unwrap();
    let mut hashes = journal.iter().filter_map(|entry| {
        if let Event::Answered { decisions, .. } = &entry.event {
            Some(decisions[0].params_hash)
        } else {
            None
        }
    });
    let expected = params(r#"{"n":1}"#).hash("pay", "2");
    assert_eq!(hashes.next(), Some(Some(expected)));
}

#[tokio::test]
async fn defect_11_who_decided_what_when_and_why_is_on_record_and_questions_can_expire() {
    let place = Place::new(pays_once, &[("pay", Counter::default())]);
    let engine = place.engine();
    let mut gate: Gate = ask(&ALL);
    gate.terms.timeout = Some(Span::from_secs(60));
    let pay = tool("pay", Effect::Write, Hooks::default());
    let spec = definition(vec![pay], &[("pay", gate)]);
    let agent = engine.publish("local", spec).await.unwrap();
    let shown = run(&engine, &agent, "s").await;
    assert!(shown.interrupts[0].expires_at.is_some());
    let reject = Decision::Reject {
        message: Some("not on a Sunday".to_owned()),
    };
    answer(&engine, "s", vec![reject.clone()]).await.unwrap();
    let journal = engine.journal(&key("s")).await.unwrap();
    let answered = journal
        .iter()
        .find(|entry| matches!(entry.event, Event::Answered { .. }))
        .unwrap();
    assert_eq!(answered.header.by, me().actor);
    assert!(answered.header.at >= journal[0].header.at);
    let Event::Answered { decisions, .. } = &answered.event else {
        unreachable!()
    };
    assert_eq!(decisions[0].decision, reject);
}

#[tokio::test]
async fn defect_12_an_agent_that_asks_does_not_start_where_nothing_is_kept() {
    let store: SharedStore = Arc::new(MemoryStore::new(&Default::default()));
    let kit = Kit {
        registry: Registry::new().with("pay", Counter::default()),
        watchdog: Watchdog::default(),
        models: BTreeMap::from([("test".to_owned(), Arc::new(Scripted(pays_once)) as _)]),
        ..Kit::default()
    };
    let engine = Engine::new(store, kit, Options::default(), None);
    let agent = engine.publish("local", gated()).await.unwrap();
    let started = engine.start(&me(), &agent, "s", "go").await;
    assert_eq!(code(started), "volatile_store");
}
