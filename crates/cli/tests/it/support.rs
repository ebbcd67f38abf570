//! A folder with the examples and a store, and the binary to run in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use serde_json::Value;

/// The binary under test.
pub(crate) const HOLDPOINT: &str = env!("CARGO_BIN_EXE_holdpoint");

/// Built once; the example tools belong to another package, so cargo does not build them for this test.
fn tools() -> &'static Path {
    static TOOLS: OnceLock<PathBuf> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let folder = Path::new(HOLDPOINT).parent().unwrap().to_owned();
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "-p",
                "holdpoint-example-tools",
                "--target-dir",
            ])
            .arg(folder.parent().unwrap())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(built.success());
        folder
    })
}

/// The path of a tool of the examples.
pub(crate) fn example_tool(name: &str) -> String {
    tools().join(name).display().to_string()
}

/// A folder of its own for one test.
#[derive(Debug)]
pub(crate) struct World {
    dir: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// Its one JSON object.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Its JSON objects, one a line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Fails the test unless it ended so.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

impl World {
    /// The shipped examples, copied.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for example in ["refund", "file-manager", "file-manager/workspace"] {
            fs::create_dir(dir.path().join(example)).unwrap();
            for file in fs::read_dir(examples.join(example)).unwrap() {
                let file = file.unwrap();
                if file.file_type().unwrap().is_file() {
                    fs::copy(file.path(), dir.path().join(example).join(file.file_name())).unwrap();
                }
            }
        }
        Self {
            dir,
            variables: Vec::new(),
        }
    }

    /// With a variable that all commands see from now on.
    pub(crate) fn set(&mut self, variable: &'static str, value: &str) {
        self.variables.push((variable, value.to_owned()));
    }

    /// All examples, and the configuration of a server for them.
    pub(crate) fn with_examples() -> Self {
        let world = Self {
            dir: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        };
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        copy(&examples, world.path());
        world
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// An agent `name` in a file of that name, whose one tool `act` notes its call in the ledger.
    pub(crate) fn agent(&self, name: &str, gate: &str, rules: &str) -> String {
        self.write(
            &format!("{name}/scenario.yaml"),
            &format!("apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n{rules}"),
        );
        let file = format!("{name}/agent.yaml");
        self.write(
            &file,
            &format!(
                "apiVersion: holdpoint/v1
kind: Agent
metadata: {{name: {name}}}
spec:
  model: {{primary: 'scripted:scenario.yaml'}}
  tools:
    - name: act
      effect: idempotent
      input_schema: {{type: object, properties: {{n: {{type: integer}}, s: {{type: string}}}}, additionalProperties: false}}
      command: [holdpoint-example-ledger, pay-once]
      timeout: 2s
      settle: 0s
  interrupt_on:
    act: {gate}
"
            ),
        );
        file
    }

    /// An agent whose one tool, a write that cannot be looked up, dies without a word until `alive` is there.
    pub(crate) fn dying(&self, name: &str) -> String {
        let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: 'It says {result}.'\n";
        let file = self.agent(name, "false", rules);
        let text = fs::read_to_string(self.path().join(&file)).unwrap();
        let script = "echo $HOLDPOINT_IDEMPOTENCY_KEY >> keys; test -e alive || exit 3; echo fine";
        let text = text.replace("effect: idempotent", "effect: write");
        let text = text.replace(
            "[holdpoint-example-ledger, pay-once]",
            &format!("[sh, -c, '{script}']"),
        );
        self.write(&file, &text);
        file
    }

    /// The binary, ready to be given arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(HOLDPOINT);
        self.prepare(&mut command);
        command
    }

    /// Gives a command this folder, the example tools and nothing else of the outside.
    pub(crate) fn prepare(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = vec![tools().to_owned()];
        folders.extend(std::env::split_paths(&path));
        command
            .current_dir(self.path())
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("LEDGER", self.path().join("ledger.jsonl"))
            .env("FILES_ROOT", self.path().join("file-manager/workspace"))
            .env("TZ", "UTC")
            .env_remove("HOLDPOINT_STORE")
            .env_remove("HOLDPOINT_CONFIG")
            .env_remove("OPENAI_API_KEY")
            .env_remove("OPENAI_BASE_URL")
            .env_remove("ANTHROPIC_API_KEY")
            .env_remove("ANTHROPIC_BASE_URL")
            .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
            .env_remove("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        for (variable, value) in &self.variables {
            command.env(variable, value);
        }
    }

    /// Runs the binary.
    pub(crate) fn hold(&self, args: &[&str]) -> Said {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command().args(args).output().unwrap();
        Said {
            code: status.code().unwrap_or(-1),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }

    /// Runs the binary with `--json`, and reads its one object.
    #[track_caller]
    pub(crate) fn json(&self, code: i32, args: &[&str]) -> Value {
        let args = [args, &["--json"]].concat();
        self.hold(&args).ends(code).json()
    }

    /// Everything a thread shows: nothing of it may change by something that is refused.
    pub(crate) fn picture(&self, thread: &str) -> [String; 2] {
        let show = self.hold(&["show", thread, "--json"]);
        let trace = self.hold(&["trace", thread, "--json"]).ends(0);
        [show.stdout, trace.stdout]
    }

    /// How many effects the ledger has.
    pub(crate) fn effects(&self) -> usize {
        let text = fs::read_to_string(self.path().join("ledger.jsonl")).unwrap_or_default();
        text.lines().filter(|line| line.contains("\"key\"")).count()
    }
}

/// The tool messages of an object, by their content.
pub(crate) fn tool_contents(object: &Value) -> Vec<&str> {
    let messages = object["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["type"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

/// The id of the one interrupt that is pending.
pub(crate) fn pending(object: &Value) -> String {
    let pending = object["__interrupt__"].as_array().unwrap();
    assert_eq!(pending.len(), 1, "{object}");
    pending[0]["id"].as_str().unwrap().to_owned()
}

/// The ids of the actions that are asked about.
pub(crate) fn asked(object: &Value) -> Vec<String> {
    let requests = &object["__interrupt__"][0]["value"]["action_requests"];
    let requests = requests.as_array().unwrap().iter();
    requests
        .map(|request| request["action_id"].as_str().unwrap().to_owned())
        .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            if entry.file_name() != "tools" {
                copy(&entry.path(), &target);
            }
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
