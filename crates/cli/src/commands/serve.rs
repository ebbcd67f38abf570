//! `holdpoint serve`: agents behind HTTP.

use std::{collections::BTreeSet, path::PathBuf};

use holdpoint_definition::{LogFormat, Names, ServerFile};
use holdpoint_server::{Access, Opening, StartError};
use tracing_subscriber::EnvFilter;

use crate::{
    agent_file, args::Serve, backups, env, exit::Exit, failure::Failure, kit::kit,
    leaving::Leaving, safe_text, terminal, traces,
};

/// What is logged when nobody says anything. Each connection that an outage ends is a line of the pool; what the outage means
/// for requests and runs is said by us.
const LEVEL: &str = "info,deadpool.postgres=off,rmcp=off";
/// What it does not say at all, unless it is named: what MCP servers say, before secrets are taken out of it. What of that matters is
/// said by us.
const QUIET: &str = "rmcp=off";

/// Serves until the process is asked to go.
///
/// # Errors
///
/// The configuration, an agent, a store or the address cannot be used.
pub(crate) async fn serve(args: &Serve) -> Result<Exit, Failure> {
    let leaving = Leaving::listen();
    let file = configuration(args)?;
    let format = file.log;
    let has_origins = !file.origins.is_empty();
    log(format);
    let say = |text: &str| match format {
        LogFormat::Text => terminal::note(text),
        LogFormat::Json => tracing::info!("{}", text.trim_start()),
    };
    let access = if args.dev { Access::Dev } else { Access::Keys };
    let secrets: BTreeSet<String> = file.webhooks.iter().map(|it| it.secret.clone()).collect();
    let stores = file.names.stores.values().chain([&file.store]);
    // What is wrong with the agents is said when they are loaded.
    let agents = holdpoint_definition::agent_files(&file.agents).unwrap_or_default();
    let unready = unready(&agents, &file.names);
    let files = args.config.iter().chain(&agents);
    let kit = kit(stores.map(String::as_str), files.map(PathBuf::as_path));
    let mut opening = Opening::new(file, access).with_kit(kit);
    for variable in secrets {
        if let Some(secret) = env::named(&variable) {
            opening = opening.with_secret(&variable, secret);
        }
    }
    let opening = match env::lease() {
        Some(lease) => opening.with_lease(lease),
        None => opening,
    };
    let opening = match env::search_path() {
        Some(search) => opening.searching(search),
        None => opening,
    };
    let opening = match env::named("HOLDPOINT_TOKEN_KEYS") {
        Some(keys) => opening.with_token_keys(keys),
        None => opening,
    };
    let opening = match traces::watcher(|text| tracing::warn!("{text}")) {
        Some(watcher) => opening.watched_by(watcher),
        None => opening,
    };
    let opening = if args.adopt {
        opening.adopting()
    } else {
        opening
    };
    let server = tokio::select! {
        // Dropped in the middle, a start is like one that was killed: what it did is found and gone on with by the next.
        started = Box::pin(opening.start()) => started?,
        signal = leaving.asked() => {
            say(&format!("{signal}: not started"));
            return Ok(Exit::Done);
        }
    };
    for why in &unready {
        say(&format!("warning: {}", safe_text::line(why)));
    }
    let address = server.address();
    say(&format!("Holdpoint listens on http://{address}"));
    for notice in server.notices() {
        say(&format!("  {}", safe_text::line(&notice)));
    }
    match access {
        Access::Dev => {
            say(
                "  --dev: no key is needed, and everybody who reaches this address is the user `dev`",
            );
            if has_origins {
                say("  --dev: `cors.origins` does not count; pages of other origins are refused");
            }
        }
        Access::Keys => say(
            "  every request needs a key: `Authorization: Bearer …`; make one with `holdpoint keys create`",
        ),
    }
    let stop = async {
        let signal = leaving.asked().await;
        say(&format!("{signal}: letting what is in the air come down"));
    };
    Box::pin(server.run(stop)).await;
    Ok(Exit::Done)
}

