//! Turns of a model that do not go as they should, and conversations that have become long.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use holdpoint_core::{
    Api, ContextRule, Definition, Effect, Hooks, Message, Provider, Providers, Span, ToolSpec,
};
use holdpoint_engine::{Engine, Kit, Options};
use holdpoint_models::{Delta, End, Failure, Model, Reply, Request};
use holdpoint_store::MemoryStore;
use holdpoint_tools::Registry;

use crate::support::{
    Counter, Place, Scripted, calls, definition, results, run, says, state, tool,
};

fn cut_off(reply: Result<Reply, Failure>) -> Result<Reply, Failure> {
    reply.map(|reply| Reply {
        end: End::CutOff,
        ..reply
    })
}

#[tokio::test]
async fn calls_of_an_answer_that_was_cut_off_are_not_made_and_the_model_may_call_again() {
    let place = Place::new(
        |messages, _| match results(messages).as_slice() {
            // The last call looks complete, and lacks its arguments.
            [] => cut_off(calls(&[("drop", r#"{"n":1}"#), ("drop", "")])),
            [first, second] if first == second => {
                assert!(first.contains("was cut off"), "{first}");
                calls(&[("drop", r#"{"n":1}"#)])
            }
            [_, _, last] => says(last),
            _ => says("too much"),
        },
        &[("drop", Counter::default())],
    );
    let engine = place.engine();
    let drop = tool("drop", Effect::Write, Hooks::default());
    let agent = engine
        .publish("local", definition(vec![drop], &[]))
        .await
        .unwrap();
    let view = run(&engine, &agent, "s").await;
    assert_eq!(
        (view.status, view.output.as_deref()),
        ("finished", Some("drop done"))
    );
    assert_eq!(place.tools["drop"].args(), [r#"{"n":1}"#]);
}

#[tokio::test]
async fn a_model_that_only_ever_comes_to_its_limit_is_put_before_a_person() {
    for (first, turns) in [
        (cut_off(calls(&[("drop", "{")])), 3),
        // It said nothing at all.
        (cut_off(says("")), 1),
    ] {
        let model = Repeating(first.unwrap());
        let place = Place::new(|_, _| says(""), &[("drop", Counter::default())]);
        let engine = place.engine_of(
            Arc::new(model),
            Registry::new().with("drop", Counter::default()),
        );
        let drop = tool("drop", Effect::Write, Hooks::default());
        let agent = engine
            .publish("local", definition(vec![drop], &[]))
            .await
            .unwrap();
        let view = run(&engine, &agent, "s").await;
        assert_eq!(
            (view.status, view.cause.as_deref()),
            ("waiting", Some("model_error"))
        );
        let state = state(&engine, "s").await;
        assert_eq!(state.active().unwrap().turns, turns);
        let asked = state.interrupts.values().next().unwrap();
        let shown = asked.asks[0].description.as_deref().unwrap();
        assert!(shown.contains("max_output_tokens"), "{shown}");
    }
}

/// Says the same again and again.
#[derive(Debug)]
struct Repeating(Reply);

#[async_trait]
impl Model for Repeating {
    async fn turn(
        &self,
        _: Request<'_>,
        _: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn a_provider_that_wants_to_be_left_alone_lets_go_of_the_run() {
    let place = Place::new(
        |_, _| {
            Err(Failure::RateLimited {
                retry_after: Some(Span::from_secs(3_600)),
                reason: "429".to_owned(),
            })
        },
        &[],
    );
    let engine = place.engine();
    let agent = engine
        .publish("local", definition(vec![], &[]))
        .await
        .unwrap();
    // It does not wait for an hour: nobody drives what sleeps.
    let view = run(&engine, &agent, "s").await;
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("sleeping", Some("rate_limit"))
    );
    let state = state(&engine, "s").await;
    assert!(state.work().is_empty() && state.due_at().is_some());
}

/// Notes what it is given, and works for a while.
#[derive(Debug, Clone, Default)]
struct Noting(Arc<Mutex<Vec<Vec<Message>>>>);

#[async_trait]
impl Model for Noting {
    async fn turn(
        &self,
        request: Request<'_>,
        _: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        let turn = {
            let mut given = self.0.lock().unwrap();
            given.push(request.messages.to_vec());
            given.len()
        };
        if turn <= 60 {
            calls(&[("look", &format!(r#"{{"n":{turn}}}"#))])
        } else {
            says("done")
        }
    }
}

#[tokio::test]
async fn a_long_conversation_is_cut_for_its_model_and_whole_in_the_journal() {
    let model = Noting::default();
    let place = Place::new(|_, _| says(""), &[]);
    let engine = place.engine_of(
        Arc::new(model.clone()),
        Registry::new().with("look", Counter::default()),
    );
    let look = tool("look", Effect::Read, Hooks::default());
    let definition = definition(vec![look], &[]).with_context(ContextRule { max_tokens: 1_000 });
    let agent = engine.publish("local", definition).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    assert_eq!(view.status, "finished");
    let given = model.0.lock().unwrap().clone();
    assert_eq!(given.len(), 61);
    let longest = given.iter().map(Vec::len).max().unwrap();
    assert!(longest < 80, "{longest} messages");
    let last = given.last().unwrap();
    let Message::User { content } = &last[0] else {
        panic!("{:?}", last[0]);
    };
    assert!(
        content.contains("earlier messages are left out") && content.ends_with("go"),
        "{content}"
    );
    let messages = view.messages;
    assert_eq!(messages.len(), 1 + 2 * 60 + 1);
}

/// An engine in memory that knows the model `test` and a provider `own`, which nobody can reach.
fn with_providers() -> Engine {
    let own = Provider::new(Api::OpenAiChat, "http://127.0.0.1:9");
    let known = Providers::default().with("own", own);
    let kit = Kit::new()
        .with_tool("files.read", Counter::default())
        .with_model("test", Scripted(|_, _| says("done")))
        .with_providers(known);
    let store = MemoryStore::new(&Default::default());
    Engine::new(Arc::new(store), kit, Options::default(), None)
}

#[tokio::test]
async fn what_no_provider_takes_is_refused_before_anything_is_stored() {
    let engine = with_providers();
    let clerk = |model: &str| {
        Definition::new("clerk", model).with_tool(ToolSpec::code("files.read", Effect::Read))
    };
    engine.publish("local", clerk("test")).await.unwrap();
    let unfit = clerk("test").with_fallback("own:x");
    for (definition, expected) in [
        (unfit, "`own:x` takes no tool that is called `files.read`"),
        (clerk("nobody:x"), "nobody provides the model `nobody:x`"),
    ] {
        let refused = engine.publish("local", definition).await.unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn a_model_of_the_program_answers_where_a_provider_cannot() {
    let engine = with_providers();
    let clerk = Definition::new("clerk", "own:x").with_fallback("test");
    let agent = engine.publish("local", clerk).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    assert_eq!(view.output.as_deref(), Some("done"));
}
