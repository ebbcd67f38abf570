//! Stepped tools that are code.

use std::{
    error::Error,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_core::{Effect, Lookup, Outcome, Params, Recalled, Span, ToolKind, ToolSpec};
use holdpoint_tools::{
    Call, Question, Registry, StepContext, StepFailed, StepTrouble, SteppedTool, Tool, Watchdog,
    approved, instantiate, reason,
};
use serde_json::{Value, json};
use tokio::{join, select, sync::Barrier, time::timeout};

use crate::{
    bench::{PLENTY, block_on, call, code, done, failed, not_known, params, spec, unknown},
    journal::{Journal, Left},
};

crate::trials!(
    what_a_tool_did_before_is_given_back_when_it_is_entered_again,
    a_question_nobody_answered_in_time_says_so,
    a_sleep_is_over_when_the_tool_is_entered_again,
    steps_are_taken_at_the_same_time,
    a_step_in_flight_ends_before_the_tool_is_left_for_a_question,
    a_time_out_around_a_question_does_not_let_the_tool_go_on,
    a_race_that_a_question_loses_does_not_let_the_tool_go_on,
    nothing_is_begun_while_a_question_is_open,
    of_two_questions_at_once_one_is_asked_after_the_other,
    a_time_out_around_a_step_that_may_not_begin_does_not_let_the_tool_go_on,
    a_step_that_was_let_go_of_before_it_was_begun_had_no_effect,
    a_step_that_was_let_go_of_while_it_was_taken_is_unknown_and_the_tool_does_not_go_on,
    a_step_that_the_tool_ends_in_the_middle_of_is_unknown,
    a_step_whose_end_nobody_knows_does_not_let_the_tool_go_on,
    other_steps_in_flight_come_to_their_end_when_one_is_unknown,
    any_error_in_a_step_is_unknown_and_only_a_promise_is_a_failure,
    a_failed_step_fails_again_without_being_taken,
    a_refusal_that_is_swallowed_has_no_effect_and_ends_the_tool,
    an_end_that_cannot_be_recorded_is_unknown,
    another_question_under_an_answered_name_is_refused,
    arguments_that_are_no_object_are_refused_before_anything_runs,
    a_result_is_the_same_when_it_is_recalled,
    hooks_are_those_of_the_step,
    a_stepped_tool_is_not_called_and_a_plain_one_not_entered,
);

type Ran<'a> =
    Pin<Box<dyn Future<Output = Result<Value, Box<dyn Error + Send + Sync>>> + Send + 'a>>;

/// A tool that is this function.
struct Code<F>(F);

impl<F> std::fmt::Debug for Code<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Code")
    }
}

#[async_trait]
impl<F> SteppedTool for Code<F>
where
    F: for<'a> Fn(&'a StepContext, &'a Params) -> Ran<'a> + Send + Sync,
{
    async fn run(
        &self,
        ctx: &StepContext,
        args: &Params,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        (self.0)(ctx, args).await
    }
}

fn tool<F>(run: F) -> Arc<dyn Tool>
where
    F: for<'a> Fn(&'a StepContext, &'a Params) -> Ran<'a> + Send + Sync + 'static,
{
    registered(Code(run))
}

fn registered(tool: impl SteppedTool + 'static) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        kind: ToolKind::Stepped,
        ..spec(code())
    };
    let registry = Registry::new().with_stepped("t", tool);
    instantiate(&spec, &[], &registry, &Watchdog::default()).unwrap()
}

