//! `holdpoint run`: starts a run, or goes on with one that is not over.

use holdpoint_core::{Definition, ThreadId, hex};
use holdpoint_engine::Error;
use holdpoint_models::Providers;
use holdpoint_store::{ThreadKey, Unavailable};
use serde_json::json;

use crate::{
    agent_file::{self, Refused},
    args::Run,
    commands::{
        check,
        stops::{self, Asking},
    },
    exit::Exit,
    failure::Failure,
    safe_text,
    session::{IfMissing, Output, Session, Watched},
    terminal,
};

/// Runs an agent until it is done or must wait.
///
/// # Errors
///
/// The definition or the store cannot be used; the thread takes no input now.
pub(crate) async fn run(args: &Run) -> Result<Exit, Failure> {
    if args.input.is_none() && args.thread.is_none() {
        return Err(Failure::usage("there is nothing to do without `--input`")
            .help("say what the agent should do, or name a thread to go on with by `--thread`"));
    }
    if args.thread.as_ref().is_some_and(String::is_empty) {
        return Err(Failure::usage("`--thread` needs a name").help("leave it out to have one made"));
    }
    let definition = load(args)?;
    let session = Session::open_to_drive(&args.threads, IfMissing::Create).await?;
    let name = match &args.thread {
        Some(name) => name.clone(),
        None => fresh_name()?,
    };
    let thread = ThreadId::of_session(session.tenant(), &definition.name, &name);
    let key = ThreadKey {
        tenant: session.tenant().into(),
        thread,
    };
    let watched = match &args.input {
        Some(input) => start(&session, &key, definition, &name, input).await?,
        None => go_on(&session, &key, definition, &name).await?,
    };
    match watched {
        Watched::ToTheStop => stops::to_the_last(&session, &key, Asking::Where(None)).await,
        Watched::Left => stops::to_the_last(&session, &key, Asking::Never).await,
    }
}

async fn start(
    session: &Session,
    key: &ThreadKey,
    definition: Definition,
    name: &str,
    input: &str,
) -> Result<Watched, Failure> {
    // Before anything is stored: a refusal changes nothing, not even which definition is the current one.
    session
        .engine
        .check_start(&session.by, key, &definition.name, name)
        .await?;
    session
        .screen
        .turn_to(key.thread, session.engine.state(key).await?.as_deref());
    if session.output == Output::Plain {
        let agent = safe_text::line(&definition.name);
        let name = safe_text::line(name);
        terminal::note(&format!("thread {agent}/{name} ({})", key.thread));
    }
    let definition = complete(session, definition).await?;
    let agent = session.engine.publish(session.tenant(), definition).await?;
    let submitted = session.engine.start(&session.by, &agent, name, input);
    let submitted = Box::pin(submitted).await?;
    session.see_through(key, submitted).await
}

/// Without input: whatever is open goes on, and a question that is pending is shown again.
async fn go_on(
    session: &Session,
    key: &ThreadKey,
    definition: Definition,
    name: &str,
) -> Result<Watched, Failure> {
    let state = session.engine.state(key).await?;
    let state = state.filter(|state| state.active().is_some());
    let Some(state) = state else {
        return Err(Failure::usage(format!(
            "there is nothing to go on with in thread `{}/{name}`",
            definition.name
        ))
        .help("say what the agent should do with `--input`"));
    };
    session.screen.turn_to(key.thread, Some(&state));
    let definition = complete(session, definition).await?;
    session.engine.publish(session.tenant(), definition).await?;
    session.watch(key, session.engine.drive(key)).await
}

/// With the tools of its MCP servers, which are asked for them.
async fn complete(session: &Session, definition: Definition) -> Result<Definition, Failure> {
    let names: Vec<String> = definition
        .unlisted_servers()
        .iter()
        .map(|server| server.name.clone())
        .collect();
    if !names.is_empty() && session.output == Output::Plain {
        let names = safe_text::line(&names.join(", "));
        terminal::note(&format!(
            "asking for the tools of MCP servers (up to a minute): {names}"
        ));
    }
    let completed = session.engine.complete(definition).await?;
    for warning in &completed.warnings {
        let warning = safe_text::line(warning);
        terminal::note(&format!(
            "warning: {warning}; its tools are those that it offered before"
        ));
    }
    Ok(completed.definition)
}

fn load(args: &Run) -> Result<Definition, Failure> {
    let common = &args.threads.common;
    let names = agent_file::names(common.config.as_deref())?;
    let mut loaded = agent_file::load(&args.file, &names).map_err(unusable)?;
    let providers = Providers::new(names.providers.clone());
    if let Some(model) = &args.model {
        let model = names.models.get(model).unwrap_or(model);
        providers.resolve(model).map_err(|error| {
            Failure::usage(error.to_string()).help("name a model, for instance `openai:gpt-4o`")
        })?;
        replace(&mut loaded.definition, model);
    }
    let definition = &loaded.definition;
    let models = || [&definition.model].into_iter().chain(&definition.fallback);
    let missing = models().map(|model| providers.not_ready(model));
    if let Some(missing) = missing.collect::<Option<Vec<_>>>() {
        let text = missing.join("; ");
        return Err(Failure::unusable("model_unusable", text)
            .help("set it, or have another model answer with `--model`"));
    }
    if Output::of(common.json) == Output::Plain {
        for warning in &loaded.warnings {
            for line in check::explain("warning", warning) {
                terminal::note(&line);
            }
        }
    }
    Ok(loaded.definition)
}

/// Has this model answer in place of the agent's own, and of whatever its subagents have from it.
fn replace(definition: &mut Definition, model: &str) {
    let (old, fallback) = (definition.model.clone(), definition.fallback.clone());
    let mut agents = vec![definition];
    while let Some(agent) = agents.pop() {
        if agent.model == old && agent.fallback == fallback {
            model.clone_into(&mut agent.model);
            agent.fallback.clear();
        }
        let below = agent.subagents.iter_mut();
        agents.extend(below.map(|subagent| &mut subagent.definition));
    }
}

fn unusable(refused: Refused) -> Failure {
    let Refused {
        code,
        what,
        problems,
    } = refused;
    let count = match problems.len() {
        1 => "a problem".to_owned(),
        count => format!("{count} problems"),
    };
    let lines = problems
        .iter()
        .flat_map(|problem| check::explain("error", problem))
        .collect();
    Failure::unusable(code, format!("{what} has {count}"))
        .lines(lines)
        .details(json!({"problems": problems}))
}

/// A name for a session that nobody named.
fn fresh_name() -> Result<String, Failure> {
    let mut random = [0; 5];
    getrandom::fill(&mut random).map_err(|error| {
        let reason = format!("the operating system gave no randomness: {error}");
        Error::from(Unavailable::new(reason))
    })?;
    Ok(format!("s-{}", hex(&random)))
}
