//! One connection to one server, from its handshake to its end.

use std::{
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use holdpoint_core::{McpOffer, McpServer, McpTransport, McpVariable, Scrub};
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData,
        FormElicitationCapability, Implementation, PaginatedRequestParams, ProtocolVersion,
        RequestMetaObject,
    },
    service::{
        ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, NotificationContext,
        RequestContext, RunningService, ServiceError,
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use super::{
    asked::{Given, Request},
    http, offers, said,
    said::Said,
    stdio::{Epitaph, Start, Stdio},
    trouble,
};
use crate::{StepTrouble, Watchdog};

/// Why nothing is known of a server that does not begin.
pub(super) const NOT_READY: &str = "it was not ready to be asked in time";

/// How many pages a list of tools may have.
const MAX_PAGES: usize = 64;

/// How many tools all of them may have, of which an agent chooses.
const MAX_TOOLS: usize = 2_000;

/// How long a list may be in all, whatever an agent chooses of it: it is kept for as long as the connection.
const MAX_LIST: usize = 8 << 20;

/// How long the text of a result may be. Of a longer one the beginning is kept.
const MAX_TEXT: usize = 8 << 20;

/// How much a server may want at once. What one wants in the middle of a call beyond that, it is told that there is none.
const MAX_WANTS: usize = 8;

/// How often a server may ask in the middle of one call. Who still asks then is not going to end.
const MAX_HEARD: usize = 128;

/// For how long what a server offers is believed to be so still.
const FRESH: Duration = Duration::from_secs(60);

/// Under which name a server finds the key of a call, where it wants to act once per key.
const KEY: &str = "holdpoint/idempotency-key";

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Link {
    peer: RunningService<RoleClient, Ear>,
    epitaph: Epitaph,
    scrub: Arc<Scrub>,
    listed: tokio::sync::Mutex<Option<(Instant, Arc<[McpOffer]>)>>,
    name: String,
}

/// What is sent for a call.
pub(super) struct Sent<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: serde_json::Map<String, Value>,
    pub(super) key: &'a str,
    pub(super) given: &'a Given,
}

/// Why a call over a link came to nothing.
#[derive(Debug)]
pub(super) enum Broken {
    /// How it ended is known.
    Trouble(StepTrouble),
    /// The server does not know this link any more, and has not looked at the call.
    Forgotten,
}

impl Link {
    /// Reaches a server.
    ///
    /// # Errors
    ///
    /// It is not reached. Nothing was asked of it.
    pub(super) async fn open(
        server: &McpServer,
        watchdog: &Watchdog,
        deadline: Instant,
    ) -> Result<Self, String> {
        let whose = |error: String| format!("the MCP server `{}`: {error}", server.name);
        let opened = timeout_at(deadline, Self::open_now(server, watchdog)).await;
        let opened = opened.unwrap_or_else(|_| Err(NOT_READY.to_owned()));
        opened.map_err(whose)
    }

    async fn open_now(server: &McpServer, watchdog: &Watchdog) -> Result<Self, String> {
        let ear = Ear::default();
        let epitaph = Epitaph::default();
        let mut scrub = Scrub::default();
        let (peer, scrub) = match &server.transport {
            McpTransport::Stdio { command, cwd, env } => {
                let mut variables = Vec::new();
                for (name, value) in env {
                    variables.push((name.as_str(), Some(variable(value, &mut scrub)?)));
                }
                let scrub = Arc::new(scrub);
                let start = Start {
                    command,
                    cwd,
                    env: variables,
                    scrub: Arc::clone(&scrub),
                };
                let transport = Stdio::start(watchdog, start, &epitaph).await?;
                let peer = match ear.serve_with_lifecycle(transport, lifecycle()).await {
                    Ok(peer) => Ok(peer),
                    Err(error) => {
                        let epitaph = epitaph.text_soon().await;
                        Err(epitaph.unwrap_or_else(|| trouble::why_not_begun(&error)))
                    }
                };
                (peer, scrub)
            }
            McpTransport::Http {
                url,
                headers,
                allow_private,
            } => {
                let place = http::Place {
                    url,
                    headers,
                    allow_private,
                };
                let transport = http::transport(&place, &mut scrub)?;
                let peer = ear.serve_with_lifecycle(transport, lifecycle()).await;
                let peer = peer.map_err(|error| trouble::why_not_begun(&error));
                (peer, Arc::new(scrub))
            }
            _ => return Err("this version does not know how it is reached".to_owned()),
        };
        let peer = peer.map_err(|error| scrub.clean(error))?;
        Ok(Self::over(peer, epitaph, scrub, server.name.clone()).await)
    }

