//! What may be written on the command line.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand, error::ErrorKind};
use holdpoint_core::{GrantId, InterruptId, Principal};

use crate::{exit::Exit, failure::Failure};

/// Agents that stop before risky actions, survive anything, and go on when a person has decided.
#[derive(Debug, Parser)]
#[command(
    name = "holdpoint",
    version,
    after_help = "\
The walk:
  holdpoint run agent.yaml --input \"Please refund order 1001\" --thread monday
                                     runs until a person must decide, and says what about
  holdpoint show monday              what it wants, and what may be said
  holdpoint resume monday --approve  decides, and goes on from exactly where it was

After a crash:
  holdpoint recover                  goes on with everything that dead processes left

Exit codes:
  0  done
  1  failed or cancelled
  2  usage, definition or store error; nothing was started
  3  waiting, sleeping or paused: it is not over
  4  refused; nothing was changed"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent until it is done or a person must decide
    Run(Run),
    /// Decide what a run waits for, and go on with it
    Resume(Resume),
    /// List all runs, the newest last
    #[command(after_help = "\
With `--json` it prints one object a line.

Examples:
  holdpoint runs
  holdpoint runs --json | jq -r 'select(.status == \"waiting\") | .thread_id'")]
    Runs(Runs),
    /// Show how a thread stands, what it waits for, and its checkpoint
    #[command(after_help = "\
THREAD is a thread's id (`thr_…`), AGENT/SESSION, or a session that only one agent has.

The exit code says how the run stands: 0 finished, 1 failed or cancelled, 3 not over.

Examples:
  holdpoint show monday
  holdpoint show refund/monday --json | jq '.__interrupt__'")]
    Show(Thread),
    /// Show everything that ever happened in a thread
    #[command(after_help = "\
Every event, with who did it and when. The chain of hashes is checked: a journal that was changed after it was \
written is an error. With `--json` it prints one object a line.

Examples:
  holdpoint trace monday
  holdpoint trace monday --json | jq -r 'select(.type == \"answered\") | .by'")]
    Trace(Thread),
    /// List the long results of a thread, which are kept apart, or print one
    #[command(after_help = "\
THREAD is a thread's id (`thr_…`), AGENT/SESSION, or a session that only one agent has.

A result of a tool that is longer than 64 KiB is kept apart; the conversation has both ends of it, and says where the rest \
is: `artifact://NAME/vN`. It is printed byte for byte, except to a terminal.

Examples:
  holdpoint artifacts monday
  holdpoint artifacts monday artifact://search_logs-80ffeeddccbbaa99/v1 | less
  holdpoint artifacts monday artifact://search_logs-80ffeeddccbbaa99/v1 --output found.txt")]
    Artifacts(Artifacts),
    /// Go on with everything that dead processes left, and do what is due
    #[command(after_help = "\
Never touches what a live process drives. A call that was cut off is not repeated blindly: it is awaited until it \
can no longer act, then looked up, retried under the same key, or put before a person, as its tool allows. \
What is due is done: questions that nobody answered in time are closed, runs whose sleep is over go on.

Ends with 3 if any of the threads waits, else with 1 if any failed or was cancelled. With `--json` it prints one \
object a line.

A backup is the past: what it holds may have gone on elsewhere since, and been done. So nothing goes on in it until \
`--adopt` makes it the store to go on with. Then nothing goes on by itself either: every open question is closed, every \
write that was begun and not ended becomes a question, and every run that is not over asks before it goes on. What was \
approved before is asked anew, and grants end. Adopt a backup only once the original is gone for good.

Examples:
  holdpoint recover
  holdpoint recover --store sqlite:/var/lib/agents.db --json
  holdpoint recover --adopt --store sqlite:/backups/agents.db")]
    Recover(Recover),
    /// Stop a run
    #[command(after_help = "\
THREAD is a thread's id (`thr_…`), AGENT/SESSION, or a session that only one agent has.

From here on nothing starts. Calls in flight are awaited, and undone where their tool can undo them. If a live \
process drives the run it does that, and this command does not wait; otherwise this command does. It ends with 0 \
once the request is recorded.

