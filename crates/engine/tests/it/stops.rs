//! Everything else that can stop a run: single questions, subagents, stepped tools, breakpoints, pauses, time, conditions.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_core::{
    Allowed, Answer, Cause, Decision, DecisionKind, Definition, Effect, Gate, GrantTerms, Hooks,
    InterruptId, InterruptKind, InterruptMode, Matches, Message, OnTimeout, Params, Prompt, Rule,
    Ruling, Scope, Span, Status, Subagent, ToolKind,
};
use holdpoint_engine::{Engine, Error};
use holdpoint_models::{Failure, Reply};
use holdpoint_tools::{
    Question, StepContext, StepFailed, StepTrouble, SteppedTool, approved, reason,
};
use serde_json::{Value, json};

use crate::support::{
    Counter, Place, answer, ask, calls, contents, definition, key, me, pending, results, run, says,
    state, tool, view,
};

const STANDARD: [DecisionKind; 2] = [DecisionKind::Approve, DecisionKind::Reject];

fn counters() -> Vec<(&'static str, Counter)> {
    ["a", "b", "look"]
        .map(|name| (name, Counter::default()))
        .to_vec()
}

fn plain(name: &str) -> holdpoint_core::ToolSpec {
    tool(name, Effect::Write, Hooks::default())
}

async fn answer_one(engine: &Engine, session: &str, id: InterruptId, decision: Decision) {
    let answers = vec![(id, Answer::All(decision))];
    let submitted = engine.answer_all(&me(), &key(session), answers).await;
    submitted.unwrap().finish().await.unwrap();
}

mod per_call {
    use super::*;

    fn script(messages: &[Message], _: u32) -> Result<Reply, Failure> {
        if results(messages).is_empty() {
            calls(&[("a", "{}"), ("b", "{}"), ("look", "{}")])
        } else {
            says("done")
        }
    }

    #[tokio::test]
    async fn each_gated_call_has_a_question_of_its_own_and_the_others_run_at_once() {
        let place = Place::new(script, &counters());
        let engine = place.engine();
        let mut spec = definition(
            vec![plain("a"), plain("b"), plain("look")],
            &[("a", ask(&STANDARD)), ("b", ask(&STANDARD))],
        );
        spec.interrupt_mode = InterruptMode::PerCall;
        let agent = engine.publish("local", spec).await.unwrap();
        let view = run(&engine, &agent, "s").await;
        assert_eq!((view.status, view.interrupts.len()), ("waiting", 2));
        assert_eq!(place.tools["look"].count(), 1);
        let ids: Vec<InterruptId> = view.interrupts.iter().map(|it| it.id).collect();

        // One that is unknown spoils the whole map, and nothing is saved.
        let unknown = InterruptId::from_bytes([9; 16]);
        let approve = || Answer::All(Decision::APPROVE);
        let both = vec![(ids[0], approve()), (unknown, approve())];
        let refused = engine.answer_all(&me(), &key("s"), both).await;
        assert!(matches!(refused, Err(Error::Refused(_))));
        assert_eq!(state(&engine, "s").await.interrupts.len(), 2);
        assert_eq!(place.tools["a"].count(), 0);

        // Some now, and the rest later: the approved call runs at once.
        answer_one(&engine, "s", ids[0], Decision::APPROVE).await;
        let counts = ["a", "b"].map(|name| place.tools[name].count());
        assert_eq!(counts, [1, 0]);
        let again = vec![(ids[0], approve())];
        let again = engine.answer_all(&me(), &key("s"), again).await;
        assert!(matches!(again, Err(Error::AlreadyDecided { .. })));
        answer_one(&engine, "s", ids[1], Decision::APPROVE).await;
        let counts = ["a", "b", "look"].map(|name| place.tools[name].count());
        assert_eq!(counts, [1, 1, 1]);
        assert_eq!(state(&engine, "s").await.status(), Some(Status::Finished));
    }
}

mod subagents {
    use super::*;