    async fn over(
        peer: RunningService<RoleClient, Ear>,
        epitaph: Epitaph,
        scrub: Arc<Scrub>,
        name: String,
    ) -> Self {
        // How long a list may be believed is not for the server to say, and an old one is no answer where there is no new one.
        let config = ClientCacheConfig::disabled();
        peer.set_response_cache_config(config).await;
        Self {
            peer,
            epitaph,
            scrub,
            listed: tokio::sync::Mutex::default(),
            name,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.peer.is_closed() || self.peer.is_transport_closed()
    }

    /// Whether the server can tell several calls apart. One that asks in the middle of a call does not say of which.
    pub(super) fn takes_several(&self) -> bool {
        let info = self.peer.peer_info();
        info.is_some_and(|info| !info.protocol_version.has_initialize())
    }

    /// What the server offers, not older than a minute.
    ///
    /// # Errors
    ///
    /// It does not say.
    pub(super) async fn offers(&self, deadline: Instant) -> Result<Arc<[McpOffer]>, String> {
        let mut listed = self.listed.lock().await;
        let was_changed = self
            .peer
            .service()
            .was_changed
            .swap(false, Ordering::SeqCst);
        if let Some((at, offers)) = &*listed
            && !was_changed
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(offers));
        }
        // From here on nothing is known until it has said it: what it offered before may be another tool by now.
        *listed = None;
        let asked = timeout_at(deadline, self.list()).await;
        let asked = asked.unwrap_or_else(|_| Err("it does not say what it offers".to_owned()));
        let offers: Arc<[McpOffer]> = asked
            .map_err(|error| {
                self.scrub
                    .clean(format!("the MCP server `{}`: {error}", self.name))
            })?
            .into();
        *listed = Some((Instant::now(), Arc::clone(&offers)));
        Ok(offers)
    }

    async fn list(&self) -> Result<Vec<McpOffer>, String> {
        let mut offers = Vec::new();
        let mut length = 0;
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_tools(Some(page)).await;
            let page = page.map_err(|error| self.explain(&error))?;
            if offers.len() + page.tools.len() > MAX_TOOLS {
                return Err(format!("it offers more than {MAX_TOOLS} tools"));
            }
            for tool in &page.tools {
                let offer = offers::offer(tool, &self.scrub)?;
                length = offers::length(&offer).saturating_add(length);
                if length > MAX_LIST {
                    return Err(format!("its list of tools is longer than {MAX_LIST} bytes"));
                }
                offers.push(offer);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(offers);
            }
        }
        Err("its list of tools has no end".to_owned())
    }

    /// Makes a call.
    pub(super) async fn call(&self, sent: Sent<'_>, deadline: Instant) -> Result<Said, Broken> {
        let mut params =
            CallToolRequestParams::new(sent.tool.to_owned()).with_arguments(sent.arguments);
        params.input_responses.clone_from(&sent.given.responses);
        params.request_state.clone_from(&sent.given.state);
        let mut meta = RequestMetaObject::default();
        meta.insert(KEY.to_owned(), sent.key.into());
        params.meta = Some(meta);
        let ear = self.peer.service();
        let too_much = Arc::new(Notify::new());
        // Of several calls at once it would not be known which one wants something.
        if !self.takes_several() {
            ear.begin(sent.given.clone(), Arc::clone(&too_much));
        }
        let mut left = Left {
            link: self,
            in_the_middle: true,
        };
        let answered = timeout_at(deadline, async {
            tokio::select! {
                answered = self.peer.call_tool_once(params) => Some(answered),
                () = too_much.notified() => None,
            }
        });
        let answered = answered.await;
        left.in_the_middle = !matches!(answered, Ok(Some(_)));
        let asked = ear.end();
        let response = match answered {
            Ok(Some(Ok(response))) => response,
            // It was told that nobody answers, and that is how it ended.
            Ok(Some(Err(ServiceError::McpError(error)))) if !asked.is_empty() => {
                return Ok(Said::Interrupted {
                    requests: self.without_secrets(asked)?,
                    text: self.text(error.message.into_owned()),
                });
            }
            Ok(Some(Err(error))) => return Err(self.broken(&error)),
            Ok(None) => {
                let reason = format!("it asked for something more than {MAX_HEARD} times");
                return Err(Broken::Trouble(StepTrouble::unknown(reason)));
            }
            Err(_) => {
                let reason = "it did not answer by the deadline";
                return Err(Broken::Trouble(StepTrouble::unknown(reason)));
            }
        };
        let said = match response {
            CallToolResponse::Complete(result) => {
                let text = self.text(said::text_of(&result));
                if asked.is_empty() {
                    Said::Done { text }
                } else {
                    Said::Interrupted {
                        requests: self.without_secrets(asked)?,
                        text,
                    }
                }
            }
            CallToolResponse::InputRequired(wants) => {
                let requests = wants.input_requests.unwrap_or_default();
                if requests.len() > MAX_WANTS {
                    let reason = format!("it wants more than {MAX_WANTS} things at once");
                    return Err(Broken::Trouble(StepTrouble::unknown(reason)));
                }
                let requests = requests
                    .iter()
                    .map(|(key, request)| Request::read(key, &json!(request)));
                let state = wants.request_state;
                if state
                    .iter()
                    .any(|state| self.scrub.clean(state.clone()) != *state)
                {
                    let reason = "it wants a secret to be kept for it, which is not done";
                    return Err(Broken::Trouble(StepTrouble::unknown(reason)));
                }
                Said::Wants {
                    requests: self.without_secrets(requests.collect())?,
                    state,
                }
            }
            CallToolResponse::Task(_) | _ => {
                let reason = "it answered with something that is no result of a call";
                return Err(Broken::Trouble(StepTrouble::unknown(reason)));
            }
        };
        Ok(said)
    }

    /// What a server said, as it is kept.
    fn text(&self, mut text: String) -> String {
        if text.len() > MAX_TEXT {
            let (whole, end) = (text.len(), text.floor_char_boundary(MAX_TEXT));
            text.truncate(end);
            text = format!("{text}\n[{} of {whole} bytes are left out]", whole - end);
        }
        self.scrub.clean(text)
    }

    /// What a server asks is kept, and shown to people. A form that has a secret in it is neither.
    fn without_secrets(&self, requests: Vec<Request>) -> Result<Vec<Request>, Broken> {
        let text = serde_json::to_string(&requests).unwrap_or_default();
        let cleaned = self.scrub.clean(text.clone());
        if cleaned == text {
            return Ok(requests);
        }
        serde_json::from_str(&cleaned).map_err(|_| {
            let reason = "it asks for something by a form with a secret in it";
            Broken::Trouble(StepTrouble::unknown(reason))
        })
    }

    fn broken(&self, error: &ServiceError) -> Broken {
        if trouble::is_forgotten(error) {
            return Broken::Forgotten;
        }
        let reason = self.scrub.clean(self.explain(error));
        Broken::Trouble(if trouble::had_no_effect(error) {
            StepTrouble::no_effect(reason)
        } else {
            StepTrouble::unknown(reason)
        })
    }

    fn explain(&self, error: &ServiceError) -> String {
        trouble::explain(error, self.epitaph.text())
    }
}

