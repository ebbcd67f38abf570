//! A server of this test's own, and clients of it.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use holdpoint_core::{Principal, PrincipalKind};
use holdpoint_definition::{Names, ServerFile};
use holdpoint_server::{Access, Keys, Opening};
use holdpoint_store::SqliteStore;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

/// An agent of the chat API, whose model is played.
const CONFIRMING: &str = r#"
apiVersion: superagent/v1
kind: Agent
metadata: {name: approval-agent, version: "1.0.0"}
spec:
  type: chat_model_agent
  model: {primary: gpt-4o}
  system_prompt: You ask before anything that cannot be undone.
  interrupt: {enabled: true, checkpoint_backend: redis, timeout_seconds: 300}
  memory: {backend: builtin}
"#;

const CONFIRMING_SCENARIO: &str = r#"
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {user: "Please proceed."}
    chunks: ["已收到您的确认。正在执行删除操作...", "删除完成,共删除 1,234 条过期用户记录。操作日志已记录。"]
  - when: {user: "Do not proceed."}
    say: "Shall I proceed with something else?"
  - when: {user: "删除"}
    chunks: ["我将要删除", "以下过期用户数据:共 1,234 条记录。", "\nPlease confirm: 即将删除 1,234 条记录,此操作不可逆。"]
  - when: {user: "fail"}
    fail: {with: rejected}
  - say: "{user}"
"#;

/// An agent with a tool that is asked about.
const GATED: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: {name: clerk}
spec:
  model: {primary: "scripted:clerk-scenario.yaml"}
  tools:
    - name: act
      effect: read
      http: {method: GET, url: "http://127.0.0.1:PORT/act", allow_private: [127.0.0.1]}
  interrupt_on: {act: {allowed_decisions: [approve, edit, reject]}}
"#;

const GATED_SCENARIO: &str = r#"
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {turn: 1}
    say: "I will act."
    call: [{tool: act, args: {}}]
  - say: "It is done."
"#;

/// What webhooks are signed with.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// An agent that never asks anybody.
const PLAIN: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: {name: plain}
spec:
  model: {primary: "scripted:approval-scenario.yaml"}
"#;

/// A server that runs in this process.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
}

impl World {
    /// Without keys.
    pub(crate) async fn dev() -> Self {
        Self::new(Access::Dev, |_| {}).await
    }

    /// With keys, and limits of its own.
    pub(crate) async fn new(access: Access, change: impl FnOnce(&mut ServerFile)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::in_folder(folder, access, change).await
    }