fn enter(journal: &Journal, tool: &Arc<dyn Tool>) -> Left {
    journal.enter(&**tool, &params(r#"{"id":7}"#))
}

const ASKED_OK: &str = "wait ok Question { kind: Approval, prompt: Prompt { title: \"Ok?\", description: \"\", data: Null, \
    options: [], input_schema: None, timeout: None, checkpoint_id: None, metadata: {} }, expiry: None }";

async fn ask(ctx: &StepContext) -> Result<Recalled, holdpoint_tools::StepRefused> {
    ctx.interrupt("ok", Question::approval("Ok?")).await
}

/// What a tool did that nobody else would see.
type Marks = Arc<Mutex<Vec<&'static str>>>;

fn mark(marks: &Marks, what: &'static str) {
    marks.lock().unwrap().push(what);
}

fn what_a_tool_did_before_is_given_back_when_it_is_entered_again() {
    let marks = Marks::default();
    let seen = marks.clone();
    let tool = tool(move |ctx, args| {
        let marks = marks.clone();
        Box::pin(async move {
            let order = ctx
                .step("order", Effect::Read, args, |_| async {
                    mark(&marks, "order");
                    Ok(json!({"total": "5.00"}))
                })
                .await?;
            let answer = ask(ctx).await?;
            if approved(&answer) != Some(true) {
                return Err(format!("rejected: {}", reason(&answer).unwrap_or("-")).into());
            }
            let paid = ctx
                .step("pay", Effect::Write, &order, |key| {
                    mark(&marks, "pay");
                    async move { Ok(format!("paid under {key}")) }
                })
                .await?;
            Ok(paid)
        })
    });
    let journal = Journal::new();
    assert_eq!(enter(&journal, &tool), Left::Dropped);
    let first = [
        r#"begin order read {"id":7}"#,
        r#"done order: {"total":"5.00"}"#,
        ASKED_OK,
    ];
    assert_eq!(journal.log(), first);
    // Entering again without an answer changes nothing.
    journal.answer(json!({"approved": true}));
    let paid = Left::Ended(done("paid under key of pay"));
    assert_eq!(enter(&journal, &tool), paid);
    let second = [
        "ended order",
        r#"begin pay write {"total":"5.00"}"#,
        r#"done pay: "paid under key of pay""#,
    ];
    assert_eq!(journal.log(), second);
    // As after a crash before the result was recorded.
    assert_eq!(enter(&journal, &tool), paid);
    assert_eq!(journal.log(), ["ended order", "ended pay"]);
    assert_eq!(*seen.lock().unwrap(), ["order", "pay"]);

    let rejected = Journal::new();
    assert_eq!(enter(&rejected, &tool), Left::Dropped);
    rejected.answer(json!({"approved": false, "reason": "zu teuer 💸"}));
    assert_eq!(
        enter(&rejected, &tool),
        Left::Ended(failed("rejected: zu teuer 💸"))
    );
}

fn a_question_nobody_answered_in_time_says_so() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            let question = Question::approval("Ok?").timeout(Span::from_secs(5));
            let answer = ctx.interrupt("ok", question).await?;
            Ok(json!([answer == Recalled::TimedOut, approved(&answer)]))
        })
    });
    let journal = Journal::new();
    assert_eq!(enter(&journal, &tool), Left::Dropped);
    assert!(journal.log()[0].ends_with("expiry: Some((5s, Reject)) }"));
    journal.time_out();
    assert_eq!(enter(&journal, &tool), Left::Ended(done("[true,null]")));
}

fn a_sleep_is_over_when_the_tool_is_entered_again() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            ctx.sleep("nap", Span::from_secs(600)).await?;
            Ok(json!("rested"))
        })
    });
    let journal = Journal::new();
    assert_eq!(enter(&journal, &tool), Left::Dropped);
    assert_eq!(journal.log(), ["wait nap Sleep { time: 600s }"]);
    journal.wake();
    assert_eq!(enter(&journal, &tool), Left::Ended(done("rested")));
}

fn steps_are_taken_at_the_same_time() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            // Neither goes on before the other is there.
            let both = Barrier::new(2);
            let one = ctx.step("a", Effect::Write, (), |_| async {
                both.wait().await;
                Ok(1)
            });
            let other = ctx.step("b", Effect::Write, (), |_| async {
                both.wait().await;
                Ok(2)
            });
            let (one, other) = join!(one, other);
            Ok(json!([one?, other?]))
        })
    });
    let journal = Journal::new();
    assert_eq!(enter(&journal, &tool), Left::Ended(done("[1,2]")));
    let mut log = journal.log();
    log.sort();
    let expected = [
        "begin a write {}",
        "begin b write {}",
        "done a: 1",
        "done b: 2",
    ];
    assert_eq!(log, expected);
}

