//! Which files are agents.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use holdpoint_yaml::{Content, Field, Node, Problem, Problems, Report, nearest};

use crate::{frame::KIND, superagent};

/// The files of agents that these files and folders are, each once. Of a folder, those `*.yaml` and `*.yml` files are
/// taken that say `kind: Agent`, in the order of their names; folders in it are not looked at. Whether an agent is fine
/// is not looked at either, but what might be a misspelt one is taken, so that loading it says so.
///
/// # Errors
///
/// Files and folders that cannot be read, and folders without an agent.
pub fn agent_files(agents: &[PathBuf]) -> Result<Vec<PathBuf>, Problems> {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for path in agents {
        let found = if path.is_dir() {
            in_folder(path, &mut problems)
        } else {
            vec![path.clone()]
        };
        files.extend(found.into_iter().filter(|file| seen.insert(file.clone())));
    }
    if problems.is_empty() {
        Ok(files)
    } else {
        Err(Problems::new(problems))
    }
}

fn in_folder(folder: &Path, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let name = folder.display().to_string();
    let mut files = match yaml_files(folder) {
        Ok(files) => files,
        Err(error) => {
            let message = format!("cannot be read: {error}");
            problems.push(Problem::of_file(&name, &message));
            return Vec::new();
        }
    };
    // What cannot be read may be an agent: loading it says what is wrong with it, and nothing of the others.
    files.retain(|file| is_agent(file).unwrap_or(true));
    if files.is_empty() {
        let message = "has no agents: no `*.yaml` or `*.yml` file in it says `kind: Agent`";
        let mut problem = Problem::of_file(&name, message);
        problem.help = Some("folders in it are not looked at; list them as well".to_owned());
        problems.push(problem);
    }
    files
}

fn yaml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let mut files: Vec<_> = paths.filter(|path| is_yaml(path)).collect();
    files.sort();
    Ok(files)
}

/// Hidden files are left by editors, and are not meant.
fn is_yaml(path: &Path) -> bool {
    let hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    let extension = path.extension().and_then(OsStr::to_str);
    matches!(extension, Some("yaml" | "yml"))
        && !path.file_name().is_some_and(hidden)
        && path.is_file()
}

fn is_agent(file: &Path) -> Result<bool, Problems> {
    let name = file.display().to_string();
    let text =
        holdpoint_yaml::read_file(file, &name).map_err(|problem| Problems::new(vec![problem]))?;
    let mut report = Report::new(&name);
    match holdpoint_yaml::parse(&text, KIND, &mut report) {
        // What is wrong with it is said when it is loaded.
        Some(root) => Ok(says_agent(&root)),
        None => report.finish().map(|_| false),
    }
}

fn says_agent(root: &Node) -> bool {
    match word(root, "kind") {
        Some(kind) => nearest(kind, [KIND]).is_some(),
        // Somebody meant it to be ours, and forgot to say what.
        None => ["apiVersion", "api_version"]
            .iter()
            .filter_map(|key| word(root, key))
            .any(|version| version.starts_with("holdpoint/") || version == superagent::API_VERSION),
    }
}

fn word<'a>(root: &'a Node, key: &str) -> Option<&'a str> {
    match &Field::root(root).follow(&format!("/{key}")).node.content {
        Content::Text(text) => Some(text),
        Content::Null
        | Content::Bool(_)
        | Content::Number(_)
        | Content::List(_)
        | Content::Map(_) => None,
    }
}