Examples:
  holdpoint cancel monday")]
    Cancel(Thread),
    /// Let a run stand still until it is continued
    #[command(after_help = "\
THREAD is a thread's id (`thr_…`), AGENT/SESSION, or a session that only one agent has.

What is in flight goes on to its end, and nothing starts after that. Questions that are pending can still be \
answered; what they allow starts when the run is continued. It ends with 0 once the request is recorded.

Examples:
  holdpoint pause monday
  holdpoint continue monday")]
    Pause(Thread),
    /// Go on with a run that was paused
    #[command(after_help = "\
THREAD is a thread's id (`thr_…`), AGENT/SESSION, or a session that only one agent has.

Examples:
  holdpoint continue monday")]
    Continue(Thread),
    /// List what people allowed for several calls, or take it back
    #[command(after_help = "\
A grant is given with an approval:
  holdpoint resume monday --decisions \
'[{\"type\":\"approve\",\"grant\":{\"scope\":\"thread\",\"match\":\"tool\",\"expires_in\":\"15m\",\"uses\":10}}]'

  scope  thread (this thread), agent (every thread of the agent)
  match  tool (every call of the tool), args (the tool with exactly these arguments),
         all (everything that may be approved; for one thread only)

Examples:
  holdpoint grants
  holdpoint grants --revoke grt_01a1e1ba1f137001a7088dfee295d7a7")]
    Grants(Grants),
    /// Check definitions without running them
    Check(Check),
    /// Serve agents over HTTP
    Serve(Serve),
    /// Make, list and revoke the keys by which callers of a server are known
    Keys(Keys),
    /// See what could not be told to webhooks, and tell it again
    Webhooks(Webhooks),
    /// Copy a store to a file, while it is in use
    #[command(after_help = "\
The copy is the store as it was at one moment. It can be read like any store (`--store sqlite:FILE`); nothing goes on \
in it, because what it waits for may have been decided since. To go on with it when the original is lost, adopt it: \
`holdpoint recover --adopt`, or `holdpoint serve --adopt`.

Examples:
  holdpoint backup monday.db
  holdpoint backup /backups/agents.db --store sqlite:/var/lib/agents.db
  holdpoint recover --adopt --store sqlite:/backups/agents.db")]
    Backup(Backup),
    /// Move a store to another one, or check everything in it
    Store(Whole),
}

/// Where threads live, and how to print.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Where threads are kept: `sqlite:PATH`, `postgres://…`, `env:NAME` or `memory:`
    #[arg(
        long,
        value_name = "URL",
        env = "HOLDPOINT_STORE",
        hide_env_values = true,
        default_value = "sqlite:holdpoint.db"
    )]
    pub(crate) store: String,
    /// A server's configuration, whose `models` and `providers` count
    #[arg(
        long,
        value_name = "FILE",
        env = "HOLDPOINT_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Common {
    /// Of a command that is not about anybody's threads.
    pub(crate) fn of_nobody(&self) -> Threads {
        Threads {
            common: self.clone(),
            tenant: Principal::LOCAL_TENANT.to_owned(),
        }
    }
}

/// Whose threads, where they live, and how to print.
#[derive(Debug, Args)]
pub(crate) struct Threads {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Whose threads: the tenant of the keys that a server's callers have
    #[arg(long, value_name = "NAME", default_value = Principal::LOCAL_TENANT)]
    pub(crate) tenant: String,
}

/// `holdpoint run`.
#[derive(Debug, Args)]
#[command(after_help = "\
On a terminal it asks for each decision. Elsewhere it prints what is pending and exits with 3.

A thread that is done, failed or was cancelled takes new input; one that waits does not. \
Without `--input`, a thread that waits is asked about again, and one whose process died goes on.

Examples:
  holdpoint run agent.yaml --input \"Please refund order 1001\"
  holdpoint run agent.yaml --input \"Please refund order 1001\" --thread monday --json
  holdpoint run agent.yaml --thread monday
  holdpoint run agent.yaml --input \"Hello\" --model ollama:llama3.1")]
