//! What every command that works on a store has at hand.

use std::{
    borrow::Cow,
    future::Future,
    path::Path,
    sync::{Arc, OnceLock},
};

use holdpoint_core::{Principal, PrincipalKind, State, Status, is_name};
use holdpoint_engine::{Drives, Engine, Error, Options, RunView, Submitted};
use holdpoint_server::Keys;
use holdpoint_store::{SharedStore, ThreadKey};

use crate::{
    agent_file, args::Threads, backups, env, exit::Exit, failure::Failure, kit::kit,
    leaving::Leaving, pending, place::Place, safe_text::line, screen::Screen, terminal, traces,
    zone,
};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// For people.
    Plain,
    /// For programs.
    Json,
}

impl Output {
    /// What `--json` says.
    pub(crate) const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Plain }
    }
}

/// Whether a store that is not there is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// It is made.
    Create,
    /// It is an error: whoever mistyped a path should not be told that there is nothing.
    Refuse,
}

/// Opens the store that a text names.
///
/// # Errors
///
/// It cannot be opened.
pub(crate) async fn open_store(url: &str, missing: IfMissing) -> Result<SharedStore, Failure> {
    let url = &*named_store(url)?;
    if missing == IfMissing::Refuse
        && let Some(path) = url.strip_prefix("sqlite:")
        && !path.is_empty()
        && !Path::new(path).exists()
    {
        return Err(
            Failure::unusable("store_missing", format!("there is no store at `{path}`"))
                .help("`holdpoint run` makes one; name another with `--store sqlite:PATH`"),
        );
    }
    let options = holdpoint_store::Options::default();
    let options = match missing {
        IfMissing::Create => options,
        IfMissing::Refuse => options.existing(),
    };
    Ok(holdpoint_store::open(url, options).await?)
}

/// The url of a store, also where `env:NAME` says which variable of the environment has it: a password on a command line is
/// seen by everybody on the machine.
///
/// # Errors
///
/// There is no such variable.
pub(crate) fn named_store(url: &str) -> Result<Cow<'_, str>, Failure> {
    let Some(name) = holdpoint_definition::store_variable(url) else {
        return Ok(Cow::Borrowed(url));
    };
    let url = env::named(name).ok_or_else(|| {
        let message = format!("the environment has no variable `{}`", line(name));
        Failure::usage(message).help("set it to the url of the store")
    })?;
    Ok(Cow::Owned(url))
}

/// Tells a person that a store is not the one that goes on.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn mention_past(store: &SharedStore) -> Result<(), Failure> {
    if let Some(part) = store.part().await? {
        terminal::note(&format!("note: {}", line(&part.refusal())));
    }
    if let Some(made_at) = store.backup_made_at().await? {
        let when = zone::short(made_at);
        terminal::note(&format!(
            "note: this store is a backup of {when}, and nobody has adopted it: what it holds may have gone on elsewhere"
        ));
    }
    Ok(())
}

/// An opened store with an engine on it, and who works with it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) engine: Engine,
    pub(crate) by: Principal,
    pub(crate) screen: Arc<Screen>,
    pub(crate) output: Output,
    pub(crate) place: Place,
    leaving: OnceLock<Leaving>,
}

/// How watching a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    /// It came to a stop by itself.
    ToTheStop,
    /// This process was asked to go, and said how to go on.
    Left,
}

