//! Checkers: whoever looks for a guardrail.
//!
//! A checker is code of the embedding program, a program that is started for each case, or a server that is asked about
//! each. It says that something may pass or that a person must look at it. Whatever else it does (it fails, it takes too
//! long, it talks nonsense) is an error here, and whoever asked lets nothing pass by that.

mod answer;
mod command;
mod http;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use holdpoint_core::{Case, CheckedBy, Finding, Guardrail};

use crate::{Registry, Watchdog};
use command::CommandChecker;
use http::HttpChecker;

/// Looks at calls and at what models say, for a guardrail.
///
/// It has no effect: it may be asked about the same thing again after a crash.
///
/// # Cancel safety
///
/// It is dropped when its time is over.
#[async_trait]
pub trait Checker: Send + Sync + fmt::Debug {
    /// What it finds.
    ///
    /// # Errors
    ///
    /// Why it cannot say. A person looks at the case then.
    async fn check(&self, case: &Case) -> Result<Finding, String>;
}

/// Makes a checker of a function.
///
/// ```
/// use holdpoint_core::{Case, Finding};
/// let short = holdpoint_tools::checker(|case| async move {
///     Ok(match case {
///         Case::Output { text, .. } if text.len() > 10_000 => Finding::review("it is very long"),
///         Case::Output { .. } | Case::Call { .. } => Finding::Pass,
///     })
/// });
/// # let _ = short;
/// ```
pub fn checker<F, Fut>(look: F) -> impl Checker + use<F, Fut>
where
    F: Fn(Case) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Finding, String>> + Send,
{
    Function(look)
}

struct Function<F>(F);

impl<F> fmt::Debug for Function<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Function")
    }
}

#[async_trait]
impl<F, Fut> Checker for Function<F>
where
    F: Fn(Case) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Finding, String>> + Send,
{
    async fn check(&self, case: &Case) -> Result<Finding, String> {
        (self.0)(case.clone()).await
    }
}

/// Looks for words; asks nobody.
#[derive(Debug)]
struct Pure(Guardrail);

#[async_trait]
impl Checker for Pure {
    async fn check(&self, case: &Case) -> Result<Finding, String> {
        let found = self.0.pure_finding(case);
        found.ok_or_else(|| "it has nothing to look for".to_owned())
    }
}

/// Why a guardrail's checker cannot be had in this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchChecker {
    /// The definition says that it is code, but this program has none under its name.
    #[error("the checker `{name}` is not registered; registered are: {}", crate::registry::list(.registered))]
    NotRegistered {
        /// The checker.
        name: String,
        /// What the registry has.
        registered: Vec<String>,
    },
    /// It is a program, and this one cannot be its watchdog.
    #[error(
        "it is a command, and commands need a watchdog: call `holdpoint_tools::enter()` first in `main`, or name another \
         executable that does"
    )]
    NoWatchdog,
    /// Its request can never be sent.
    #[error("it cannot be asked: {reason}")]
    Unsendable {
        /// Why.
        reason: String,
    },
    /// This version does not know it.
    #[error("it is of a kind that this version does not know")]
    Unknown,
}

/// Makes a guardrail's checker usable. Whoever asks it sees to its time.
///
/// # Errors
///
/// Code that is not registered; a command without a usable watchdog; an address that may not be asked.
pub fn checker_of(
    guardrail: &Guardrail,
    registry: &Registry,
    watchdog: &Watchdog,
) -> Result<Arc<dyn Checker>, NoSuchChecker> {
    match &guardrail.by {
        CheckedBy::Command { command, cwd } => {
            if !watchdog.is_usable() {
                return Err(NoSuchChecker::NoWatchdog);
            }
            Ok(Arc::new(CommandChecker {
                command: command.clone(),
                cwd: cwd.clone(),
                timeout: Duration::from(guardrail.timeout),
                watchdog: watchdog.clone(),
            }))
        }
        CheckedBy::Http {
            url,
            headers,
            allow_private,
        } => {
            let timeout = Duration::from(guardrail.timeout);
            let checker = HttpChecker::new(url, headers, allow_private, timeout);
            let checker = checker.map_err(|reason| NoSuchChecker::Unsendable { reason })?;
            Ok(Arc::new(checker))
        }
        CheckedBy::Keywords { .. } => Ok(Arc::new(Pure(guardrail.clone()))),
        CheckedBy::Code { name } => {
            registry
                .checker(name)
                .ok_or_else(|| NoSuchChecker::NotRegistered {
                    name: name.clone(),
                    registered: registry.checkers(),
                })
        }
        _ => Err(NoSuchChecker::Unknown),
    }
}
