//! An engine on a store of its own, a model that is a function, and tools that count.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_core::{
    Allowed, Answer, Breakpoints, ContextRule, Decision, DecisionKind, Definition, Effect,
    FIRST_FORMAT, Gate, Hooks, InterruptId, InterruptMode, Limits, Lookup, Message, Outcome,
    Params, Policy, Principal, Ruling, Runner, Sampling, Span, State, ThreadId, ToolCall, ToolKind,
    ToolSpec,
};
use holdpoint_engine::{Agent, Engine, Error, Kit, Options, RunView, Submitted, Watcher};
use holdpoint_models::{Delta, Failure, Model, Reply, Request};
use holdpoint_store::{SharedStore, SqliteStore, ThreadKey};
use holdpoint_tools::{Call, Registry, SteppedTool, Tool, Watchdog};
use tempfile::TempDir;

/// What the model does in a turn, given the conversation and the attempt.
pub(crate) type Script = fn(&[Message], u32) -> Result<Reply, Failure>;

#[derive(Debug)]
pub(crate) struct Scripted(pub(crate) Script);

#[async_trait]
impl Model for Scripted {
    async fn turn(
        &self,
        request: Request<'_>,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, Failure> {
        let reply = (self.0)(request.messages, request.attempt)?;
        deltas(Delta::Text(reply.text.clone()));
        Ok(reply)
    }
}

pub(crate) fn says(text: &str) -> Result<Reply, Failure> {
    Ok(Reply {
        text: text.to_owned(),
        calls: vec![],
        ..Reply::default()
    })
}

pub(crate) fn calls(calls: &[(&str, &str)]) -> Result<Reply, Failure> {
    let call = |(at, (name, arguments)): (usize, &(&str, &str))| ToolCall {
        id: format!("c{}", at + 1),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Ok(Reply {
        text: String::new(),
        calls: calls.iter().enumerate().map(call).collect(),
        ..Reply::default()
    })
}

/// The results that the model has since the last user message.
pub(crate) fn results(messages: &[Message]) -> Vec<String> {
    let mut results = Vec::new();
    for message in messages {
        if let Message::User { .. } = message {
            results.clear();
        }
        if let Message::Tool { content, .. } = message {
            results.push(content.clone());
        }
    }
    results
}

/// A tool that counts its calls by key and does what it is told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter {
    pub(crate) calls: Arc<Mutex<Vec<(String, String)>>>,
    pub(crate) outcomes: Arc<Mutex<VecDeque<Outcome>>>,
    pub(crate) lookups: Arc<Mutex<VecDeque<Lookup>>>,
    pub(crate) undone: Arc<AtomicU32>,
    /// How long a call takes, before its effect.
    pub(crate) takes: Duration,
    /// How many calls have begun.
    pub(crate) entered: Arc<AtomicU32>,
}

impl Counter {
    pub(crate) fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    pub(crate) fn begun(&self) -> u32 {
        self.entered.load(Ordering::SeqCst)
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.calls
            .lock()
            .unwrap()
            .iter()
            .map(|(key, _)| key.clone())
            .collect()
    }

    pub(crate) fn args(&self) -> Vec<String> {
        self.calls
            .lock()
            .unwrap()
            .iter()
            .map(|(_, args)| args.clone())
            .collect()
    }
}

#[async_trait]
impl Tool for Counter {
    async fn call(&self, call: Call<'_>) -> Outcome {
        self.entered.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.takes).await;
        self.calls
            .lock()
            .unwrap()
            .push((call.key.to_owned(), call.args.canonical().to_owned()));
        let told = self.outcomes.lock().unwrap().pop_front();
        told.unwrap_or_else(|| Outcome::Done {
            content: format!("{} done", call.tool),
        })
    }

    async fn lookup(&self, _call: Call<'_>) -> Lookup {
        let told = self.lookups.lock().unwrap().pop_front();
        told.unwrap_or(Lookup::Unknown {
            reason: "not told".to_owned(),
        })
    }

    async fn compensate(&self, _call: Call<'_>) -> Outcome {
        self.undone.fetch_add(1, Ordering::SeqCst);
        Outcome::Done {
            content: "undone".to_owned(),
        }
    }
}

pub(crate) fn tool(name: &str, effect: Effect, hooks: Hooks) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        version: "1".to_owned(),
        effect,
        input_schema: serde_json::json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "additionalProperties": false,
        }),
        runner: Runner::Code { hooks },
        kind: ToolKind::Plain,
        timeout: Span::from_millis(400),
        settle: Span::from_millis(100),
        permissions: vec![],
    }
}

pub(crate) fn ask(kinds: &[DecisionKind]) -> Gate {
    Gate::ask(Allowed::new(kinds.to_vec()).unwrap())
}

pub(crate) fn definition(tools: Vec<ToolSpec>, gates: &[(&str, Gate)]) -> Definition {
    Definition {
        format: FIRST_FORMAT,
        name: "clerk".to_owned(),
        version: "1".to_owned(),
        model: "test".to_owned(),
        fallback: vec![],
        sampling: Sampling::default(),
        context: ContextRule::default(),
        system_prompt: None,
        tools,
        mcp_servers: Vec::new(),
        written: None,
        policy: Policy {
            interrupt_on: gates
                .iter()
                .map(|(name, gate)| ((*name).to_owned(), gate.clone()))
                .collect(),
            default: Ruling::Allow,
        },
        interrupt_mode: InterruptMode::Batched,
        limits: Limits::default(),
        breakpoints: Breakpoints::default(),
        subagents: Vec::new(),
        strict: false,
        confirm: None,
        guardrails: BTreeMap::new(),
    }
}

