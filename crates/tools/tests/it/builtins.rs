//! The other built-in tools: `shell`, and those that reach the network.

use std::{fs, time::Duration};

use holdpoint_core::{Builtin, Outcome, Runner, ToolSpec};
use holdpoint_tools::{NoSuchTool, Registry, Watchdog, instantiate};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, PLENTY, block_on, call, done, params, spec},
    sandbox::{builtin, run},
    server::{Act, Server, response},
};

crate::trials!(
    a_shell_command_is_free_but_gets_no_secrets,
    variables_that_are_hidden_reach_no_command,
    a_shell_command_is_killed_at_its_own_deadline,
    a_list_of_todos_comes_back,
    a_tool_without_what_it_needs_is_refused_and_says_what,
    a_workspace_does_not_contain_what_decides_about_tools,
    a_document_is_fetched_as_text,
    a_document_is_not_fetched_from_where_tools_may_not_reach,
    each_redirect_is_looked_at_and_there_are_few,
    what_is_no_text_or_not_there_fails,
    a_search_engine_is_asked,
    writes_that_are_killed_leave_the_old_or_the_new,
);

fn a_shell_command_is_free_but_gets_no_secrets() {
    let bench = Bench::new();
    let tool = builtin(Builtin::Shell, &bench.cwd());
    let told = |command| told(run(&*tool, command, PLENTY));
    assert_eq!(
        told("echo out; echo err >&2; exit 4"),
        "[exit code 4]\nout\n[stderr]\nerr"
    );
    assert!(told("head -c 4 /etc/passwd").starts_with("[exit code 0]\nroot"));
    let environment = told("env");
    assert!(!environment.contains("PAY_TOKEN"), "{environment}");
    assert!(environment.contains("PATH="), "{environment}");
    let long = told("seq 1 100000 >&2");
    assert!(
        long.contains("\n20000\n"),
        "more than the beginning of stderr is kept"
    );
}

fn variables_that_are_hidden_reach_no_command() {
    let bench = Bench::new();
    let runner = || Runner::Command {
        command: crate::bench::shell("echo \"${PAY_TOKEN-unset}\""),
        cwd: bench.cwd(),
        lookup: None,
        compensate: None,
    };
    let called = |watchdog: Watchdog| {
        let tool = instantiate(&spec(runner()), &[], &Registry::new(), &watchdog).unwrap();
        block_on(tool.call(call(&params("{}"), PLENTY)))
    };
    assert_eq!(
        called(Watchdog::default()),
        done(crate::surroundings::TOKEN)
    );
    let hiding = Watchdog::default().withholding(["PAY_TOKEN".to_owned()].into());
    assert_eq!(called(hiding), done("unset"));
}

fn a_shell_command_is_killed_at_its_own_deadline() {
    let bench = Bench::new();
    let tool = builtin(Builtin::Shell, &bench.cwd());
    let args = params(r#"{"command": "echo $$ >leader; echo begun; sleep 300", "timeout": 1}"#);
    let outcome = block_on(tool.call(call(&args, PLENTY)));
    assert_eq!(
        outcome,
        done("[killed after 1 seconds, wherever it was]\nbegun")
    );
    bench.must_die("leader", Duration::from_secs(1));
}

fn a_list_of_todos_comes_back() {
    let tool = builtin(Builtin::WriteTodos, "/nowhere");
    let todos = json!([{"content": "look", "status": "pending"}]);
    let args = params(&json!({"todos": todos}).to_string());
    let outcome = block_on(tool.call(call(&args, PLENTY)));
    let Outcome::Done { content } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(serde_json::from_str::<Value>(&content).unwrap(), todos);
}

fn refused(spec: &ToolSpec, registry: &Registry) -> String {
    let refused = instantiate(spec, &[], registry, &Watchdog::default()).unwrap_err();
    let NoSuchTool::Unusable { reason, .. } = refused else {
        panic!("{refused}")
    };
    reason
}

fn a_tool_without_what_it_needs_is_refused_and_says_what() {
    let search = ToolSpec::builtin(Builtin::WebSearch, None);
    let registry = Registry::new();
    assert!(refused(&search, &registry).contains("set HOLDPOINT_SEARCH_URL"));
    let without = registry.clone().with_search("https://find.example.com/");
    assert!(refused(&search, &without).contains("no `{query}`"));
    let nowhere = ToolSpec::builtin(Builtin::ReadFile, None);
    assert!(refused(&nowhere, &registry).contains("needs a workspace"));
    let missing = ToolSpec::builtin(Builtin::Execute, Some("/no/such/folder"));
    assert!(refused(&missing, &registry).contains("make it first"));
}

fn a_workspace_does_not_contain_what_decides_about_tools() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("work/in")).unwrap();
    fs::write(bench.path("work/store.db"), "").unwrap();
    std::os::unix::fs::symlink(bench.path("work"), bench.path("link")).unwrap();
    let at = |path: &str| {
        let path = bench.path(path).to_str().unwrap().to_owned();
        ToolSpec::builtin(Builtin::WriteFile, Some(&path))
    };
    for protected in [
        "work/store.db",
        "link/store.db",
        "work",
        "work/in/keys",
        "work/none/../store.db",
    ] {
        let registry = Registry::new().protecting(bench.path(protected));
        for workspace in ["work", "link"] {
            let said = refused(&at(workspace), &registry);
            assert!(
                said.contains("choose another folder"),
                "{protected}: {said}"
            );
        }
    }
    // It lies in what is protected.
    let registry = Registry::new().protecting(bench.path("work"));
    assert!(refused(&at("work/in"), &registry).contains("lies in it"));
    let registry = Registry::new().protecting(bench.path("work/store.db"));
    assert!(instantiate(&at("work/in"), &[], &registry, &Watchdog::default()).is_ok());
}

