//! Who answers: the [`Model`] trait, models of providers, and a scripted model that plays a scenario file.
//!
//! [`Providers`] turns a definition's model reference into something that can be asked:
//!
//! ```
//! let providers = holdpoint_models::Providers::default();
//! assert!(providers.resolve("openai:gpt-4o").is_ok());
//! let error = providers.resolve("oracle:delphi").unwrap_err();
//! assert!(error.to_string().contains("known are anthropic, ollama, openai, openai-responses"));
//! ```

mod breaker;
mod model;
mod provided;
mod providers;
mod route;
mod scenario;
mod scripted;
mod seam;
mod secret;
mod spoken;
mod sse;
mod trouble;
mod wire;

pub use holdpoint_yaml::Problem;
pub use model::{Delta, End, Failure, Model, Reply, Request};
pub use providers::{NoSuchModel, Providers, resolve};
pub use scenario::BadScenario;
pub use scripted::Scripted;
