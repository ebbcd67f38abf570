//! What a test tried and what came of it: a line for people, and a JSON line for the tables.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    play::Played,
    process::Watch,
    programs::{Effort, seed},
};

/// What came of one scenario of a test.
#[derive(Debug)]
pub(crate) struct Tally {
    test: &'static str,
    scenario: String,
    watch: Watch,
    /// Deaths that came as planned.
    pub(crate) points: usize,
    /// Plays that ended as if nothing had happened.
    pub(crate) passed: usize,
    /// Plays that did so after a person had said whether something took effect.
    pub(crate) waited: usize,
    /// Plays that were over before the point was reached.
    pub(crate) missed: usize,
    pub(crate) effects: usize,
    pub(crate) violations: Vec<String>,
    /// Columns that only this test has.
    also: Vec<(&'static str, Value)>,
}

impl Tally {
    pub(crate) fn new(test: &'static str, scenario: impl Into<String>) -> Self {
        Self {
            test,
            scenario: scenario.into(),
            watch: Watch::start(),
            points: 0,
            passed: 0,
            waited: 0,
            missed: 0,
            effects: 0,
            violations: Vec::new(),
            also: Vec::new(),
        }
    }

    /// Adds a column that only this test has.
    pub(crate) fn also(&mut self, column: &'static str, value: impl Into<Value>) {
        self.also.push((column, value.into()));
    }

    /// Counts a play in which so many processes should have died.
    pub(crate) fn count(&mut self, label: &str, played: &Played, deaths: usize) {
        self.effects += played.effects;
        if played.deaths < deaths {
            self.missed += 1;
        } else {
            self.points += 1;
        }
        if !played.problems.is_empty() {
            let problems = played.problems.join("\n  ");
            self.violations.push(format!("{label}:\n  {problems}"));
        } else if played.deaths == deaths {
            if played.asked > 0 {
                self.waited += 1;
            } else {
                self.passed += 1;
            }
        }
    }

    /// Counts an operation in which a person was asked so often whether something took effect.
    pub(crate) fn judge(&mut self, label: &str, asked: usize, problems: &[String]) {
        self.points += 1;
        if !problems.is_empty() {
            let problems = problems.join("\n  ");
            self.violations.push(format!("{label}:\n  {problems}"));
        } else if asked > 0 {
            self.waited += 1;
        } else {
            self.passed += 1;
        }
    }

    /// Says what came of it, for people and for tables.
    pub(crate) fn publish(&self) {
        let Self {
            test,
            scenario,
            points,
            passed,
            waited,
            missed,
            effects,
            ..
        } = self;
        let violations = self.violations.len();
        let took = self.watch.elapsed();
        let also: Vec<String> = self
            .also
            .iter()
            .map(|(it, value)| format!(", {it} {value}"))
            .collect();
        println!(
            "{test}, {scenario}: {points} points tried, {passed} passed, {waited} waited, {violations} violations \
             ({missed} not reached, {effects} effects{}, {took:.1?}, seed {})",
            also.concat(),
            seed()
        );
        let mut row = json!({
                "test": test,
                "scenario": scenario,
                "points": points,
                "passed": passed,
                "waited": waited,
                "violations": violations,
                "not_reached": missed,
                "effects": effects,
                "seconds": tenths(took),
                "seed": seed(),
        });
        for (column, value) in &self.also {
            row[column] = value.clone();
        }
        record(test, &row);
    }

    /// Says what came of it, and fails if anything did not hold.
    #[track_caller]
    pub(crate) fn conclude(self) {
        self.publish();
        assert!(
            self.violations.is_empty(),
            "{} violations:\n{}",
            self.violations.len(),
            self.violations.join("\n")
        );
        // A death that rarely comes proves nothing.
        assert!(
            self.missed <= self.points / 3,
            "{} of {} points were not reached",
            self.missed,
            self.points + self.missed
        );
        assert!(
            (self.passed + self.waited) * 2 >= self.points && self.points > 0,
            "most operations must succeed, or nothing was shown"
        );
    }
}

pub(crate) fn tenths(took: Duration) -> f64 {
    (took.as_secs_f64() * 10.0).round() / 10.0
}

/// Adds a line to the file of a test, where one is wanted.
pub(crate) fn record(test: &str, row: &Value) {
    let Some(path) = file_of(test) else { return };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).unwrap();
    }
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    // One write, since several tests may share a file.
    file.write_all(format!("{row}\n").as_bytes()).unwrap();
}

fn file_of(test: &str) -> Option<PathBuf> {
    let given = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let name = format!("{}.jsonl", test.replace(' ', "-"));
    if let Some(file) = given("HOLDPOINT_TORTURE_OUT") {
        return Some(file);
    }
    if let Some(folder) = given("HOLDPOINT_TORTURE_DIR") {
        return Some(folder.join(name));
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    (Effort::asked_for() == Effort::Full).then(|| target.join("torture").join(name))
}