fn a_step_in_flight_ends_before_the_tool_is_left_for_a_question() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            let slow = ctx.step("slow", Effect::Write, (), |_| async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok(())
            });
            let (_, answer) = join!(slow, ask(ctx));
            answer?;
            Ok(json!("both"))
        })
    });
    let journal = Journal::new();
    assert_eq!(enter(&journal, &tool), Left::Dropped);
    assert_eq!(
        journal.log(),
        ["begin slow write {}", ASKED_OK, "done slow: null"]
    );
    journal.answer(json!({"approved": true}));
    assert_eq!(enter(&journal, &tool), Left::Ended(done("both")));
}

/// Gives an entry time to do what it must not do, and says what it did.
fn stands(tool: &Arc<dyn Tool>, side: Arc<crate::journal::Side>) {
    let args = params("{}");
    block_on(async {
        let entry = tool.enter(call(&args, PLENTY), side);
        let ended = timeout(Duration::from_millis(150), entry).await;
        assert!(ended.is_err(), "it ended: {ended:?}");
    });
}

fn a_time_out_around_a_question_does_not_let_the_tool_go_on() {
    let marks = Marks::default();
    let seen = marks.clone();
    let tool = tool(move |ctx, _| {
        let marks = marks.clone();
        Box::pin(async move {
            let soon = Duration::from_millis(1);
            if timeout(soon, ask(ctx)).await.is_err() {
                mark(&marks, "went on");
                let act = |_| async { Ok(()) };
                ctx.step("without an answer", Effect::Write, (), act)
                    .await?;
            }
            Ok(json!("answered"))
        })
    });
    let journal = Journal::new();
    stands(&tool, journal.side());
    assert_eq!(journal.log(), [ASKED_OK]);
    assert!(seen.lock().unwrap().is_empty());
    // With the answer it goes on, however short the time.
    assert_eq!(enter(&journal, &tool), Left::Dropped);
    journal.answer(json!({"approved": true}));
    assert_eq!(enter(&journal, &tool), Left::Ended(done("answered")));
    assert!(seen.lock().unwrap().is_empty());
}

fn a_race_that_a_question_loses_does_not_let_the_tool_go_on() {
    let tool = tool(move |ctx, _| {
        Box::pin(async move {
            let slow = ctx.step("slow", Effect::Write, (), |_| async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok("slow")
            });
            let won = select! {
                biased;
                slow = slow => format!("{:?}", slow?),
                answer = ask(ctx) => format!("{:?}", answer?),
            };
            ctx.step("after", Effect::Write, (), |_| async { Ok(()) })
                .await?;
            Ok(json!(won))
        })
    });
    let journal = Journal::new();
    stands(&tool, journal.side());
    let mut log = journal.log();
    log.sort();
    assert_eq!(
        log,
        ["begin slow write {}", "done slow: \"slow\"", ASKED_OK]
    );
}

fn nothing_is_begun_while_a_question_is_open() {
    let tool = tool(move |ctx, _| {
        Box::pin(async move {
            let slow = ctx.step("slow", Effect::Write, (), |_| async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok(())
            });
            let later = async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                ctx.step("later", Effect::Write, (), |_| async { Ok(()) })
                    .await
            };
            let (_, answer, later) = join!(slow, ask(ctx), later);
            answer?;
            later?;
            Ok(json!("all"))
        })
    });
    let journal = Journal::new();
    stands(&tool, journal.side());
    assert_eq!(
        journal.log(),
        ["begin slow write {}", ASKED_OK, "done slow: null"]
    );
    assert_eq!(enter(&journal, &tool), Left::Dropped);
    journal.answer(json!({"approved": true}));
    journal.log();
    assert_eq!(enter(&journal, &tool), Left::Ended(done("all")));
    assert_eq!(
        journal.log(),
        ["ended slow", "begin later write {}", "done later: null"]
    );
}

fn of_two_questions_at_once_one_is_asked_after_the_other() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            let ask = |name| ctx.interrupt(name, Question::input(name));
            let (one, other) = join!(ask("a"), ask("b"));
            Ok(json!(format!("{:?} {:?}", one?, other?)))
        })
    });
    let journal = Journal::new();
    for name in ["a", "b"] {
        assert_eq!(enter(&journal, &tool), Left::Dropped);
        let log = journal.log();
        assert_eq!(log.len(), 1, "{log:?}");
        assert!(log[0].starts_with(&format!("wait {name} Question")));
        journal.answer(json!(name));
    }
    let both = "Answer { value: String(\"a\") } Answer { value: String(\"b\") }";
    assert_eq!(enter(&journal, &tool), Left::Ended(done(both)));
}

