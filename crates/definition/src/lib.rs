//! Reads agents from YAML, and how a server of them is configured, and explains every problem of a file at once.
//!
//! [`load`] gives a [`Loaded`]: a complete [`Definition`](holdpoint_core::Definition) with every default filled in, and
//! warnings. Or it gives [`Problems`], each with file, line, column, path and a remedy. A gate is never guessed: whatever
//! is misspelt, empty or unknown is a problem, because a policy that does not mean what its author meant is an open gate.
//!
//! # What a file looks like
//!
//! ```
//! let text = r#"
//! apiVersion: holdpoint/v1
//! kind: Agent
//! metadata: {name: clerk, version: "3"}         # version: "1" when unsaid
//! spec:
//!   model:
//!     primary: scripted:scenario.yaml           # or PROVIDER:MODEL, such as openai:gpt-4o
//!     fallback: [ollama:llama3:8b]              # optional; one, or a list
//!     max_output_tokens: 4096                   # optional, as are `temperature` and `effort`
//!   system_prompt: You look after orders.       # optional
//!   workspace: ./work                           # optional; where built-in tools for files and commands work
//!   tools:                                      # optional
//!     - {builtin: read_file}                    # timeout, settle and permissions may be said
//!     - {builtin: write_file}                   # asked about unless something else is said of it
//!     - name: issue_refund
//!       description: Pays money back.           # empty when unsaid
//!       version: "2"                            # "1" when unsaid
//!       effect: write                           # read | idempotent | write (when unsaid)
//!       input_schema: {type: object}            # this when unsaid
//!       command: [./bin/refund, --currency, EUR]
//!       timeout: 60s                            # this when unsaid; ms, s, m or h
//!       settle: 5s                              # this when unsaid
//!       lookup: [./bin/refund, --lookup]        # optional
//!       compensate: [./bin/refund, --undo]      # optional
//!       stepped: false                          # this when unsaid
//!       permissions: [refunds]                  # optional
//!     - name: find_order
//!       effect: read
//!       input_schema: {type: object, properties: {id: {type: string}}, required: [id]}
//!       http: {method: GET, url: "https://shop.example.com/orders/{id}", headers: {Authorization: {secret: SHOP_TOKEN}}}
//!   interrupt_on:                               # tool, or "*" for every tool that is not named
//!     issue_refund: {allowed_decisions: [approve, reject], description: Money leaves the house.}
//!   default: allow                              # allow (when unsaid) | interrupt | deny; not beside "*"
//!   true_includes_respond: false                # this when unsaid
//!   interrupt_mode: batched                     # batched (when unsaid) | per_call
//!   breakpoints: {before: [issue_refund]}       # optional; before and after, of `model` and tools
//!   limits: {turns: 100, calls: 500, time: 1h}  # these when unsaid
//!   guardrails:                                 # optional: who looks at calls and at what is said
//!     money: {keywords: [wire, cash], on: [calls, output], tools: [issue_refund], timeout: 10s}
//!   strict: true                                # false when unsaid; subagents may only tighten
//!   confirm:                                    # optional: ask people where the model asks in words; or true, false
//!     keywords: [may i]                         # beside the usual ones
//!     presets: [zh]                             # and these
//!     keywords_only: false                      # this when unsaid; true: without the usual ones
//!     fields:                                   # one that says yes or no when unsaid
//!       - {name: confirm, type: confirm, label: Do it?}
//!       - {name: reason, type: text, required: false}
//!       - {name: when, type: select, options: [today, tomorrow]}
//!     timeout: 5m                               # optional
//!   subagents:                                  # optional; whatever they do not say is the agent's above
//!     - name: auditor
//!       description: Looks at refunds.
//!       system_prompt: You look at refunds.
//!       tools: [issue_refund]                   # by name, or written out
//!       interrupt_on:
//!         issue_refund:
//!           allowed_decisions: [approve, reject]
//!           description: "{{ args.amount }} leaves the house."  # a template
//!           rules:                              # or `when: …`: ask only then
//!             - {when: args.amount > 1000, then: deny}
//!           always_ask: true
//!           timeout: 15m
//!           on_timeout: reject                  # expire (when unsaid) | reject | keep
//! "#;
//! # let dir = std::env::temp_dir().join("holdpoint-definition-doc");
//! # std::fs::create_dir_all(dir.join("work")).unwrap();
//! # std::fs::write(dir.join("scenario.yaml"), "").unwrap();
//! let loaded = holdpoint_definition::load_str(text, "agent.yaml", &dir).unwrap();
//! assert_eq!(loaded.definition.name, "clerk");
//!
//! let problems = holdpoint_definition::load_str(&text.replacen("approve", "aprove", 1), "agent.yaml", &dir).unwrap_err();
//! assert_eq!(
//!     problems.to_string(),
//!     "agent.yaml:32:40: spec.interrupt_on.issue_refund: `aprove` is not a decision\n  \
//!      help: did you mean `approve`? use approve, edit, reject or respond"
//! );
//! ```
//!
//! A file with `apiVersion: superagent/v1` is an agent without tools that asks in words:
//!
//! ```
//! # use holdpoint_definition::{Names, Setting, load_in};
//! let text = r#"
//! apiVersion: superagent/v1
//! kind: Agent
//! metadata: {name: approval-agent, version: "1.0.0"}
//! spec:
//!   type: chat_model_agent                      # this when unsaid
//!   model: {primary: gpt-4o}                    # a name, or `scripted:FILE`
//!   system_prompt: Say "Please confirm" first.  # optional
//!   interrupt:
//!     enabled: true                             # false when unsaid
//!     checkpoint_backend: redis                 # a name of a store; the server's own when unsaid
//!     timeout_seconds: 300                      # this when unsaid
//!     presets: [zh]                             # and `keywords`, `keywords_only`, `fields`, as in `confirm`
//!   memory: {backend: builtin}                  # this when unsaid
//! "#;
//! # let dir = std::env::temp_dir().join("holdpoint-definition-doc-superagent");
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let file = dir.join("agent.yaml");
//! # std::fs::write(&file, text).unwrap();
//! let mut names = Names::default();
//! names.models.insert("gpt-4o".to_owned(), "scripted:/scenario.yaml".to_owned());
//! names.stores.insert("redis".to_owned(), "sqlite:/chat.db".to_owned());
//! let loaded = load_in(&file, &Setting { names: &names, search: None }).unwrap();
//! assert_eq!(loaded.definition.model, "scripted:/scenario.yaml");
//! assert_eq!(loaded.store.as_deref(), Some("sqlite:/chat.db"));
//! ```
//!
//! # A server
//!
//! [`load_server`] reads how a server is configured, and [`agent_files`] finds the agents that it is to have. Everything
//! in the file may be left out.
//!
//! ```
//! let text = r#"
//! apiVersion: holdpoint/v1
//! kind: Server
//! spec:
//!   listen: 127.0.0.1:8888                      # this when unsaid
//!   store: sqlite:holdpoint.db                  # this when unsaid; or `memory:`
//!   agents: [agents/]                           # files, and folders with such files
//!   models: {gpt-4o: "scripted:scenario.yaml"}  # what names of models stand for
//!   stores: {redis: "sqlite:chat.db"}           # what names of stores stand for
//!   providers:                                  # who provides models, beside those that everybody knows
//!     own: {api: openai-chat, base_url: "https://llm.example.com/v1", key: {env: OWN_KEY}}
//!   auth: {jwt: [{issuer: "https://id.example.com", audience: holdpoint, tenant: acme}]}
//!   cors: {origins: ["https://app.example.com"]}
//!   limits: {body: 1MiB, batch: 100, streams: 1000, streams_per_key: 100, pending_per_user: 10000, pending_per_run: 64}
//!   log: text                                   # text (when unsaid) | json
//! "#;
//! # let dir = std::env::temp_dir().join("holdpoint-definition-doc-server");
//! # std::fs::create_dir_all(dir.join("agents")).unwrap();
//! # std::fs::write(dir.join("scenario.yaml"), "").unwrap();
//! # let file = dir.join("server.yaml");
//! # std::fs::write(&file, text).unwrap();
//! let server = holdpoint_definition::load_server(&file).unwrap();
//! assert_eq!(server.limits, holdpoint_definition::ServerLimits::default());
//! assert_eq!(server.agents, [dir.join("agents")]);
//! ```
//!
//! # Paths
//!
//! A definition is stored and may be resumed from any folder, so paths are resolved against the folder of the YAML file
//! and kept absolute:
//!
//! - the file in `model.primary: scripted:FILE`, the folder in `workspace`, and what a server's file names;
//! - the program, the first element of `command`, `lookup` and `compensate`, if it contains a `/`. A bare name is looked
//!   up on `PATH` when it runs;
//! - every further element that begins with `./` or `../`, so that `[python3, ./refund.py]` works. Other elements are
//!   passed on as they are.
//!
//! Programs run in the folder of the YAML file.
//!
//! # Which YAML
//!
//! Keys may be written in snake_case or in camelCase.
//!
//! YAML 1.2, so `yes` and `no` are text. One document a file. Keys are unique. Anchors and aliases work, within a budget;
//! tags and merge keys are refused.

mod agent;
mod bounds;
mod breakpoint;
mod builtin;
mod command;
mod confirm;
mod family;
mod form;
mod frame;
mod gate;
mod guardrail;
mod http;
mod load;
mod mcp;
mod model;
mod name;
mod names;
mod parts;
mod policy;
mod rule;
mod runner;
mod schema;
mod server;
mod store;
mod strict;
mod subagent;
mod superagent;
mod tool;
mod tools;
mod words;

pub use holdpoint_yaml::{Problem, Problems};
pub use load::{Loaded, load, load_for, load_in, load_str, scenario_of};
pub use names::{Names, Setting};
pub use server::{
    Issuer, IssuerKeys, IssuerTenant, LogFormat, MetricsAccess, ServerFile, ServerLimits, Webhook,
    agent_files, load_server,
};
pub use store::store_variable;
