//! Reads agents from YAML, and explains every problem of a file at once.
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
//!   model: {primary: "scripted:scenario.yaml"}
//!   system_prompt: You look after orders.       # optional
//!   tools:                                      # optional
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
//!   strict: true                                # false when unsaid; subagents may only tighten
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
//! # std::fs::create_dir_all(&dir).unwrap();
//! # std::fs::write(dir.join("scenario.yaml"), "").unwrap();
//! let loaded = holdpoint_definition::load_str(text, "agent.yaml", &dir).unwrap();
//! assert_eq!(loaded.definition.name, "clerk");
//!
//! let problems = holdpoint_definition::load_str(&text.replacen("approve", "aprove", 1), "agent.yaml", &dir).unwrap_err();
//! assert_eq!(
//!     problems.to_string(),
//!     "agent.yaml:26:40: spec.interrupt_on.issue_refund: `aprove` is not a decision\n  \
//!      help: did you mean `approve`? use approve, edit, reject or respond"
//! );
//! ```
//!
//! # Paths
//!
//! A definition is stored and may be resumed from any folder, so paths are resolved against the folder of the YAML file
//! and kept absolute:
//!
//! - the file in `model.primary: scripted:FILE`;
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
mod breakpoint;
mod command;
mod family;
mod gate;
mod http;
mod load;
mod model;
mod name;
mod parts;
mod policy;
mod rule;
mod runner;
mod schema;
mod strict;
mod subagent;
mod tool;
mod tools;
mod words;

pub use holdpoint_yaml::{Problem, Problems};
pub use load::{Loaded, load, load_for, load_str, scenario_of};
