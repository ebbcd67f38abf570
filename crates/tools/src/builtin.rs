//! The tools that come with every agent.
//!
//! Those that work on files reach nothing outside of their workspace, whatever a model asks for and whatever symbolic links
//! lead out of it. `shell` runs a command that may do whatever this program may; `execute` runs one that the kernel
//! confines. What they promise is in `docs/tools.md`.

mod command;
mod fetch;
mod html;
mod kept;
mod place;
mod reading;
mod search;
mod shown;
#[cfg(test)]
mod tests;
mod web;
mod work;
mod workspace;
mod writing;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use holdpoint_core::{Builtin, Lookup, Outcome, Preview, ToolSpec};
use serde::de::DeserializeOwned;

use crate::{Call, Tool, Watchdog, tool::no_lookup};
use command::CommandLine;
pub(crate) use command::INHERITED;
use fetch::Fetch;
pub use kept::{kept_path, no_such_kept, read_kept};
use web::WebSearch;
use work::{Wanted, elsewhere};
use workspace::Workspace;
use writing::{Change, NotDone};

/// What this process says about its built-in tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Where `web_search` asks, with `{query}` in it.
    pub(crate) search: Option<String>,
    /// Hosts for which private addresses are fine.
    pub(crate) allow_private: Vec<String>,
    /// Files and folders that no workspace may contain, or lie in.
    pub(crate) protected: Vec<PathBuf>,
}

/// Makes a built-in tool callable.
///
/// # Errors
///
/// Why it cannot be had here, in words for whoever runs the agent.
pub(crate) fn instantiate(
    spec: &ToolSpec,
    tool: Builtin,
    workspace: Option<&str>,
    settings: &Settings,
    watchdog: &Watchdog,
) -> Result<Arc<dyn Tool>, String> {
    let open = || -> Result<Workspace, String> {
        let path = workspace.ok_or_else(|| "it needs a workspace to work in".to_owned())?;
        let workspace = Workspace::open(path)?;
        for protected in &settings.protected {
            if workspace.meets(protected) {
                return Err(format!(
                    "the workspace `{}` contains `{}`, or lies in it; a tool could change what decides about it: choose \
                     another folder",
                    workspace.path().display(),
                    protected.display()
                ));
            }
        }
        Ok(workspace)
    };
    let on_files = |kind| -> Result<Arc<dyn Tool>, String> {
        Ok(Arc::new(FileTool {
            kind,
            workspace: Arc::new(open()?),
        }))
    };
    Ok(match tool {
        Builtin::ReadFile => on_files(Kind::ReadFile)?,
        Builtin::Ls => on_files(Kind::Ls)?,
        Builtin::Glob => on_files(Kind::Glob)?,
        Builtin::Grep => on_files(Kind::Grep)?,
        Builtin::WriteFile => on_files(Kind::WriteFile)?,
        Builtin::EditFile => on_files(Kind::EditFile)?,
        Builtin::Shell => Arc::new(CommandLine::shell(open()?.path(), watchdog)),
        Builtin::Execute => Arc::new(CommandLine::execute(open()?.path(), watchdog)?),
        Builtin::FetchUrl => Arc::new(Fetch::new(&settings.allow_private)?),
        Builtin::WebSearch => {
            let endpoint = settings.search.as_deref().ok_or_else(|| {
                "no search engine is configured; set HOLDPOINT_SEARCH_URL to its address with `{query}` in it, which answers \
                 with JSON: `[{\"title\": …, \"url\": …, \"snippet\": …}]`"
                    .to_owned()
            })?;
            Arc::new(WebSearch::new(endpoint)?)
        }
        Builtin::WriteTodos => Arc::new(WriteTodos),
        _ => {
            return Err(format!(
                "this version does not know the built-in tool `{}`",
                spec.name
            ));
        }
    })
}

/// The arguments of a call. The engine has checked them against the schema by then.
fn args<T: DeserializeOwned>(call: Call<'_>) -> Result<T, String> {
    serde_json::from_value(call.args.to_value())
        .map_err(|error| format!("the arguments cannot be read: {error}"))
}

const PANICKED: &str = "the tool broke off, and nobody knows how far it got";

/// What is done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ReadFile,
    Ls,
    Glob,
    Grep,
    WriteFile,
    EditFile,
}