/// A call that is dropped in the middle. Whatever its server asks after that would be taken for a question of the next call, so
/// the link is over: a program is killed by that, also where nobody calls it again.
struct Left<'a> {
    link: &'a Link,
    in_the_middle: bool,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if self.in_the_middle && !self.link.takes_several() {
            self.link.peer.cancellation_token().cancel();
        }
    }
}

/// The newest lifecycle that the server knows.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn variable(value: &McpVariable, scrub: &mut Scrub) -> Result<String, String> {
    match value {
        McpVariable::Text(text) => Ok(text.clone()),
        McpVariable::Secret { name } => {
            let held = crate::http::held_secret(name).ok_or_else(|| http::unset(name))?;
            scrub.add(&held);
            Ok(held.expose().to_owned())
        }
    }
}

/// Our end of a connection: what a server may want of us at any time.
#[derive(Debug, Default)]
pub(super) struct Ear {
    was_changed: AtomicBool,
    hearing: Mutex<Option<Hearing>>,
}

/// What is wanted in the middle of a call.
#[derive(Debug, Default)]
struct Hearing {
    given: Given,
    heard: Vec<Request>,
    /// What had no answer.
    open: Vec<Request>,
    /// Told when it asks for more than anybody listens to.
    too_much: Arc<Notify>,
}

impl Ear {
    fn hearing(&self) -> MutexGuard<'_, Option<Hearing>> {
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, given: Given, too_much: Arc<Notify>) {
        *self.hearing() = Some(Hearing {
            given,
            too_much,
            ..Hearing::default()
        });
    }

    fn end(&self) -> Vec<Request> {
        let hearing = mem::take(&mut *self.hearing());
        hearing.map(|it| it.open).unwrap_or_default()
    }

    /// The answer to something that is wanted in the middle of a call.
    fn hear(&self, params: Value) -> Option<Value> {
        let mut hearing = self.hearing();
        let hearing = hearing.as_mut()?;
        if hearing.heard.len() >= MAX_HEARD {
            hearing.too_much.notify_one();
            return None;
        }
        let request = Request::elicitation(params);
        let nth = hearing.heard.iter().filter(|it| **it == request).count();
        hearing.heard.push(request.clone());
        let answer = hearing.given.to(&request, nth).cloned();
        if answer.is_none() && hearing.open.len() < MAX_WANTS {
            hearing.open.push(request);
        }
        answer
    }
}

