//! MCP servers over HTTP are reached as carefully as every other address, and those on standard input and output leave nothing behind.

use std::time::Duration;

use holdpoint_core::{HttpHeader, McpServer, McpTransport};
use holdpoint_tools::{Watchdog, offers};
use tokio::time::Instant;

use crate::{
    bench::block_on,
    server::{Act, Server},
    trials,
};

trials!(
    a_private_address_is_not_reached_unless_that_is_meant,
    a_redirect_is_not_followed_and_carries_no_secret_away,
    what_is_no_server_is_told_as_that,
    a_program_that_ends_at_once_says_why,
    a_program_that_is_not_there_is_named,
);

async fn ask(server: &McpServer) -> Result<usize, String> {
    let offered = offers(server, &Watchdog::default()).await;
    offered.map(|it| it.len())
}

fn at(url: &str, allowed: &[&str], headers: &[(&str, HttpHeader)]) -> McpServer {
    let mut server = McpServer::http("s", url);
    if let McpTransport::Http {
        headers: sent,
        allow_private,
        ..
    } = &mut server.transport
    {
        allow_private.extend(allowed.iter().map(|it| (*it).to_owned()));
        let headers = headers.iter();
        sent.extend(headers.map(|(name, value)| ((*name).to_owned(), value.clone())));
    }
    server
}

fn answer(status: &str, more: &str, body: &str) -> Act {
    let length = body.len();
    Act::Say(
        format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n{body}"
        )
        .into_bytes(),
    )
}

fn a_private_address_is_not_reached_unless_that_is_meant() {
    block_on(async {
        let heard = Server::play(vec![answer("404 Not Found", "", ""); 8]).await;
        let port = heard.port;
        for url in [
            format!("https://localhost:{port}/mcp"),
            format!("https://127.0.0.1:{port}/mcp"),
            format!("https://[::ffff:127.0.0.1]:{port}/mcp"),
            format!("https://2130706433:{port}/mcp"),
            format!("http://127.0.0.1:{port}/mcp"),
        ] {
            let why = ask(&at(&url, &[], &[])).await.unwrap_err();
            assert!(why.contains("allow_private"), "{url}: {why}");
        }
        assert!(heard.seen().is_empty(), "{:?}", heard.seen());
        // The control: it is there, and reached by who may.
        let named = at(&format!("http://127.0.0.1:{port}/mcp"), &["127.0.0.1"], &[]);
        ask(&named).await.unwrap_err();
        assert!(!heard.seen().is_empty());
    });
}

fn a_redirect_is_not_followed_and_carries_no_secret_away() {
    block_on(async {
        let canary = Server::play(vec![answer("200 OK", "", ""); 4]).await;
        let to = format!("Location: http://127.0.0.1:{}/\r\n", canary.port);
        let server = Server::play(vec![answer("307 Temporary Redirect", &to, ""); 8]).await;
        let url = format!("http://127.0.0.1:{}/mcp", server.port);
        let token = HttpHeader::Secret {
            name: "PATH".to_owned(),
            prefix: "Bearer ".to_owned(),
        };
        let why = ask(&at(&url, &["127.0.0.1"], &[("authorization", token)])).await;
        let why = why.unwrap_err();
        let secret = std::env::var_os("PATH").unwrap();
        let secret = secret.to_str().unwrap();
        assert!(!why.contains(secret), "{why}");
        // The secret was sent to whom it is for, and nobody else was asked.
        let sent = server.seen();
        assert!(sent.iter().any(|it| it.contains(secret)), "{sent:?}");
        assert!(canary.seen().is_empty(), "{:?}", canary.seen());
    });
}

fn what_is_no_server_is_told_as_that() {
    block_on(async {
        for act in [
            answer("200 OK", "Content-Type: text/html\r\n", "<h1>Hello</h1>"),
            answer("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "no"),
            answer("403 Forbidden", "", "no"),
            answer("404 Not Found", "", "no"),
            answer("500 Internal Server Error", "", "no"),
            answer("200 OK", "Content-Type: application/json\r\n", "{\"a\": "),
            Act::HangUp,
        ] {
            let server = Server::play(vec![act; 8]).await;
            let url = format!("http://127.0.0.1:{}/mcp", server.port);
            let why = ask(&at(&url, &["127.0.0.1"], &[])).await.unwrap_err();
            assert!(why.starts_with("the MCP server `s`: "), "{why}");
            assert!(why.len() < 1_000, "{why}");
        }
    });
}

fn a_program_that_ends_at_once_says_why() {
    block_on(async {
        let begun = Instant::now();
        let script = ["sh", "-c", "echo I need a key >&2; exit 7"];
        let why = ask(&McpServer::stdio("s", script, "/")).await.unwrap_err();
        assert!(
            why.contains("code 7") && why.contains("I need a key"),
            "{why}"
        );
        assert!(begun.elapsed() < Duration::from_secs(30));
    });
}

fn a_program_that_is_not_there_is_named() {
    block_on(async {
        let server = McpServer::stdio("s", ["/no/such/program"], "/");
        let why = ask(&server).await.unwrap_err();
        assert!(why.contains("/no/such/program"), "{why}");
    });
}
