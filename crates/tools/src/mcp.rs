//! Tools of servers of the Model Context Protocol.
//!
//! A call of one is a stepped tool: to ask its server is a step, and where the server asks for something in its turn, that
//! is a question to a person, and asking it again with the answer is another step. So an answer that comes days later, in
//! another process, is given to the server as if it had never waited.
//!
//! Newer servers (since 2026-07-28) say what they want as the result of the call, with a state that they want back. Older ones
//! ask in the middle of it, and nobody can wait there for a person: they are told that nobody answers, and once there is
//! an answer the whole call is made again.

mod asked;
mod connection;
mod http;
mod link;
mod offers;
mod said;
mod servers;
mod stdio;
mod trouble;

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::{Effect, McpOffer, McpServer, Outcome, Params, Recalled, Span, StepEnd};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    Call, Question, SharedSteps, StepContext, StepFailed, StepTrouble, Tool, Watchdog, approved,
    entry, stepped_command::only_entered, tool::Changed,
};
use asked::{Given, Request};
use connection::{Connection, Turn};
use said::Said;
pub(crate) use servers::Servers;

/// How often a server may want something before it comes to an end.
const MAX_ROUNDS: usize = 8;

/// How often a tool is entered anew because its server took too long to be there.
const MAX_LATE: usize = 8;

/// For how long it is left then.
const MOMENT: Span = Span::from_millis(10);

/// How long a server may take to say what it offers, from when it is started.
const LISTING: Duration = Duration::from_secs(60);

/// A tool of a server.
#[derive(Debug)]
pub(crate) struct McpTool {
    pub(crate) server: McpServer,
    /// What the server calls it.
    pub(crate) tool: String,
    /// What it was when it was allowed.
    pub(crate) version: String,
    pub(crate) effect: Effect,
    pub(crate) servers: Servers,
    pub(crate) watchdog: Watchdog,
}

/// Asks a server what it offers.
///
/// # Errors
///
/// It cannot be reached, or does not say.
pub(crate) async fn offers(
    server: &McpServer,
    watchdog: &Watchdog,
) -> Result<Vec<McpOffer>, String> {
    let deadline = Instant::now() + LISTING;
    let link = link::Link::open(server, watchdog, deadline).await?;
    Ok(link.offers(deadline).await?.to_vec())
}

#[async_trait]
impl Tool for McpTool {
    async fn call(&self, _: Call<'_>) -> Outcome {
        only_entered()
    }

    async fn changed(&self, call: Call<'_>) -> Option<Changed> {
        let connection = self.servers.to(&self.server, call.scope);
        // Who is not there now, does not say, or does not have the tool, is asked again once the tool is entered.
        // Most of the time is the call's.
        let soon = call.remaining / 4;
        let begun = connection.begin(&self.watchdog, Instant::now() + soon);
        begun.await.ok()?;
        let offers = connection.offers(&self.watchdog, Instant::now() + soon);
        let offers = offers.await.ok()?;
        let now = offers.iter().find(|it| it.name == self.tool)?;
        // The same where it offers what no agent can have.
        self.server.check_changed(&offers).ok()?;
        (now.version() != self.version).then(|| Changed {
            server: self.server.clone(),
            offers: offers.to_vec(),
        })
    }

    async fn enter(&self, call: Call<'_>, steps: SharedSteps) -> Outcome {
        let context = StepContext::new(steps);
        let ended = entry::drive(&context, Box::pin(self.run(&context, call))).await;
        match ended {
            Ok(Ok(content)) => Outcome::Done { content },
            Ok(Err(error)) => Outcome::Failed { error },
            Err(spoiled) => spoiled,
        }
    }
}

impl McpTool {
    async fn run(&self, context: &StepContext, call: Call<'_>) -> Result<String, String> {
        let deadline = Instant::now() + call.remaining;
        let mut given = Given::default();
        for round in 1..=MAX_ROUNDS {
            let turn = self.reach(context, call, round, deadline).await?;
            let said = self.ask(context, call, round, &given, deadline).await?;
            drop(turn);
            match said {
                Said::Done { text } => return Ok(text),
                Said::Wants { requests, state } => {
                    let answers = self.answers(context, round, &requests, "").await?;
                    given = Given::responses(&requests, answers, state);
                }
                Said::Interrupted { requests, text } => {
                    let before = again(&text);
                    let answers = self.answers(context, round, &requests, &before).await?;
                    if answers.iter().all(asked::is_refusal) {
                        return Ok(text);
                    }
                    given = given.and_in_the_middle(&requests, answers);
                }
            }
        }
        Err(format!(
            "the MCP server `{}` wanted something {MAX_ROUNDS} times and came to no end",
            self.server.name
        ))
    }