pub(crate) struct Run {
    /// The agent's definition
    pub(crate) file: PathBuf,
    /// What the agent is asked to do
    #[arg(long, value_name = "TEXT")]
    pub(crate) input: Option<String>,
    /// Have this model answer in place of the agent's own, for instance `openai:gpt-4o`
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Name of the session; a new one is made up if it is left out
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// `holdpoint resume`.
#[derive(Debug, Args)]
#[command(
    override_usage = "holdpoint resume [OPTIONS] <THREAD> \
                      [--approve | --reject [<MESSAGE>] | --decisions <JSON>]",
    after_help = "\
THREAD is a thread's id (`thr_…`), AGENT/SESSION, or a session that only one agent has.

An answer decides every action of its interrupt, or is refused and changes nothing. Decisions go by position, or \
each names its `action_id`. Without a decision it asks on a terminal, and elsewhere prints what is pending. The \
definition is in the store: no YAML file is needed.

Examples:
  holdpoint resume monday --approve
  holdpoint resume refund/monday --reject \"The order was never paid\"
  holdpoint resume monday --decisions '[{\"type\":\"approve\"},{\"type\":\"reject\"}]'
  holdpoint resume monday --decisions '{\"int_…\":{\"type\":\"approve\"},\"int_…\":[{\"type\":\"reject\"}]}'

Decisions, for each action:
  {\"type\":\"approve\"}
  {\"type\":\"edit\",\"edited_action\":{\"name\":\"issue_refund\",\"args\":{…}}}
  {\"type\":\"reject\",\"message\":\"The order was never paid\"}
  {\"type\":\"respond\",\"message\":\"It was paid yesterday\"}
  {\"type\":\"approve\",\"grant\":{\"scope\":\"thread\",\"match\":\"tool\"}}  and do not ask again (`holdpoint grants`)
Where a tool itself asks:
  {\"type\":\"answer\",\"value\":…}
Where nobody knows whether a write took effect:
  {\"type\":\"committed\",\"result\":{\"receipt\":7}}    it did, and returned this
  {\"type\":\"not_committed\"}                       it did not; try again with the same key
  {\"type\":\"compensate\"}                          undo it"
)]
pub(crate) struct Resume {
    /// The thread
    pub(crate) thread: String,
    /// Which interrupt is answered; needed when several are pending
    #[arg(long, value_name = "ID")]
    pub(crate) interrupt: Option<InterruptId>,
    #[command(flatten)]
    pub(crate) decision: Decision,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// What is decided: at most one of these.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Decision {
    /// Approve every action of the interrupt
    #[arg(long)]
    pub(crate) approve: bool,
    /// Reject every action of the interrupt; the model reads the message
    #[arg(long, value_name = "MESSAGE", num_args = 0..=1)]
    pub(crate) reject: Option<Option<String>>,
    /// One decision for each action of the interrupt
    #[arg(long, value_name = "JSON")]
    pub(crate) decisions: Option<String>,
}

/// `holdpoint runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// A command on a whole store.
#[derive(Debug, Args)]
pub(crate) struct Store {
    #[command(flatten)]
    pub(crate) common: Common,
}

/// `holdpoint recover`.
#[derive(Debug, Args)]
pub(crate) struct Recover {
    /// If the store is a backup, make it the store to go on with
    #[arg(long)]
    pub(crate) adopt: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// A command on one thread.
#[derive(Debug, Args)]
pub(crate) struct Thread {
    /// The thread
    pub(crate) thread: String,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// `holdpoint artifacts`.
#[derive(Debug, Args)]
pub(crate) struct Artifacts {
    /// The thread
    pub(crate) thread: String,
    /// Which one to print; lists all if it is left out
    pub(crate) artifact: Option<String>,
    /// Write it to this file, which must not exist
    #[arg(long, value_name = "FILE", requires = "artifact")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// `holdpoint grants`.
#[derive(Debug, Args)]
pub(crate) struct Grants {
    /// Take this grant back
    #[arg(long, value_name = "ID")]
    pub(crate) revoke: Option<GrantId>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// `holdpoint check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  holdpoint check agent.yaml
  holdpoint check --strict agents/*.yaml")]
pub(crate) struct Check {
    /// The definitions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Refuse warnings too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Start or reach the MCP servers too, and print what tools they offer
    #[arg(long)]
    pub(crate) connect: bool,
    /// A server's configuration, whose `models` and `providers` count
    #[arg(
        long,
        value_name = "FILE",
        env = "HOLDPOINT_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON object a line, for each file
    #[arg(long)]
    pub(crate) json: bool,
}

/// `holdpoint serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Runs go on after a restart, whoever started them: what a dead server left is taken up when the next one starts.

SIGTERM and Ctrl+C end it gracefully: streams end, what is in the air comes down and is recorded.

A store that is a backup is not served, because what it holds may have gone on elsewhere since. With `--adopt` it becomes \
the store to go on with, and every run in it that is not over asks a person first: see `holdpoint recover --help`.

Examples:
  holdpoint serve --dev examples/refund/agent.yaml     no keys, on this machine only
  holdpoint serve --config server.yaml --dev

  holdpoint keys create --tenant acme --name ann       with keys, from anywhere
  holdpoint serve --config server.yaml --listen 0.0.0.0:8888")]
pub(crate) struct Serve {
    /// Agents' files, or folders of them; beside those of the configuration
    #[arg(value_name = "AGENT")]
    pub(crate) agents: Vec<PathBuf>,
    /// The configuration
    #[arg(
        long,
        value_name = "FILE",
        env = "HOLDPOINT_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
    /// Need no key, and act as the user `dev`; on this machine's own address only
    #[arg(long)]
    pub(crate) dev: bool,
    /// Where to listen; 127.0.0.1:8888 if the configuration says nothing else
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Where threads are kept: `sqlite:PATH`, `postgres://…`, `env:NAME` or `memory:`; HOLDPOINT_STORE counts where there is no configuration
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// If a store is a backup, make it the store to go on with
    #[arg(long)]
    pub(crate) adopt: bool,
    /// How to log
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log: Option<Log>,
}

/// How a server logs.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Log {
    /// A line for people
    Text,
    /// A line of JSON
    Json,
}

impl From<Log> for holdpoint_definition::LogFormat {
    fn from(log: Log) -> Self {
        match log {
            Log::Text => Self::Text,
            Log::Json => Self::Json,
        }
    }
}

/// `holdpoint keys`.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// What is done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key; it is printed this once
    Create(CreateKey),
    /// List all keys
    List(Store),
    /// Revoke a key: from now on it stands for nobody
    Revoke(RevokeKey),
}

/// `holdpoint keys create`.
#[derive(Debug, Args)]
#[command(after_help = "\
A key stands for a principal: everything done with it is recorded in this name. Tenants never see each other. A key of \
kind `agent` may begin runs and read, and never decides.

Examples:
  holdpoint keys create --tenant acme --name ann
  holdpoint keys create --tenant acme --name shop --kind service --expires-in 720h
  KEY=$(holdpoint keys create --tenant acme --name ann)")]
pub(crate) struct CreateKey {
    /// The tenant it belongs to
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: String,
    /// Who it stands for
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// What they are
    #[arg(long, value_name = "KIND", default_value = "user")]
    pub(crate) kind: KeyKind,
    /// A role they have; may be given several times
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Vec<String>,
    /// A permission they have; may be given several times
    #[arg(long, value_name = "PERMISSION")]
    pub(crate) permission: Vec<String>,
    /// How long it lasts, such as `720h`; for ever if unsaid
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_in: Option<String>,
    /// What it is for, for people
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Who a key may stand for.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum KeyKind {
    /// A person
    User,
    /// A program that acts for people
    Service,
    /// A program that never decides
    Agent,
}

/// `holdpoint keys revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeKey {
    /// The key's id, as it is listed
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// `holdpoint webhooks`.
#[derive(Debug, Args)]
#[command(after_help = "\
Webhooks stand in the configuration of a server (`webhooks:`). What could not be delivered for days is given up, and kept \
as a dead letter until it is sent again or discarded.

Examples:
  holdpoint webhooks list
  holdpoint webhooks dead pager
  holdpoint webhooks resend pager
  holdpoint webhooks resend pager int_01a1e1ba1f137001a7088dfee295d7a7")]
pub(crate) struct Webhooks {
    #[command(subcommand)]
    pub(crate) command: WebhooksCommand,
}

/// What is done with webhooks.
#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// List webhooks, and how much is still to be told to each
    List(Threads),
    /// List what could not be delivered
    Dead(DeadLetters),
    /// Deliver it once more
    Resend(DeadLetters),
    /// Forget it
    Discard(DeadLetters),
    /// Forget a webhook that no server has any more, with everything that it was still to be told
    Remove(RemoveWebhook),
}

/// What could not be delivered.
#[derive(Debug, Args)]
pub(crate) struct DeadLetters {
    /// The webhook
    pub(crate) name: String,
    /// Only what is about this interrupt
    pub(crate) interrupt: Option<InterruptId>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// `holdpoint webhooks remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveWebhook {
    /// The webhook
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// `holdpoint store`.
#[derive(Debug, Args)]
pub(crate) struct Whole {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

/// What is done with a whole store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Move everything to another store, which goes on with it
    Copy(CopyStore),
    /// Check everything in a store
    #[command(after_help = "\
Every journal is read and its chain of hashes checked; every thread must stand as its journal says, and be found in the \
indexes as it should. A server may go on meanwhile. It ends with 1 if anything is wrong. With `--json` it prints one \
object a line, the last one a summary.

Examples:
  holdpoint store check
  holdpoint store check --store postgres://holdpoint@db/holdpoint")]
    Check(Store),
}

/// `holdpoint store copy`.
#[derive(Debug, Args)]
#[command(after_help = "\
A store is `sqlite:PATH`, `postgres://USER@HOST/DATABASE`, or `env:NAME` for the url in a variable of the environment. TO is made \
if it is not there, and must be empty.

From the beginning on, FROM takes nothing new from anybody; it can still be read. Stop its servers first. When everything \
has arrived, and was checked by the chains of hashes, TO goes on from exactly there: what waits for a person waits on, \
with the same ids, approvals, grants and keys. FROM never goes on again.

It may be cut off at any point. The same command goes on with it; `--abandon` gives it up, and FROM goes on as if nothing \
had been.

For a copy that is only to be kept or looked at, use `holdpoint backup` (or pg_dump).

Examples:
  holdpoint store copy sqlite:holdpoint.db postgres://holdpoint@db/holdpoint
  holdpoint store copy sqlite:holdpoint.db postgres://holdpoint@db/holdpoint --abandon")]
pub(crate) struct CopyStore {
    /// The store that is left
    pub(crate) from: String,
    /// The store that goes on
    pub(crate) to: String,
    /// Give up a copy that did not come to its end
    #[arg(long)]
    pub(crate) abandon: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `holdpoint backup`.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// Where the copy goes; it must not exist
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Reads the command line. The exit code is that of a usage error, or of the help that was asked for.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        let asked_for = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion].contains(&error.kind());
        if !asked_for && wants_json() {
            let text = error.to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            let words: Vec<&str> = first.split_whitespace().collect();
            Failure::usage(words.join(" ").trim_start_matches("error: "))
                .details(serde_json::json!({"usage": text.trim_end()}))
                .print_json();
        } else {
            // Nobody may be reading, and there is nobody to tell.
            let _ = error.print();
        }
        if asked_for {
            ExitCode::SUCCESS
        } else {
            Exit::Usage.into()
        }
    })
}

/// Whether `--json` was given, on a command line that cannot be read otherwise.
fn wants_json() -> bool {
    std::env::args_os()
        .take_while(|argument| argument != "--")
        .any(|argument| argument == "--json")
}