impl Session {
    /// Opens the store.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub(crate) async fn open(threads: &Threads, missing: IfMissing) -> Result<Self, Failure> {
        let Threads { common, tenant } = threads;
        if !is_name(tenant) || tenant.starts_with('_') {
            let tenant = line(tenant);
            return Err(Failure::usage(format!("`{tenant}` cannot be a tenant")));
        }
        let store = open_store(&common.store, missing).await?;
        let names = agent_file::names(common.config.as_deref())?;
        let kit = kit([common.store.as_str()], [])
            .with_providers(names.providers)
            .with_rights(Keys::new(store.clone()));
        let unsaid = Options::default();
        let options = Options {
            drives: Drives::ServersFirst,
            lease: env::lease().unwrap_or(unsaid.lease),
            ..unsaid
        };
        let output = Output::of(common.json);
        let screen = Arc::new(Screen::new(output));
        let watcher = traces::beside(screen.clone(), terminal::note);
        Ok(Self {
            engine: Engine::new(store, kit, options, Some(watcher)),
            by: Principal::new(PrincipalKind::Local, tenant, &env::os_user()),
            screen,
            output,
            place: Place {
                store: common.store.clone(),
                tenant: tenant.clone(),
                config: common.config.clone(),
            },
            leaving: OnceLock::new(),
        })
    }

    /// Opens the store to look at it, and says where what is seen is not how things stand.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub(crate) async fn open_to_read(threads: &Threads) -> Result<Self, Failure> {
        let session = Self::open(threads, IfMissing::Refuse).await?;
        mention_past(session.engine.store()).await?;
        Ok(session)
    }

    /// Opens the store to do something in it, which nobody does in a backup.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or is a backup that nobody has adopted.
    pub(crate) async fn open_to_drive(
        threads: &Threads,
        missing: IfMissing,
    ) -> Result<Self, Failure> {
        let session = Self::open(threads, missing).await?;
        if let Some(part) = session.engine.store().part().await? {
            return Err(Failure::refused("cannot_drive", part.refusal()));
        }
        match session.engine.store().backup_made_at().await? {
            None => Ok(session),
            Some(made_at) => {
                let adopt = session.place.of(Principal::LOCAL_TENANT);
                let adopt = adopt.command("recover --adopt");
                Err(backups::refuse(&session.place.store, made_at, &adopt))
            }
        }
    }

    /// Hears when this process is asked to go. Only from the first use on: before there is work, a signal just ends it.
    pub(crate) fn leaving(&self) -> &Leaving {
        self.leaving.get_or_init(Leaving::listen)
    }

    /// The tenant whose threads are seen.
    pub(crate) fn tenant(&self) -> &str {
        &self.by.actor.tenant
    }

    /// A thread's state, which must be there.
    ///
    /// # Errors
    ///
    /// It is not, or the store fails.
    pub(crate) async fn state(&self, key: &ThreadKey) -> Result<Arc<State>, Failure> {
        let state = self.engine.state(key).await?;
        Ok(state.ok_or(Error::Refused(holdpoint_core::Refusal::NotFound))?)
    }

    /// A thread as every door shows it.
    ///
    /// # Errors
    ///
    /// It is not there, or the store fails.
    pub(crate) async fn view(&self, key: &ThreadKey) -> Result<(Arc<State>, RunView), Failure> {
        let state = self.state(key).await?;
        let transcript = self.engine.transcript(key, &state).await?;
        let shown = self.engine.show_run(&key.tenant, &state, &transcript);
        let view = shown.await?;
        Ok((state, view))
    }

    /// Waits until what a command led to is over, by whoever drives it, while showing what happens.
    ///
    /// # Errors
    ///
    /// The store fails, or driving does.
    pub(crate) async fn see_through(
        &self,
        key: &ThreadKey,
        submitted: Submitted,
    ) -> Result<Watched, Failure> {
        let runs = submitted.state().status() == Some(Status::Running);
        if runs && submitted.is_driven_elsewhere() && self.output == Output::Plain {
            terminal::note("a server or another process drives it; following");
        }
        self.watch(key, submitted.finish()).await
    }

    /// Waits for `work` on a thread while showing what happens there. A signal leaves: what is committed stays.
    ///
    /// # Errors
    ///
    /// The work's own.
    pub(crate) async fn watch<T>(
        &self,
        key: &ThreadKey,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<Watched, Failure> {
        // On the heap, because a driver is large.
        let work = Box::pin(work);
        let signal = tokio::select! {
            // Cancel safe: leaving is meant, and what was started is found again by whoever goes on.
            done = work => {
                done?;
                None
            }
            never = self.screen.attend(&self.engine, key) => match never {},
            signal = self.leaving().asked() => Some(signal),
        };
        self.screen.catch_up(&self.engine, key).await;
        let Some(signal) = signal else {
            return Ok(Watched::ToTheStop);
        };
        self.screen.break_off();
        let (state, view) = self.view(key).await?;
        // One that came to a stop in this very moment speaks for itself.
        if state.status() == Some(Status::Running) {
            let word = pending::thread_word(&view);
            let resume = format!("resume {word}");
            self.say_goodbye(signal, &format!("{word} ({})", view.thread_id), &resume);
        }
        Ok(Watched::Left)
    }

    /// Says what is left in the middle of its work, and how to go on: for people, also where a program reads stdout.
    pub(crate) fn say_goodbye(&self, signal: &str, left: &str, go_on: &str) {
        let text = if self.engine.store().is_durable() {
            let command = self.place.command(go_on);
            format!(
                "{signal}: left {left} in the middle of work; nothing is lost, go on with: {command}"
            )
        } else {
            format!("{signal}: left {left} in the middle of work, and this store forgets it")
        };
        terminal::note(&text);
    }

    /// Prints how a run stands, and says what the command ends with.
    pub(crate) fn report(&self, state: &State, view: &RunView) -> Exit {
        let status = state.status();
        match self.output {
            Output::Json => terminal::json(view),
            Output::Plain => self.report_plainly(status.as_ref(), view),
        }
        Exit::of(status.as_ref())
    }

    fn report_plainly(&self, status: Option<&Status>, view: &RunView) {
        if !view.interrupts.is_empty() {
            terminal::data(&pending::render(view, &self.place));
        }
        if let Some(stillness) = pending::stillness(view, &self.place) {
            terminal::data(&stillness);
        }
        if !view.interrupts.is_empty() {
            return;
        }
        if status == Some(&Status::Finished)
            && let Some(output) = &view.output
            && !self.screen.has_shown_last_text()
        {
            terminal::data(&terminal::block(output, ""));
        }
    }
}
