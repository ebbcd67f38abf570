//! What people are shown of a call before they allow it, and that nothing else runs.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use holdpoint_core::{
    Allowed, Basis, Decision, Digest, EditedAction, Effect, Gate, Hooks, Outcome, Params, Preview,
    PreviewForm,
};
use holdpoint_engine::RunView;
use holdpoint_tools::{Call, Registry, Tool};

use crate::support::{Place, Scripted, answer, calls, definition, results, run, says, tool, view};

/// A page that a call replaces, and what calls of it saw.
#[derive(Debug, Clone, Default)]
struct Page {
    text: Arc<Mutex<String>>,
    /// What each call was given as the state that was shown.
    given: Arc<Mutex<Vec<Option<Digest>>>>,
}

impl Page {
    fn write(&self, text: &str) {
        text.clone_into(&mut self.text.lock().unwrap());
    }

    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tool for Page {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let given = call.basis.map(|basis| basis.before);
        self.given.lock().unwrap().push(given);
        self.write(call.args.canonical());
        Outcome::done("written")
    }

    async fn preview(&self, call: Call<'_>) -> Result<Option<Preview>, String> {
        let (now, then) = (self.text(), call.args.canonical());
        if then.contains("13") {
            return Err("There is no thirteenth page.".to_owned());
        }
        if then.contains("55") {
            return Ok(None);
        }
        let basis = Basis {
            before: Digest::of(now.as_bytes()),
            after: Digest::of(then.as_bytes()),
        };
        let body = if then.contains("99") {
            "x".repeat(Preview::MAX_BODY + 1)
        } else {
            format!("-{now}\n+{then}")
        };
        let preview = Preview::new("Write the page", body, PreviewForm::Diff);
        Ok(Some(preview.with_basis(basis)))
    }
}

