//! A tool that is a function.

use std::fmt;

use async_trait::async_trait;
use holdpoint_core::{Outcome, Params};

use crate::{Call, Tool};

/// Makes a tool of a function of the arguments and the idempotency key.
///
/// The key is the same for every attempt at one action: hand it to whatever has the effect. A function cannot be asked
/// what became of a call; a tool that can implements [`Tool`] itself.
///
/// ```
/// use holdpoint_core::Outcome;
/// let greet = holdpoint_tools::function(|args, _key| async move {
///     match args.to_value()["name"].as_str() {
///         Some(name) => Outcome::done(format!("hello {name}")),
///         None => Outcome::failed("whom?"),
///     }
/// });
/// # let _ = greet;
/// ```
pub fn function<F, Fut>(act: F) -> impl Tool + use<F, Fut>
where
    F: Fn(Params, String) -> Fut + Send + Sync,
    Fut: Future<Output = Outcome> + Send,
{
    Function(act)
}

struct Function<F>(F);

impl<F> fmt::Debug for Function<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Function")
    }
}

#[async_trait]
impl<F, Fut> Tool for Function<F>
where
    F: Fn(Params, String) -> Fut + Send + Sync,
    Fut: Future<Output = Outcome> + Send,
{
    async fn call(&self, call: Call<'_>) -> Outcome {
        (self.0)(call.args.clone(), call.key.to_owned()).await
    }
}
