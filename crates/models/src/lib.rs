//! Who answers: the [`Model`] trait, and a scripted model that plays a scenario file.
//!
//! [`resolve`] turns a definition's model reference into something that can be asked:
//!
//! ```
//! let error = holdpoint_models::resolve("oracle:delphi").unwrap_err();
//! assert!(error.to_string().contains("scripted:/absolute/path.yaml"));
//! ```

mod model;
mod reference;
mod scenario;
mod scripted;

pub use holdpoint_yaml::Problem;
pub use model::{Delta, End, Failure, Model, Reply, Request};
pub use reference::{NoSuchModel, check, resolve};
pub use scenario::BadScenario;
pub use scripted::Scripted;