fn a_time_out_around_a_step_that_may_not_begin_does_not_let_the_tool_go_on() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            let act = |_| async { Ok(()) };
            let step = ctx.step("paused", Effect::Write, (), act);
            let paused = timeout(Duration::from_millis(1), step).await;
            Ok(json!(paused.is_err()))
        })
    });
    let journal = Journal::new();
    let mut side = journal.side();
    Arc::get_mut(&mut side).unwrap().stopped.insert("paused");
    stands(&tool, side);
    assert_eq!(journal.log(), ["stopped paused"]);
}

fn a_step_that_was_let_go_of_before_it_was_begun_had_no_effect() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            // While another step is taken, the tool runs, and so does its clock.
            let slow = ctx.step("slow", Effect::Read, (), |_| async {
                tokio::time::sleep(Duration::from_millis(60)).await;
                Ok(())
            });
            let impatient = timeout(
                Duration::from_millis(20),
                ctx.step("late", Effect::Write, (), |_| async {
                    Err::<(), _>(StepTrouble::unknown("taken"))
                }),
            );
            let (slow, impatient) = join!(slow, impatient);
            slow?;
            Ok(json!(impatient.is_err()))
        })
    });
    let journal = Journal::new();
    let mut side = journal.side();
    Arc::get_mut(&mut side).unwrap().stopped.insert("late");
    let args = params("{}");
    let left = block_on(async {
        let open = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            side.gate.notify_one();
        };
        join!(side.clone().follow(&*tool, &args, PLENTY), open).0
    });
    assert_eq!(left, Left::Ended(done("true")));
    let expected = [
        "stopped late",
        "begin slow read {}",
        "done slow: null",
        "begin late write {}",
        "failed late: its tool let go of it before it was taken",
    ];
    assert_eq!(journal.log(), expected);
}

const LET_GO: &str = "unknown pay: its tool let go of it while it was being taken";

fn a_step_that_was_let_go_of_while_it_was_taken_is_unknown_and_the_tool_does_not_go_on() {
    let marks = Marks::default();
    let seen = marks.clone();
    let tool = tool(move |ctx, _| {
        let marks = marks.clone();
        Box::pin(async move {
            let never = |_| std::future::pending::<Result<(), StepTrouble>>();
            let pay = ctx.step("pay", Effect::Write, (), never);
            if timeout(Duration::from_millis(20), pay).await.is_err() {
                ctx.step("again", Effect::Write, (), |_| async {
                    mark(&marks, "again");
                    Ok(())
                })
                .await?;
            }
            Ok(json!("swallowed"))
        })
    });
    let journal = Journal::new();
    stands(&tool, journal.side());
    assert_eq!(journal.log(), ["begin pay write {}", LET_GO]);
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(enter(&journal, &tool), Left::Dropped);
}

fn a_step_that_the_tool_ends_in_the_middle_of_is_unknown() {
    let tool = tool(move |ctx, _| {
        Box::pin(async move {
            let never = |_| std::future::pending::<Result<(), StepTrouble>>();
            select! {
                _ = ctx.step("pay", Effect::Write, (), never) => {}
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
            Ok(json!("done, as far as I know"))
        })
    });
    let journal = Journal::new();
    assert_eq!(enter(&journal, &tool), Left::Dropped);
    assert_eq!(journal.log(), ["begin pay write {}", LET_GO]);
}

fn a_step_whose_end_nobody_knows_does_not_let_the_tool_go_on() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            let act = |_| async { Err::<(), _>(StepTrouble::unknown("no reply")) };
            let pay = ctx.step("pay", Effect::Write, (), act);
            // Not even one who does not care about the answer.
            let _ = timeout(Duration::from_millis(1), pay).await;
            ctx.step("next", Effect::Write, (), |_| async { Ok(()) })
                .await?;
            Ok(json!("swallowed"))
        })
    });
    let journal = Journal::new();
    stands(&tool, journal.side());
    assert_eq!(
        journal.log(),
        ["begin pay write {}", "unknown pay: no reply"]
    );
}