    /// The agent gives two tasks at once; each subagent makes one gated call and reports what it got.
    fn script(messages: &[Message], _: u32) -> Result<Reply, Failure> {
        let Some(Message::User { content }) = messages.first() else {
            panic!("no user")
        };
        let done = results(messages);
        match (content.as_str(), done.as_slice()) {
            ("go", []) => calls(&[
                ("task", r#"{"description":"do a","subagent_type":"worker"}"#),
                ("task", r#"{"description":"do b","subagent_type":"worker"}"#),
            ]),
            ("go", results) => says(&results.join("|")),
            ("do a", []) => calls(&[("a", "{}")]),
            ("do b", []) => calls(&[("b", "{}")]),
            (_, results) => says(&format!("worker got {}", results.join("|"))),
        }
    }

    fn boss(strict: bool, worker_gates: &[(&str, Gate)]) -> Definition {
        let tools = || vec![plain("a"), plain("b")];
        let mut worker = definition(tools(), worker_gates);
        worker.name = "worker".to_owned();
        let mut boss = definition(tools(), &[("a", ask(&STANDARD)), ("b", ask(&STANDARD))]);
        boss.strict = strict;
        boss.subagents = vec![Subagent {
            description: "works".to_owned(),
            definition: worker,
        }];
        boss
    }

    #[tokio::test]
    async fn they_work_at_once_and_one_is_answered_without_touching_the_other() {
        let place = Place::new(script, &counters());
        let engine = place.engine();
        let gates = [("a", ask(&STANDARD)), ("b", ask(&STANDARD))];
        let agent = engine.publish("local", boss(false, &gates)).await.unwrap();
        let mut view = run(&engine, &agent, "s").await;
        view.interrupts.sort_by_key(|it| it.frame.clone());
        let frames: Vec<String> = view
            .interrupts
            .iter()
            .map(|it| it.frame.to_string())
            .collect();
        assert_eq!(frames, ["worker#1", "worker#2"]);
        let (first, second) = (view.interrupts[0].id, view.interrupts[1].id);

        answer_one(&engine, "s", first, Decision::APPROVE).await;
        let state = state(&engine, "s").await;
        assert_eq!(state.interrupts.keys().collect::<Vec<_>>(), [&second]);
        assert_eq!(place.tools["b"].count(), 0);

        // Another process goes on with it.
        drop(engine);
        let engine = place.engine();
        let reject = Decision::Reject {
            message: Some("no".to_owned()),
        };
        answer_one(&engine, "s", second, reject).await;
        let view = crate::support::view(&engine, "s").await;
        assert_eq!(view.status, "finished");
        let told = "User rejected the tool call for `b` with reason: no";
        let expected = format!("worker got a done|worker got {told}");
        assert_eq!(view.output.as_deref(), Some(expected.as_str()));
        assert_eq!(["a", "b"].map(|name| place.tools[name].count()), [1, 0]);
    }

    #[tokio::test]
    async fn their_own_policy_replaces_the_parents_unless_that_is_strict() {
        for (strict, asked) in [(false, 0), (true, 2)] {
            let place = Place::new(script, &counters());
            let engine = place.engine();
            let open = [("a", Gate::open()), ("b", Gate::open())];
            let agent = engine.publish("local", boss(strict, &open)).await.unwrap();
            let view = run(&engine, &agent, "s").await;
            assert_eq!(view.interrupts.len(), asked, "strict: {strict}");
        }
    }

    #[tokio::test]
    async fn a_cancel_ends_them_all() {
        let place = Place::new(script, &counters());
        let engine = place.engine();
        let gates = [("a", ask(&STANDARD)), ("b", ask(&STANDARD))];
        let agent = engine.publish("local", boss(false, &gates)).await.unwrap();
        run(&engine, &agent, "s").await;
        let cancelled = engine.cancel(&me(), &key("s"), None).await.unwrap();
        cancelled.finish().await.unwrap();
        let view = view(&engine, "s").await;
        assert_eq!((view.status, view.interrupts.len()), ("cancelled", 0));
        assert_eq!(contents(&view).len(), 2, "every task has a message");
    }
}

mod stepped {
    use super::*;

    /// Reserves, asks, sleeps, pays.
    #[derive(Debug, Clone, Default)]
    struct Payroll {
        acts: Arc<Mutex<Vec<(String, String)>>>,
        entries: Arc<Mutex<u32>>,
        sleeps: bool,
        /// How often the second step gets lost.
        lose: Arc<Mutex<u32>>,
    }

    impl Payroll {
        fn acts(&self) -> Vec<String> {
            let acts = self.acts.lock().unwrap();
            acts.iter().map(|(name, _)| name.clone()).collect()
        }

        async fn step(&self, ctx: &StepContext, name: &str) -> Result<Value, StepFailed> {
            ctx.step(name, Effect::Write, json!({}), |key| async move {
                self.acts.lock().unwrap().push((name.to_owned(), key));
                let mut lose = self.lose.lock().unwrap();
                if name == "pay" && *lose > 0 {
                    *lose -= 1;
                    return Err(StepTrouble::unknown("lost"));
                }
                Ok(format!("{name} ok"))
            })
            .await
        }
    }

    #[async_trait]
    impl SteppedTool for Payroll {
        async fn run(
            &self,
            ctx: &StepContext,
            _args: &Params,
        ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
            *self.entries.lock().unwrap() += 1;
            let reserved = self.step(ctx, "reserve").await?;
            let answer = ctx.interrupt("ok", Question::approval("pay them?")).await?;
            if approved(&answer) != Some(true) {
                let reason = reason(&answer).unwrap_or("not provided");
                return Ok(json!(format!("not paid: {reason}")));
            }
            if self.sleeps {
                ctx.sleep("nap", Span::from_millis(150)).await?;
            }
            let paid = self.step(ctx, "pay").await?;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            Ok(json!(format!("{}, {}", text(&reserved), text(&paid))))
        }
    }

    fn script(messages: &[Message], _: u32) -> Result<Reply, Failure> {
        match results(messages).first() {
            None => calls(&[("payroll", "{}")]),
            Some(result) => says(result),
        }
    }

    fn spec() -> Definition {
        let mut tool = tool("payroll", Effect::Write, Hooks::default());
        tool.kind = ToolKind::Stepped;
        tool.timeout = Span::from_secs(5);
        definition(vec![tool], &[])
    }

    async fn start(payroll: &Payroll) -> (Place, Engine) {
        let place = Place::new(script, &[]);
        let engine = place.engine_stepping("payroll", payroll.clone());
        let agent = engine.publish("local", spec()).await.unwrap();
        let view = run(&engine, &agent, "s").await;
        assert_eq!(
            (view.status, view.cause.as_deref()),
            ("waiting", Some("human_approval"))
        );
        (place, engine)
    }

    #[tokio::test]
    async fn what_came_before_a_question_is_not_done_again() {
        let payroll = Payroll::default();
        let (place, engine) = start(&payroll).await;
        assert_eq!(payroll.acts(), ["reserve"]);
        drop(engine);
        // Another process answers: the tool is entered again, with what it has behind it.
        let engine = place.engine_stepping("payroll", payroll.clone());
        let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
        assert_eq!(view.output.as_deref(), Some("reserve ok, pay ok"));
        assert_eq!(payroll.acts(), ["reserve", "pay"]);
        assert_eq!(*payroll.entries.lock().unwrap(), 2);
    }

    #[tokio::test]
    async fn a_rejection_reaches_the_tool_with_its_reason() {
        let payroll = Payroll::default();
        let (_place, engine) = start(&payroll).await;
        let reject = Decision::Reject {
            message: Some("too much".to_owned()),
        };
        let view = answer(&engine, "s", vec![reject]).await.unwrap();
        assert_eq!(view.output.as_deref(), Some("not paid: too much"));
    }

    #[tokio::test]
    async fn a_sleep_ends_once_it_is_due() {
        let payroll = Payroll {
            sleeps: true,
            ..Payroll::default()
        };
        let (_place, engine) = start(&payroll).await;
        let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
        assert_eq!(view.status, "sleeping");
        assert_eq!(engine.due().await.unwrap(), []);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(engine.due().await.unwrap(), [key("s")]);
        engine
            .tick(&key("s"))
            .await
            .unwrap()
            .finish()
            .await
            .unwrap();
        let view = crate::support::view(&engine, "s").await;
        assert_eq!(view.output.as_deref(), Some("reserve ok, pay ok"));
        assert_eq!(engine.due().await.unwrap(), []);
        assert_eq!(payroll.acts(), ["reserve", "pay"]);
    }

    #[tokio::test]
    async fn a_step_in_doubt_is_put_before_a_person_and_its_tool_waits() {
        let payroll = Payroll {
            lose: Arc::new(Mutex::new(1)),
            ..Payroll::default()
        };
        let (_place, engine) = start(&payroll).await;
        let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
        assert_eq!(view.cause.as_deref(), Some(Cause::WriteUnknown.as_str()));
        let committed = Decision::Committed {
            result: "pay ok".into(),
        };
        let view = answer(&engine, "s", vec![committed]).await.unwrap();
        assert_eq!(view.output.as_deref(), Some("reserve ok, pay ok"));
        assert_eq!(payroll.acts(), ["reserve", "pay"]);
    }

    #[tokio::test]
    async fn a_step_that_did_not_happen_is_taken_again_under_the_same_key() {
        let payroll = Payroll {
            lose: Arc::new(Mutex::new(1)),
            ..Payroll::default()
        };
        let (_place, engine) = start(&payroll).await;
        answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
        let view = answer(&engine, "s", vec![Decision::NotCommitted])
            .await
            .unwrap();
        assert_eq!(view.output.as_deref(), Some("reserve ok, pay ok"));
        let acts = payroll.acts.lock().unwrap().clone();
        assert_eq!(acts.len(), 3);
        assert_eq!(acts[1], acts[2], "the same step, the same key");
        assert_ne!(acts[0].1, acts[1].1);
    }
}

mod still {
    use super::*;

    fn script(messages: &[Message], _: u32) -> Result<Reply, Failure> {
        if results(messages).is_empty() {
            calls(&[("a", "{}")])
        } else {
            says("done")
        }
    }

    #[tokio::test]
    async fn a_breakpoint_stops_on_each_side_of_a_node_and_goes_on() {
        let place = Place::new(script, &counters());
        let engine = place.engine();
        let mut spec = definition(vec![plain("a")], &[]);
        spec.breakpoints.before = ["model".to_owned(), "a".to_owned()].into();
        spec.breakpoints.after = ["a".to_owned()].into();
        let agent = engine.publish("local", spec).await.unwrap();
        let view = run(&engine, &agent, "s").await;
        assert_eq!(view.cause.as_deref(), Some("breakpoint"));
        // Before the model, before the tool, after it, and before the model again.
        for calls in [0, 0, 1, 1] {
            assert_eq!(place.tools["a"].count(), calls);
            answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
        }
        assert_eq!(crate::support::view(&engine, "s").await.status, "finished");
        assert_eq!(place.tools["a"].count(), 1);
    }

    #[tokio::test]
    async fn a_pause_lets_nothing_start_and_an_answer_meanwhile_counts() {
        let place = Place::new(script, &counters());
        let engine = place.engine();
        let spec = definition(vec![plain("a")], &[("a", ask(&STANDARD))]);
        let agent = engine.publish("local", spec).await.unwrap();
        run(&engine, &agent, "s").await;
        let paused = engine.pause(&me(), &key("s"), None).await.unwrap();
        paused.finish().await.unwrap();
        let view = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
        assert_eq!(
            (view.status, view.cause.as_deref()),
            ("paused", Some("user_pause"))
        );
        assert_eq!(place.tools["a"].count(), 0);
        let goes_on = engine.unpause(&me(), &key("s"), None).await.unwrap();
        goes_on.finish().await.unwrap();
        assert_eq!(crate::support::view(&engine, "s").await.status, "finished");
        assert_eq!(place.tools["a"].count(), 1);
    }

    #[tokio::test]
    async fn what_nobody_answers_in_time_is_not_done() {
        for (on_timeout, status, cause) in [
            (OnTimeout::Expire, "cancelled", Some("timeout")),
            (OnTimeout::Reject, "finished", None),
        ] {
            let place = Place::new(script, &counters());
            let engine = place.engine();
            let mut gate = ask(&STANDARD);
            gate.terms.timeout = Some(Span::from_millis(100));
            gate.terms.on_timeout = on_timeout;
            let spec = definition(vec![plain("a")], &[("a", gate)]);
            let agent = engine.publish("local", spec).await.unwrap();
            run(&engine, &agent, "s").await;
            tokio::time::sleep(Duration::from_millis(120)).await;
            let late = answer(&engine, "s", vec![Decision::APPROVE]).await;
            let Err(Error::Refused(refusal)) = late else {
                panic!("{late:?}")
            };
            assert_eq!(refusal.code(), "expired");
            engine.drive(&key("s")).await.unwrap();
            let view = view(&engine, "s").await;
            assert_eq!((view.status, view.cause.as_deref()), (status, cause));
            assert_eq!(place.tools["a"].count(), 0);
        }
    }
}

mod rules {
    use super::*;

    fn script(messages: &[Message], _: u32) -> Result<Reply, Failure> {
        let amounts = ["5", "500", "\"x\""];
        match results(messages).len() {
            at if at < amounts.len() => calls(&[("a", &format!("{{\"n\":{}}}", amounts[at]))]),
            _ => says("done"),
        }
    }

    #[tokio::test]
    async fn under_a_hundred_nobody_else_a_person() {
        let place = Place::new(script, &counters());
        let engine = place.engine();
        let mut gate = Gate::ask(Allowed::standard());
        gate.rules = vec![Rule {
            when: "args.n < 100".to_owned(),
            then: Ruling::Allow,
        }];
        gate.terms.description = Some("Pay {{ args.n }}?".to_owned());
        let mut spec = definition(vec![plain("a")], &[("a", gate)]);
        spec.tools[0].input_schema = serde_json::json!({"type": "object"});
        let agent = engine.publish("local", spec).await.unwrap();
        let view = run(&engine, &agent, "s").await;
        assert_eq!(place.tools["a"].count(), 1, "five needs nobody");
        let shown = &view.interrupts[0].value.action_requests[0].description;
        assert_eq!(shown, "Pay 500?");
        answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
        // What cannot be compared asks a person.
        pending(&engine, "s").await;
        assert_eq!(place.tools["a"].count(), 2);
    }
}

mod grants {
    use super::*;

    fn script(messages: &[Message], _: u32) -> Result<Reply, Failure> {
        match results(messages).len() {
            at @ 0..4 => calls(&[("a", &format!("{{\"n\":{at}}}"))]),
            _ => says("done"),
        }
    }

    fn approve(scope: Scope, matches: Matches, uses: Option<u32>) -> Decision {
        Decision::Approve {
            grant: Some(GrantTerms {
                scope,
                matches,
                expires_in: None,
                uses,
            }),
        }
    }

    async fn place(always: bool) -> (Place, Engine) {
        let place = Place::new(script, &counters());
        let engine = place.engine();
        let mut gate = ask(&STANDARD);
        gate.terms.always_ask = always;
        let spec = definition(vec![plain("a")], &[("a", gate)]);
        let agent = engine.publish("local", spec).await.unwrap();
        run(&engine, &agent, "s").await;
        (place, engine)
    }

    #[tokio::test]
    async fn a_grant_of_the_thread_lets_as_many_calls_pass_as_it_says() {
        let (place, engine) = place(false).await;
        let decision = approve(Scope::Thread, Matches::Tool, Some(2));
        let view = answer(&engine, "s", vec![decision]).await.unwrap();
        assert_eq!(view.status, "waiting", "the fourth call is asked about");
        assert_eq!(place.tools["a"].count(), 3);
        let grants = engine.grants("local").await.unwrap();
        assert_eq!((grants.len(), grants[0].grant.used), (1, 2));
    }

    #[tokio::test]
    async fn a_grant_of_the_agent_is_counted_over_its_threads_and_can_be_revoked() {
        let (place, engine) = place(false).await;
        let decision = approve(Scope::Agent, Matches::Tool, Some(4));
        let view = answer(&engine, "s", vec![decision]).await.unwrap();
        assert_eq!(view.status, "finished");
        assert_eq!(place.tools["a"].count(), 4);

        let spec = definition(vec![plain("a")], &[("a", ask(&STANDARD))]);
        let agent = engine.publish("local", spec).await.unwrap();
        let view = run(&engine, &agent, "other").await;
        assert_eq!(view.status, "waiting", "one use was left");
        assert_eq!(place.tools["a"].count(), 5);
        let grants = engine.grants("local").await.unwrap();
        assert_eq!((grants.len(), grants[0].grant.used), (1, 4));

        engine.revoke(&me(), grants[0].grant.id).await.unwrap();
        let grants = engine.grants("local").await.unwrap();
        assert!(grants[0].grant.revoked);
    }

    #[tokio::test]
    async fn what_must_always_be_asked_cannot_be_granted() {
        let (place, engine) = place(true).await;
        let decision = approve(Scope::Thread, Matches::Tool, None);
        let refused = answer(&engine, "s", vec![decision]).await;
        let Err(Error::Refused(refusal)) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(refusal.code(), "misfit");
        assert_eq!(place.tools["a"].count(), 0);
    }

    #[tokio::test]
    async fn everything_is_accepted_from_now_on() {
        let (place, engine) = place(false).await;
        let decision = approve(Scope::Thread, Matches::All, None);
        let view = answer(&engine, "s", vec![decision]).await.unwrap();
        assert_eq!(view.status, "finished");
        assert_eq!(place.tools["a"].count(), 4);
    }
}

mod outside {
    use super::*;
    use holdpoint_core::{InterruptStatus, ThreadId};
    use holdpoint_engine::{Asking, News};
    use holdpoint_store::ThreadKey;

    fn asking(title: &str, timeout: Option<Span>) -> Asking {
        Asking {
            workflow: "w".to_owned(),
            node: "n".to_owned(),
            kind: InterruptKind::Input,
            prompt: Prompt {
                title: title.to_owned(),
                input_schema: Some(json!({"type": "integer"})),
                ..Prompt::default()
            },
            expiry: timeout.map(|timeout| (timeout, OnTimeout::Expire)),
        }
    }

    fn node() -> ThreadKey {
        ThreadKey {
            tenant: "local".into(),
            thread: ThreadId::of_node("local", "w", "n"),
        }
    }

    fn nothing(_: &[Message], _: u32) -> Result<Reply, Failure> {
        panic!("nobody thinks")
    }

    #[tokio::test]
    async fn a_question_survives_its_process_and_its_answer_must_fit() {
        let place = Place::new(nothing, &[]);
        let engine = place.engine();
        let asked = engine.ask(&me(), asking("how many?", None)).await.unwrap();
        assert_eq!(asked.news, News::New);
        let asked = asked.interrupt;
        drop(engine);
        let engine = place.engine();
        let again = engine.ask(&me(), asking("how many?", None)).await.unwrap();
        let same = (again.interrupt, again.news);
        assert_eq!(
            same,
            (asked, News::Known),
            "the same question of the same node"
        );
        let other = engine.ask(&me(), asking("how much?", None)).await;
        assert!(matches!(other, Err(Error::Refused(_))));

        let waiter = {
            let engine = engine.clone();
            tokio::spawn(async move { engine.wait("local", asked).await })
        };
        let say = |value: serde_json::Value| Answer::All(Decision::Answer { value });
        let misfit = engine
            .answer(&me(), &node(), asked, say(json!("three")))
            .await;
        assert!(matches!(misfit, Err(Error::Refused(_))));
        let taken = engine.answer(&me(), &node(), asked, say(json!(3))).await;
        taken.unwrap().finish().await.unwrap();
        let found = waiter.await.unwrap().unwrap();
        assert_eq!(found.status, InterruptStatus::Resolved);
        assert_eq!(
            found.decision(),
            Some(&Decision::Answer { value: json!(3) })
        );
        let all = engine.outside_of("local", Some("w")).await.unwrap();
        assert_eq!(all.len(), 1);
    }

    #[tokio::test]
    async fn a_waiter_is_released_when_time_is_up() {
        let place = Place::new(nothing, &[]);
        let engine = place.engine();
        let soon = Some(Span::from_millis(100));
        let asked = engine.ask(&me(), asking("how many?", soon)).await.unwrap();
        let found = engine.wait("local", asked.interrupt).await.unwrap();
        assert_eq!(found.status, InterruptStatus::Timeout);
        assert!(found.closed.is_some(), "it is recorded");
    }
}
