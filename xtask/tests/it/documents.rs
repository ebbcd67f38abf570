//! Runs the commands of the documents, in a folder with a copy of the examples.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// One fenced block that is more than a picture.
#[derive(Debug, PartialEq, Eq)]
enum Block {
    /// ` ```yaml file=NAME `
    File { name: String, text: String },
    /// ` ```console test `
    Commands(Vec<Shown>),
}

/// A line `$ COMMAND   # exit N`.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    line: usize,
    command: String,
    exit: i32,
}

fn root() -> PathBuf {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    package.parent().unwrap().to_owned()
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((_, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let inside: Vec<(usize, &str)> = lines
            .by_ref()
            .take_while(|(_, line)| *line != "```")
            .collect();
        if info == "console test" {
            blocks.push(Block::Commands(
                inside.into_iter().filter_map(shown).collect(),
            ));
        } else if let Some((_, name)) = info.split_once(" file=") {
            let text = inside.iter().flat_map(|(_, line)| [*line, "\n"]).collect();
            blocks.push(Block::File {
                name: name.to_owned(),
                text,
            });
        }
    }
    blocks
}

fn shown((line, text): (usize, &str)) -> Option<Shown> {
    let command = text.strip_prefix("$ ")?;
    let (command, exit) = match command.rsplit_once("# exit ") {
        Some((command, exit)) => (command, exit.trim().parse().unwrap()),
        None => (command, 0),
    };
    Some(Shown {
        line,
        command: command.trim_end().to_owned(),
        exit,
    })
}

fn variable(name: &str) -> OsString {
    std::env::var_os(name).unwrap_or_else(|| {
        panic!("{name} is not set: run `cargo xtask test`, which builds the programs and sets it")
    })
}

/// `PATH` with the binary and the tools of the examples in front.
fn path() -> OsString {
    let binary = PathBuf::from(variable("HOLDPOINT_BIN"));
    let tools = PathBuf::from(variable("HOLDPOINT_EXAMPLE_TOOLS"));
    let old = std::env::var_os("PATH").unwrap_or_default();
    let ours = [binary.parent().unwrap().to_owned(), tools];
    std::env::join_paths(ours.into_iter().chain(std::env::split_paths(&old))).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn documents() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let mut files: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
    files.push(root().join("README.md"));
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    files
}

/// The blocks of one document, in one folder: a document is a story.
fn play(document: &Path, blocks: &[Block]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("examples"), &folder.path().join("examples"));
    let mut played = 0;
    for block in blocks {
        match block {
            Block::File { name, text } => fs::write(folder.path().join(name), text).unwrap(),
            Block::Commands(commands) => {
                for shown in commands {
                    run(document, folder.path(), shown);
                    played += 1;
                }
            }
        }
    }
    played
}

fn run(document: &Path, folder: &Path, shown: &Shown) {
    let output = Command::new("sh")
        .args(["-c", &shown.command])
        .current_dir(folder)
        .env("PATH", path())
        .env_remove("HOLDPOINT_STORE")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(shown.exit),
        "{}:{}: $ {}\n{}{}",
        document.display(),
        shown.line,
        shown.command,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

#[test]
fn every_command_that_is_shown_ends_as_is_shown() {
    let played: usize = documents()
        .iter()
        .map(|document| play(document, &blocks(&fs::read_to_string(document).unwrap())))
        .sum();
    // Lest a slip in the marks leaves nothing to test.
    assert!(played >= 20, "only {played} commands were found");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let generated = ["reliability.md", "performance.md"];
    let others = [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "examples/README.md",
    ];
    let mut dead = Vec::new();
    for document in documents()
        .into_iter()
        .chain(others.map(|name| root().join(name)))
    {
        let text = fs::read_to_string(&document).unwrap();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = link.split('#').next().unwrap_or_default();
            let outside = path.is_empty() || path.contains("://");
            let there = document.parent().unwrap().join(path).exists();
            if !outside && !there && !generated.iter().any(|name| path.ends_with(name)) {
                dead.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert_eq!(dead, [""; 0]);
}

#[test]
fn blocks_are_found_by_their_marks() {
    let text = "# Title\n```console\n$ no\n```\n```console test\n$ a b   # exit 3\nout\n$ c\n```\n```yaml file=x.yaml\nk: v\n```\n";
    let expected = [
        Block::Commands(vec![
            Shown {
                line: 6,
                command: "a b".to_owned(),
                exit: 3,
            },
            Shown {
                line: 8,
                command: "c".to_owned(),
                exit: 0,
            },
        ]),
        Block::File {
            name: "x.yaml".to_owned(),
            text: "k: v\n".to_owned(),
        },
    ];
    assert_eq!(blocks(text), expected);
}
