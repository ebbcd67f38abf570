//! One of several processes on one SQLite file that answer the same questions at once.
//!
//! `holdpoint-torture-rivals DB LEDGER NAME` hears a JSON object a line and prints one for each:
//!
//! | hears | does | prints |
//! |---|---|---|
//! | `{"park": SESSION}` | starts a run that stops at a question | `{"thread", "interrupt", "session"}` |
//! | `{"answer": {"thread", "interrupt", "session"}, "from", "to"}` | gives so many different answers at once, each as somebody else, and goes on with the one that wins | `{"won": [{"by", "as"}], "lost": [{"by", "told"}], "odd": [TEXT]}` |
//! | `{"pause": THREAD}` | | `{}` |
//! | `{"continue": THREAD}` | goes on with a run that was paused | `{}` |
//! | `{"look": THREAD}` | | `{"status", "events": [{"type", "by"}]}` |
//!
//! Whatever is answered, the run does one thing in the ledger: the call as it was approved or edited; or, where that was
//! not to be, a note with the words that the model was told instead.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
};

use anyhow::Context as _;
use async_trait::async_trait;
use example_tools::Ledger;
use holdpoint::{
    Agent, Allowed, Answer, Call, Decision, DecisionKind, Definition, EditedAction, Effect, Engine,
    Error, Failure, Gate, InterruptId, Kit, Message, Model, Options, Outcome, Params, Principal,
    PrincipalKind, Reply, Request, Span, ThreadId, ThreadKey, Tool, ToolCall, ToolSpec,
};
use serde_json::{Value, json};
use tokio::{sync::Barrier, task::JoinSet};

/// The tool that people are asked about.
const PAY: &str = "pay";
/// The tool for what is done instead.
const NOTE: &str = "note";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [db, ledger, name] = words.as_slice() else {
        anyhow::bail!("usage: holdpoint-torture-rivals DB LEDGER NAME");
    };
    let rivals = Rivals::open(db, ledger, name).await?;
    for line in io::stdin().lines() {
        let said = rivals.hear(&serde_json::from_str(&line?)?).await?;
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{said}")?;
        stdout.flush()?;
    }
    Ok(())
}

struct Rivals {
    engine: Engine,
    agent: Arc<Agent>,
    name: String,
}

impl Rivals {
    async fn open(db: &str, ledger: &str, name: &str) -> anyhow::Result<Self> {
        let store = holdpoint::open(&format!("sqlite:{db}"), Default::default()).await?;
        let book = Book(ledger.into());
        let kit = Kit::new()
            .with_tool(PAY, book.clone())
            .with_tool(NOTE, book)
            .with_model("clerk", Clerk);
        let engine = Engine::new(store, kit, Options::default(), None);
        let agent = engine
            .publish(Principal::LOCAL_TENANT, definition()?)
            .await?;
        let name = name.to_owned();
        Ok(Self {
            engine,
            agent,
            name,
        })
    }

    async fn hear(&self, order: &Value) -> anyhow::Result<Value> {
        if let Some(session) = order["park"].as_str() {
            return self.park(session).await;
        }
        if let Some(thread) = order["look"].as_str() {
            return self.look(key(thread)?).await;
        }
        let by = Principal::local("operator");
        if let Some(thread) = order["pause"].as_str() {
            let paused = self.engine.pause(&by, &key(thread)?, None).await?;
            paused.finish().await?;
            return Ok(json!({}));
        }
        if let Some(thread) = order["continue"].as_str() {
            let continued = self.engine.unpause(&by, &key(thread)?, None).await?;
            continued.finish().await?;
            return Ok(json!({}));
        }
        let text = |name: &str| order["answer"][name].as_str().context("no such answer");
        let count = |name: &str| order[name].as_u64().context("no such number");
        let key = key(text("thread")?)?;
        let interrupt: InterruptId = text("interrupt")?.parse()?;
        let (session, numbers) = (text("session")?, count("from")?..count("to")?);
        self.answer(&key, interrupt, session, numbers).await
    }

    async fn park(&self, session: &str) -> anyhow::Result<Value> {
        let asker = Principal::local("asker");
        let run = self
            .engine
            .start(&asker, &self.agent, session, session)
            .await?;
        let key = run.key().clone();
        run.finish().await?;
        let state = self.engine.state(&key).await?;
        let state = state.context("there is no thread")?;
        let mut pending = state.interrupts.keys();
        let interrupt = pending.next().context("nothing is asked")?;
        Ok(json!({"thread": key.thread, "interrupt": interrupt, "session": session}))
    }

