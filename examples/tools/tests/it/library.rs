//! The example MCP server as its clients call it.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

struct Server {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts it, with a client that can be asked or not.
    fn start(dir: &Path, capabilities: &Value) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_holdpoint-example-library"))
            .current_dir(dir)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut server = Self { child, lines };
        let begun = server.ask("initialize", &json!({"capabilities": capabilities}));
        assert_eq!(begun["result"]["serverInfo"]["name"], "library");
        server
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        self.hear()
    }

    fn call(&mut self, tool: &str, title: &str) -> Value {
        let meta = json!({"holdpoint/idempotency-key": "hpk_1"});
        let params = json!({"name": tool, "arguments": {"title": title}, "_meta": meta});
        self.ask("tools/call", &params)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn it_lends_once_for_a_key_to_whoever_shows_a_card() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &json!({"elicitation": {}}));
    assert_eq!(text(&server.call("find_book", "tea")), "The Tea Book");
    for _ in 0..2 {
        let asks = server.call("lend_book", "the tea book");
        assert_eq!(asks["method"], "elicitation/create");
        let content = json!({"card": "4711"});
        server.say(&json!({"id": "card", "result": {"action": "accept", "content": content}}));
        assert_eq!(text(&server.hear()), "The Tea Book is lent to 4711.");
    }
    let asks = server.call("lend_book", "红楼梦");
    assert_eq!(asks["id"], "card");
    server.say(&json!({"id": "card", "result": {"action": "cancel"}}));
    assert_eq!(server.hear()["result"]["isError"], true);
    let lent = std::fs::read_to_string(dir.path().join("lent.jsonl")).unwrap();
    assert_eq!(lent.matches("\"book\"").count(), 1, "{lent}");
}

#[test]
fn nothing_is_lent_where_nobody_can_be_asked() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &json!({}));
    let answer = server.call("lend_book", "the tea book");
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(
        server.ask("resources/list", &json!({}))["error"]["code"],
        -32601
    );
    assert!(!dir.path().join("lent.jsonl").exists());
}