    /// Makes sure that the server is there and has the tool, before anything is recorded as begun. Where it is not, a person
    /// says whether to try again, so that neither an approval nor an answer is lost to an outage. Only the first call of something
    /// that reads fails by itself.
    async fn reach(
        &self,
        context: &StepContext,
        call: Call<'_>,
        round: usize,
        deadline: Instant,
    ) -> Result<Option<Turn>, String> {
        if context.memo().has_ended(&step_name(round)) {
            return Ok(None);
        }
        let away = |time: usize| format!("away {round}.{time}");
        let mut time = 1;
        while let Some(answer) = context.memo().recalled(&away(time)) {
            if approved(answer) != Some(true) {
                return Err(format!(
                    "the MCP server `{}` could not be asked, and nothing was called",
                    self.server.name
                ));
            }
            time += 1;
        }
        let connection = self.servers.to(&self.server, call.scope);
        let soon = deadline - call.remaining / 2;
        let why = match self.look(&connection, soon).await {
            Ok(Some(turn)) if Instant::now() <= soon => return Ok(Some(turn)),
            Ok(late) => {
                drop(late);
                return Err(self.begin_anew(context, round).await);
            }
            Err(why) => why,
        };
        if round == 1 && self.effect == Effect::Read {
            return Err(why);
        }
        let question = Question::approval(format!("`{}` cannot be asked", self.server.name))
            .description(format!(
                "{}\n\nNothing was called. Approve to try again, reject to have the model told.",
                crate::quote::quote(&why)
            ))
            .data(json!({"mcp_server": self.server.name, "tool": self.tool}));
        // Whatever is said to it is looked at when the tool is entered again.
        let asked = context.interrupt(&away(time), question).await;
        asked.map_err(|refused| refused.to_string())?;
        Err(why)
    }

    /// Waits until the server is there, has the tool as it was allowed, and can be called; `None` if that took too long.
    async fn look(&self, connection: &Connection, until: Instant) -> Result<Option<Turn>, String> {
        let offers = connection.offers(&self.watchdog, until).await?;
        let Some(now) = offers.iter().find(|it| it.name == self.tool) else {
            return Err(format!(
                "the MCP server `{}` does not offer `{}` any more",
                self.server.name, self.tool
            ));
        };
        self.server.check_changed(&offers)?;
        if now.version() != self.version {
            // It has become another one since it was looked at, which is found where the tool is entered anew.
            return Ok(None);
        }
        connection.turn(&self.watchdog, until).await
    }

    /// A call is begun with most of its time before it. Where it took too long until it could be, the tool is entered anew; and
    /// where that helps nothing, this says so.
    async fn begin_anew(&self, context: &StepContext, round: usize) -> String {
        for time in 1..=MAX_LATE {
            let name = format!("late {round}.{time}");
            if let Err(refused) = context.sleep(&name, MOMENT).await {
                return refused.to_string();
            }
        }
        format!(
            "the MCP server `{}` was not ready in time again and again; nothing was called",
            self.server.name
        )
    }

    /// Asks the server, unless it was asked before.
    async fn ask(
        &self,
        context: &StepContext,
        call: Call<'_>,
        round: usize,
        given: &Given,
        deadline: Instant,
    ) -> Result<Said, String> {
        let name = step_name(round);
        // The tool may have become a graver one since then; what it was answered is no other for that.
        match context.memo().ended_with(&name, call.args) {
            Some(StepEnd::Done { result }) => return self.read(result.clone()),
            Some(StepEnd::NotDone { error }) => return Err(error.clone()),
            None => {}
        }
        let step = context.step(&name, self.effect, call.args.to_value(), |key| async move {
            let said = self.exchange(call, &key, given, deadline).await;
            said.map(|said| said.to_value())
        });
        let result = step.await.map_err(|failed| match failed {
            StepFailed::NotDone { error } => error,
            StepFailed::Refused(refused) => refused.to_string(),
        })?;
        self.read(result)
    }

    fn read(&self, result: serde_json::Value) -> Result<Said, String> {
        Said::read(result)
            .map_err(|error| format!("what `{}` said before cannot be read: {error}", self.tool))
    }

    async fn exchange(
        &self,
        call: Call<'_>,
        key: &str,
        given: &Given,
        deadline: Instant,
    ) -> Result<Said, StepTrouble> {
        let arguments = object(call.args)?;
        let connection = self.servers.to(&self.server, call.scope);
        connection
            .call(
                &self.watchdog,
                &connection::Request {
                    tool: &self.tool,
                    version: &self.version,
                    arguments,
                    key,
                    given,
                },
                deadline,
            )
            .await
    }

    /// What people say to what a server wants. What needs no person is answered at once.
    async fn answers(
        &self,
        context: &StepContext,
        round: usize,
        requests: &[Request],
        before: &str,
    ) -> Result<Vec<serde_json::Value>, String> {
        let mut answers = Vec::with_capacity(requests.len());
        for (at, request) in requests.iter().enumerate() {
            let answer = match request.question(&self.server.name, &self.tool, before)? {
                asked::Answer::Known(answer) => answer,
                asked::Answer::AskPerson(question) => {
                    let name = format!("input {round}.{}", at + 1);
                    let recalled: Recalled = context
                        .interrupt(&name, question)
                        .await
                        .map_err(|refused| refused.to_string())?;
                    asked::answer(&recalled)
                }
            };
            answers.push(answer);
        }
        Ok(answers)
    }
}

/// What asking the server for the how-manieth time is called.
fn step_name(round: usize) -> String {
    match round {
        1 => "call".to_owned(),
        more => format!("call {more}"),
    }
}

fn object(args: &Params) -> Result<serde_json::Map<String, serde_json::Value>, StepTrouble> {
    let value = args.to_value();
    let object = value.as_object().cloned();
    object.ok_or_else(|| StepTrouble::no_effect(format!("its arguments are no object: {value}")))
}

/// What a person must know before they answer a server that cannot wait.
fn again(text: &str) -> String {
    let text = crate::quote::quote(text);
    format!(
        "The server cannot wait for an answer, so it was told that there is none, and ended with: {text}\n\
         With an answer, the whole call is made again."
    )
}
