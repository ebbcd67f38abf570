//! How results are shown: a table, a JSON file, and a page of the documentation.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::Context as _;

use crate::{
    machine::Machine,
    measurement::{Measurement, System},
    target::Verdict,
};

/// What stands around the results.
const PAGE: &str = include_str!("performance.md");

/// Between these, the page belongs to the bench.
const BEGIN: &str = "<!-- bench: begin; written by `cargo xtask bench`, do not edit -->";
const END: &str = "<!-- bench: end -->";

/// How many columns of the table come before the figures.
const WORDS: usize = 4;

/// All that one run of the bench found out.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// Which versions of what were measured, in lines.
    pub(crate) versions: Vec<String>,
    pub(crate) rounds: usize,
    /// What was written per unit of each workload.
    pub(crate) weights: Vec<String>,
    pub(crate) measured: Vec<Measurement>,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Report {
    /// The whole report as Markdown that reads well on a terminal too.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("Machine: {}.\n", self.machine);
        for version in &self.versions {
            writeln!(text, "{version}.").ok();
        }
        let plural = if self.rounds == 1 { "" } else { "s" };
        writeln!(text, "Medians of {} round{plural}.\n", self.rounds).ok();
        text.push_str(&self.table());
        if !self.weights.is_empty() {
            text.push_str("\nWritten, by Holdpoint and by the ceiling alike:\n\n");
        }
        for weight in &self.weights {
            writeln!(text, "- {weight}").ok();
        }
        text.push_str("\nTargets:\n\n");
        for verdict in &self.verdicts {
            writeln!(text, "- {verdict}").ok();
        }
        text
    }

    /// One row for each setting and metric, one column for each system.
    fn table(&self) -> String {
        let mut systems: Vec<System> = Vec::new();
        let mut rows: Vec<(&Measurement, Vec<&Measurement>)> = Vec::new();
        for measured in &self.measured {
            if !systems.contains(&measured.setting.system) {
                systems.push(measured.setting.system);
            }
            match rows.iter_mut().find(|(row, _)| is_same_row(row, measured)) {
                Some((_, cells)) => cells.push(measured),
                None => rows.push((measured, vec![measured])),
            }
        }
        let mut grid = vec![vec![
            "workload".to_owned(),
            "concurrency".to_owned(),
            "parked".to_owned(),
            "metric".to_owned(),
        ]];
        if let Some(heads) = grid.first_mut() {
            heads.extend(systems.iter().map(|system| system.as_str().to_owned()));
        }
        for (row, cells) in rows {
            let mut line = vec![
                row.setting.workload.as_str().to_owned(),
                row.setting.concurrency.to_string(),
                row.setting.parked.to_string(),
                format!("{} ({})", row.metric, row.unit),
            ];
            for system in &systems {
                let cell = cells.iter().find(|cell| cell.setting.system == *system);
                line.push(cell.map_or(String::new(), |cell| figure(cell.value)));
            }
            grid.push(line);
        }
        render(&grid)
    }

    /// Writes the figures as a list of objects.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn save(&self, file: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(&self.measured)?;
        text.push('\n');
        fs::write(file, text).with_context(|| format!("cannot write `{}`", file.display()))
    }

    /// Writes the page of the documentation: the text that describes this bench, and what it found.
    ///
    /// # Errors
    ///
    /// The page cannot be written.
    pub(crate) fn publish(&self, page: &Path) -> anyhow::Result<()> {
        let text = insert(PAGE, &self.markdown()).context("the page has lost its marks")?;
        if let Some(folder) = page.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(page, text).with_context(|| format!("cannot write `{}`", page.display()))
    }
}

fn is_same_row(one: &Measurement, other: &Measurement) -> bool {
    let (a, b) = (one.setting, other.setting);
    (a.workload, a.concurrency, a.parked, one.metric)
        == (b.workload, b.concurrency, b.parked, other.metric)
}

/// Three digits that count, or all before the point.
fn figure(value: f64) -> String {
    match value.abs() {
        magnitude if magnitude >= 100.0 => format!("{value:.0}"),
        magnitude if magnitude >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A Markdown table whose columns line up; figures to the right.
fn render(grid: &[Vec<String>]) -> String {
    let columns = grid.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = grid.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (nth, line) in grid.iter().enumerate() {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            if column < WORDS {
                write!(text, "| {cell:<width$} ").ok();
            } else {
                write!(text, "| {cell:>width$} ").ok();
            }
        }
        text.push_str("|\n");
        if nth == 0 {
            for (column, width) in widths.iter().enumerate() {
                let rule = "-".repeat(width + 1);
                let end = if column < WORDS { '-' } else { ':' };
                write!(text, "|{rule}{end}").ok();
            }
            text.push_str("|\n");
        }
    }
    text
}

/// Puts a report between the marks.
fn insert(page: &str, report: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{report}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_stands_between_the_marks_and_changes_nothing_else() {
        let page = insert(PAGE, "Report").unwrap();
        assert_eq!(page.replace("\n\nReport\n", "\n"), PAGE);
        assert_eq!(insert("no marks", "x"), None);
    }

    #[test]
    fn figures_line_up_to_the_right() {
        let line = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
        let grid = [
            line(["a", "b", "c", "d", "e"]),
            line(["W1", "1", "0", "m (u)", "12"]),
        ];
        let table = "| a  | b | c | d     |  e |\n|----|---|---|-------|---:|\n| W1 | 1 | 0 | m (u) | 12 |\n";
        assert_eq!(render(&grid), table);
    }
}
