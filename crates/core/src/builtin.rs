//! The tools that come with every agent: what they are called, what models are told about them, and who is asked before.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Allowed, DecisionKind, Definition, Effect, Gate, Policy, Ruling};

/// A tool that is part of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Builtin {
    /// Reads a text file of the workspace.
    ReadFile,
    /// Lists a folder of the workspace.
    Ls,
    /// Finds files of the workspace by their names.
    Glob,
    /// Finds lines in files of the workspace.
    Grep,
    /// Writes or deletes a file of the workspace.
    WriteFile,
    /// Replaces text in a file of the workspace.
    EditFile,
    /// Runs a shell command, as free as this program.
    Shell,
    /// Runs a shell command that the kernel confines to the workspace.
    Execute,
    /// Fetches a document from the web.
    FetchUrl,
    /// Asks a search engine.
    WebSearch,
    /// Keeps a list of what is to be done.
    WriteTodos,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::ReadFile,
        Self::Ls,
        Self::Glob,
        Self::Grep,
        Self::WriteFile,
        Self::EditFile,
        Self::Shell,
        Self::Execute,
        Self::FetchUrl,
        Self::WebSearch,
        Self::WriteTodos,
    ];

    /// As definitions spell it, and as models call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::Ls => "ls",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::Shell => "shell",
            Self::Execute => "execute",
            Self::FetchUrl => "fetch_url",
            Self::WebSearch => "web_search",
            Self::WriteTodos => "write_todos",
        }
    }

    /// The one that is spelt so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// Grows whenever it does something else with the same arguments: an approval holds for one version only.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::ReadFile
            | Self::Ls
            | Self::Glob
            | Self::Grep
            | Self::WriteFile
            | Self::EditFile
            | Self::Shell
            | Self::Execute
            | Self::FetchUrl
            | Self::WebSearch
            | Self::WriteTodos => "1",
        }
    }

    /// What repeating a call would do.
    #[must_use]
    pub const fn effect(self) -> Effect {
        match self {
            Self::ReadFile
            | Self::Ls
            | Self::Glob
            | Self::Grep
            | Self::FetchUrl
            | Self::WebSearch
            | Self::WriteTodos => Effect::Read,
            Self::WriteFile | Self::EditFile | Self::Shell | Self::Execute => Effect::Write,
        }
    }

    /// Whether it works in a folder, and cannot be had without one.
    #[must_use]
    pub const fn needs_workspace(self) -> bool {
        match self {
            Self::ReadFile
            | Self::Ls
            | Self::Glob
            | Self::Grep
            | Self::WriteFile
            | Self::EditFile
            | Self::Shell
            | Self::Execute => true,
            Self::FetchUrl | Self::WebSearch | Self::WriteTodos => false,
        }
    }

    /// Whether it starts programs.
    #[must_use]
    pub const fn runs_commands(self) -> bool {
        matches!(self, Self::Shell | Self::Execute)
    }

    /// Whether it can say what became of a call, given what the call was based on.
    #[must_use]
    pub const fn has_lookup(self) -> bool {
        match self {
            Self::WriteFile | Self::EditFile => true,
            Self::ReadFile
            | Self::Ls
            | Self::Glob
            | Self::Grep
            | Self::Shell
            | Self::Execute
            | Self::FetchUrl
            | Self::WebSearch
            | Self::WriteTodos => false,
        }
    }

    /// What models are told about it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::ReadFile => {
                "Reads a text file of the workspace. Each line comes with its number and a tab before it, which are not part \
                 of the file. At most 2000 lines or 60 KiB come at once; the end of the result says how to go on, by \
                 `offset`, the number of the first line, and `limit`, how many lines. A result that says that it is kept as \
                 `artifact://…` is read by that as the path; its long lines come in pieces, and where a number ends with `+`, \
                 the piece goes on the line before."
            }
            Self::Ls => {
                "Lists a folder of the workspace, the workspace itself if no path is given. Names of folders end with `/`, \
                 and of symbolic links with `@`."
            }
            Self::Glob => {
                "Finds files of the workspace whose paths match a pattern such as `src/**/*.rs`, below `path` if it is given. \
                 `*` stays within a folder, `**` does not."
            }
            Self::Grep => {
                "Finds lines that match a regular expression (RE2 syntax, no look-around) in text files of the workspace. \
                 `path` is a file or folder to look in, `glob` says which files, `max` how many lines at most."
            }
            Self::WriteFile => {
                "Writes a file of the workspace as a whole, and makes the folders it is in. What was in the file is replaced. \
                 If `content` is null, the file is deleted."
            }
            Self::EditFile => {
                "Replaces text in a file of the workspace. `old_string` must be in it exactly once, to the character, unless \
                 `replace_all` is true."
            }
            Self::Shell => {
                "Runs a command by `sh -c` in the workspace, and gives its exit code and what it printed. `timeout` is in \
                 seconds."
            }
            Self::Execute => {
                "Runs a command by `sh -c` in the workspace, within a sandbox: it can read and write files of the workspace \
                 and use the programs of this system, but has no network and sees no other files. Gives its exit code and \
                 what it printed. `timeout` is in seconds."
            }
            Self::FetchUrl => {
                "Fetches a document from the web by a GET request and gives its text. Of HTML, only the text is given."
            }
            Self::WebSearch => {
                "Asks a search engine, and gives title, address and a snippet of each result, `max` at most."
            }
            Self::WriteTodos => {
                "Writes down the list of what is to be done, each with its status. The whole list is given every time, and \
                 comes back as the result."
            }
        }
    }

    /// The JSON Schema of its arguments.
    #[must_use]
    pub fn schema(self) -> Value {
        let path = |what: &str| json!({"type": "string", "minLength": 1, "description": what});
        let count = |what: &str| json!({"type": "integer", "minimum": 1, "description": what});
        let (properties, required) = match self {
            Self::ReadFile => (
                json!({
                    "path": path("the file, seen from the workspace, or `artifact://…` as a result names it"),
                    "offset": count("the number of the first line; 1 when left out"),
                    "limit": count("how many lines at most; 2000 when left out"),
                }),
                json!(["path"]),
            ),
            Self::Ls => (
                json!({"path": path("the folder, seen from the workspace")}),
                json!([]),
            ),
            Self::Glob => (
                json!({
                    "pattern": {"type": "string", "minLength": 1, "description": "for instance **/*.md"},
                    "path": path("the folder to look in, seen from the workspace"),
                }),
                json!(["pattern"]),
            ),
            Self::Grep => (
                json!({
                    "pattern": {"type": "string", "minLength": 1, "description": "a regular expression"},
                    "path": path("the file or folder to look in, seen from the workspace"),
                    "glob": {"type": "string", "minLength": 1, "description": "which files, for instance *.md"},
                    "max": count("how many lines at most; 200 when left out"),
                }),
                json!(["pattern"]),
            ),
            Self::WriteFile => (
                json!({
                    "path": path("the file, seen from the workspace"),
                    "content": {"type": ["string", "null"], "description": "all that is in the file; null deletes it"},
                }),
                json!(["path", "content"]),
            ),
            Self::EditFile => (
                json!({
                    "path": path("the file, seen from the workspace"),
                    "old_string": {"type": "string", "minLength": 1, "description": "what is replaced"},
                    "new_string": {"type": "string", "description": "by what"},
                    "replace_all": {"type": "boolean", "description": "wherever it is; false when left out"},
                }),
                json!(["path", "old_string", "new_string"]),
            ),
            Self::Shell | Self::Execute => (
                json!({
                    "command": {"type": "string", "minLength": 1, "description": "what `sh -c` is given"},
                    "timeout": count("after how many seconds it is killed"),
                }),
                json!(["command"]),
            ),
            Self::FetchUrl => (
                json!({"url": {"type": "string", "minLength": 1, "description": "an address with https:// or http://"}}),
                json!(["url"]),
            ),
            Self::WebSearch => (
                json!({
                    "query": {"type": "string", "minLength": 1, "description": "what to look for"},
                    "max": count("how many results at most; 10 when left out"),
                }),
                json!(["query"]),
            ),
            Self::WriteTodos => (
                json!({
                    "todos": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "content": {"type": "string", "minLength": 1},
                                "status": {"enum": ["pending", "in_progress", "completed"]},
                            },
                            "required": ["content", "status"],
                            "additionalProperties": false,
                        },
                    },
                }),
                json!(["todos"]),
            ),
        };
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    /// The gate that it has where nothing else is said: a person approves or rejects. `None` for what only looks at the
    /// workspace.
    #[must_use]
    pub fn default_gate(self) -> Option<Gate> {
        let description = match self {
            Self::ReadFile | Self::Ls | Self::Glob | Self::Grep | Self::WriteTodos => return None,
            Self::WriteFile => {
                "{% if args.content is none or args.content is undefined %}Delete file: {{ args.path }}\
                 {% else %}Write {{ args.content | lines }} lines to {{ args.path }}{% endif %}"
            }
            Self::EditFile => {
                "Edit file: {{ args.path }}{% if args.replace_all is true %} (all occurrences){% endif %}"
            }
            Self::Shell => "Execute shell command: {{ args.command }}",
            Self::Execute => "Execute command in the sandbox: {{ args.command }}",
            Self::FetchUrl => "Fetch URL: {{ args.url }}",
            Self::WebSearch => "Search the web: {{ args.query }}",
        };
        Some(approve_or_reject(description))
    }

    /// The gate that giving tasks has, where an agent has built-in tools and nothing else is said.
    #[must_use]
    pub fn default_task_gate() -> Gate {
        approve_or_reject("Give a task to {{ args.subagent_type }}: {{ args.description }}")
    }
}

