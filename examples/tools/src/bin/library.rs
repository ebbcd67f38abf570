//! An MCP server: a library that lends books. It speaks the protocol of 2025 on its standard input and output, and does not need
//! more of it than a small server does.
//!
//! What it lends is a line in a ledger (`LEDGER`, `lent.jsonl` when unsaid), once for each key that its client sends along. A
//! reader's card is not for models to know, so it asks the person behind its client for the number.

use std::{
    io::{self, BufRead, Lines, StdinLock, Write as _},
    process::ExitCode,
};

use anyhow::Context;
use example_tools::{Call, Ledger, environment};
use serde_json::{Map, Value, json};

const BOOKS: [&str; 3] = ["The Tea Book", "Locks and Keys", "红楼梦"];

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> anyhow::Result<()> {
    let mut client = Client {
        lines: io::stdin().lock().lines(),
        can_be_asked: false,
    };
    while let Some(message) = client.next()? {
        let Some(id) = message.get("id").cloned() else {
            continue;
        };
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => Ok(client.begin(params)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(tools()),
            "tools/call" => client.call(params)?,
            other => Err(json!({"code": -32601, "message": format!("no method `{other}`")})),
        };
        client.send(&match result {
            Ok(result) => json!({"id": id, "result": result}),
            Err(error) => json!({"id": id, "error": error}),
        })?;
    }
    Ok(())
}

fn tools() -> Value {
    let title = json!({
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    });
    json!({"tools": [
        {
            "name": "find_book",
            "description": "Finds books by a part of their title.",
            "inputSchema": title,
            "annotations": {"readOnlyHint": true},
        },
        {
            "name": "lend_book",
            "description": "Lends a book to the user, who is asked for their card.",
            "inputSchema": title,
            "annotations": {"idempotentHint": true},
        },
    ]})
}

struct Client<'a> {
    lines: Lines<StdinLock<'a>>,
    can_be_asked: bool,
}

impl Client<'_> {
    fn next(&mut self) -> anyhow::Result<Option<Value>> {
        let Some(line) = self.lines.next() else {
            return Ok(None);
        };
        let line = line.context("the client cannot be heard")?;
        let message = serde_json::from_str(&line).context("the client speaks no JSON")?;
        Ok(Some(message))
    }

    fn send(&self, message: &Value) -> anyhow::Result<()> {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{message}").context("the client does not listen")?;
        stdout.flush().context("the client does not listen")
    }

    fn begin(&mut self, params: &Value) -> Value {
        self.can_be_asked = params["capabilities"].get("elicitation").is_some();
        json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "library", "version": "1"},
        })
    }

    fn call(&mut self, params: &Value) -> anyhow::Result<Result<Value, Value>> {
        let Some(title) = params["arguments"]["title"].as_str() else {
            return Ok(Err(
                json!({"code": -32602, "message": "`title` is missing"}),
            ));
        };
        let found: Vec<&str> = BOOKS
            .into_iter()
            .filter(|book| book.to_lowercase().contains(&title.to_lowercase()))
            .collect();
        Ok(
            match (params["name"].as_str().unwrap_or_default(), &found[..]) {
                ("find_book", []) => Ok(said("Nothing is called so.")),
                ("find_book", found) => Ok(said(&found.join("\n"))),
                ("lend_book", [book]) => Ok(self.lend(book, &params["_meta"])?),
                ("lend_book", _) => Ok(failed("That is not the title of one book.")),
                (other, _) => {
                    let message = format!("no tool `{other}`");
                    Err(json!({"code": -32602, "message": message}))
                }
            },
        )
    }

    fn lend(&mut self, book: &str, meta: &Value) -> anyhow::Result<Value> {
        let Some(card) = self.card(book)? else {
            return Ok(failed("Without the number of a card, nothing is lent."));
        };
        let key = meta["holdpoint/idempotency-key"].as_str();
        let args = Map::from_iter([
            ("book".to_owned(), book.into()),
            ("card".to_owned(), card.clone().into()),
        ]);
        let call = Call {
            key: key.unwrap_or(book).to_owned(),
            epoch: 0,
            args,
        };
        let path = environment("LEDGER").unwrap_or_else(|| "lent.jsonl".to_owned());
        Ledger::at(path).act_once(&call)?;
        Ok(said(&format!("{book} is lent to {card}.")))
    }

    /// Asks for the number of the reader's card, where there is somebody to ask.
    fn card(&mut self, book: &str) -> anyhow::Result<Option<String>> {
        if !self.can_be_asked {
            return Ok(None);
        }
        let card = json!({"type": "string", "title": "Number of your card", "minLength": 4});
        self.send(&json!({
            "id": "card",
            "method": "elicitation/create",
            "params": {
                "message": format!("Who borrows {book}?"),
                "requestedSchema": {
                    "type": "object",
                    "properties": {"card": card},
                    "required": ["card"],
                },
            },
        }))?;
        while let Some(message) = self.next()? {
            if message["id"] == "card" {
                let card = message["result"]["content"]["card"].as_str();
                return Ok(card.map(str::to_owned));
            }
        }
        Ok(None)
    }
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn failed(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}
