//! What a program is started with: whose environment, and whether the kernel confines it.

use std::{env, path::Path, process::Command};

use super::protocol::{End, Environment, Order};
use crate::{
    builtin::INHERITED,
    confine::{self, Cell, TemporaryFolder},
};

/// Where programs are found if nobody says.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What is to be seen to when the program has ended.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    confined: Option<Confined>,
}

#[derive(Debug)]
struct Confined {
    nonce: String,
    /// Removed when this is dropped.
    _temporary: TemporaryFolder,
}

impl Surroundings {
    /// The command that starts a program.
    ///
    /// # Errors
    ///
    /// Nothing was started, and why.
    pub(super) fn of(
        order: &Order,
        name: &str,
        arguments: &[String],
    ) -> Result<(Command, Self), String> {
        match order.environment {
            Environment::Inherited => {
                let mut command = Command::new(name);
                command.args(arguments);
                Ok((command, Self::default()))
            }
            Environment::Listed => {
                let mut command = Command::new(name);
                command.args(arguments).env_clear().envs(listed(&INHERITED));
                Ok((command, Self::default()))
            }
            Environment::Confined => confined(order).map_err(|error| {
                format!("the surroundings of a confined program cannot be made: {error}")
            }),
        }
    }

    /// Whether something has to be removed when the program is gone.
    pub(super) const fn are_cleaned(&self) -> bool {
        self.confined.is_some()
    }

    /// Why the program never ran, if it did not.
    pub(super) fn failure(&self, end: End, stderr: &str) -> Option<String> {
        let confined = self.confined.as_ref()?;
        match end {
            End::Code(confine::FAILED) => Cell::failure(&confined.nonce, stderr),
            End::Code(_) | End::Signal(_) | End::TimedOut | End::LetGo | End::Garbled(_) => None,
        }
    }
}

fn confined(order: &Order) -> std::io::Result<(Command, Surroundings)> {
    let nonce = Cell::nonce()?;
    let name = Cell::nonce()?;
    let temporary = TemporaryFolder::within(Path::new(&order.cwd), &name)?;
    let cell = Cell {
        argv: order.argv.clone(),
        folder: order.cwd.clone(),
        nonce: nonce.clone(),
    };
    // Itself: also right after the file was replaced by an upgrade, or deleted.
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(confine::ARGUMENT)
        .arg(serde_json::to_string(&cell)?)
        .env_clear()
        .env("PATH", PATH)
        .envs(listed(&confine::VARIABLES))
        .env("HOME", temporary.path())
        .env("TMPDIR", temporary.path());
    let surroundings = Surroundings {
        confined: Some(Confined {
            nonce,
            _temporary: temporary,
        }),
    };
    Ok((command, surroundings))
}

/// Of this process's environment what is named here, and what says in which language and alphabet to speak.
fn listed(names: &[&str]) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    env::vars_os()
        .filter(|(name, _)| {
            name.to_str()
                .is_some_and(|name| names.contains(&name) || name.starts_with("LC_"))
        })
        .collect()
}
