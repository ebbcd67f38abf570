//! Runs from their input to their end, through people's decisions.

use holdpoint_core::{
    Answer, Decision, DecisionKind, EditedAction, Effect, Hooks, Limits, Principal, PrincipalKind,
    Refusal, Span,
};
use holdpoint_engine::Error;
use holdpoint_models::Failure;

use crate::support::*;

const APPROVE_REJECT: [DecisionKind; 2] = [DecisionKind::Approve, DecisionKind::Reject];

#[tokio::test]
async fn an_ungated_call_runs_and_its_result_reaches_the_model() {
    let place = Place::new(
        |messages, _| match results(messages).as_slice() {
            [] => calls(&[("look", r#"{"n":1}"#)]),
            [result] => says(&format!("got {result}")),
            _ => says("too much"),
        },
        &[("look", Counter::default())],
    );
    let engine = place.engine();
    let look = tool("look", Effect::Read, Hooks::default());
    let agent = engine
        .publish("local", definition(vec![look], &[]))
        .await
        .unwrap();
    let view = run(&engine, &agent, "s").await;
    assert_eq!(
        (view.status, view.output.as_deref()),
        ("finished", Some("got look done"))
    );
    assert_eq!(place.tools["look"].args(), [r#"{"n":1}"#]);
}

#[tokio::test]
async fn two_gated_calls_of_three_make_one_interrupt_and_the_third_waits_for_it() {
    let place = Place::new(
        |messages, _| match results(messages).len() {
            0 => calls(&[("a", "{}"), ("b", "{}"), ("look", "{}")]),
            _ => says("done"),
        },
        &[
            ("a", Counter::default()),
            ("b", Counter::default()),
            ("look", Counter::default()),
        ],
    );
    let engine = place.engine();
    let tools = ["a", "b"].map(|name| tool(name, Effect::Write, Hooks::default()));
    let tools = tools
        .into_iter()
        .chain([tool("look", Effect::Read, Hooks::default())])
        .collect();
    let gates = [("a", ask(&APPROVE_REJECT)), ("b", ask(&APPROVE_REJECT))];
    let agent = engine
        .publish("local", definition(tools, &gates))
        .await
        .unwrap();
    let view = run(&engine, &agent, "s").await;
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("waiting", Some("human_approval"))
    );
    let names: Vec<&str> = view.interrupts[0]
        .value
        .action_requests
        .iter()
        .map(|request| request.name.as_str())
        .collect();
    assert_eq!((view.interrupts.len(), names), (1, vec!["a", "b"]));
    assert_eq!(
        place.tools["look"].count(),
        0,
        "the ungated call waits for the decision"
    );

    let rejected = Decision::Reject {
        message: Some("not this one".to_owned()),
    };
    let view = answer(&engine, "s", vec![Decision::APPROVE, rejected])
        .await
        .unwrap();
    assert_eq!((view.status, view.interrupts.len()), ("finished", 0));
    let expected = [
        "User rejected the tool call for `b` with reason: not this one",
        "a done",
        "look done",
    ];
    assert_eq!(contents(&view), expected);
    let counts = ["a", "b", "look"].map(|name| place.tools[name].count());
    assert_eq!(counts, [1, 0, 1]);
}

#[tokio::test]
async fn an_edit_runs_the_reviewers_call_and_the_result_says_so() {
    let place = one_gated();
    let engine = place.engine();
    let agent = engine
        .publish("local", pay(&[DecisionKind::Edit]))
        .await
        .unwrap();
    run(&engine, &agent, "s").await;
    let edit = |name: &str, args: &str| Decision::Edit {
        edited_action: EditedAction {
            name: name.to_owned(),
            args: params(args),
        },
    };
    let misfits = [
        edit("pay", r#"{"n":"many"}"#),
        edit("other", r#"{"n":1}"#),
        Decision::APPROVE,
    ];
    for misfit in misfits {
        let before = state(&engine, "s").await;
        let refused = answer(&engine, "s", vec![misfit]).await.unwrap_err();
        assert_eq!(refused.code(), "misfit", "{refused}");
        assert_eq!(state(&engine, "s").await, before);
    }
    let view = answer(&engine, "s", vec![edit("pay", r#"{"n":7}"#)])
        .await
        .unwrap();
    assert_eq!(view.status, "finished");
    assert_eq!(place.tools["pay"].args(), [r#"{"n":7}"#]);
    let content = &contents(&view)[0];
    assert!(
        content.contains(r#"Executed instead: pay with arguments {"n":7}."#),
        "{content}"
    );
    assert!(content.ends_with("Tool response:\npay done"), "{content}");
    let asked = serde_json::to_value(&view.messages[1]).unwrap();
    assert_eq!(
        asked["tool_calls"][0]["arguments"], r#"{"n":1}"#,
        "the model's own call stays"
    );
}

/// A place whose model asks for `pay` once and then says so.
fn one_gated() -> Place {
    Place::new(
        |messages, _| match results(messages).len() {
            0 => calls(&[("pay", r#"{"n":1}"#)]),
            _ => says("done"),
        },
        &[("pay", Counter::default())],
    )
}

fn pay(kinds: &[DecisionKind]) -> holdpoint_core::Definition {
    definition(
        vec![tool("pay", Effect::Write, Hooks::default())],
        &[("pay", ask(kinds))],
    )
}

#[tokio::test]
async fn a_respond_answers_in_the_tools_place() {
    let place = one_gated();
    let engine = place.engine();
    let agent = engine
        .publish("local", pay(&[DecisionKind::Respond]))
        .await
        .unwrap();
    run(&engine, &agent, "s").await;
    let view = answer(
        &engine,
        "s",
        vec![Decision::Respond {
            message: "paid by hand".to_owned(),
        }],
    )
    .await
    .unwrap();
    assert_eq!(
        (contents(&view), place.tools["pay"].count()),
        (vec!["paid by hand".to_owned()], 0)
    );
}

#[tokio::test]
async fn the_second_of_two_answers_is_told_who_won() {
    let place = one_gated();
    let engine = place.engine();
    let agent = engine.publish("local", pay(&APPROVE_REJECT)).await.unwrap();
    run(&engine, &agent, "s").await;
    let interrupt = pending(&engine, "s").await;
    answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    let version = state(&engine, "s").await.version;
    let bob = Principal::local("bob");
    let again = engine
        .answer(&bob, &key("s"), interrupt, Answer::All(Decision::APPROVE))
        .await
        .unwrap_err();
    assert_eq!(
        again.to_string(),
        format!("interrupt `{interrupt}` is already resolved, by local:ann")
    );
    assert_eq!(
        (
            state(&engine, "s").await.version,
            place.tools["pay"].count()
        ),
        (version, 1)
    );
}

#[tokio::test]
async fn of_many_answers_at_once_exactly_one_wins_and_the_effect_happens_once() {
    let place = one_gated();
    let engines = [place.engine(), place.engine()];
    let agent = engines[0]
        .publish("local", pay(&APPROVE_REJECT))
        .await
        .unwrap();
    run(&engines[0], &agent, "s").await;
    let interrupt = pending(&engines[0], "s").await;
    let mut answers = tokio::task::JoinSet::new();
    for at in 0..20 {
        let engine = engines[at % 2].clone();
        answers.spawn(async move {
            let by = Principal::local(&format!("p{at}"));
            let submitted = engine
                .answer(&by, &key("s"), interrupt, Answer::All(Decision::APPROVE))
                .await?;
            submitted.finish().await
        });
    }
    let mut won = 0;
    for answered in answers.join_all().await {
        match answered {
            Ok(_) => won += 1,
            Err(error) => assert_eq!(error.code(), "already_decided", "{error}"),
        }
    }
    assert_eq!((won, place.tools["pay"].count()), (1, 1));
    assert_eq!(view(&engines[1], "s").await.status, "finished");
}

#[tokio::test]
async fn an_agent_never_decides_and_another_tenant_sees_nothing() {
    let place = one_gated();
    let engine = place.engine();
    let agent = engine.publish("local", pay(&APPROVE_REJECT)).await.unwrap();
    run(&engine, &agent, "s").await;
    let interrupt = pending(&engine, "s").await;
    let robot = Principal::new(PrincipalKind::Agent, "local", "robot");
    let refused = engine
        .answer(&robot, &key("s"), interrupt, Answer::All(Decision::APPROVE))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "forbidden");
    let stranger = Principal::new(PrincipalKind::User, "evil", "eve");
    let refused = engine
        .answer(
            &stranger,
            &key("s"),
            interrupt,
            Answer::All(Decision::APPROVE),
        )
        .await
        .unwrap_err();
    assert_eq!(refused, Error::Refused(Refusal::NotFound));
}

#[tokio::test]
async fn hostile_arguments_come_back_to_the_model_as_an_error_and_the_run_goes_on() {
    let place = Place::new(
        |messages, _| match results(messages).len() {
            0 => calls(&[
                ("pay", r#"{"n":9007199254740993}"#),
                ("pay", r#"{"n":1,"n":2}"#),
                ("pay", r#"{"m":1}"#),
                ("nope", "{}"),
                ("pay", "{"),
            ]),
            _ => says(&results(messages).join("\n")),
        },
        &[("pay", Counter::default())],
    );
    let engine = place.engine();
    let agent = engine.publish("local", pay(&APPROVE_REJECT)).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    let output = view.output.unwrap();
    for part in [
        "send it as a string",
        "appears twice",
        "do not fit its schema",
        "no tool `nope`",
        "not valid JSON",
    ] {
        assert!(output.contains(part), "{part} in {output}");
    }
    assert_eq!((view.status, place.tools["pay"].count()), ("finished", 0));
}

#[tokio::test]
async fn arguments_of_a_schema_that_refers_to_itself_are_looked_at_in_time_however_deep_they_are() {
    let place = Place::new(
        |messages, _| match results(messages).as_slice() {
            [] => {
                let deep = format!("{}7{}", r#"{"a":"#.repeat(60), "}".repeat(60));
                calls(&[
                    ("look", &deep),
                    ("look", r#"{"a":{"a":7}}"#),
                    ("look", r#"{"a":{}}"#),
                ])
            }
            [deep, flat, right] => {
                assert!(
                    deep.contains("nothing was executed: it is nested too deep to say where."),
                    "{deep}"
                );
                assert!(
                    flat.contains("nothing was executed: /a/a: ") || flat.contains("/a: "),
                    "{flat}"
                );
                says(right)
            }
            _ => says("too much"),
        },
        &[("look", Counter::default())],
    );
    let engine = place.engine();
    let mut look = tool("look", Effect::Read, Hooks::default());
    // Each level is looked at twice.
    let again = serde_json::json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
    look.input_schema = serde_json::json!({"type": "object", "properties": {"a": again}});
    let agent = definition(vec![look], &[]);
    let agent = engine.publish("local", agent).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    assert_eq!((view.status, place.tools["look"].count()), ("finished", 1));
}

#[tokio::test]
async fn a_call_that_is_rejected_three_times_ends_the_run() {
    let place = Place::new(
        |_, _| calls(&[("pay", r#"{"n":1}"#)]),
        &[("pay", Counter::default())],
    );
    let engine = place.engine();
    let agent = engine.publish("local", pay(&APPROVE_REJECT)).await.unwrap();
    run(&engine, &agent, "s").await;
    for _ in 0..2 {
        let view = answer(&engine, "s", vec![Decision::Reject { message: None }])
            .await
            .unwrap();
        assert_eq!(view.status, "waiting");
    }
    let view = answer(&engine, "s", vec![Decision::Reject { message: None }])
        .await
        .unwrap();
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("failed", Some("rejected_repeatedly"))
    );
}

#[tokio::test]
async fn limits_of_turns_and_calls_end_the_run() {
    let place = Place::new(
        |_, _| calls(&[("look", "{}")]),
        &[("look", Counter::default())],
    );
    let engine = place.engine();
    let mut short = definition(vec![tool("look", Effect::Read, Hooks::default())], &[]);
    for (limits, code, count) in [
        (
            Limits {
                turns: 3,
                ..Limits::default()
            },
            "limit_turns",
            3,
        ),
        (
            Limits {
                calls: 2,
                ..Limits::default()
            },
            "limit_calls",
            2,
        ),
        (
            Limits {
                time: Span::ZERO,
                ..Limits::default()
            },
            "limit_time",
            0,
        ),
    ] {
        short.limits = limits;
        let agent = engine.publish("local", short.clone()).await.unwrap();
        place.tools["look"].calls.lock().unwrap().clear();
        let view = run(&engine, &agent, code).await;
        assert_eq!(
            (
                view.status,
                view.cause.as_deref(),
                place.tools["look"].count()
            ),
            ("failed", Some(code), count)
        );
    }
}

#[tokio::test]
async fn a_model_that_fails_is_tried_three_times_and_then_a_person_is_asked() {
    let place = Place::new(
        |messages, attempt| match (messages.len(), attempt) {
            (1, 1 | 2) => Err(Failure::Unavailable {
                reason: "busy".to_owned(),
            }),
            (1, _) => says("third time"),
            (3, _) => Err(Failure::Timeout),
            _ => Err(Failure::Rejected {
                reason: "not that".to_owned(),
            }),
        },
        &[],
    );
    let engine = place.engine();
    let agent = engine
        .publish("local", definition(vec![], &[]))
        .await
        .unwrap();
    assert_eq!(
        run(&engine, &agent, "s").await.output.as_deref(),
        Some("third time")
    );
    let view = run(&engine, &agent, "s").await;
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("waiting", Some("model_timeout"))
    );
    let view = answer(&engine, "s", vec![Decision::Reject { message: None }])
        .await
        .unwrap();
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("failed", Some("model_unavailable"))
    );
    let view = run(&engine, &agent, "s").await;
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("waiting", Some("model_error"))
    );
}

#[tokio::test]
async fn a_waiting_thread_takes_no_new_input_and_a_cancelled_one_does() {
    let place = one_gated();
    let engine = place.engine();
    let agent = engine.publish("local", pay(&APPROVE_REJECT)).await.unwrap();
    run(&engine, &agent, "s").await;
    let refused = engine.start(&me(), &agent, "s", "more").await.unwrap_err();
    assert_eq!(refused.code(), "interrupt_pending");
    engine
        .cancel(&me(), &key("s"), None)
        .await
        .unwrap()
        .finish()
        .await
        .unwrap();
    let cancelled = view(&engine, "s").await;
    assert_eq!(
        (cancelled.status, cancelled.interrupts.len()),
        ("cancelled", 0)
    );
    assert!(
        contents(&cancelled)[0].contains("was not executed"),
        "{:?}",
        contents(&cancelled)
    );
    assert_eq!(
        engine
            .cancel(&me(), &key("s"), None)
            .await
            .unwrap_err()
            .code(),
        "run_over"
    );
    assert_eq!(run(&engine, &agent, "s").await.status, "waiting");
    assert_eq!(place.tools["pay"].count(), 0);
}

#[tokio::test]
async fn pending_questions_are_read_page_by_page_oldest_first() {
    let place = one_gated();
    let engine = place.engine();
    let agent = engine.publish("local", pay(&APPROVE_REJECT)).await.unwrap();
    for session in ["a", "b", "c", "d", "e"] {
        run(&engine, &agent, session).await;
    }
    answer(&engine, "b", vec![Decision::APPROVE]).await.unwrap();
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let page = engine.pending("local", after, 2).await.unwrap();
        let asked = page.interrupts.iter().map(|pending| {
            assert_eq!(
                pending.thread_id,
                key(&pending.session).thread,
                "{pending:?}"
            );
            let request = &pending.interrupt.value.action_requests[0];
            (pending.session.clone(), request.name.clone())
        });
        pages.push(asked.collect::<Vec<_>>());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let asked = |session: &str| (session.to_owned(), "pay".to_owned());
    let expected = [
        vec![asked("a"), asked("c")],
        vec![asked("d"), asked("e")],
        vec![],
    ];
    assert_eq!(pages, expected);
    let other = engine.pending("other", None, 2).await.unwrap();
    assert!(other.interrupts.is_empty() && other.next.is_none());
}

/// A model that thinks for longer than its run may work.
#[derive(Debug)]
struct Ponderer;

#[async_trait::async_trait]
impl holdpoint_models::Model for Ponderer {
    async fn turn(
        &self,
        _request: holdpoint_models::Request<'_>,
        _deltas: &mut (dyn FnMut(holdpoint_models::Delta) + Send),
    ) -> Result<holdpoint_models::Reply, Failure> {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        says("too late")
    }
}

#[tokio::test]
async fn the_limit_of_time_ends_a_model_call_too() {
    let place = Place::new(|_, _| says("never"), &[]);
    let engine = place.engine_with(std::sync::Arc::new(Ponderer));
    let mut short = definition(vec![], &[]);
    short.limits.time = Span::from_millis(200);
    let agent = engine.publish("local", short).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    assert_eq!(
        (view.status, view.cause.as_deref()),
        ("failed", Some("limit_time"))
    );
}

#[tokio::test]
async fn a_definition_that_cannot_mean_what_it_says_is_not_published() {
    let place = Place::new(|_, _| says("done"), &[("pay", Counter::default())]);
    let engine = place.engine();
    let pay = || vec![tool("pay", Effect::Write, Hooks::default())];
    let misspelt = definition(pay(), &[("pya", ask(&APPROVE_REJECT))]);
    let refused = engine.publish("local", misspelt).await.unwrap_err();
    assert!(
        refused.to_string().contains("would guard nothing"),
        "{refused}"
    );
    let nowhere = definition(pay(), &[]).stop_before("pya");
    assert!(engine.publish("local", nowhere).await.is_err());
}

#[tokio::test]
async fn an_agent_runs_only_for_tenants_that_it_was_published_for() {
    let place = Place::new(|_, _| says("done"), &[]);
    let engine = place.engine();
    let agent = engine
        .publish("local", definition(vec![], &[]))
        .await
        .unwrap();
    let stranger = Principal::new(PrincipalKind::User, "acme", "ann");
    let refused = engine.start(&stranger, &agent, "s", "go").await.err();
    let refused = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("not published for the tenant `acme`"));
}