fn page(kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn elsewhere(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

/// Fetches `/a` of a server that plays this, on an address that is allowed.
fn fetched(acts: impl FnOnce(u16) -> Vec<Act>) -> (Outcome, Vec<String>) {
    block_on(async {
        // A redirect names the port of the server, which is known only once it is there.
        let scout = Server::play(vec![]).await;
        let port = scout.port;
        drop(scout);
        let server = Server::play(acts(port)).await;
        let registry = Registry::new().with_private_host("127.0.0.1");
        let spec = ToolSpec::builtin(Builtin::FetchUrl, None);
        let tool = instantiate(&spec, &[], &registry, &Watchdog::default()).unwrap();
        let args =
            params(&json!({"url": format!("http://127.0.0.1:{}/a", server.port)}).to_string());
        let outcome = tool.call(call(&args, PLENTY)).await;
        (outcome, server.seen())
    })
}

pub(crate) fn told(outcome: Outcome) -> String {
    let Outcome::Done { content } = outcome else {
        panic!("{outcome:?}")
    };
    content
}

fn failure(outcome: Outcome) -> String {
    let Outcome::Failed { error } = outcome else {
        panic!("{outcome:?}")
    };
    error
}

fn a_document_is_fetched_as_text() {
    let html = "<title>T</title><script>x</script><p>one &amp; two</p>";
    let (outcome, seen) = fetched(|_| vec![Act::Say(page("text/html; charset=utf-8", html))]);
    assert!(told(outcome).ends_with("/a]\nT\none & two"));
    assert!(seen[0].starts_with("GET /a HTTP/1.1\r\n"), "{seen:?}");
    let (outcome, _) = fetched(|_| vec![Act::Say(page("application/json", r#"{"a":1}"#))]);
    assert!(told(outcome).ends_with("]\n{\"a\":1}"));
    let long = "x".repeat(3 << 20);
    let (outcome, _) = fetched(|_| vec![Act::Say(page("text/plain", &long))]);
    let told = told(outcome);
    assert!(told.len() < 300_000 && told.ends_with("the document is longer]"));
}

fn a_document_is_not_fetched_from_where_tools_may_not_reach() {
    let spec = ToolSpec::builtin(Builtin::FetchUrl, None);
    let tool = instantiate(&spec, &[], &Registry::new(), &Watchdog::default()).unwrap();
    for (url, said) in [
        ("http://127.0.0.1:1/", "private address"),
        ("http://localhost:1/", "private address"),
        ("http://[::1]/", "private address"),
        ("http://0x7f.1/", "private address"),
        ("http://169.254.169.254/latest/meta-data", "not for tools"),
        ("http://10.0.0.1/", "private address"),
        ("file:///etc/passwd", "neither `https:` nor `http:`"),
        ("ftp://example.com/", "neither `https:` nor `http:`"),
        ("http://user:pass@example.com/", "name or password"),
        ("/etc/passwd", "not a URL"),
    ] {
        let args = params(&json!({"url": url}).to_string());
        let error = failure(block_on(tool.call(call(&args, PLENTY))));
        assert!(error.contains(said), "{url}: {error}");
    }
}

fn each_redirect_is_looked_at_and_there_are_few() {
    let (outcome, seen) = fetched(|_| {
        vec![
            Act::Say(elsewhere("http://169.254.169.254/latest/meta-data")),
            Act::Say(page("text/plain", "never")),
        ]
    });
    let error = failure(outcome);
    assert!(
        error.contains("redirected") && error.contains("169.254.169.254"),
        "{error}"
    );
    assert_eq!(seen.len(), 1);
    let (outcome, _) = fetched(|_| vec![Act::Say(elsewhere("file:///etc/passwd"))]);
    assert!(failure(outcome).contains("neither `https:` nor `http:`"));
    let (outcome, seen) = fetched(|_| {
        vec![
            Act::Say(elsewhere("/b")),
            Act::Say(page("text/plain", "there")),
        ]
    });
    assert!(told(outcome).ends_with("/b]\nthere"));
    assert!(seen[1].starts_with("GET /b "));
    let (outcome, seen) = fetched(|_| vec![Act::Say(elsewhere("/again")); 9]);
    assert!(failure(outcome).contains("more than 5 times"));
    assert_eq!(seen.len(), 6);
}

fn what_is_no_text_or_not_there_fails() {
    let (outcome, _) = fetched(|_| vec![Act::Say(page("image/png", "png"))]);
    assert_eq!(
        failure(outcome),
        "the document is no text: image/png, 3 bytes"
    );
    let (outcome, _) = fetched(|_| vec![Act::Say(response("404 Not Found", "no\u{1b}such"))]);
    assert_eq!(failure(outcome), "HTTP 404: no\\u{1b}such");
    let (outcome, _) = fetched(|_| vec![Act::Say(response("503 Service Unavailable", "later"))]);
    assert!(
        matches!(outcome, Outcome::Unknown { .. }),
        "it may be asked again: {outcome:?}"
    );
    let (outcome, _) = fetched(|_| vec![Act::HangUp]);
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
}

fn a_search_engine_is_asked() {
    let (outcome, seen) = block_on(async {
        let answer = r#"[{"title":"One","url":"https://one/","snippet":"first"},{"title":"Two","url":"https://two/"}]"#;
        let server = Server::play(vec![Act::Say(page("application/json", answer))]).await;
        let endpoint = format!("http://127.0.0.1:{}/find?q={{query}}&n=10", server.port);
        let registry = Registry::new().with_search(endpoint);
        let spec = ToolSpec::builtin(Builtin::WebSearch, None);
        let tool = instantiate(&spec, &[], &registry, &Watchdog::default()).unwrap();
        let args = params(r#"{"query": "a&b=c d", "max": 1}"#);
        (tool.call(call(&args, PLENTY)).await, server.seen())
    });
    assert_eq!(outcome, done("1. One\n   https://one/\n   first"));
    assert!(
        seen[0].starts_with("GET /find?q=a%26b%3Dc%20d&n=10 "),
        "{seen:?}"
    );
}

const ARGUMENT: &str = "__writer";

/// If this process was started as one that writes without end, it does.
pub(crate) fn enter() {
    let arguments: Vec<_> = std::env::args().collect();
    if arguments.get(1).is_none_or(|argument| argument != ARGUMENT) {
        return;
    }
    let tool = builtin(Builtin::WriteFile, &arguments[2]);
    for number in 0_u32.. {
        let args = params(&json!({"path": "a/file", "content": content(number)}).to_string());
        let outcome = block_on(tool.call(call(&args, PLENTY)));
        assert!(matches!(outcome, Outcome::Done { .. }), "{outcome:?}");
    }
}

/// Of many pages, and different each time.
fn content(number: u32) -> String {
    format!("{number}\n").repeat(20_000)
}

fn writes_that_are_killed_leave_the_old_or_the_new() {
    use rustix::process::{Pid, Signal, kill_process};
    const KILLS: u64 = 25;
    let bench = Bench::new();
    let mut left = 0;
    for kill in 0..KILLS {
        let mut writer = std::process::Command::new(std::env::current_exe().unwrap())
            .args([ARGUMENT, &bench.cwd()])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while !bench.path("a/file").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(30_000 + kill * 1_370));
        kill_process(Pid::from_child(&writer), Signal::KILL).unwrap();
        writer.wait().unwrap();
        let text = fs::read_to_string(bench.path("a/file")).unwrap();
        let number = text.lines().next().unwrap().parse().unwrap();
        assert!(text == content(number), "a mixture, after kill {kill}");
        let names = fs::read_dir(bench.path("a")).unwrap();
        left += names.count() - 1;
    }
    println!("{left} half-written files in all");
    let tool = builtin(Builtin::WriteFile, &bench.cwd());
    let args = params(r#"{"path": "a/file", "content": "end"}"#);
    assert_eq!(
        block_on(tool.call(call(&args, PLENTY))),
        done("wrote 3 bytes to `a/file`")
    );
    assert_eq!(fs::read_dir(bench.path("a")).unwrap().count(), 1);
}