impl ClientHandler for Ear {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if matches!(request, ElicitRequestParams::UrlElicitationParams { .. }) {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        }
        let answer = self.hear(form(&request));
        let answer = answer.unwrap_or_else(|| json!({"action": "cancel"}));
        serde_json::from_value(answer)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.was_changed.store(true, Ordering::SeqCst);
    }

    fn get_info(&self) -> ClientConfig {
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = Some(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(
            capabilities,
            Implementation::new("holdpoint", env!("CARGO_PKG_VERSION")),
        )
    }
}

/// What a form asks, without what only the protocol needs.
fn form(request: &ElicitRequestParams) -> Value {
    let mut params = json!(request);
    if let Some(params) = params.as_object_mut() {
        params.remove("_meta");
        params.remove("mode");
    }
    params
}

#[cfg(test)]
mod tests {
    use std::{io, sync::atomic::AtomicU64};

    use rmcp::{
        service::{RxJsonRpcMessage, TxJsonRpcMessage},
        transport::Transport,
    };
    use tokio::sync::mpsc;

    use super::*;

    /// A server that is a function from requests to results.
    struct Played {
        answers: (
            mpsc::UnboundedSender<RxJsonRpcMessage<RoleClient>>,
            mpsc::UnboundedReceiver<RxJsonRpcMessage<RoleClient>>,
        ),
        list: Box<dyn Fn() -> Option<Value> + Send>,
    }

    impl Transport<RoleClient> for Played {
        type Error = io::Error;

        fn send(
            &mut self,
            message: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
            let message = json!(message);
            let result = match message["method"].as_str() {
                Some("initialize") => Some(json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "played", "version": "1"},
                })),
                Some("tools/list") => (self.list)(),
                _ => None,
            };
            if let Some(id) = message.get("id") {
                let no = json!({"code": -32601, "message": "no"});
                let answer = match result {
                    Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    None => json!({"jsonrpc": "2.0", "id": id, "error": no}),
                };
                self.answers
                    .0
                    .send(serde_json::from_value(answer).unwrap())
                    .unwrap();
            }
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            self.answers.1.recv().await
        }

        async fn close(&mut self) -> Result<(), io::Error> {
            Ok(())
        }
    }

    async fn link(list: impl Fn() -> Option<Value> + Send + 'static) -> Link {
        let played = Played {
            answers: mpsc::unbounded_channel(),
            list: Box::new(list),
        };
        let peer = Ear::default().serve_with_lifecycle(played, lifecycle());
        let peer = peer.await.unwrap();
        Link::over(peer, Epitaph::default(), Arc::default(), "s".to_owned()).await
    }

    async fn ask(link: &Link) -> Result<String, String> {
        let offers = link.offers(Instant::now() + FRESH).await?;
        Ok(offers[0].description.clone())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_offered_is_asked_for_each_minute_however_long_the_server_wants_it_believed() {
        let nth = AtomicU64::new(0);
        let link = link(move || {
            let nth = nth.fetch_add(1, Ordering::SeqCst);
            let tool = json!({"name": "act", "description": nth.to_string(), "inputSchema": {}});
            Some(json!({"tools": [tool], "ttlMs": 86_400_000, "cacheScope": "public"}))
        });
        let link = link.await;
        assert_eq!(ask(&link).await, Ok("0".to_owned()));
        assert_eq!(ask(&link).await, Ok("0".to_owned()));
        tokio::time::advance(FRESH).await;
        assert_eq!(ask(&link).await, Ok("1".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_list_is_not_believed_where_there_is_no_new_one() {
        let nth = AtomicU64::new(0);
        let link = link(move || {
            let is_first = nth.fetch_add(1, Ordering::SeqCst) == 0;
            let tool = json!({"name": "act", "description": "Acts.", "inputSchema": {}});
            is_first.then(|| json!({"tools": [tool], "ttlMs": 1}))
        });
        let link = link.await;
        assert_eq!(ask(&link).await, Ok("Acts.".to_owned()));
        tokio::time::advance(FRESH).await;
        std::thread::sleep(Duration::from_millis(5));
        let why = ask(&link).await.unwrap_err();
        assert!(why.contains("no"), "{why}");
    }
}
