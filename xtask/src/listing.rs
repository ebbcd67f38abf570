//! Which tests there are.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Context;
use serde_json::Value;

use crate::step;

/// Builds every test of the workspace and asks for its name: `PACKAGE::NAME`, where `NAME` is as the test program lists it.
pub(crate) fn tests() -> anyhow::Result<BTreeSet<String>> {
    let output = step::cargo(&["test", "--workspace", "--no-run"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be started")?;
    anyhow::ensure!(output.status.success(), "the tests do not build");
    let mut names = BTreeSet::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let Some(program) = message["executable"].as_str() else {
            continue;
        };
        if message["profile"]["test"] != true {
            continue;
        }
        let id = message["package_id"].as_str().unwrap_or_default();
        names.extend(listed(package_of(id), Path::new(program))?);
    }
    Ok(names)
}

fn listed(package: &str, program: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new(program)
        .args(["--list", "--format", "terse"])
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    anyhow::ensure!(
        output.status.success(),
        "{} does not list its tests",
        program.display()
    );
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(|name| format!("{package}::{name}"))
        .collect())
}

/// `path+file:///a/b#name@1.0.0`, or `path+file:///a/name#1.0.0` where folder and package are called alike.
fn package_of(id: &str) -> &str {
    let (path, rest) = id.rsplit_once('#').unwrap_or(("", id));
    match rest.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_by_its_id_or_by_its_folder() {
        assert_eq!(
            package_of("path+file:///w/crates/core#holdpoint-core@0.1.0"),
            "holdpoint-core"
        );
        assert_eq!(package_of("path+file:///w/xtask#0.1.0"), "xtask");
    }
}
