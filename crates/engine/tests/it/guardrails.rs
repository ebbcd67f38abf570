//! Guardrails at work: nothing is called and nothing is said that one of them flags, until a person has seen it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use holdpoint_core::{
    Answer, Case, Confirmation, Decision, DecisionKind, Definition, EditedAction, Effect, Entry,
    Finding, GrantTerms, Guardrail, Hooks, InterruptKind, Matches, Message, Outcome, Preview,
    Refusal, Scope, Span, State,
};
use holdpoint_engine::{Error, Said, Watcher};
use holdpoint_models::Reply;
use holdpoint_store::ThreadKey;
use holdpoint_tools::{Call, Registry, Tool, checker};

use crate::support::{
    Counter, Place, Scripted, answer, ask, calls, contents, definition, key, me, params, pending,
    results, run, says, state, tool, view,
};

const SECRET: &str = "Your card is 4111.";

fn pay() -> holdpoint_core::ToolSpec {
    tool("pay", Effect::Write, Hooks::default())
}

/// Flags what has this number in it.
fn cards(looked: &Arc<AtomicU32>) -> Registry {
    let looked = Arc::clone(looked);
    let look = checker(move |case| {
        looked.fetch_add(1, Ordering::SeqCst);
        async move {
            let text = match &case {
                Case::Call { args, .. } => args.to_string(),
                Case::Output { text, .. } => text.clone(),
            };
            Ok(match text.find("4111") {
                Some(at) => Finding::review(format!("a card number at {at}")),
                None => Finding::Pass,
            })
        }
    });
    Registry::new().with_checker("cards", look)
}

fn guarded(definition: Definition) -> Definition {
    definition.guard("no_cards", Guardrail::code("cards"))
}

