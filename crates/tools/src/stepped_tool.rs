//! Stepped tools that are code of the embedding program.

use std::{error::Error, fmt::Debug};

use async_trait::async_trait;
use holdpoint_core::{Lookup, Outcome, Params};
use serde_json::Value;

use crate::{
    Call, SharedSteps, StepContext, Tool,
    command::text_of,
    entry,
    stepped_command::only_entered,
    tool::{no_compensation, no_lookup},
};

/// A tool that takes steps, and may ask a person in between.
///
/// It is entered any number of times: again after each wait, and after a crash. So its code must do nothing outside its
/// [steps](StepContext::step), and must come to the same steps and questions under the same names each time.
///
/// ```
/// use holdpoint_core::{Effect, Params};
/// use holdpoint_tools::{Question, StepContext, SteppedTool, approved, reason};
/// use serde_json::{Value, json};
///
/// #[derive(Debug)]
/// struct Refund;
///
/// #[async_trait::async_trait]
/// impl SteppedTool for Refund {
///     async fn run(
///         &self,
///         ctx: &StepContext,
///         args: &Params,
///     ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
///         let order = ctx
///             .step("order", Effect::Read, args, |_| async { Ok(json!({"total": "5.00"})) })
///             .await?;
///         let answer = ctx
///             .interrupt("ok", Question::approval("Refund this order?").data(&order))
///             .await?;
///         if approved(&answer) != Some(true) {
///             return Err(reason(&answer).unwrap_or("it was not approved").into());
///         }
///         let receipt = ctx
///             .step("pay", Effect::Write, &order, |key| async move { Ok(format!("paid as {key}")) })
///             .await?;
///         Ok(receipt)
///     }
/// }
/// ```
#[async_trait]
pub trait SteppedTool: Send + Sync + Debug {
    /// Runs the tool, from its begin, each time it is entered.
    ///
    /// # Errors
    ///
    /// The model gets the error's text. It is no statement about the steps: each of them has its own end.
    ///
    /// # Cancel safety
    ///
    /// It is dropped wherever it waits for something that is not there yet.
    async fn run(
        &self,
        ctx: &StepContext,
        args: &Params,
    ) -> Result<Value, Box<dyn Error + Send + Sync>>;

    /// Asks whether this step took effect under its key. The call has the step's key and arguments.
    async fn lookup(&self, step: &str, call: Call<'_>) -> Lookup {
        let _ = (step, call);
        no_lookup()
    }

    /// Undoes this step. The call has the step's key and arguments.
    async fn compensate(&self, step: &str, call: Call<'_>) -> Outcome {
        let _ = (step, call);
        no_compensation()
    }
}

/// Makes it a tool like others.
#[derive(Debug)]
pub(crate) struct Stepped<T>(pub(crate) T);

#[async_trait]
impl<T: SteppedTool> Tool for Stepped<T> {
    async fn call(&self, _: Call<'_>) -> Outcome {
        only_entered()
    }

    async fn enter(&self, call: Call<'_>, steps: SharedSteps) -> Outcome {
        let context = StepContext::new(steps);
        let ended = entry::drive(&context, self.0.run(&context, call.args)).await;
        match ended {
            Ok(Ok(result)) => Outcome::Done {
                content: text_of(result),
            },
            Ok(Err(error)) => Outcome::Failed {
                error: error.to_string(),
            },
            Err(spoiled) => spoiled,
        }
    }

    async fn lookup(&self, call: Call<'_>) -> Lookup {
        match call.step {
            Some(step) => self.0.lookup(step, call).await,
            None => Lookup::Unknown {
                reason: "only a step of this tool can be looked up".to_owned(),
            },
        }
    }

    async fn compensate(&self, call: Call<'_>) -> Outcome {
        match call.step {
            Some(step) => self.0.compensate(step, call).await,
            None => Outcome::Failed {
                error: "only a step of this tool can be undone".to_owned(),
            },
        }
    }
}
