//! From a definition's tool to one that can be called.

use async_trait::async_trait;
use holdpoint_core::{Outcome, Params, Runner, ToolKind, ToolSpec};
use holdpoint_tools::{
    Call, NoSuchTool, Registry, StepContext, SteppedTool, Tool, Watchdog, instantiate,
};
use serde_json::Value;

use crate::bench::{PLENTY, block_on, call, code, done, failed, not_known, params, shell, spec};

crate::trials!(
    code_is_called_by_its_name,
    what_cannot_be_called_is_refused_with_the_remedy,
    code_of_the_other_kind_is_refused_with_the_remedy,
);

#[derive(Debug)]
struct Echo;

#[async_trait]
impl Tool for Echo {
    async fn call(&self, call: Call<'_>) -> Outcome {
        Outcome::Done {
            content: call.args.canonical().to_owned(),
        }
    }
}

fn code_is_called_by_its_name() {
    let registry = Registry::new().with("t", Echo).with("other", Echo);
    let tool = instantiate(&spec(code()), &[], &registry, &Watchdog::default()).unwrap();
    let args = params(r#"{"a":1}"#);
    block_on(async {
        assert_eq!(tool.call(call(&args, PLENTY)).await, done(r#"{"a":1}"#));
        assert_eq!(
            tool.lookup(call(&args, PLENTY)).await,
            not_known("this tool has no lookup")
        );
        assert_eq!(
            tool.compensate(call(&args, PLENTY)).await,
            failed("this tool has no compensation")
        );
    });
}

fn what_cannot_be_called_is_refused_with_the_remedy() {
    let refused = |runner, registry| -> NoSuchTool {
        instantiate(&spec(runner), &[], &registry, &Watchdog::default()).unwrap_err()
    };
    let command = |command, lookup, compensate| Runner::Command {
        command,
        cwd: "/".to_owned(),
        lookup,
        compensate,
    };
    let cases = [
        (
            refused(code(), Registry::new()),
            "the tool `t` is not registered; registered are: none",
        ),
        (
            refused(code(), Registry::new().with("b", Echo).with("a", Echo)),
            "the tool `t` is not registered; registered are: a, b",
        ),
        (
            refused(command(vec![], None, None), Registry::new()),
            "the `command` of the tool `t` is empty; its first item must be a program",
        ),
        (
            refused(command(shell(""), Some(vec![]), None), Registry::new()),
            "the `lookup` of the tool `t` is empty; its first item must be a program",
        ),
        (
            refused(command(shell(""), None, Some(vec![])), Registry::new()),
            "the `compensate` of the tool `t` is empty; its first item must be a program",
        ),
    ];
    for (error, expected) in cases {
        assert_eq!(error.to_string(), expected);
    }
}

#[derive(Debug)]
struct Steps;

#[async_trait]
impl SteppedTool for Steps {
    async fn run(
        &self,
        _: &StepContext,
        _: &Params,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Value::Null)
    }
}

fn code_of_the_other_kind_is_refused_with_the_remedy() {
    let of_kind = |kind, registry: &Registry| {
        let spec = ToolSpec {
            kind,
            ..spec(code())
        };
        instantiate(&spec, &[], registry, &Watchdog::default())
    };
    let plain = Registry::new().with("t", Echo);
    let stepped = Registry::new().with_stepped("t", Steps);
    assert!(of_kind(ToolKind::Plain, &plain).is_ok());
    assert!(of_kind(ToolKind::Stepped, &stepped).is_ok());
    // The last that was registered counts.
    let replaced = stepped.clone().with("t", Echo);
    for registry in [plain, replaced] {
        let error = of_kind(ToolKind::Stepped, &registry).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the definition says that the tool `t` takes steps, but it is registered as a plain one; register it by \
             `Registry::with_stepped`, or declare it plain"
        );
    }
    let error = of_kind(ToolKind::Plain, &stepped).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the definition says that the tool `t` is plain, but it is registered as one that takes steps; declare it \
         stepped, or register it by `Registry::with`"
    );
}