fn pays_once(
    messages: &[holdpoint_core::Message],
    _: u32,
) -> Result<Reply, holdpoint_models::Failure> {
    match results(messages).as_slice() {
        [] => calls(&[("pay", r#"{"n":4111}"#)]),
        [..] => says("done"),
    }
}

fn place(script: crate::support::Script) -> (Place, Counter) {
    let counter = Counter::default();
    (Place::new(script, &[("pay", counter.clone())]), counter)
}

#[tokio::test]
async fn a_flagged_call_is_not_made_before_a_person_has_seen_why() {
    let (place, counter) = place(pays_once);
    let looked = Arc::default();
    let engine = place.engine_of(Arc::new(Scripted(pays_once)), cards(&looked));
    let free = engine
        .publish("local", definition(vec![pay()], &[]))
        .await
        .unwrap();
    // The same without the guardrail makes the call.
    assert_eq!(run(&engine, &free, "free").await.status, "finished");
    assert_eq!((counter.count(), looked.load(Ordering::SeqCst)), (1, 0));
    let clerk = guarded(definition(vec![pay()], &[]));
    let clerk = engine.publish("local", clerk).await.unwrap();
    let stopped = run(&engine, &clerk, "a").await;
    assert_eq!(
        (stopped.status, stopped.cause.as_deref()),
        ("waiting", Some("review"))
    );
    let question = &stopped.interrupts[0];
    assert_eq!(question.kind, InterruptKind::Review);
    let shown = &question.value.action_requests[0].description;
    assert!(
        shown.starts_with(
            "Guardrail `no_cards`: a card number at 5\n\nTool execution requires approval"
        ),
        "{shown}"
    );
    assert_eq!(counter.count(), 1);
    let done = answer(&engine, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!((done.status, counter.count()), ("finished", 2));
    assert_eq!(
        looked.load(Ordering::SeqCst),
        2,
        "the call, and the last word"
    );
    run(&engine, &clerk, "b").await;
    let no = Decision::Reject {
        message: Some("no cards".to_owned()),
    };
    let done = answer(&engine, "b", vec![no]).await.unwrap();
    assert!(contents(&done)[0].contains("no cards"));
    assert_eq!(counter.count(), 2);
}

#[tokio::test]
async fn a_checker_that_fails_lets_nothing_pass() {
    let (place, counter) = place(pays_once);
    let failing = checker(|_| async { Err("no database".to_owned()) });
    let panicking = checker(|case: Case| async move {
        assert!(matches!(case, Case::Output { .. }), "on purpose");
        Ok(Finding::Pass)
    });
    let hanging = checker(|_| std::future::pending());
    let registry = Registry::new()
        .with_checker("failing", failing)
        .with_checker("panicking", panicking)
        .with_checker("hanging", hanging);
    let engine = place.engine_of(Arc::new(Scripted(pays_once)), registry);
    for (name, why) in [
        ("failing", "its checker failed: no database"),
        ("panicking", "its checker failed: it panicked"),
        ("hanging", "its checker failed: it took longer than 50ms"),
    ] {
        let guardrail = Guardrail::code(name)
            .only_calls()
            .within(Span::from_millis(50));
        let clerk = definition(vec![pay()], &[]).guard("g", guardrail);
        let clerk = engine.publish("local", clerk).await.unwrap();
        let stopped = run(&engine, &clerk, name).await;
        assert_eq!(stopped.cause.as_deref(), Some("review"), "{name}");
        let shown = &stopped.interrupts[0].value.action_requests[0].description;
        assert!(
            shown.starts_with(&format!("Guardrail `g`: {why}")),
            "{shown}"
        );
    }
    // All of them at once, and what the policy denies is not even looked at.
    let all = ["failing", "panicking", "hanging"]
        .into_iter()
        .fold(definition(vec![pay()], &[]), |it, name| {
            it.guard(name, Guardrail::code(name).within(Span::from_millis(50)))
        });
    let clerk = engine.publish("local", all).await.unwrap();
    let stopped = run(&engine, &clerk, "all").await;
    let shown = &stopped.interrupts[0].value.action_requests[0].description;
    assert_eq!(shown.matches("its checker failed").count(), 3, "{shown}");
    assert_eq!(counter.count(), 0, "no call was made");
}

fn blabs(messages: &[Message], _: u32) -> Result<Reply, holdpoint_models::Failure> {
    let told = messages.iter().any(|message| {
        matches!(message, Message::User { content } if content.contains("held your last answer back"))
    });
    if told {
        says("I cannot say.")
    } else {
        says(SECRET)
    }
}

/// Hears what is said before it is committed, and what is committed.
#[derive(Debug, Default)]
struct Ears {
    said: Mutex<String>,
    names: Mutex<Vec<&'static str>>,
}

impl Watcher for Ears {
    fn committed(&self, _: &ThreadKey, entries: &Arc<[Entry]>, _: &Arc<State>) {
        let names = entries.iter().map(|entry| entry.event.name());
        self.names.lock().unwrap().extend(names);
    }

    fn said(&self, _: &ThreadKey, said: Said<'_>) {
        self.said.lock().unwrap().push_str(said.text);
    }
}

#[tokio::test]
async fn nothing_of_what_may_be_held_is_heard_before_it_is_committed() {
    let (place, _) = place(blabs);
    let ears = Arc::new(Ears::default());
    let engine = place.engine_watched(cards(&Arc::default()), ears.clone());
    let only_calls = Guardrail::code("cards").only_calls();
    let free = definition(vec![pay()], &[]).guard("g", only_calls);
    let free = engine.publish("local", free).await.unwrap();
    // The same without a guardrail on output is said, and heard at once.
    let done = run(&engine, &free, "free").await;
    assert_eq!(done.output.as_deref(), Some(SECRET));
    assert_eq!(std::mem::take(&mut *ears.said.lock().unwrap()), SECRET);
    let clerk = guarded(definition(vec![pay()], &[]));
    let clerk = engine.publish("local", clerk).await.unwrap();
    let stopped = run(&engine, &clerk, "a").await;
    assert_eq!(stopped.cause.as_deref(), Some("review"));
    assert!(!format!("{:?}", stopped.messages).contains("4111"));
    assert_eq!(stopped.output, None);
    // Whoever reviews it sees all of it.
    let shown = engine.view(&key("a")).await.unwrap();
    let request = &shown.interrupts[0].value.action_requests[0];
    assert_eq!(
        request.description,
        "Guardrail `no_cards`: a card number at 13"
    );
    assert_eq!(request.preview.as_ref().unwrap().body, SECRET);
    let page = engine.pending("local", None, 10).await.unwrap();
    let listed = &page.interrupts[0].interrupt.value.action_requests[0];
    assert_eq!(listed.preview.as_ref().unwrap().body, SECRET);
    let thread = state(&engine, "a").await;
    let asked = thread.interrupts.values().next().unwrap();
    let words = engine.reason(&key("a"), &thread, asked).await.unwrap();
    assert_eq!(words, "Guardrail `no_cards`: a card number at 13");
    let done = answer(&engine, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(
        (done.status, done.output.as_deref()),
        ("finished", Some(SECRET))
    );
    assert_eq!(
        *ears.said.lock().unwrap(),
        "",
        "not a word of it was told early"
    );
    let names = ears.names.lock().unwrap();
    assert_eq!(names.iter().filter(|it| **it == "model_started").count(), 2);
}

#[tokio::test]
async fn what_is_held_can_be_answered_by_another_process_in_each_way() {
    let (place, _) = place(blabs);
    let looked = Arc::new(AtomicU32::new(0));
    let engine = || place.engine_of(Arc::new(Scripted(blabs)), cards(&looked));
    let clerk = guarded(definition(vec![pay()], &[]));
    let first = engine();
    let clerk = first.publish("local", clerk).await.unwrap();
    let respond = Decision::Respond {
        message: "Ask at the desk.".to_owned(),
    };
    let reject = Decision::Reject {
        message: Some("no numbers".to_owned()),
    };
    for (session, decision, output) in [
        ("a", Decision::APPROVE, SECRET),
        ("b", respond, "Ask at the desk."),
        ("c", reject, "I cannot say."),
    ] {
        run(&first, &clerk, session).await;
        let before = looked.load(Ordering::SeqCst);
        let second = engine();
        let done = answer(&second, session, vec![decision]).await.unwrap();
        assert_eq!(
            (done.status, done.output.as_deref()),
            ("finished", Some(output))
        );
        let again = looked.load(Ordering::SeqCst) - before;
        // Only what the model says anew is looked at.
        assert_eq!(again, u32::from(session == "c"), "{session}");
    }
    let edit = Decision::Edit {
        edited_action: EditedAction {
            name: "output".to_owned(),
            args: params("{}"),
        },
    };
    run(&first, &clerk, "d").await;
    let refused = answer(&first, "d", vec![edit]).await.unwrap_err();
    assert!(
        matches!(refused, Error::Refused(Refusal::Misfit(_))),
        "{refused}"
    );
}

#[tokio::test]
async fn what_was_let_pass_is_said_though_its_driver_died_before() {
    let (place, _) = place(blabs);
    let engine = place.engine_of(Arc::new(Scripted(blabs)), cards(&Arc::default()));
    let clerk = guarded(definition(vec![pay()], &[]));
    let clerk = engine.publish("local", clerk).await.unwrap();
    run(&engine, &clerk, "a").await;
    let asked = pending(&engine, "a").await;
    let only = Answer::All(Decision::APPROVE);
    // The answer is committed, and nobody goes on with it.
    drop(engine.answer(&me(), &key("a"), asked, only).await.unwrap());
    drop(engine);
    tokio::time::sleep(Duration::from_millis(400)).await;
    let other = place.engine_of(Arc::new(Scripted(blabs)), cards(&Arc::default()));
    other.drive(&key("a")).await.unwrap();
    let done = view(&other, "a").await;
    assert_eq!(
        (done.status, done.output.as_deref()),
        ("finished", Some(SECRET))
    );
}

fn blabs_and_pays(messages: &[Message], _: u32) -> Result<Reply, holdpoint_models::Failure> {
    match results(messages).as_slice() {
        [] => Ok(Reply {
            text: SECRET.to_owned(),
            ..calls(&[("pay", r#"{"n":1}"#)])?
        }),
        [..] => says("done"),
    }
}

#[tokio::test]
async fn calls_beside_held_words_are_not_made_and_are_dropped_with_them() {
    let (place, counter) = place(blabs_and_pays);
    let engine = place.engine_of(Arc::new(Scripted(blabs_and_pays)), cards(&Arc::default()));
    let clerk = guarded(definition(vec![pay()], &[]));
    let clerk = engine.publish("local", clerk).await.unwrap();
    for (session, decision, count) in [
        (
            "a",
            Decision::Respond {
                message: "Hm.".to_owned(),
            },
            0,
        ),
        ("b", Decision::APPROVE, 1),
    ] {
        let stopped = run(&engine, &clerk, session).await;
        assert_eq!(
            (stopped.cause.as_deref(), counter.count()),
            (Some("review"), 0)
        );
        let done = answer(&engine, session, vec![decision]).await.unwrap();
        assert_eq!((done.status, counter.count()), ("finished", count));
    }
}

fn delegates(messages: &[Message], _: u32) -> Result<Reply, holdpoint_models::Failure> {
    let is_sub = matches!(messages.first(), Some(Message::User { content }) if content == "pay it");
    match (is_sub, results(messages).as_slice()) {
        (false, []) => calls(&[(
            "task",
            r#"{"description":"pay it","subagent_type":"payer"}"#,
        )]),
        (true, []) => calls(&[("pay", r#"{"n":4111}"#)]),
        (true, [..]) => says("It was 4111."),
        (false, [..]) => says("done"),
    }
}

#[tokio::test]
async fn a_subagent_has_the_guardrails_of_the_agents_above_and_its_own() {
    let (place, counter) = place(delegates);
    let ears = Arc::new(Ears::default());
    let engine = place.engine_watched(cards(&Arc::default()), ears.clone());
    let below = |own: Definition| Definition {
        name: "payer".to_owned(),
        ..own
    };
    let payer = below(definition(vec![pay()], &[])).guard("words", Guardrail::keywords(["it was"]));
    let boss = guarded(definition(vec![], &[]).with_subagent("Pays.", payer.clone()));
    let boss = engine.publish("local", boss).await.unwrap();
    let stopped = run(&engine, &boss, "a").await;
    let asked = &stopped.interrupts[0];
    assert_eq!(
        (asked.kind, asked.frame.as_str()),
        (InterruptKind::Review, "payer#1")
    );
    assert_eq!(counter.count(), 0);
    let stopped = answer(&engine, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(counter.count(), 1);
    // Its last word is held by both.
    let shown = &stopped.interrupts[0].value.action_requests[0].description;
    assert_eq!(
        shown,
        "Guardrail `no_cards`: a card number at 7\nGuardrail `words`: it says `it was`"
    );
    let done = answer(&engine, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(
        (done.status, contents(&done)),
        ("finished", vec!["It was 4111.".to_owned()])
    );
    assert_eq!(*ears.said.lock().unwrap(), "");
    // It cannot put another one in the place of one above.
    let twice = payer.guard("no_cards", Guardrail::keywords(["zzz"]));
    let boss = guarded(definition(vec![], &[]).with_subagent("Pays.", twice));
    let refused = engine.publish("local", boss).await.unwrap_err().to_string();
    assert!(
        refused.contains("an agent above has a guardrail `no_cards` already"),
        "{refused}"
    );
}

fn edited(n: &str) -> Decision {
    Decision::Edit {
        edited_action: EditedAction {
            name: "pay".to_owned(),
            args: params(&format!(r#"{{"n":{n}}}"#)),
        },
    }
}

#[tokio::test]
async fn an_edit_is_looked_at_and_carries_nothing_past_that_was_not_shown() {
    let (place, counter) = place(pays_once);
    let engine = place.engine_of(Arc::new(Scripted(pays_once)), cards(&Arc::default()));
    let clerk = guarded(definition(vec![pay()], &[]));
    let clerk = engine.publish("local", clerk).await.unwrap();
    run(&engine, &clerk, "a").await;
    // Another place in it, so that is another finding.
    let refused = answer(&engine, "a", vec![edited("994111")])
        .await
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("the guardrail `no_cards` flags this: a card number at 7"),
        "{refused}"
    );
    assert_eq!(counter.count(), 0);
    assert_eq!(
        view(&engine, "a").await.status,
        "waiting",
        "and it stays pending"
    );
    // What the person was shown of the call is no surprise in the edit.
    let done = answer(&engine, "a", vec![edited("41112")]).await.unwrap();
    assert_eq!(
        (done.status, counter.args()),
        ("finished", vec![r#"{"n":41112}"#.to_owned()])
    );
    run(&engine, &clerk, "b").await;
    answer(&engine, "b", vec![edited("7")]).await.unwrap();
    assert_eq!(counter.count(), 2);
    // Also where the call itself was fine and only the policy asked.
    let both = ask(&[DecisionKind::Approve, DecisionKind::Edit]);
    let (place, counter) = place_asking();
    let engine = place.engine_of(Arc::new(Scripted(pays_seven)), cards(&Arc::default()));
    let clerk = guarded(definition(vec![pay()], &[("pay", both)]));
    let clerk = engine.publish("local", clerk).await.unwrap();
    assert_eq!(
        run(&engine, &clerk, "c").await.cause.as_deref(),
        Some("human_approval")
    );
    assert!(answer(&engine, "c", vec![edited("4111")]).await.is_err());
    assert_eq!(counter.count(), 0);
}

fn pays_seven(messages: &[Message], _: u32) -> Result<Reply, holdpoint_models::Failure> {
    match results(messages).len() {
        0 => calls(&[("pay", r#"{"n":7}"#)]),
        1 => calls(&[("pay", r#"{"n":4111}"#)]),
        _ => says("done"),
    }
}

fn place_asking() -> (Place, Counter) {
    place(pays_seven)
}

#[tokio::test]
async fn a_grant_lets_no_flagged_call_pass_and_none_of_its_uses_is_taken() {
    let (place, counter) = place_asking();
    let engine = place.engine_of(Arc::new(Scripted(pays_seven)), cards(&Arc::default()));
    let both = ask(&[DecisionKind::Approve, DecisionKind::Reject]);
    let clerk = guarded(definition(vec![pay()], &[("pay", both)]));
    let clerk = engine.publish("local", clerk).await.unwrap();
    run(&engine, &clerk, "a").await;
    let always = Decision::Approve {
        grant: Some(GrantTerms {
            scope: Scope::Agent,
            matches: Matches::Tool,
            expires_in: None,
            uses: Some(5),
        }),
    };
    let stopped = answer(&engine, "a", vec![always]).await.unwrap();
    assert_eq!(
        (stopped.cause.as_deref(), counter.count()),
        (Some("review"), 1)
    );
    let used = |granted: Vec<holdpoint_engine::GrantView>| granted[0].grant.used;
    assert_eq!(used(engine.grants("local").await.unwrap()), 0);
    let stopped = run(&engine, &clerk, "b").await;
    assert_eq!(
        (stopped.cause.as_deref(), counter.count()),
        (Some("review"), 2),
        "by the grant"
    );
    assert_eq!(used(engine.grants("local").await.unwrap()), 1);
}

#[tokio::test]
async fn what_was_found_is_not_looked_for_again_when_the_tool_changes() {
    let (place, counter) = place(pays_once);
    let looked = Arc::new(AtomicU32::new(0));
    let engine = place.engine_of(Arc::new(Scripted(pays_once)), cards(&looked));
    let only_calls = Guardrail::code("cards").only_calls();
    let first = definition(vec![pay()], &[]).guard("no_cards", only_calls);
    let clerk = engine.publish("local", first.clone()).await.unwrap();
    run(&engine, &clerk, "a").await;
    let newer = first.with_tool(pay().with_version("2"));
    engine.publish("local", newer).await.unwrap();
    let stale = answer(&engine, "a", vec![Decision::APPROVE])
        .await
        .unwrap_err();
    assert!(
        matches!(stale, Error::Refused(Refusal::StaleQuestion { .. })),
        "{stale}"
    );
    let again = view(&engine, "a").await;
    assert_eq!(again.cause.as_deref(), Some("review"));
    let shown = &again.interrupts[0].value.action_requests[0].description;
    assert!(
        shown.starts_with("Guardrail `no_cards`: a card number at 5"),
        "{shown}"
    );
    assert_eq!(counter.count(), 0);
    answer(&engine, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!((counter.count(), looked.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn who_is_not_there_to_look_is_missed_at_once() {
    let (place, _) = place(pays_once);
    let engine = place.engine();
    let clerk = guarded(definition(vec![pay()], &[]));
    let refused = engine
        .publish("local", clerk)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("the guardrail `no_cards`: the checker `cards` is not registered"),
        "{refused}"
    );
    let idle = Guardrail::keywords(["x"]).of_tools(["pya"]);
    let clerk = definition(vec![pay()], &[]).guard("g", idle);
    let refused = engine
        .publish("local", clerk)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("the guardrail `g` would never look at it"),
        "{refused}"
    );
    // Somebody may have to be asked, so it is not for a store that forgets.
    let plain = definition(vec![pay()], &[]);
    assert!(!engine.prepare(plain.clone()).unwrap().is_gated());
    let guarded = plain.guard("g", Guardrail::keywords(["x"]));
    assert!(engine.prepare(guarded).unwrap().is_gated());
}

#[tokio::test]
async fn in_a_fork_and_after_a_backup_the_same_words_are_reviewed_anew() {
    let (place, _) = place(blabs);
    let engine = place.engine_of(Arc::new(Scripted(blabs)), cards(&Arc::default()));
    let clerk = guarded(definition(vec![pay()], &[]));
    let clerk = engine.publish("local", clerk).await.unwrap();
    run(&engine, &clerk, "a").await;
    let backup = place.copy().await;
    let forked = engine.fork(&me(), &key("a"), None, "b").await.unwrap();
    forked.finish().await.unwrap();
    let shown = engine.view(&key("b")).await.unwrap();
    assert_eq!(shown.cause.as_deref(), Some("review"));
    let request = &shown.interrupts[0].value.action_requests[0];
    assert_eq!(request.preview.as_ref().unwrap().body, SECRET);
    let done = answer(&engine, "b", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(done.output.as_deref(), Some(SECRET));
    assert_eq!(
        view(&engine, "a").await.status,
        "waiting",
        "where it was forked from"
    );
    let there = backup.engine_of(Arc::new(Scripted(blabs)), cards(&Arc::default()));
    there.adopt().await.unwrap();
    let asked = answer(&there, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(
        asked.cause.as_deref(),
        Some("review"),
        "first whether it goes on, then this"
    );
    let shown = there.view(&key("a")).await.unwrap();
    let request = &shown.interrupts[0].value.action_requests[0];
    assert_eq!(request.preview.as_ref().unwrap().body, SECRET);
    let done = answer(&there, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(done.output.as_deref(), Some(SECRET));
}

#[tokio::test]
async fn an_edit_that_nobody_could_look_at_is_not_let_through() {
    let (place, counter) = place(pays_once);
    let failing = checker(|_| async { Err("no database".to_owned()) });
    let registry = Registry::new().with_checker("failing", failing);
    let engine = place.engine_of(Arc::new(Scripted(pays_once)), registry);
    let guardrail = Guardrail::code("failing").only_calls();
    let clerk = definition(vec![pay()], &[]).guard("g", guardrail);
    let clerk = engine.publish("local", clerk).await.unwrap();
    run(&engine, &clerk, "a").await;
    // It failed for the call as well, but what it would have found in other arguments nobody was shown.
    let refused = answer(&engine, "a", vec![edited("7")]).await.unwrap_err();
    assert!(
        refused.to_string().contains("its checker failed"),
        "{refused}"
    );
    assert_eq!(counter.count(), 0);
    let done = answer(&engine, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!((done.status, counter.count()), ("finished", 1));
}

/// Cannot say what a call would do: it panics.
#[derive(Debug, Default)]
struct Clumsy;

#[async_trait::async_trait]
impl Tool for Clumsy {
    async fn call(&self, _: Call<'_>) -> Outcome {
        Outcome::done("done")
    }

    async fn preview(&self, _: Call<'_>) -> Result<Option<Preview>, String> {
        panic!("on purpose")
    }
}

fn blabs_and_pays_seven(messages: &[Message], _: u32) -> Result<Reply, holdpoint_models::Failure> {
    match results(messages).len() {
        0 => Ok(Reply {
            text: SECRET.to_owned(),
            ..calls(&[("pay", r#"{"n":7}"#)]).unwrap()
        }),
        _ => says("done"),
    }
}

#[tokio::test]
async fn words_that_are_approved_are_said_where_a_tool_of_theirs_panics() {
    let place = Place::new(blabs_and_pays_seven, &[]);
    let registry = cards(&Arc::default()).with("pay", Clumsy);
    let engine = place.engine_of(Arc::new(Scripted(blabs_and_pays_seven)), registry);
    let both = ask(&[DecisionKind::Approve, DecisionKind::Reject]);
    let clerk = guarded(definition(vec![pay()], &[("pay", both)]));
    let clerk = engine.publish("local", clerk).await.unwrap();
    run(&engine, &clerk, "a").await;
    let done = answer(&engine, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(done.status, "finished");
    assert!(
        contents(&done)[0].contains("`pay` could not say without a panic what the call would do"),
        "{:?}",
        contents(&done)
    );
}

fn asks_in_words(messages: &[Message], _: u32) -> Result<Reply, holdpoint_models::Failure> {
    match messages.last() {
        Some(Message::User { content }) if content.contains("Please proceed.") => says("Done."),
        _ => says("All files go. Are you sure?"),
    }
}

#[tokio::test]
async fn what_asks_for_a_confirmation_is_reviewed_first_and_then_asked() {
    let place = Place::new(asks_in_words, &[]);
    let engine = place.engine();
    let grave = Guardrail::keywords(["are you sure"]);
    let clerk = definition(vec![], &[])
        .confirm(Confirmation::standard())
        .guard("grave", grave);
    let clerk = engine.publish("local", clerk).await.unwrap();
    let reviewed = run(&engine, &clerk, "a").await;
    assert_eq!(reviewed.cause.as_deref(), Some("review"));
    let asked = answer(&engine, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(asked.status, "waiting");
    assert_ne!(asked.cause.as_deref(), Some("review"));
    let done = answer(&engine, "a", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(done.output.as_deref(), Some("Done."));
}