/// A tool that reads or writes files.
#[derive(Debug)]
struct FileTool {
    kind: Kind,
    workspace: Arc<Workspace>,
}

type Work = Box<dyn FnOnce(&Workspace, &Wanted) -> Result<String, String> + Send>;

impl FileTool {
    fn change(&self, call: Call<'_>) -> Result<Option<Change>, String> {
        Ok(match self.kind {
            Kind::WriteFile => Some(Change::Write(args(call)?)),
            Kind::EditFile => Some(Change::Edit(args(call)?)),
            Kind::ReadFile | Kind::Ls | Kind::Glob | Kind::Grep => None,
        })
    }

    /// What is to be done on another thread. The arguments of a change are not read here.
    fn reading(&self, call: Call<'_>) -> Result<Work, String> {
        Ok(match self.kind {
            Kind::ReadFile => {
                let args = args(call)?;
                Box::new(move |it, _| reading::read_file(it, &args))
            }
            Kind::Ls => {
                let args = args(call)?;
                Box::new(move |it, _| reading::ls(it, &args))
            }
            Kind::Glob => {
                let args = args(call)?;
                Box::new(move |it, wanted| search::glob(it, &args, wanted))
            }
            Kind::Grep => {
                let args = args(call)?;
                Box::new(move |it, wanted| search::grep(it, &args, wanted))
            }
            Kind::WriteFile | Kind::EditFile => {
                return Err("this tool does not read".to_owned());
            }
        })
    }

    async fn read(&self, call: Call<'_>) -> Outcome {
        let work = self.reading(call);
        let work = match work {
            Ok(work) => work,
            Err(error) => return Outcome::Failed { error },
        };
        let workspace = Arc::clone(&self.workspace);
        match elsewhere(call.remaining, move |wanted| work(&workspace, wanted)).await {
            Some(Ok(content)) => Outcome::Done { content },
            Some(Err(error)) => Outcome::Failed { error },
            None => Outcome::Unknown {
                reason: PANICKED.to_owned(),
            },
        }
    }
}

#[async_trait]
impl Tool for FileTool {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let change = match self.change(call) {
            Ok(Some(change)) => change,
            Ok(None) => return self.read(call).await,
            Err(error) => return Outcome::Failed { error },
        };
        let workspace = Arc::clone(&self.workspace);
        let (basis, key) = (call.basis.copied(), call.key.to_owned());
        let made = elsewhere(call.remaining, move |wanted| {
            writing::make(&workspace, &change, basis.as_ref(), &key, wanted)
        });
        match made.await {
            Some(Ok(content)) => Outcome::Done { content },
            Some(Err(NotDone::Nothing(error))) => Outcome::Failed { error },
            Some(Err(NotDone::Unknown(reason))) => Outcome::Unknown { reason },
            None => Outcome::Unknown {
                reason: PANICKED.to_owned(),
            },
        }
    }

    async fn preview(&self, call: Call<'_>) -> Result<Option<Preview>, String> {
        let Some(change) = self.change(call)? else {
            return Ok(None);
        };
        let workspace = Arc::clone(&self.workspace);
        let preview = elsewhere(call.remaining, move |_| {
            writing::preview(&workspace, &change)
        });
        preview
            .await
            .unwrap_or_else(|| Err(PANICKED.to_owned()))
            .map(Some)
    }

    async fn lookup(&self, call: Call<'_>) -> Lookup {
        let change = match self.change(call) {
            Ok(Some(change)) => change,
            Ok(None) => return no_lookup(),
            Err(reason) => return Lookup::Unknown { reason },
        };
        let workspace = Arc::clone(&self.workspace);
        let basis = call.basis.copied();
        let found = elsewhere(call.remaining, move |wanted| {
            writing::find(&workspace, &change, basis.as_ref(), wanted)
        });
        found.await.unwrap_or_else(|| Lookup::Unknown {
            reason: PANICKED.to_owned(),
        })
    }
}

/// Gives a list of what is to be done back.
#[derive(Debug)]
struct WriteTodos;

#[async_trait]
impl Tool for WriteTodos {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let todos = call.args.to_value()["todos"].take();
        Outcome::Done {
            content: todos.to_string(),
        }
    }
}
