//! The interrupt manager, one test for each thing that its model got wrong or left open.

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use holdpoint::{
    InterruptKind, InterruptStatus, OnTimeout, Span,
    manager::{
        HandlerError, Interrupt, InterruptHandler, InterruptManager, InterruptOptions,
        ManagerError, Page, Response,
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::{Barrier, mpsc},
    task::JoinHandle,
};

use crate::support::Place;

const DAY: Span = Span::from_secs(24 * 3_600);

fn approval(node: &str) -> InterruptOptions {
    InterruptOptions::new(InterruptKind::Approval, "release", node).title("Deploy?")
}

fn input(node: &str) -> InterruptOptions {
    InterruptOptions::new(InterruptKind::Input, "release", node).title("How many?")
}

type Waiter = JoinHandle<Result<Response, ManagerError>>;

/// Creates an interrupt, and someone who waits for it.
async fn waiting(manager: &InterruptManager, options: InterruptOptions) -> (Interrupt, Waiter) {
    let pending = manager.create_pending(options).await.unwrap();
    let (manager, id) = (manager.clone(), pending.id);
    let waiter = tokio::spawn(async move { manager.wait(id).await });
    (pending, waiter)
}

/// Has an interrupt created by whoever waits for it. It is pending once this returns.
async fn creating(manager: &InterruptManager, options: InterruptOptions) -> (Interrupt, Waiter) {
    let workflow = options.workflow_id.clone();
    let creator = manager.clone();
    let waiter = tokio::spawn(async move { creator.create(options).await });
    loop {
        if let [pending] = manager.pending(Some(&workflow)).await.unwrap().as_slice() {
            return (pending.clone(), waiter);
        }
        tokio::task::yield_now().await;
    }
}

async fn joined(waiter: Waiter) -> Result<Response, ManagerError> {
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, waiter).await.unwrap().unwrap()
}

async fn status(manager: &InterruptManager, interrupt: &Interrupt) -> InterruptStatus {
    manager.get(interrupt.id).await.unwrap().status
}

#[track_caller]
fn is_invalid<T: std::fmt::Debug>(result: Result<T, ManagerError>, words: &str) {
    let error = result.unwrap_err();
    assert!(
        matches!(&error, ManagerError::InvalidArgument { reason } if reason.contains(words)),
        "{error}"
    );
    assert_eq!(error.code(), "invalid_argument");
}