    async fn in_folder(
        folder: TempDir,
        access: Access,
        change: impl FnOnce(&mut ServerFile),
    ) -> Self {
        let path = folder.path();
        let file = |name: &str, text: &str| -> PathBuf {
            let file = path.join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let scenario = file("approval-scenario.yaml", CONFIRMING_SCENARIO);
        file("clerk-scenario.yaml", GATED_SCENARIO);
        let store = format!("sqlite:{}", path.join("main.db").display());
        let chats = format!("sqlite:{}", path.join("chats.db").display());
        let gated = GATED.replace("PORT", &tool().await.to_string());
        let mut config = ServerFile {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            store,
            agents: vec![
                file("approval.yaml", CONFIRMING),
                file("clerk.yaml", &gated),
                file("plain.yaml", PLAIN),
            ],
            names: Names {
                models: BTreeMap::from([(
                    "gpt-4o".to_owned(),
                    format!("scripted:{}", scenario.display()),
                )]),
                stores: BTreeMap::from([("redis".to_owned(), chats)]),
                ..Names::default()
            },
            ..ServerFile::default()
        };
        change(&mut config);
        let opening = Opening::new(config, access);
        let opening = opening.with_secret("SINK_SECRET", SECRET.to_owned());
        let server = opening.start().await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            server.run(stopped).await;
        });
        Self {
            address,
            folder,
            client: Client::builder().no_proxy().build().unwrap(),
            stop: Some(stop),
            running: Some(running),
        }
    }

    /// Another server in the same folder.
    pub(crate) async fn over(old: &Self, access: Access) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(old.folder.path()).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
            }
        }
        Self::in_folder(folder, access, |_| {}).await
    }

    /// Another server on the same stores, while this one goes on.
    pub(crate) async fn beside(&self) -> Self {
        self.beside_with(|_| {}).await
    }

    /// Another server on the same stores, configured in its own way.
    pub(crate) async fn beside_with(&self, change: impl FnOnce(&mut ServerFile)) -> Self {
        let path = self.folder.path();
        let store = |name: &str| format!("sqlite:{}", path.join(name).display());
        let scenario = path.join("approval-scenario.yaml");
        Self::new(Access::Dev, |file| {
            file.store = store("main.db");
            file.agents = ["approval.yaml", "clerk.yaml", "plain.yaml"]
                .map(|name| path.join(name))
                .to_vec();
            file.names = Names {
                models: BTreeMap::from([(
                    "gpt-4o".to_owned(),
                    format!("scripted:{}", scenario.display()),
                )]),
                stores: BTreeMap::from([("redis".to_owned(), store("chats.db"))]),
                ..Names::default()
            };
            change(file);
        })
        .await
    }

    /// What the stores hold, as one text: rows, not bytes, since a log may be moved to its place at any time.
    pub(crate) fn contents(&self) -> String {
        let mut all = String::new();
        for name in ["main.db", "chats.db"] {
            let conn = rusqlite::Connection::open(self.folder.path().join(name)).unwrap();
            for table in ["threads", "events", "entries", "cells", "blobs", "marks"] {
                // A server says now and then that it lives, whatever is asked of it.
                let servers = if table == "cells" {
                    " WHERE space <> 7"
                } else {
                    ""
                };
                let columns = format!("SELECT * FROM {table}{servers}");
                let mut rows = conn.prepare(&columns).unwrap();
                let count = rows.column_count();
                let mut lines: Vec<String> = rows
                    .query_map([], |row| {
                        (0..count)
                            .map(|at| row.get_ref(at).map(|value| format!("{value:?}")))
                            .collect::<Result<String, _>>()
                    })
                    .unwrap()
                    .map(Result::unwrap)
                    .collect();
                lines.sort();
                all.push_str(&lines.join("\n"));
            }
        }
        all
    }

    /// Waits until the agents are so.
    pub(crate) async fn agents_until(&self, so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..500 {
            let (_, agents) = self.get("/api/v1/agents").await;
            if so(&agents) {
                return agents;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("the agents stay as they are");
    }

    /// Ends it as a signal does.
    pub(crate) async fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(running) = self.running.take() {
            running.await.unwrap();
        }
    }

    /// A key for this principal.
    pub(crate) async fn key(
        &self,
        kind: PrincipalKind,
        tenant: &str,
        name: &str,
    ) -> (String, String) {
        let keys = self.keys();
        let made = keys
            .create(Principal::new(kind, tenant, name), None, "")
            .await
            .unwrap();
        (made.id, made.key)
    }

    pub(crate) fn keys(&self) -> Keys {
        let path = self.folder.path().join("main.db");
        let store = SqliteStore::open(&path, &Default::default()).unwrap();
        Keys::new(Arc::new(store))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        read(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        read(self.posting(path, body).send().await.unwrap()).await
    }

    pub(crate) fn posting(&self, path: &str, body: &Value) -> RequestBuilder {
        self.request(Method::POST, path)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// A stream as text, up to its end.
    pub(crate) async fn stream(&self, path: &str, body: &Value) -> String {
        let response = self.posting(path, body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.text().await.unwrap()
    }

    /// Waits until a run stands so.
    pub(crate) async fn until(&self, run: &str, status: &str) -> Value {
        for _ in 0..500 {
            let (code, shown) = self.get(&format!("/api/v1/runs/{run}")).await;
            assert_eq!(code, 200, "{shown}");
            if shown["status"] == status {
                return shown;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{run} does not become {status}");
    }

    /// Sends bytes on a connection of their own. Returns what is answered first.
    pub(crate) async fn raw(&self, bytes: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut answer = vec![0; 16_384];
        let read = timeout(Duration::from_secs(20), stream.read(&mut answer)).await;
        String::from_utf8_lossy(&answer[..read.unwrap().unwrap()]).into_owned()
    }

    /// A run of the clerk that waits.
    pub(crate) async fn waiting(&self, session: &str) -> String {
        let body = json!({"agent_id": "clerk", "session_id": session, "input": "go"});
        let (status, begun) = self.post("/api/v1/runs", &body).await;
        assert_eq!(status, 201, "{begun}");
        let run = begun["run_id"].as_str().unwrap().to_owned();
        self.until(&run, "waiting").await;
        run
    }
}

/// A service that a tool talks to. Returns its port.
async fn tool() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = axum::Router::new().route("/act", axum::routing::get(|| async { "acted" }));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    port
}

pub(crate) async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, value)
}

pub(crate) fn chat(session: &str, message: &str) -> Value {
    json!({"agent_id": "approval-agent", "session_id": session, "message": message})
}

pub(crate) fn resume(session: &str, input: &Value) -> Value {
    json!({"agent_id": "approval-agent", "session_id": session, "input": input})
}