async fn writing(n: u32) -> (Place, Page, holdpoint_engine::Engine, RunView) {
    let page = Page::default();
    page.write("old");
    let place = Place::new(|_, _| says(""), &[]);
    let script = match n {
        1 => |messages: &[_], _| match results(messages).as_slice() {
            [] => calls(&[("write", r#"{"n":1}"#)]),
            [last, ..] => says(last),
        },
        13 => |messages: &[_], _| match results(messages).as_slice() {
            [] => calls(&[("write", r#"{"n":13}"#)]),
            [last, ..] => says(last),
        },
        55 => |messages: &[_], _| match results(messages).as_slice() {
            [] => calls(&[("write", r#"{"n":55}"#)]),
            [last, ..] => says(last),
        },
        _ => |messages: &[_], _| match results(messages).as_slice() {
            [] => calls(&[("write", r#"{"n":99}"#)]),
            [last, ..] => says(last),
        },
    };
    let tools = Registry::new().with("write", page.clone());
    let engine = place.engine_of(Arc::new(Scripted(script)), tools);
    let write = tool("write", Effect::Write, Hooks::default());
    let definition = definition(vec![write], &[("write", Gate::ask(Allowed::standard()))]);
    let agent = engine.publish("local", definition).await.unwrap();
    let view = run(&engine, &agent, "s").await;
    (place, page, engine, view)
}

fn body(view: &RunView) -> &str {
    let request = &view.interrupts[0].value.action_requests[0];
    &request.preview.as_ref().unwrap().body
}

fn edit(n: u32) -> Decision {
    Decision::Edit {
        edited_action: EditedAction {
            name: "write".to_owned(),
            args: Params::parse(&format!(r#"{{"n":{n}}}"#)).unwrap(),
        },
    }
}

#[tokio::test]
async fn a_person_sees_what_a_call_would_do_and_that_is_what_it_does() {
    let (_place, page, engine, _) = writing(1).await;
    let shown = view(&engine, "s").await;
    assert!(
        shown.interrupts[0].value.action_requests[0]
            .preview
            .is_none()
    );
    let shown = engine.view(&crate::support::key("s")).await.unwrap();
    assert_eq!(body(&shown), "-old\n+{\"n\":1}");
    let done = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(done.status, "finished");
    assert_eq!(page.text(), r#"{"n":1}"#);
    assert_eq!(
        *page.given.lock().unwrap(),
        [Some(Digest::of(b"old"))],
        "the call holds on to what was shown"
    );
}

#[tokio::test]
async fn what_has_changed_since_it_was_shown_is_shown_again_and_not_done() {
    let (_place, page, engine, first) = writing(1).await;
    page.write("changed by somebody");
    let asked = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(asked.status, "waiting");
    assert_eq!(page.text(), "changed by somebody");
    assert!(page.given.lock().unwrap().is_empty(), "nothing was called");
    let shown = engine.view(&crate::support::key("s")).await.unwrap();
    assert_eq!(body(&shown), "-changed by somebody\n+{\"n\":1}");
    let again = &shown.interrupts[0];
    assert_eq!(again.supersedes, Some(first.interrupts[0].id));
    assert_eq!(again.changes.len(), 1, "{:?}", again.changes);
    // However often it changes, a person is asked each time.
    for text in ["a", "b", "c", "d"] {
        page.write(text);
        let asked = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
        assert_eq!((asked.status, page.text().as_str()), ("waiting", text));
    }
    let done = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(done.status, "finished");
    assert_eq!(page.text(), r#"{"n":1}"#);
    assert_eq!(page.given.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_cannot_work_or_cannot_be_shown() {
    for (n, told) in [
        (13, "There is no thirteenth page."),
        (
            99,
            "What `write` would do is too much to be shown to a person",
        ),
    ] {
        let (_place, page, _engine, view) = writing(n).await;
        assert_eq!(view.status, "finished");
        let said = view.output.unwrap();
        assert!(said.starts_with(told), "{said}");
        assert_eq!(page.text(), "old");
    }
}

#[tokio::test]
async fn an_edited_call_is_bound_to_what_it_would_do_itself() {
    let (_place, page, engine, _) = writing(1).await;
    // One that cannot work is refused, and changes nothing.
    let refused = answer(&engine, "s", vec![edit(13)]).await.unwrap_err();
    assert!(
        refused.to_string().contains("There is no thirteenth page."),
        "{refused}"
    );
    let done = answer(&engine, "s", vec![edit(2)]).await.unwrap();
    assert_eq!(done.status, "finished");
    assert_eq!(page.text(), r#"{"n":2}"#);
    assert_eq!(*page.given.lock().unwrap(), [Some(Digest::of(b"old"))]);
}

#[tokio::test]
async fn an_edit_does_nothing_to_what_its_person_has_not_seen() {
    let (_place, page, engine, first) = writing(1).await;
    page.write("precious");
    let asked = answer(&engine, "s", vec![edit(2)]).await.unwrap();
    assert_eq!(asked.status, "waiting");
    assert_eq!(page.text(), "precious");
    assert!(page.given.lock().unwrap().is_empty(), "nothing was called");
    let shown = engine.view(&crate::support::key("s")).await.unwrap();
    assert_eq!(
        body(&shown),
        "-precious\n+{\"n\":2}",
        "what the edit would do"
    );
    assert_eq!(shown.interrupts[0].supersedes, Some(first.interrupts[0].id));
    let done = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(done.status, "finished");
    assert_eq!(page.text(), r#"{"n":2}"#);
}

#[tokio::test]
async fn an_edit_of_what_nothing_was_shown_of_is_shown_before_it_is_done() {
    let (_place, page, engine, first) = writing(55).await;
    assert_eq!(first.status, "waiting");
    let shown = engine.view(&crate::support::key("s")).await.unwrap();
    let request = &shown.interrupts[0].value.action_requests[0];
    assert_eq!(request.preview, None);
    let asked = answer(&engine, "s", vec![edit(2)]).await.unwrap();
    assert_eq!((asked.status, page.text().as_str()), ("waiting", "old"));
    let shown = engine.view(&crate::support::key("s")).await.unwrap();
    assert_eq!(body(&shown), "-old\n+{\"n\":2}");
    let done = answer(&engine, "s", vec![Decision::APPROVE]).await.unwrap();
    assert_eq!(done.status, "finished");
    assert_eq!(page.text(), r#"{"n":2}"#);
}
