//! `holdpoint check`: explains every problem of every file at once.

use std::path::Path;

use holdpoint_core::{Definition, McpServer, Runner, ToolSpec};
use holdpoint_definition::{Names, Problem};
use holdpoint_tools::{Watchdog, offers};
use serde_json::{Value, json};

use crate::{
    agent_file, args::Check, exit::Exit, failure::Failure, safe_text::line, session::Output,
    terminal,
};

/// Checks definitions.
///
/// # Errors
///
/// The configuration cannot be used.
pub(crate) async fn check(args: &Check) -> Result<Exit, Failure> {
    let names = agent_file::names(args.config.as_deref())?;
    let output = Output::of(args.json);
    let mut all_fit = true;
    for file in &args.files {
        let mut found = Found::of(file, &names, args.strict);
        if args.connect {
            found.connect(output).await;
        }
        all_fit &= found.fits;
        found.print(file, output);
    }
    Ok(if all_fit { Exit::Done } else { Exit::Usage })
}

struct Found {
    fits: bool,
    definition: Option<Definition>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    /// Which servers do not offer what the file wants of them.
    trouble: Vec<String>,
}

impl Found {
    fn of(file: &Path, names: &Names, strict: bool) -> Self {
        match agent_file::load(file, names) {
            Err(refused) => Self {
                fits: false,
                definition: None,
                problems: refused.problems,
                warnings: Vec::new(),
                trouble: Vec::new(),
            },
            Ok(mut loaded) => {
                let fits = !strict || loaded.warnings.is_empty();
                // Where a file is checked the keys need not be.
                loaded.warnings.append(&mut loaded.missing);
                Self {
                    fits,
                    definition: Some(loaded.definition),
                    problems: Vec::new(),
                    warnings: loaded.warnings,
                    trouble: Vec::new(),
                }
            }
        }
    }

    /// Asks the servers what they offer.
    async fn connect(&mut self, output: Output) {
        let Some(mut definition) = self.definition.take() else {
            return;
        };
        let unlisted = definition.unlisted_servers();
        let servers: Vec<McpServer> = unlisted.into_iter().cloned().collect();
        for server in servers {
            if output == Output::Plain {
                terminal::note(&format!("asking `{}` for its tools", line(&server.name)));
            }
            let offered = offers(&server, &Watchdog::default()).await;
            let taken = offered.and_then(|it| definition.clone().with_offers(&server, &it));
            match taken {
                Ok(with) => definition = with,
                Err(why) => self.trouble.push(why),
            }
        }
        // What only shows once it is known what there is: two tools of one name, for instance.
        if self.trouble.is_empty() {
            self.trouble.extend(definition.flaw());
        }
        self.fits &= self.trouble.is_empty();
        self.definition = Some(definition);
    }

    fn print(&self, file: &Path, output: Output) {
        let agent = self.definition.as_ref().map(|it| it.name.as_str());
        let servers = self.definition.iter().flat_map(offered_by_servers);
        if output == Output::Json {
            let mut found = json!({
                "file": file.display().to_string(),
                "ok": self.fits,
                "agent": agent,
                "problems": self.problems,
                "warnings": self.warnings,
            });
            if self.trouble.is_empty() {
                found["mcp_tools"] = servers.collect();
            } else {
                found["mcp_trouble"] = json!(self.trouble);
            }
            terminal::json(&found);
            return;
        }
        let problems = self
            .problems
            .iter()
            .flat_map(|found| explain("error", found));
        let warnings = self
            .warnings
            .iter()
            .flat_map(|found| explain("warning", found));
        for text in problems.chain(warnings) {
            terminal::note(&text);
        }
        for why in &self.trouble {
            terminal::note(&format!("error: {}", line(why)));
        }
        if self.fits {
            let agent = line(agent.unwrap_or_default());
            let file = line(&file.display().to_string());
            terminal::data(&format!("{file}: ok, agent {agent}"));
        }
        for tool in servers {
            let text = |name: &str| tool[name].as_str().map(line).unwrap_or_default();
            let (name, effect, people) = (text("name"), text("effect"), text("people"));
            terminal::data(&format!("  {name}  {effect}, {people}"));
        }
    }
}

/// The tools of servers that an agent has, and what its policy says of each.
fn offered_by_servers(definition: &Definition) -> impl Iterator<Item = Value> {
    let of_server = |tool: &&ToolSpec| matches!(tool.runner, Runner::Mcp { .. });
    definition.tools.iter().filter(of_server).map(|tool| {
        let people = if definition.policy.may_ask(&tool.name) {
            "asked about"
        } else if definition.policy.denies(&tool.name) {
            "denied"
        } else {
            "not asked about"
        };
        json!({
            "name": tool.name,
            "effect": tool.effect,
            "people": people,
            "description": tool.description,
        })
    })
}

/// A problem, and below it what would be right: lines that are safe to print.
pub(crate) fn explain(kind: &str, problem: &Problem) -> Vec<String> {
    let text = problem.to_string();
    let mut lines: Vec<String> = text.lines().map(line).collect();
    if let Some(first) = lines.first_mut() {
        first.insert_str(0, &format!("{kind}: "));
    }
    lines
}