/// A store on disk, on which several engines may work as if they were several processes.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) tools: BTreeMap<&'static str, Counter>,
    script: Script,
}

impl Place {
    pub(crate) fn new(script: Script, tools: &[(&'static str, Counter)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            folder,
            tools: tools.iter().cloned().collect(),
            script,
        }
    }

    /// The database file, to be tampered with.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("t.db")).unwrap()
    }

    /// A backup of it as it is now, with the same tools: what is done there is done here too.
    pub(crate) async fn copy(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (self.folder.path().join("t.db"), folder.path().join("t.db"));
        let store = SqliteStore::open(&from, &Default::default()).unwrap();
        holdpoint_store::Store::backup(&store, &to).await.unwrap();
        Self {
            folder,
            tools: self.tools.clone(),
            script: self.script,
        }
    }

    /// Whether an event of this name was committed.
    pub(crate) fn database_has(&self, name: &str) -> bool {
        let conn = self.database();
        let count = conn.query_row(
            "SELECT count(*) FROM events WHERE header LIKE ?1",
            [format!("%\"{name}\"%")],
            |row| row.get::<_, i64>(0),
        );
        count.unwrap() > 0
    }

    /// An engine as another process would have it.
    pub(crate) fn engine(&self) -> Engine {
        self.engine_with(Arc::new(Scripted(self.script)))
    }

    /// The same with a tool that takes steps.
    pub(crate) fn engine_stepping(&self, name: &str, tool: impl SteppedTool + 'static) -> Engine {
        let registry = Registry::new().with_stepped(name, tool);
        self.build(Arc::new(Scripted(self.script)), registry)
    }

    /// The same with a model of its own.
    pub(crate) fn engine_with(&self, model: Arc<dyn Model>) -> Engine {
        self.build(model, Registry::new())
    }

    /// The same with a model and tools of its own.
    pub(crate) fn engine_of(&self, model: Arc<dyn Model>, tools: Registry) -> Engine {
        self.build(model, tools)
    }

    /// The same, with somebody who is told what happens.
    pub(crate) fn engine_watched(&self, tools: Registry, watcher: Arc<dyn Watcher>) -> Engine {
        self.build_watched(Arc::new(Scripted(self.script)), tools, Some(watcher))
    }

    fn build(&self, model: Arc<dyn Model>, registry: Registry) -> Engine {
        self.build_watched(model, registry, None)
    }

    fn build_watched(
        &self,
        model: Arc<dyn Model>,
        mut registry: Registry,
        watcher: Option<Arc<dyn Watcher>>,
    ) -> Engine {
        let store: SharedStore = Arc::new(
            SqliteStore::open(&self.folder.path().join("t.db"), &Default::default()).unwrap(),
        );
        for (name, tool) in &self.tools {
            registry = registry.with(*name, tool.clone());
        }
        let models = BTreeMap::from([("test".to_owned(), model)]);
        let kit = Kit {
            registry,
            watchdog: Watchdog::default(),
            models,
            ..Kit::default()
        };
        let options = Options {
            lease: Span::from_millis(300),
            model_timeout: Span::from_secs(5),
            forgetful: holdpoint_engine::Forgetful::Refuse,
            pending_per_run: 4,
            drives: holdpoint_engine::Drives::Itself,
        };
        Engine::new(store, kit, options, watcher)
    }
}

pub(crate) fn me() -> Principal {
    Principal::local("ann")
}

pub(crate) fn key(session: &str) -> ThreadKey {
    ThreadKey {
        tenant: "local".into(),
        thread: ThreadId::of_session("local", "clerk", session),
    }
}

pub(crate) async fn run(engine: &Engine, agent: &Agent, session: &str) -> RunView {
    let submitted = engine.start(&me(), agent, session, "go").await.unwrap();
    finish(engine, session, submitted).await.unwrap()
}

/// Sees a run through. The thread that is returned must be the stored one.
async fn finish(engine: &Engine, session: &str, submitted: Submitted) -> Result<RunView, Error> {
    let stopped = submitted.finish().await?;
    assert_eq!(*stopped, state(engine, session).await);
    Ok(view(engine, session).await)
}

pub(crate) async fn view(engine: &Engine, session: &str) -> RunView {
    let state = state(engine, session).await;
    let transcript = engine.transcript(&key(session), &state).await.unwrap();
    RunView::new(&state, &transcript)
}

pub(crate) async fn state(engine: &Engine, session: &str) -> State {
    let state = engine.state(&key(session)).await.unwrap().unwrap();
    std::sync::Arc::unwrap_or_clone(state)
}

pub(crate) async fn pending(engine: &Engine, session: &str) -> InterruptId {
    let state = state(engine, session).await;
    assert_eq!(state.interrupts.len(), 1, "{:?}", state.interrupts);
    *state.interrupts.keys().next().unwrap()
}

pub(crate) async fn answer(
    engine: &Engine,
    session: &str,
    decisions: Vec<Decision>,
) -> Result<RunView, Error> {
    let interrupt = pending(engine, session).await;
    let submitted = engine
        .answer(
            &me(),
            &key(session),
            interrupt,
            Answer::ByPosition(decisions),
        )
        .await?;
    finish(engine, session, submitted).await
}

pub(crate) fn contents(view: &RunView) -> Vec<String> {
    let content = |message: &Message| {
        if let Message::Tool { content, .. } = message {
            Some(content.clone())
        } else {
            None
        }
    };
    view.messages.iter().filter_map(content).collect()
}

pub(crate) fn params(text: &str) -> Params {
    Params::parse(text).unwrap()
}