    /// So many answers at once.
    async fn answer(
        &self,
        key: &ThreadKey,
        interrupt: InterruptId,
        session: &str,
        numbers: std::ops::Range<u64>,
    ) -> anyhow::Result<Value> {
        let rivals = usize::try_from(numbers.end - numbers.start)?;
        let barrier = Arc::new(Barrier::new(rivals));
        let mut answering = JoinSet::new();
        for number in numbers {
            let (engine, key, barrier) = (self.engine.clone(), key.clone(), Arc::clone(&barrier));
            let name = format!("{}-{number}", self.name);
            let (word, decision) = decision(number, session, &name)?;
            answering.spawn(async move {
                let by = Principal::new(PrincipalKind::User, Principal::LOCAL_TENANT, &name);
                barrier.wait().await;
                let answered = engine
                    .answer(&by, &key, interrupt, Answer::All(decision))
                    .await;
                let answered = match answered {
                    Ok(submitted) => Ok(submitted.finish().await),
                    Err(error) => Err(error),
                };
                (name, word, answered)
            });
        }
        let (mut won, mut lost, mut odd) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(answered) = answering.join_next().await {
            match answered? {
                (by, word, Ok(driven)) => {
                    won.push(json!({"by": by, "as": word}));
                    if let Err(error) = driven {
                        odd.push(format!("{by} won and could not go on: {error}"));
                    }
                }
                (by, _, Err(Error::AlreadyDecided { by: told, .. })) => {
                    lost.push(json!({"by": by, "told": told.name}));
                }
                (by, _, Err(error)) => odd.push(format!("{by} was told: {error}")),
            }
        }
        Ok(json!({"won": won, "lost": lost, "odd": odd}))
    }

    async fn look(&self, key: ThreadKey) -> anyhow::Result<Value> {
        let state = self.engine.state(&key).await?;
        let status = state.and_then(|state| state.status());
        let journal = self.engine.journal(&key).await?;
        let mut events = Vec::new();
        for entry in journal {
            let event = serde_json::to_value(&entry.event)?;
            events.push(json!({"type": event["type"], "by": entry.header.by.name}));
        }
        Ok(json!({"status": status.map(|status| status.as_str()), "events": events}))
    }
}

fn key(thread: &str) -> anyhow::Result<ThreadKey> {
    let thread: ThreadId = thread.parse()?;
    Ok(ThreadKey {
        tenant: Principal::LOCAL_TENANT.into(),
        thread,
    })
}

/// No two answers are alike, except that an approval cannot say by whom it was.
fn decision(number: u64, session: &str, name: &str) -> anyhow::Result<(&'static str, Decision)> {
    let message = format!("<{name}>");
    Ok(match number % 5 {
        0 => ("approve", Decision::APPROVE),
        1 | 2 => {
            let args = Params::from_value(&json!({"order_id": session, "amount": message}))?;
            let edited_action = EditedAction {
                name: PAY.to_owned(),
                args,
            };
            ("edit", Decision::Edit { edited_action })
        }
        3 => {
            let message = Some(message);
            ("reject", Decision::Reject { message })
        }
        _ => ("respond", Decision::Respond { message }),
    })
}

fn definition() -> anyhow::Result<Definition> {
    let tool = |name: &str| {
        ToolSpec::code(name, Effect::Write)
            .with_schema(json!({"type": "object"}))
            .with_times(Span::from_secs(60), ToolSpec::DEFAULT_SETTLE)
    };
    let allowed = Allowed::new(vec![
        DecisionKind::Approve,
        DecisionKind::Edit,
        DecisionKind::Reject,
        DecisionKind::Respond,
    ])?;
    Ok(Definition::new("clerk", "clerk")
        .with_tool(tool(PAY))
        .with_tool(tool(NOTE))
        .gate(PAY, Gate::ask(allowed)))
}

/// Pays; and where it is told that it was not paid, notes down what it was told.
#[derive(Debug)]
struct Clerk;

#[async_trait]
impl Model for Clerk {
    async fn turn(
        &self,
        request: Request<'_>,
        _: &mut (dyn FnMut(holdpoint::Delta) + Send),
    ) -> Result<Reply, Failure> {
        let asked = request.messages.iter().find_map(|message| {
            let Message::User { content } = message else {
                return None;
            };
            Some(content.as_str())
        });
        let call = |name: &str, amount: &str| {
            vec![ToolCall {
                id: format!("to-{name}"),
                name: name.to_owned(),
                arguments: json!({"order_id": asked, "amount": amount}).to_string(),
            }]
        };
        let calls = match request.messages.last() {
            Some(Message::Tool { name, content, .. })
                if name == PAY && !content.contains("recorded") =>
            {
                call(NOTE, content)
            }
            Some(Message::Tool { .. }) => Vec::new(),
            Some(_) | None => call(PAY, "5.00"),
        };
        Ok(Reply {
            text: "I shall see to it.".to_owned(),
            calls,
            ..Reply::default()
        })
    }
}

/// Writes into the ledger, blindly.
#[derive(Debug, Clone)]
struct Book(PathBuf);

#[async_trait]
impl Tool for Book {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let args = call.args.to_value();
        let call = example_tools::Call {
            key: call.key.to_owned(),
            epoch: call.epoch,
            args: args.as_object().cloned().unwrap_or_default(),
        };
        match Ledger::at(&self.0).act(&call) {
            Ok(receipt) => Outcome::Done {
                content: receipt.to_string(),
            },
            Err(error) => Outcome::Unknown {
                reason: format!("{error:#}"),
            },
        }
    }
}