/// A handler that passes on what it is told, with a word before it.
fn passes_on(
    word: &'static str,
    to: &mpsc::UnboundedSender<(&'static str, Interrupt)>,
) -> impl InterruptHandler + use<> {
    let to = to.clone();
    move |interrupt: Interrupt| {
        let sent = to.send((word, interrupt));
        async move { sent.map_err(HandlerError::from) }
    }
}

mod creating {
    use super::*;

    #[tokio::test]
    async fn create_waits_for_the_response_and_returns_it() {
        let place = Place::new();
        let manager = place.manager();
        let (pending, waiter) = creating(&manager, approval("deploy")).await;
        assert_eq!(status(&manager, &pending).await, InterruptStatus::Pending);
        let said = Response::approve().by("ann").comment("go");
        manager.resolve(pending.id, said).await.unwrap();
        let response = joined(waiter).await.unwrap();
        assert!(response.is_approved());
        assert_eq!(
            (response.user_id.as_deref(), response.comment.as_str()),
            (Some("ann"), "go")
        );
        assert_eq!(status(&manager, &pending).await, InterruptStatus::Resolved);
    }

    /// B2.1
    #[tokio::test]
    async fn an_id_is_int_and_32_hex_digits_and_never_the_same() {
        let place = Place::new();
        let manager = place.manager();
        let first = manager.create_pending(approval("a")).await.unwrap();
        let second = manager.create_pending(approval("b")).await.unwrap();
        assert_ne!(first.id, second.id);
        let text = first.id.to_string();
        let digits = text.strip_prefix("int_").unwrap();
        assert!(digits.len() == 32 && digits.chars().all(|it| it.is_ascii_hexdigit()));
    }

    /// B2.2
    #[tokio::test]
    async fn it_stays_open_for_24_hours_unless_said_otherwise() {
        let place = Place::new();
        let manager = place.manager();
        let made = manager.create_pending(approval("a")).await.unwrap();
        assert_eq!(made.timeout, Duration::from_secs(24 * 3_600));
        assert_eq!(made.expires_at, Some(made.created_at + DAY));
        let short = approval("b").timeout(Duration::from_secs(30));
        let made = manager.create_pending(short).await.unwrap();
        assert_eq!(made.expires_at, Some(made.created_at + Span::from_secs(30)));
        let unset: InterruptOptions = serde_json::from_value(
            json!({"workflow_id": "w", "node_id": "n", "type": "input", "title": "?", "timeout": 0}),
        )
        .unwrap();
        let made = manager.create_pending(unset).await.unwrap();
        assert_eq!(made.timeout, InterruptOptions::DEFAULT_TIMEOUT);
    }

    /// B2.2
    #[tokio::test]
    async fn a_timeout_that_is_not_positive_is_an_invalid_argument() {
        let place = Place::new();
        let manager = place.manager();
        let none = approval("a").timeout(Duration::ZERO);
        is_invalid(
            manager.create_pending(none).await,
            "`timeout` must be positive",
        );
        let endless = approval("a").timeout(Duration::MAX);
        is_invalid(manager.create_pending(endless).await, "`timeout` is longer");
        let negative = json!({"workflow_id": "w", "node_id": "n", "type": "input", "timeout": -1});
        let error = serde_json::from_value::<InterruptOptions>(negative).unwrap_err();
        assert!(error.to_string().contains("`timeout` is negative"));
        assert_eq!(manager.pending(None).await.unwrap(), []);
    }

    /// B2.14
    #[tokio::test]
    async fn the_checkpoint_and_everything_else_is_kept() {
        let place = Place::new();
        let mut options = approval("deploy")
            .description("To all regions.")
            .data(json!({"hosts": 40}))
            .option("now", "Now")
            .option("tonight", "Tonight")
            .input_schema(json!({"type": "string"}))
            .checkpoint_id("cp-7");
        options.options[1].is_default = true;
        options.metadata.insert("ticket".to_owned(), json!(12));
        let made = place
            .manager()
            .create_pending(options.clone())
            .await
            .unwrap();
        let kept = place.manager().get(made.id).await.unwrap();
        assert_eq!(kept, made);
        assert_eq!(kept.checkpoint_id.as_deref(), Some("cp-7"));
        assert_eq!((kept.data, kept.options), (options.data, options.options));
        assert_eq!(kept.input_schema, options.input_schema);
        assert_eq!(kept.metadata, options.metadata);
        assert_eq!(
            (kept.title, kept.description),
            (options.title, options.description)
        );
    }

    /// B2.16
    #[tokio::test]
    async fn what_nobody_could_answer_is_not_asked() {
        let place = Place::new();
        let manager = place.manager();
        let cases = [
            (
                InterruptOptions::new(InterruptKind::Input, "", "n"),
                "`workflow_id` is empty",
            ),
            (
                input("n").input_schema(json!({"type": "whole"})),
                "`input_schema` is not a JSON Schema",
            ),
            (
                approval("n").option("a", "A").option("a", "B"),
                "two options have the id `a`",
            ),
            (
                approval("n").data("x".repeat(20_000)),
                "at most 16384 are kept",
            ),
        ];
        for (options, words) in cases {
            is_invalid(manager.create_pending(options).await, words);
        }
        assert_eq!(manager.pending(None).await.unwrap(), []);
    }

    /// B2.23
    #[test]
    fn an_unknown_type_is_refused() {
        let known = ["approval", "input", "review", "breakpoint", "error"];
        let spelled = |kind: &str| json!({"workflow_id": "w", "node_id": "n", "type": kind});
        for kind in known {
            let options: InterruptOptions = serde_json::from_value(spelled(kind)).unwrap();
            assert_eq!(serde_json::to_value(options.kind).unwrap(), kind);
        }
        for kind in ["", "Approval", "guess"] {
            assert!(serde_json::from_value::<InterruptOptions>(spelled(kind)).is_err());
        }
    }
}

mod handlers {
    use super::*;

    /// B2.3
    #[tokio::test]
    async fn it_is_saved_before_anybody_hears_of_it() {
        let place = Place::new();
        let (manager, elsewhere) = (place.manager(), place.manager());
        let (to, mut seen) = mpsc::unbounded_channel();
        manager.register_handler(InterruptKind::Approval, move |told: Interrupt| {
            let (elsewhere, to) = (elsewhere.clone(), to.clone());
            async move {
                to.send((elsewhere.get(told.id).await, told))?;
                Ok(())
            }
        });
        let made = manager.create_pending(approval("a")).await.unwrap();
        let (read, told) = seen.recv().await.unwrap();
        assert_eq!((read.unwrap(), told), (made.clone(), made));
    }

    /// B2.3
    #[tokio::test]
    async fn what_could_not_be_saved_is_not_pending_and_nobody_hears_of_it() {
        let place = Place::new();
        let (manager, fails) = place.fragile();
        let (to, mut told) = mpsc::unbounded_channel();
        manager.register_handler(InterruptKind::Approval, passes_on("told", &to));
        fails.store(true, Ordering::SeqCst);
        let error = manager.create(approval("a")).await.unwrap_err();
        assert_eq!(error.code(), "store_unavailable");
        fails.store(false, Ordering::SeqCst);
        assert_eq!(place.manager().pending(None).await.unwrap(), []);
        let made = manager.create_pending(approval("a")).await.unwrap();
        assert_eq!(told.recv().await, Some(("told", made)));
        assert!(told.try_recv().is_err());
    }

    /// B2.4
    #[tokio::test]
    async fn handlers_of_its_type_hear_of_it_in_their_order_whatever_others_do() {
        let place = Place::new();
        let failures = Arc::new(Mutex::new(Vec::new()));
        let manager = place.manager().with_log({
            let failures = Arc::clone(&failures);
            move |failure| failures.lock().unwrap().push(failure.reason.clone())
        });
        let (to, mut told) = mpsc::unbounded_channel();
        let kind = InterruptKind::Approval;
        manager.register_handler(kind, passes_on("first", &to));
        manager.register_handler(kind, |_: Interrupt| async {
            Err::<(), HandlerError>("no route".into())
        });
        manager.register_handler(kind, |_: Interrupt| async { panic!("oh") });
        manager.register_handler(InterruptKind::Input, passes_on("other type", &to));
        manager.register_handler(kind, passes_on("second", &to));
        manager.register_handler(kind, passes_on("third", &to));
        let made = manager.create_pending(approval("a")).await.unwrap();
        for word in ["first", "second", "third"] {
            assert_eq!(told.recv().await, Some((word, made.clone())));
        }
        let failures = failures.lock().unwrap().clone();
        assert_eq!(failures[0], "no route");
        assert!(failures[1].contains("panicked"), "{}", failures[1]);
        assert!(told.try_recv().is_err());
        assert_eq!(status(&manager, &made).await, InterruptStatus::Pending);
    }

    /// B2.4
    #[tokio::test]
    async fn a_handler_that_never_returns_holds_up_nobody() {
        let place = Place::new();
        let manager = place.manager();
        manager.register_handler(InterruptKind::Approval, |_: Interrupt| async {
            std::future::pending().await
        });
        let (pending, waiter) = waiting(&manager, approval("a")).await;
        let said = manager.resolve(pending.id, Response::approve());
        said.await.unwrap();
        assert!(joined(waiter).await.unwrap().is_approved());
    }

    /// B2.4
    #[tokio::test]
    async fn a_named_handler_hears_in_the_end_even_if_it_failed_or_was_not_there() {
        let place = Place::new();
        let missed = place.manager().create_pending(approval("a")).await.unwrap();
        let manager = place.manager();
        let failing = manager.register_named_handler(
            InterruptKind::Approval,
            "inbox",
            |_: Interrupt| async { Err::<(), HandlerError>("down".into()) },
        );
        assert!(failing);
        assert_eq!(manager.deliver().await.unwrap(), 0);
        // The next start of the program, where the inbox works.
        let manager = place.manager();
        let (to, mut told) = mpsc::unbounded_channel();
        manager.register_named_handler(InterruptKind::Approval, "inbox", passes_on("inbox", &to));
        assert_eq!(manager.deliver().await.unwrap(), 1);
        assert_eq!(told.recv().await, Some(("inbox", missed.clone())));
        assert_eq!(manager.deliver().await.unwrap(), 0, "it was told");
        place
            .manager()
            .resolve(missed.id, Response::approve())
            .await
            .unwrap();
        // What is created while it is there is told at once, and not again.
        let made = manager.create_pending(approval("b")).await.unwrap();
        assert_eq!(told.recv().await, Some(("inbox", made)));
    }

    /// B2.5
    #[tokio::test]
    async fn a_named_handler_is_registered_once() {
        let place = Place::new();
        let manager = place.manager();
        let (to, mut told) = mpsc::unbounded_channel();
        let kind = InterruptKind::Approval;
        assert!(manager.register_named_handler(kind, "inbox", passes_on("named", &to)));
        assert!(!manager.register_named_handler(kind, "inbox", passes_on("again", &to)));
        assert!(manager.register_named_handler(
            InterruptKind::Input,
            "inbox",
            passes_on("input", &to)
        ));
        for word in ["plain", "also plain"] {
            assert!(manager.register_named_handler(kind, "", passes_on(word, &to)));
        }
        manager.create_pending(approval("a")).await.unwrap();
        for word in ["named", "plain", "also plain"] {
            assert_eq!(told.recv().await.unwrap().0, word);
        }
    }
}

mod resolving {
    use super::*;

    /// B2.7
    #[tokio::test]
    async fn approved_decides_an_approval_and_a_review_which_must_say_it() {
        let place = Place::new();
        let manager = place.manager();
        for kind in [InterruptKind::Approval, InterruptKind::Review] {
            for (approved, expected) in [
                (true, InterruptStatus::Resolved),
                (false, InterruptStatus::Rejected),
            ] {
                let options = InterruptOptions::new(kind, "w", "n").title("ok?");
                let (pending, waiter) = waiting(&manager, options).await;
                let silent = Response::default();
                is_invalid(
                    manager.resolve(pending.id, silent).await,
                    "`approved` is missing",
                );
                assert_eq!(status(&manager, &pending).await, InterruptStatus::Pending);
                let said: Response = serde_json::from_value(json!({"approved": approved})).unwrap();
                manager.resolve(pending.id, said).await.unwrap();
                assert_eq!(status(&manager, &pending).await, expected);
                // One that is not approved is a response all the same.
                assert_eq!(joined(waiter).await.unwrap().approved, Some(approved));
            }
        }
    }

    /// B2.7
    #[tokio::test]
    async fn an_input_that_does_not_speak_of_approval_is_no_rejection() {
        let place = Place::new();
        let manager = place.manager();
        for kind in [
            InterruptKind::Input,
            InterruptKind::Breakpoint,
            InterruptKind::Error,
        ] {
            let options = InterruptOptions::new(kind, "w", "n").title("go on?");
            let pending = manager.create_pending(options.clone()).await.unwrap();
            let said: Response = serde_json::from_value(json!({"input": 3})).unwrap();
            manager.resolve(pending.id, said).await.unwrap();
            let got = manager.get(pending.id).await.unwrap();
            assert_eq!(got.status, InterruptStatus::Resolved);
            let response = got.response.unwrap();
            assert_eq!(
                (response.approved, response.input),
                (Some(true), Some(json!(3)))
            );

            let pending = manager.create_pending(options).await.unwrap();
            manager.reject(pending.id, "no").await.unwrap();
            let got = manager.get(pending.id).await.unwrap();
            assert_eq!(got.status, InterruptStatus::Rejected);
            assert_eq!(got.response.unwrap().comment, "no");
        }
    }

    /// B2.8
    #[tokio::test]
    async fn an_option_must_be_one_of_those_that_were_offered() {
        let place = Place::new();
        let manager = place.manager();
        let mut options = approval("a").option("now", "Now").option("modify", "Other");
        options.options[0].is_default = true;
        let (pending, waiter) = waiting(&manager, options).await;
        is_invalid(
            manager.resolve(pending.id, Response::choose("never")).await,
            "is none of the options",
        );
        assert_eq!(status(&manager, &pending).await, InterruptStatus::Pending);
        let right = manager.resolve(pending.id, Response::choose("modify"));
        right.await.unwrap();
        let response = joined(waiter).await.unwrap();
        assert_eq!(response.option_id.as_deref(), Some("modify"));

        let plain = manager.create_pending(approval("b")).await.unwrap();
        is_invalid(
            manager.resolve(plain.id, Response::choose("now")).await,
            "there is nothing to choose",
        );
    }

    /// B2.8
    #[tokio::test]
    async fn the_default_option_is_never_chosen_by_itself() {
        let place = Place::new();
        let manager = place.manager();
        let mut options = approval("a").option("yes", "Yes");
        options.options[0].is_default = true;
        let (pending, waiter) = waiting(&manager, options).await;
        place.wait_a(DAY);
        let error = joined(waiter).await.unwrap_err();
        assert_eq!(error, ManagerError::Timeout { id: pending.id });
        assert_eq!(manager.get(pending.id).await.unwrap().response, None);
    }

    /// B2.8
    #[tokio::test]
    async fn what_is_put_in_must_fit_the_schema_and_the_right_answer_works_after() {
        let place = Place::new();
        let manager = place.manager();
        let schema = json!({"type": "integer", "minimum": 1});
        let (pending, waiter) = waiting(&manager, input("a").input_schema(schema)).await;
        for wrong in [
            Response::input("three"),
            Response::input(0),
            Response::approve(),
        ] {
            is_invalid(manager.resolve(pending.id, wrong).await, "does not fit");
        }
        assert_eq!(status(&manager, &pending).await, InterruptStatus::Pending);
        let right = manager.resolve(pending.id, Response::input(3));
        right.await.unwrap();
        assert_eq!(joined(waiter).await.unwrap().input, Some(json!(3)));
    }

    #[tokio::test]
    async fn who_says_no_need_not_put_anything_in() {
        let place = Place::new();
        let manager = place.manager();
        let schema = json!({"type": "integer"});
        let pending = manager
            .create_pending(input("a").input_schema(schema))
            .await;
        manager.reject(pending.unwrap().id, "").await.unwrap();
    }

    /// B2.9
    #[tokio::test]
    async fn the_time_of_a_response_is_the_servers() {
        let place = Place::new();
        let manager = place.manager();
        let pending = manager.create_pending(approval("a")).await.unwrap();
        place.wait_a(Span::from_secs(5));
        let said = json!({"approved": true, "timestamp": "1999-01-01T00:00:00Z"});
        let said: Response = serde_json::from_value(said).unwrap();
        manager.resolve(pending.id, said).await.unwrap();
        let got = manager.get(pending.id).await.unwrap();
        let at = pending.created_at + Span::from_secs(5);
        assert_eq!(got.resolved_at, Some(at));
        assert_eq!(got.response.unwrap().timestamp, Some(at));
    }

    /// B2.10, B2.21
    #[tokio::test]
    async fn what_is_not_there_differs_from_what_is_over() {
        let place = Place::new();
        let manager = place.manager();
        let pending = manager.create_pending(approval("a")).await.unwrap();
        let said = Response::approve().by("ann");
        manager.resolve(pending.id, said).await.unwrap();
        let late = [
            manager.resolve(pending.id, Response::reject("no")).await,
            manager.reject(pending.id, "no").await,
            manager.cancel(pending.id).await,
        ];
        for error in late.map(Result::unwrap_err) {
            assert_eq!(
                error.to_string(),
                format!(
                    "interrupt `{}` is already resolved, by user:ann",
                    pending.id
                )
            );
            assert_eq!(error.code(), "already_decided");
        }
        let id = "int_00000000000000000000000000000000".parse().unwrap();
        let absent = ManagerError::NotFound { id };
        assert_eq!(manager.get(id).await, Err(absent.clone()));
        assert_eq!(manager.wait(id).await, Err(absent.clone()));
        assert_eq!(manager.cancel(id).await, Err(absent.clone()));
        assert_eq!(manager.reject(id, "").await, Err(absent.clone()));
        assert_eq!(manager.resolve(id, Response::approve()).await, Err(absent));
    }

    /// B2.10
    #[tokio::test]
    async fn for_another_tenant_it_is_not_there() {
        let place = Place::new();
        let pending = place.manager().create_pending(approval("a")).await.unwrap();
        let foreign = place.manager_of("other", "flow");
        let absent = ManagerError::NotFound { id: pending.id };
        assert_eq!(foreign.get(pending.id).await, Err(absent.clone()));
        assert_eq!(foreign.cancel(pending.id).await, Err(absent.clone()));
        let said = foreign.resolve(pending.id, Response::approve()).await;
        assert_eq!(said, Err(absent));
        assert_eq!(foreign.pending(None).await.unwrap(), []);
        assert_eq!(
            status(&place.manager(), &pending).await,
            InterruptStatus::Pending
        );
    }

    /// B2.15
    #[test]
    fn there_is_no_response_of_nothing() {
        assert!(serde_json::from_value::<Response>(Value::Null).is_err());
    }

    /// B2.16
    #[tokio::test]
    async fn where_the_store_fails_it_stays_pending_and_can_be_resolved_later() {
        let place = Place::new();
        let (manager, fails) = place.fragile();
        let (pending, waiter) = waiting(&manager, approval("a")).await;
        fails.store(true, Ordering::SeqCst);
        for _ in 0..2 {
            let said = manager.resolve(pending.id, Response::approve()).await;
            assert_eq!(said.unwrap_err().code(), "store_unavailable");
        }
        let canceled = manager.cancel(pending.id).await;
        assert_eq!(canceled.unwrap_err().code(), "store_unavailable");
        assert_eq!(
            status(&place.manager(), &pending).await,
            InterruptStatus::Pending
        );
        assert!(!waiter.is_finished());
        fails.store(false, Ordering::SeqCst);
        let said = manager.resolve(pending.id, Response::approve());
        said.await.unwrap();
        assert!(joined(waiter).await.unwrap().is_approved());
        place.wait_a(DAY);
        assert_eq!(status(&manager, &pending).await, InterruptStatus::Resolved);
    }

    #[tokio::test]
    async fn an_agent_never_decides() {
        let place = Place::new();
        let asking = place.manager();
        let pending = asking.create_pending(approval("a")).await.unwrap();
        let kind = holdpoint::PrincipalKind::Agent;
        let agent = place.manager_as(kind);
        // Not even if it says that someone else did.
        for response in [Response::approve(), Response::approve().by("ann")] {
            let said = agent.resolve(pending.id, response).await;
            assert_eq!(said.unwrap_err().code(), "forbidden");
        }
        is_invalid(
            asking.resolve(pending.id, Response::approve().by("")).await,
            "`user_id`",
        );
        assert_eq!(status(&asking, &pending).await, InterruptStatus::Pending);
    }
}

mod ending {
    use super::*;

    /// B2.11
    #[tokio::test]
    async fn canceling_always_gives_the_waiter_canceled() {
        let place = Place::new();
        let manager = place.manager();
        for round in 0..10 {
            let (pending, waiter) = waiting(&manager, approval(&format!("n{round}"))).await;
            manager.cancel(pending.id).await.unwrap();
            let error = joined(waiter).await.unwrap_err();
            assert!(matches!(&error, ManagerError::Canceled { id, .. } if *id == pending.id));
            let got = manager.get(pending.id).await.unwrap();
            assert_eq!(got.status, InterruptStatus::Canceled);
            assert!(got.resolved_at.is_some() && got.response.is_none());
        }
    }

    #[tokio::test]
    async fn canceling_an_old_question_leaves_a_later_one_of_the_node_alone() {
        let place = Place::new();
        let manager = place.manager();
        let old = manager.create_pending(approval("a")).await.unwrap();
        manager.cancel(old.id).await.unwrap();
        let new = manager.create_pending(approval("a")).await.unwrap();
        assert_ne!(new.id, old.id);
        let again = manager.cancel(old.id).await.unwrap_err();
        assert_eq!(again.code(), "already_decided");
        assert_eq!(status(&manager, &new).await, InterruptStatus::Pending);
    }

    /// B2.12
    #[tokio::test]
    async fn when_time_is_up_the_waiter_gets_timeout_and_it_is_not_pending() {
        let place = Place::new();
        let manager = place.manager();
        let (pending, waiter) = waiting(&manager, approval("a")).await;
        place.wait_a(DAY);
        let error = joined(waiter).await.unwrap_err();
        assert_eq!(error, ManagerError::Timeout { id: pending.id });
        let got = manager.get(pending.id).await.unwrap();
        assert_eq!(got.status, InterruptStatus::Timeout);
        assert_eq!(got.resolved_at, Some(pending.created_at + DAY));
        assert_eq!(manager.pending(None).await.unwrap(), []);
    }

    /// B2.12
    #[tokio::test]
    async fn time_is_up_even_if_nobody_waits() {
        let place = Place::new();
        let manager = place.manager();
        let first = manager.create_pending(approval("a")).await.unwrap();
        let second = manager.create_pending(approval("b")).await.unwrap();
        place.wait_a(DAY);
        let said = manager.resolve(first.id, Response::approve()).await;
        assert!(matches!(
            said,
            Err(ManagerError::AlreadyFinal {
                status: InterruptStatus::Timeout,
                ..
            })
        ));
        assert_eq!(manager.pending(None).await.unwrap(), []);
        let canceled = manager.cancel(second.id).await;
        assert_eq!(canceled.unwrap_err().code(), "already_decided");
    }

    /// B2.13
    #[tokio::test]
    async fn a_waiter_that_is_dropped_cancels_nothing() {
        let place = Place::new();
        let manager = place.manager();
        let (pending, waiter) = creating(&manager, approval("a")).await;
        waiter.abort();
        assert!(waiter.await.unwrap_err().is_cancelled());
        let (same, waiter) = waiting(&manager, approval("a")).await;
        assert_eq!(same.id, pending.id);
        let said = manager.resolve(pending.id, Response::approve());
        said.await.unwrap();
        assert!(joined(waiter).await.unwrap().is_approved());
    }

    /// B2.13
    #[tokio::test]
    async fn a_waiter_that_is_bound_to_its_caller_takes_the_interrupt_along() {
        let place = Place::new();
        let manager = place.manager();
        let (to, mut told) = mpsc::unbounded_channel();
        manager.register_handler(InterruptKind::Approval, passes_on("told", &to));
        let (pending, waiter) = creating(&manager, approval("a").bind_to_caller()).await;
        // On one thread nobody is told before the creator waits.
        told.recv().await.unwrap();
        let other = manager.clone();
        let watcher = tokio::spawn(async move { other.wait(pending.id).await });
        waiter.abort();
        let error = joined(watcher).await.unwrap_err();
        assert!(matches!(error, ManagerError::Canceled { .. }));
        assert_eq!(status(&manager, &pending).await, InterruptStatus::Canceled);
    }

    /// B2.25
    #[tokio::test]
    async fn a_timeout_is_final() {
        let place = Place::new();
        let manager = place.manager();
        let pending = manager.create_pending(approval("a")).await.unwrap();
        place.wait_a(DAY);
        assert_eq!(status(&manager, &pending).await, InterruptStatus::Timeout);
        for _ in 0..2 {
            let said = manager.resolve(pending.id, Response::approve()).await;
            assert_eq!(said.unwrap_err().code(), "already_decided");
        }
        assert_eq!(status(&manager, &pending).await, InterruptStatus::Timeout);
    }

    /// B2.25
    #[tokio::test]
    async fn a_timeout_may_reject_or_be_let_pass_and_never_approves() {
        let place = Place::new();
        let manager = place.manager();
        let rejecting = approval("a").on_timeout(OnTimeout::Reject);
        let (rejected, waiter) = waiting(&manager, rejecting).await;
        let keeping = approval("b").on_timeout(OnTimeout::Keep);
        let kept = manager.create_pending(keeping).await.unwrap();
        place.wait_a(DAY);
        let response = joined(waiter).await.unwrap();
        assert_eq!(response.approved, Some(false));
        assert_eq!(response.user_id.as_deref(), Some("system:timeout"));
        assert_eq!(status(&manager, &rejected).await, InterruptStatus::Timeout);
        let said = manager.resolve(kept.id, Response::approve());
        said.await.unwrap();
    }
}

mod many {
    use super::*;

    /// B2.17
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn of_everyone_who_closes_it_at_once_exactly_one_wins() {
        let place = Arc::new(Place::new());
        let mut ends = std::collections::BTreeMap::<&str, usize>::new();
        for round in 0..12 {
            let managers = [place.manager(), place.manager(), place.manager()];
            let options = approval(&format!("n{round}"));
            let (pending, waiter) = waiting(&managers[0], options.clone()).await;
            let barrier = Arc::new(Barrier::new(13));
            let mut tasks = Vec::new();
            for number in 0..12 {
                let manager = managers[number % 3].clone();
                let barrier = Arc::clone(&barrier);
                let id = pending.id;
                tasks.push(tokio::spawn(async move {
                    barrier.wait().await;
                    match (number + round) % 4 {
                        0 => manager.resolve(id, Response::approve()).await,
                        1 => manager.reject(id, "no").await,
                        2 => manager.cancel(id).await,
                        _ => {
                            let by = format!("user {number}");
                            manager.resolve(id, Response::approve().by(by)).await
                        }
                    }
                }));
            }
            barrier.wait().await;
            // Sometimes before all of them, sometimes in the midst, sometimes after.
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            if round % 2 == 0 {
                place.wait_a(DAY);
            }
            let mut winners = 0;
            let mut told = Vec::new();
            for task in tasks {
                match task.await.unwrap() {
                    Ok(()) => winners += 1,
                    Err(ManagerError::AlreadyFinal { status, .. }) => told.push(status),
                    Err(other) => panic!("{other}"),
                }
            }
            let end = status(&managers[1], &pending).await;
            let expected = usize::from(end != InterruptStatus::Timeout);
            assert_eq!(winners, expected, "round {round} ended as {end:?}");
            assert!(told.iter().all(|it| *it == end), "{told:?}, but {end:?}");
            match joined(waiter).await {
                Ok(response) if response.is_approved() => {
                    assert_eq!(end, InterruptStatus::Resolved)
                }
                Ok(_) => assert_eq!(end, InterruptStatus::Rejected),
                Err(ManagerError::Canceled { .. }) => assert_eq!(end, InterruptStatus::Canceled),
                Err(ManagerError::Timeout { .. }) => assert_eq!(end, InterruptStatus::Timeout),
                Err(other) => panic!("{other}"),
            }
            assert_eq!(place.closings(&options).await, 1);
            *ends.entry(end.as_str()).or_default() += 1;
        }
        println!("{ends:?}");
    }

    /// B2.19
    #[tokio::test]
    async fn what_is_returned_is_a_copy() {
        let place = Place::new();
        let manager = place.manager();
        let mut options = approval("a").data(json!({"n": 1}));
        let mut made = manager.create_pending(options.clone()).await.unwrap();
        let before = made.clone();
        options.data = Some(json!({"n": 2}));
        made.status = InterruptStatus::Resolved;
        made.data = None;
        assert_eq!(manager.get(before.id).await.unwrap(), before);
    }

    /// B2.20
    #[tokio::test]
    async fn lists_are_filtered_by_both_in_the_order_of_creation_and_come_in_pages() {
        let place = Place::new();
        let manager = place.manager();
        let mut ids = Vec::new();
        for number in 0..7 {
            let workflow = if number % 3 == 0 { "x" } else { "y" };
            let options = InterruptOptions::new(
                InterruptKind::Approval,
                workflow,
                format!("n{}", 9 - number),
            )
            .title("Deploy?");
            ids.push(manager.create_pending(options).await.unwrap().id);
            // Two of them at the same moment.
            place.wait_a(Span::from_millis(u64::from(number != 3)));
        }
        manager.reject(ids[1], "no").await.unwrap();
        manager.cancel(ids[3]).await.unwrap();
        let listed = |interrupts: Vec<Interrupt>| -> Vec<usize> {
            let place = |it: &Interrupt| ids.iter().position(|id| *id == it.id).unwrap();
            interrupts.iter().map(place).collect()
        };
        let all = manager.list(None, None, Page::ALL).await.unwrap();
        let sorted = {
            let mut sorted = all.clone();
            sorted.sort_by_key(|it| (it.created_at, it.id));
            sorted
        };
        assert_eq!(all, sorted);
        assert_eq!(all.len(), 7);
        let pending = Some(InterruptStatus::Pending);
        let list = |workflow, status| manager.list(workflow, status, Page::ALL);
        assert_eq!(listed(list(Some("x"), None).await.unwrap()), [0, 3, 6]);
        assert_eq!(listed(list(Some("x"), pending).await.unwrap()), [0, 6]);
        assert_eq!(
            listed(list(None, Some(InterruptStatus::Rejected)).await.unwrap()),
            [1]
        );
        assert_eq!(list(Some("z"), None).await.unwrap(), []);
        assert_eq!(list(Some(""), None).await.unwrap(), all);
        assert_eq!(
            listed(manager.pending(Some("y")).await.unwrap()),
            listed(list(Some("y"), pending).await.unwrap())
        );

        let mut page = Page::first(2);
        let mut paged = Vec::new();
        loop {
            let part = manager.list(None, pending, page).await.unwrap();
            let Some(last) = part.last() else { break };
            page = page.after(last.id);
            // Even if what the page ended with is closed meanwhile.
            if paged.is_empty() {
                manager.cancel(last.id).await.unwrap();
            }
            paged.extend(part);
        }
        let was_pending = |it: &&Interrupt| it.status == InterruptStatus::Pending;
        let expected: Vec<Interrupt> = all.iter().filter(was_pending).cloned().collect();
        assert_eq!(paged, expected);
    }

    #[tokio::test]
    async fn a_node_has_one_question_at_a_time() {
        let place = Place::new();
        let manager = place.manager();
        let first = manager.create_pending(approval("a")).await.unwrap();
        let other = manager.create_pending(approval("a").title("Really?")).await;
        assert_eq!(other, Err(ManagerError::NodeBusy { pending: first.id }));
        let kind = InterruptOptions {
            kind: InterruptKind::Review,
            ..approval("a")
        };
        let other = manager.create_pending(kind).await;
        assert_eq!(other, Err(ManagerError::NodeBusy { pending: first.id }));
    }
}

mod restart {
    use super::*;

    /// B2.18
    #[tokio::test]
    async fn after_a_restart_it_is_pending_and_its_waiter_attaches_again() {
        let place = Place::new();
        let manager = place.manager();
        let (pending, waiter) = creating(&manager, approval("a")).await;
        waiter.abort();
        drop(waiter.await);
        drop(manager);

        let manager = place.manager();
        assert_eq!(
            manager.pending(Some("release")).await.unwrap(),
            std::slice::from_ref(&pending)
        );
        let (same, waiter) = waiting(&manager, approval("a")).await;
        assert_eq!(same, pending);
        // Someone answers in a third process.
        let elsewhere = place.manager();
        let said = elsewhere.resolve(pending.id, Response::approve().by("ann"));
        said.await.unwrap();
        assert!(joined(waiter).await.unwrap().is_approved());
    }

    /// B2.18
    #[tokio::test]
    async fn a_restart_gives_no_more_time() {
        let place = Place::new();
        let pending = place.manager().create_pending(approval("a")).await.unwrap();
        place.wait_a(Span::from_secs(23 * 3_600));
        let manager = place.manager();
        let (same, waiter) = waiting(&manager, approval("a")).await;
        assert_eq!(same.expires_at, pending.expires_at);
        place.wait_a(Span::from_secs(3_600));
        let error = joined(waiter).await.unwrap_err();
        assert_eq!(error, ManagerError::Timeout { id: pending.id });
    }

    /// B2.18
    #[tokio::test]
    async fn an_answer_that_came_while_nobody_was_there_is_had_at_the_same_checkpoint() {
        let place = Place::new();
        let options = approval("a").checkpoint_id("cp-1");
        let manager = place.manager();
        let pending = manager.create_pending(options.clone()).await.unwrap();
        drop(manager);
        let said = Response::approve().by("ann");
        place.manager().resolve(pending.id, said).await.unwrap();
        let manager = place.manager();
        let response = manager.create(options).await.unwrap();
        assert_eq!(response.user_id.as_deref(), Some("ann"));
        // At another checkpoint it is another question.
        let next = manager.create_pending(approval("a").checkpoint_id("cp-2"));
        assert_ne!(next.await.unwrap().id, pending.id);
    }

    /// B2.18
    #[tokio::test]
    async fn without_a_checkpoint_an_answered_question_is_asked_anew() {
        let place = Place::new();
        let manager = place.manager();
        let first = manager.create_pending(approval("a")).await.unwrap();
        manager.reject(first.id, "no").await.unwrap();
        let second = manager.create_pending(approval("a")).await.unwrap();
        assert_ne!(first.id, second.id);
        assert_eq!(manager.list(None, None, Page::ALL).await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn what_timed_out_is_asked_anew_even_at_the_same_checkpoint() {
        let place = Place::new();
        let manager = place.manager();
        let options = approval("a").checkpoint_id("cp-1");
        let first = manager.create_pending(options.clone()).await.unwrap();
        place.wait_a(DAY);
        let second = manager.create_pending(options).await.unwrap();
        assert_ne!(first.id, second.id);
        assert_eq!(status(&manager, &first).await, InterruptStatus::Timeout);
    }
}

mod wire {
    use super::*;

    /// B2.22
    #[tokio::test]
    async fn an_interrupt_has_the_names_and_forms_of_the_seed() {
        let place = Place::new();
        let manager = place.manager();
        let made = manager.create_pending(approval("deploy")).await.unwrap();
        assert_eq!(
            serde_json::to_value(&made).unwrap(),
            json!({
                "id": made.id.to_string(),
                "workflow_id": "release",
                "node_id": "deploy",
                "type": "approval",
                "status": "pending",
                "title": "Deploy?",
                "description": "",
                "created_at": "2023-11-14T22:13:20Z",
                "timeout": 86_400_000_000_000_u64,
                "expires_at": "2023-11-15T22:13:20Z",
                "run_id": made.run_id.unwrap().to_string(),
            })
        );

        let mut full = input("count")
            .description("For the audit.")
            .data(json!([1, 2]))
            .option("some", "Some")
            .input_schema(json!({"type": "integer"}))
            .checkpoint_id("cp-1")
            .timeout(Duration::from_millis(1_500));
        full.options[0].is_default = true;
        full.options[0].description = "A few.".to_owned();
        full.metadata.insert("ticket".to_owned(), json!(12));
        let made = manager.create_pending(full).await.unwrap();
        place.wait_a(Span::from_millis(250));
        let mut said = Response::choose("some").by("ann").comment("counted");
        said.input = Some(json!(3));
        said.metadata.insert("door".to_owned(), json!("desk"));
        manager.resolve(made.id, said).await.unwrap();
        let got = manager.get(made.id).await.unwrap();
        let spelled = serde_json::to_value(&got).unwrap();
        assert_eq!(
            spelled,
            json!({
                "id": made.id.to_string(),
                "workflow_id": "release",
                "node_id": "count",
                "type": "input",
                "status": "resolved",
                "title": "How many?",
                "description": "For the audit.",
                "data": [1, 2],
                "options": [{"id": "some", "label": "Some", "description": "A few.", "is_default": true}],
                "input_schema": {"type": "integer"},
                "response": {
                    "option_id": "some",
                    "input": 3,
                    "comment": "counted",
                    "approved": true,
                    "timestamp": "2023-11-14T22:13:20.25Z",
                    "user_id": "ann",
                    "metadata": {"door": "desk"},
                },
                "created_at": "2023-11-14T22:13:20Z",
                "resolved_at": "2023-11-14T22:13:20.25Z",
                "timeout": 1_500_000_000,
                "expires_at": "2023-11-14T22:13:21.5Z",
                "checkpoint_id": "cp-1",
                "metadata": {"ticket": 12},
                "run_id": made.run_id.unwrap().to_string(),
            })
        );
        assert_eq!(serde_json::from_value::<Interrupt>(spelled).unwrap(), got);
    }

    #[test]
    fn the_statuses_have_the_words_of_the_seed() {
        let words = [
            (InterruptStatus::Pending, "pending"),
            (InterruptStatus::Resolved, "resolved"),
            (InterruptStatus::Rejected, "rejected"),
            (InterruptStatus::Timeout, "timeout"),
            (InterruptStatus::Canceled, "canceled"),
        ];
        for (status, word) in words {
            assert_eq!(serde_json::to_value(status).unwrap(), word);
        }
    }

    #[tokio::test]
    async fn it_works_in_memory_as_well() {
        let store = holdpoint::open("memory:", Default::default()).await;
        let kit = holdpoint::Kit::new();
        let options = holdpoint::Options::default();
        let engine = holdpoint::Engine::new(store.unwrap(), kit, options, None);
        let manager = InterruptManager::new(engine, holdpoint::Principal::local("flow"));
        let (pending, waiter) = waiting(&manager, approval("a")).await;
        let said = manager.resolve(pending.id, Response::approve());
        said.await.unwrap();
        let response = joined(waiter).await.unwrap();
        assert_eq!(response.user_id.as_deref(), Some("flow"));
    }
}

mod backup {
    use super::*;

    #[tokio::test]
    async fn a_question_in_a_restored_backup_is_asked_anew_once_a_person_wants_that() {
        let place = Place::new();
        let asked = place.manager().create_pending(approval("a")).await.unwrap();
        let copy = place.restored().await;
        let manager = copy.manager();
        let gone = manager.resolve(asked.id, Response::approve()).await;
        assert!(
            matches!(gone, Err(ManagerError::AlreadyFinal { .. })),
            "{gone:?}"
        );
        let pending = manager.pending(Some("release")).await.unwrap();
        let [whether] = pending.as_slice() else {
            panic!("{pending:?}");
        };
        assert_eq!(whether.title, "Restored from a backup");
        assert!(
            whether
                .description
                .contains("What came after is not known here")
        );
        copy.wait_a(Span::from_secs(1));
        manager
            .resolve(whether.id, Response::approve().by("ann"))
            .await
            .unwrap();
        let (again, waiter) = waiting(&manager, approval("a")).await;
        assert_ne!(again.id, asked.id);
        assert_eq!(again.title, asked.title);
        manager
            .resolve(again.id, Response::approve())
            .await
            .unwrap();
        assert!(joined(waiter).await.unwrap().is_approved());
    }

    #[tokio::test]
    async fn a_question_in_a_restored_backup_that_nobody_wants_any_more_makes_room() {
        let place = Place::new();
        place.manager().create_pending(approval("a")).await.unwrap();
        let copy = place.restored().await;
        let manager = copy.manager();
        let pending = manager.pending(Some("release")).await.unwrap();
        copy.wait_a(Span::from_secs(1));
        manager
            .reject(pending[0].id, "it was deployed")
            .await
            .unwrap();
        assert_eq!(manager.pending(Some("release")).await.unwrap(), []);
        manager.create_pending(approval("a")).await.unwrap();
    }
}