fn configuration(args: &Serve) -> Result<ServerFile, Failure> {
    let mut file = match &args.config {
        Some(path) => holdpoint_definition::load_server(path).map_err(|problems| {
            let text = problems.to_string();
            Failure::unusable("bad_configuration", text.clone())
                .lines(text.lines().map(str::to_owned).collect())
        })?,
        None => ServerFile::default(),
    };
    if let Some(listen) = args.listen {
        file.listen = listen;
    }
    // What the configuration says is not undone by a variable that was meant for other commands.
    let store = args.store.clone();
    let store = store.or_else(|| env::store().filter(|_| args.config.is_none()));
    if let Some(store) = store {
        file.store = store;
    }
    file.resolve(env::named).map_err(|missing| {
        let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let message = format!(
            "the configuration names a store by {}, which the environment does not have",
            names.join(" and ")
        );
        Failure::usage(message).help("set it to the url of the store, for instance `sqlite:PATH`")
    })?;
    if let Some(log) = args.log {
        file.log = log.into();
    }
    file.agents.extend(args.agents.iter().cloned());
    if file.agents.is_empty() {
        return Err(Failure::usage("no agent is named").help(
            "name their files, or folders of them: `holdpoint serve agents/`; or write a configuration, `--config server.yaml`",
        ));
    }
    let missing = file.agents.iter().find(|path| !path.exists());
    if let Some(missing) = missing {
        let shown = PathBuf::from(missing);
        return Err(Failure::usage(format!("there is no `{}`", shown.display())));
    }
    Ok(file)
}

/// Logs go to stderr: what a program reads is answers over HTTP.
fn log(format: LogFormat) {
    let (filter, wrong) = match env::log() {
        None => (EnvFilter::new(LEVEL), None),
        Some(text) => match EnvFilter::try_new(format!("{QUIET},{text}")) {
            Ok(filter) => (filter, None),
            Err(error) => (EnvFilter::new(LEVEL), Some(error)),
        },
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Whoever read the log may be gone. That is told nobody, and stops nothing.
        .log_internal_errors(false)
        .with_target(false);
    // A second subscriber in one process is none: the first one stays.
    let _ = match format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    if let Some(error) = wrong {
        tracing::warn!(%error, "`HOLDPOINT_LOG` is not understood; logging at `{LEVEL}`");
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        if let StartError::Backup { store, made_at } = &error {
            let adopt = "the same command with `--adopt`";
            return backups::refuse(store, *made_at, adopt);
        }
        let text = error.to_string();
        let code = match &error {
            StartError::Agents(_) | StartError::Issuer(_) => "bad_definition",
            StartError::Agent(error) => error.code(),
            StartError::Store(_) => "store_unusable",
            StartError::Keys(_) => "store_unavailable",
            StartError::TokenKeys(_) => "bad_token_keys",
            StartError::Webhook(_) => "bad_configuration",
            StartError::Backup { .. } => "not_adopted",
            StartError::Moving { .. } => "cannot_drive",
            StartError::Unsafe(_) => "unsafe",
            StartError::Address { .. } => "address_unusable",
            _ => "cannot_start",
        };
        let failure = Self::unusable(code, text.clone());
        if let StartError::Agents(_) = error {
            return failure.lines(text.lines().map(str::to_owned).collect());
        }
        failure
    }
}

/// Why models of these agents could not be asked right now. Their runs would stop and ask a person, so whoever starts the server should
/// know at once.
fn unready(agents: &[PathBuf], names: &Names) -> BTreeSet<String> {
    let loaded = agents
        .iter()
        .filter_map(|file| agent_file::load(file, names).ok());
    loaded
        .flat_map(|loaded| loaded.missing)
        .map(|problem| problem.message)
        .collect()
}
