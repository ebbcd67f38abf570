//! `cargo xtask torture`: the safety tests in full, and the tables they fill in `docs/reliability.md`.

use std::{fs, path::Path};

use anyhow::Context;
use serde_json::Value;

use crate::{
    env,
    services::Services,
    step::{self, run},
    tables,
    variants::{Profile, Programs},
};

const PAGE: &str = "docs/reliability.md";
const NEW_PAGE: &str = include_str!("reliability.md");

/// The packages whose tests do more when they are run in full; those of the others are the same in `test`.
const PACKAGES: [&str; 5] = [
    "holdpoint-core",
    "holdpoint-policy",
    "holdpoint-store",
    "holdpoint-tools",
    "holdpoint-torture",
];

/// What to run.
#[derive(Debug, Default)]
pub(crate) struct Options {
    only: Option<String>,
    seed: Option<u64>,
}

impl Options {
    /// Reads `[--only X] [--seed N]`.
    pub(crate) fn parse(words: &[String]) -> anyhow::Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words
                .next()
                .with_context(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--only" => options.only = Some(value?.clone()),
                "--seed" => {
                    let seed = value?.parse();
                    options.seed = Some(seed.context("--seed takes a whole number")?);
                }
                _ => anyhow::bail!("`{word}` is not an option; use --only TEST or --seed N"),
            }
        }
        Ok(options)
    }
}

/// Runs the tests in full, then renders what they wrote, even if some failed.
pub(crate) fn torture(options: &Options) -> anyhow::Result<()> {
    let profile = Profile::Full;
    let programs = Programs::build_all(profile)?;
    let folder = programs.target().join("torture");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut command = if step::has_nextest() {
        let mut command = step::cargo(&["nextest", "run", "--profile", "torture"]);
        command.args(["--cargo-profile", profile.name()]);
        command
    } else {
        step::cargo(&["test", "--tests", "--profile", profile.name()])
    };
    command.arg("--no-fail-fast");
    for package in PACKAGES {
        command.args(["-p", package]);
    }
    command.args(&options.only);
    programs.announce(&mut command);
    let services = Services::start()?;
    services.announce(&mut command);
    command
        .env("HOLDPOINT_TORTURE", "1")
        .env("HOLDPOINT_TORTURE_DIR", &folder);
    if let Some(seed) = options.seed {
        command.env("HOLDPOINT_SEED", seed.to_string());
    }
    let tested = run(&mut command);
    let rows = collect(&folder)?;
    if rows.is_empty() {
        eprintln!("no test wrote a table to {}", folder.display());
        return tested;
    }
    if options.only.is_some() {
        // A part of the tables must not take the place of all of them.
        println!("{}", tables::render(&rows));
    } else {
        write_page(&rows)?;
    }
    tested
}

fn collect(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let mut files: Vec<_> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        for line in fs::read_to_string(&file)?.lines() {
            let row = serde_json::from_str(line);
            rows.push(row.with_context(|| format!("{}: `{line}`", file.display()))?);
        }
    }
    Ok(rows)
}

fn write_page(rows: &[Value]) -> anyhow::Result<()> {
    let path = env::root().join(PAGE);
    let old = fs::read_to_string(&path).unwrap_or_else(|_| NEW_PAGE.to_owned());
    let page = tables::replace(&old, &tables::render(rows)).context(PAGE)?;
    fs::write(&path, page).context(PAGE)?;
    eprintln!("{} rows in {PAGE}", rows.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folders of the workspace that hold packages with tests of their own, and the name each package has.
    fn packages() -> Vec<(std::path::PathBuf, String)> {
        let mut found = Vec::new();
        for manifest in ["crates", "testing", "examples"] {
            for entry in fs::read_dir(env::root().join(manifest)).unwrap() {
                found.push(entry.unwrap().path());
            }
        }
        found.extend(["torture", "bench"].map(|folder| env::root().join(folder)));
        found.retain(|folder| folder.join("Cargo.toml").exists());
        found
            .into_iter()
            .map(|folder| {
                let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
                let name = manifest
                    .lines()
                    .find_map(|line| line.strip_prefix("name = "));
                let name = name.unwrap().trim_matches('"').to_owned();
                (folder, name)
            })
            .collect()
    }

    fn says_in_full(folder: &Path) -> bool {
        fs::read_dir(folder).unwrap().any(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() {
                return says_in_full(&path);
            }
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            is_source
                && fs::read_to_string(&path)
                    .unwrap()
                    .contains("HOLDPOINT_TORTURE")
        })
    }

    #[test]
    fn every_package_with_tests_that_can_be_run_in_full_is_run() {
        let mut found: Vec<String> = packages()
            .into_iter()
            .filter(|(folder, _)| says_in_full(folder))
            .map(|(_, name)| name)
            .collect();
        found.sort();
        assert_eq!(found, PACKAGES);
    }
}