fn other_steps_in_flight_come_to_their_end_when_one_is_unknown() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            let both = Barrier::new(2);
            let lost = ctx.step("lost", Effect::Write, (), |_| async {
                both.wait().await;
                Err::<(), _>(StepTrouble::unknown("no reply"))
            });
            let slow = ctx.step("slow", Effect::Write, (), |_| async {
                both.wait().await;
                tokio::time::sleep(Duration::from_millis(30)).await;
                Ok(())
            });
            let _ = join!(lost, slow);
            Ok(json!("swallowed"))
        })
    });
    let journal = Journal::new();
    stands(&tool, journal.side());
    let log = journal.log();
    assert_eq!(log[2..], ["unknown lost: no reply", "done slow: null"]);
}

fn any_error_in_a_step_is_unknown_and_only_a_promise_is_a_failure() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            let refused = ctx.step("refused", Effect::Write, (), |_| async {
                Err::<(), _>(StepTrouble::no_effect("no such order"))
            });
            let not_done = StepFailed::NotDone {
                error: "no such order".to_owned(),
            };
            assert_eq!(refused.await, Err(not_done));
            ctx.step("broken", Effect::Write, (), |_| async {
                Err::<(), _>(io::Error::other("connection reset"))?;
                Ok(())
            })
            .await?;
            Ok(json!("swallowed"))
        })
    });
    let journal = Journal::new();
    assert_eq!(enter(&journal, &tool), Left::Dropped);
    let expected = [
        "begin refused write {}",
        "failed refused: no such order",
        "begin broken write {}",
        "unknown broken: connection reset",
    ];
    assert_eq!(journal.log(), expected);
}

fn a_failed_step_fails_again_without_being_taken() {
    let tool = tool(|ctx, _| {
        Box::pin(async {
            let act = |_| async { Err::<(), _>(StepTrouble::no_effect("no such order")) };
            ctx.step("pay", Effect::Write, (), act).await?;
            Ok(json!("swallowed"))
        })
    });
    let journal = Journal::new();
    let expected = Left::Ended(failed("no such order"));
    assert_eq!(enter(&journal, &tool), expected);
    journal.log();
    assert_eq!(enter(&journal, &tool), expected);
    assert_eq!(journal.log(), ["ended pay"]);
}