fn approve_or_reject(description: &str) -> Gate {
    let kinds = vec![DecisionKind::Approve, DecisionKind::Reject];
    let allowed = Allowed::new(kinds).unwrap_or_else(|_| Allowed::standard());
    let mut gate = Gate::ask(allowed);
    gate.terms.description = Some(description.to_owned());
    gate
}

impl Policy {
    /// Adds the default gates of these tools, and of giving tasks where an agent with built-in tools can, as far as nothing
    /// is said of them. Where everything that is not named is denied, that stays so.
    pub fn guard_builtins(
        &mut self,
        builtins: impl IntoIterator<Item = (String, Builtin)>,
        gives_tasks: bool,
    ) {
        if self.default == Ruling::Deny || self.interrupt_on.contains_key(Self::ANY) {
            return;
        }
        let mut has_any = false;
        for (name, builtin) in builtins {
            has_any = true;
            if let Some(gate) = builtin.default_gate() {
                self.interrupt_on.entry(name).or_insert(gate);
            }
        }
        if has_any && gives_tasks {
            let task = Definition::TASK.to_owned();
            let gates = &mut self.interrupt_on;
            gates.entry(task).or_insert_with(Builtin::default_task_gate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Runner, ToolSpec};

    #[test]
    fn each_is_found_by_the_name_that_is_stored() {
        for builtin in Builtin::ALL {
            assert_eq!(Builtin::from_name(builtin.as_str()), Some(builtin));
            let stored = serde_json::to_value(builtin).unwrap();
            assert_eq!(stored, builtin.as_str());
        }
        assert_eq!(Builtin::from_name("task"), None);
    }

    #[test]
    fn what_writes_runs_or_reaches_the_network_is_asked_about_unless_something_else_is_said() {
        let plain = Definition::new("a", "m");
        let all = |definition: Definition| {
            Builtin::ALL.into_iter().fold(definition, |it, builtin| {
                it.with_builtin(builtin, Some("/w"))
            })
        };
        let asked = |definition: &Definition| {
            let names = definition
                .tools
                .iter()
                .map(|it| it.name.clone())
                .chain([Definition::TASK.to_owned()]);
            names
                .filter(|it| definition.policy.may_ask(it))
                .collect::<Vec<_>>()
        };
        let gated = [
            "write_file",
            "edit_file",
            "shell",
            "execute",
            "fetch_url",
            "web_search",
        ];
        assert_eq!(asked(&all(plain.clone())), gated);
        let helper = || Definition::new("h", "m");
        let with_tasks = [gated.as_slice(), &["task"]].concat();
        let before = plain.clone().with_subagent("helps", helper());
        assert_eq!(asked(&before), [""; 0]);
        assert_eq!(asked(&all(before)), with_tasks);
        let after = all(plain.clone()).with_subagent("helps", helper());
        assert_eq!(asked(&after), with_tasks);
        let star = plain.clone().gate(Policy::ANY, Gate::open());
        assert_eq!(asked(&all(star)), [""; 0]);
        let named = all(plain.clone().gate("shell", Gate::open()));
        assert!(!named.policy.may_ask("shell") && named.policy.may_ask("execute"));
        let denied = all(plain.otherwise(Ruling::Deny));
        assert_eq!(asked(&denied), [""; 0], "denied is denied, not asked");
        assert!(denied.policy.interrupt_on.is_empty());
    }

    #[test]
    fn a_workspace_is_kept_only_where_one_is_needed() {
        for builtin in Builtin::ALL {
            let spec = ToolSpec::builtin(builtin, Some("/w"));
            let Runner::Builtin { tool, workspace } = &spec.runner else {
                panic!("not built in")
            };
            assert_eq!(*tool, builtin);
            assert_eq!(workspace.is_some(), builtin.needs_workspace());
            assert_eq!(spec.hooks().lookup, builtin.has_lookup());
        }
    }
}
