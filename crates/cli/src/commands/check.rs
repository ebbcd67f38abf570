//! `holdpoint check`: explains every problem of every file at once.

use std::path::Path;

use holdpoint_definition::Problem;
use serde_json::json;

use crate::{args::Check, exit::Exit, safe_text::line, session::Output, terminal};

/// Checks definitions.
pub(crate) fn check(args: &Check) -> Exit {
    let output = Output::of(args.json);
    let mut all_fit = true;
    for file in &args.files {
        let found = Found::of(file, args.strict);
        all_fit &= found.fits;
        found.print(file, output);
    }
    if all_fit { Exit::Done } else { Exit::Usage }
}

struct Found {
    fits: bool,
    agent: Option<String>,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    model: Option<String>,
}

impl Found {
    fn of(file: &Path, strict: bool) -> Self {
        match holdpoint_definition::load(file) {
            Err(problems) => Self {
                fits: false,
                agent: None,
                problems: problems.as_slice().to_vec(),
                warnings: Vec::new(),
                model: None,
            },
            Ok(loaded) => {
                let model = holdpoint_models::resolve(&loaded.definition.model)
                    .err()
                    .map(|error| error.to_string());
                Self {
                    fits: model.is_none() && (!strict || loaded.warnings.is_empty()),
                    agent: Some(loaded.definition.name),
                    problems: Vec::new(),
                    warnings: loaded.warnings,
                    model,
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
                "model_error": self.model,
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
        let model = self
            .model
            .iter()
            .map(|found| format!("error: {}", line(found)));
        for text in problems.chain(model).chain(warnings) {
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