fn a_refusal_that_is_swallowed_has_no_effect_and_ends_the_tool() {
    let tool = tool(|ctx, args| {
        Box::pin(async move {
            let act = |_| async { Ok(()) };
            let refused = ctx.step("pay", Effect::Write, args, act).await;
            assert!(
                matches!(refused, Err(StepFailed::Refused(_))),
                "{refused:?}"
            );
            // Nothing more is done, whatever it makes of that.
            let next = ctx.step("apologise", Effect::Write, (), act).await;
            assert_eq!(next, refused);
            assert!(ask(ctx).await.is_err());
            assert!(ctx.sleep("nap", Span::from_secs(1)).await.is_err());
            Ok(json!("swallowed"))
        })
    });
    let journal = Journal::new();
    let other = params(r#"{"id":8}"#);
    journal.did("pay", Effect::Write, &other, &json!("paid"));
    let error = "the step `pay` was begun before with other arguments or another effect; give every step a name of its own";
    assert_eq!(enter(&journal, &tool), Left::Ended(failed(error)));
    assert_eq!(journal.log(), Vec::<String>::new());
}

fn an_end_that_cannot_be_recorded_is_unknown() {
    let tool = tool(|ctx, _| {
        Box::pin(async move {
            let act = |_| async { Ok(()) };
            let refused = ctx.step("gone", Effect::Write, (), act).await;
            assert!(
                matches!(refused, Err(StepFailed::Refused(_))),
                "{refused:?}"
            );
            Ok(json!("swallowed"))
        })
    });
    let journal = Journal::new();
    let reason = "the step `gone`: no such step is open";
    assert_eq!(enter(&journal, &tool), Left::Ended(unknown(reason)));
}

fn another_question_under_an_answered_name_is_refused() {
    let first = tool(|ctx, _| {
        Box::pin(async {
            ctx.interrupt("ok", Question::approval("Delete a file?"))
                .await?;
            Ok(Value::Null)
        })
    });
    let other = tool(|ctx, _| {
        Box::pin(async {
            let answer = ctx.interrupt("ok", Question::approval("Delete all?")).await;
            let approved = answer.is_ok_and(|answer| approved(&answer) == Some(true));
            ctx.step(&format!("{approved}"), Effect::Write, (), |_| async {
                Ok(())
            })
            .await?;
            Ok(Value::Null)
        })
    });
    let journal = Journal::new();
    assert_eq!(enter(&journal, &first), Left::Dropped);
    journal.answer(json!({"approved": true}));
    journal.log();
    let error = "another question was asked under the name `ok`; give every question and every sleep a name of its own";
    assert_eq!(enter(&journal, &other), Left::Ended(failed(error)));
    assert_eq!(journal.log(), Vec::<String>::new());
}

fn arguments_that_are_no_object_are_refused_before_anything_runs() {
    let cases = [
        (json!([1]), "arguments must be a JSON object, not an array"),
        (json!({"n": u64::MAX}), "send it as a string"),
    ];
    for (args, expected) in cases {
        let tool = tool(move |ctx, _| {
            let args = args.clone();
            Box::pin(async move {
                let act = |_| async { Ok(()) };
                let _ = ctx.step("pay", Effect::Write, args, act).await;
                Ok(Value::Null)
            })
        });
        let journal = Journal::new();
        let Left::Ended(Outcome::Failed { error }) = enter(&journal, &tool) else {
            panic!("not failed")
        };
        assert!(
            error.starts_with("the step `pay` cannot be taken: ") && error.contains(expected),
            "{error}"
        );
        assert_eq!(journal.log(), Vec::<String>::new());
    }
}

fn a_result_is_the_same_when_it_is_recalled() {
    let results = Arc::new(Mutex::new(Vec::new()));
    let seen = results.clone();
    let tool = tool(move |ctx, _| {
        let results = results.clone();
        Box::pin(async move {
            let act = |_| async { Ok(json!([0.1 + 0.2, 1e-7, "é\u{1}", u64::MAX, "7", null])) };
            let result = ctx.step("read", Effect::Read, (), act).await?;
            results.lock().unwrap().push(result);
            Ok(Value::Null)
        })
    });
    let journal = Journal::new();
    enter(&journal, &tool);
    enter(&journal, &tool);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
}

#[derive(Debug)]
struct Hooked;

#[async_trait]
impl SteppedTool for Hooked {
    async fn run(
        &self,
        _: &StepContext,
        _: &Params,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        Ok(Value::Null)
    }

    async fn lookup(&self, step: &str, call: Call<'_>) -> Lookup {
        Lookup::Committed {
            receipt: json!([step, call.key]),
        }
    }

    async fn compensate(&self, step: &str, call: Call<'_>) -> Outcome {
        done(&format!("{step} {}", call.key))
    }
}

fn hooks_are_those_of_the_step() {
    let tool = registered(Hooked);
    let args = params("{}");
    let of_step = Call {
        step: Some("pay"),
        ..call(&args, PLENTY)
    };
    block_on(async {
        let receipt = json!(["pay", "key-1"]);
        assert_eq!(tool.lookup(of_step).await, Lookup::Committed { receipt });
        assert_eq!(tool.compensate(of_step).await, done("pay key-1"));
        let whole = call(&args, PLENTY);
        assert_eq!(
            tool.lookup(whole).await,
            not_known("only a step of this tool can be looked up")
        );
        assert_eq!(
            tool.compensate(whole).await,
            failed("only a step of this tool can be undone")
        );
    });
}

fn a_stepped_tool_is_not_called_and_a_plain_one_not_entered() {
    let args = params("{}");
    let stepped = registered(Hooked);
    assert_eq!(
        block_on(stepped.call(call(&args, PLENTY))),
        failed("this tool takes steps, and cannot be called as one effect")
    );
    let plain = crate::bench::Bench::new().script("true");
    assert_eq!(
        Journal::new().enter(&*plain, &args),
        Left::Ended(failed("this tool takes no steps"))
    );
}
