//! `holdpoint check`: explains every problem of every file at once.

use std::path::Path;

use holdpoint_definition::{Names, Problem};
use serde_json::json;

use crate::{
    agent_file, args::Check, exit::Exit, failure::Failure, safe_text::line, session::Output,
    terminal,
};

/// Checks definitions.
///
/// # Errors
///
/// The configuration cannot be used.
pub(crate) fn check(args: &Check) -> Result<Exit, Failure> {
    let names = agent_file::names(args.config.as_deref())?;
    let output = Output::of(args.json);
    let mut all_fit = true;
    for file in &args.files {
        let found = Found::of(file, &names, args.strict);
        all_fit &= found.fits;
        found.print(file, output);
    }
    Ok(if all_fit { Exit::Done } else { Exit::Usage })
}

struct Found {
    fits: bool,
    agent: Option<String>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Found {
    fn of(file: &Path, names: &Names, strict: bool) -> Self {
        match agent_file::load(file, names) {
            Err(refused) => Self {
                fits: false,
                agent: None,
                problems: refused.problems,
                warnings: Vec::new(),
            },
            Ok(mut loaded) => {
                let fits = !strict || loaded.warnings.is_empty();
                // Where a file is checked the keys need not be.
                loaded.warnings.append(&mut loaded.missing);
                Self {
                    fits,
                    agent: Some(loaded.definition.name),
                    problems: Vec::new(),
                    warnings: loaded.warnings,
                }
            }
        }
    }

    fn print(&self, file: &Path, output: Output) {
        if output == Output::Json {
            terminal::json(&json!({
                "file": file.display().to_string(),
                "ok": self.fits,
                "agent": self.agent,
                "problems": self.problems,
                "warnings": self.warnings,
            }));
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
        if self.fits {
            let agent = line(self.agent.as_deref().unwrap_or_default());
            let file = line(&file.display().to_string());
            terminal::data(&format!("{file}: ok, agent {agent}"));
        }
    }
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
