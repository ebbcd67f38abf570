//! Every built-in tool, in a run of the real binary: what is asked first, in which words, and what happens then.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

use serde_json::{Value, json};

use crate::support::{World, tool_contents};

/// An agent that has all built-in tools for files and commands, and whose model makes this call and says what came of it.
fn agent(world: &World, tool: &str, args: &Value, more: &str) -> String {
    world.write(
        "clerk/scenario.yaml",
        &format!(
            "apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n  - when: {{turn: 1}}\n    call: [{{tool: {tool}, args: {args}}}]\n  - say: 'end'\n"
        ),
    );
    fs::create_dir_all(world.path().join("clerk/work")).unwrap();
    let tools = "[{builtin: read_file}, {builtin: ls}, {builtin: glob}, {builtin: grep}, {builtin: write_file}, {builtin: edit_file}, {builtin: shell}, {builtin: execute}, {builtin: write_todos}]";
    world.write(
        "clerk/agent.yaml",
        &format!(
            "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{name: clerk}}\nspec:\n  model: {{primary: 'scripted:scenario.yaml'}}\n  workspace: ./work\n  tools: {tools}\n{more}"
        ),
    );
    "clerk/agent.yaml".to_owned()
}

/// Runs until it stops, and gives the one call that is asked about.
fn asked(world: &World, file: &str) -> Value {
    let stopped = world.json(3, &["run", file, "--input", "x", "--thread", "t"]);
    let value = &stopped["__interrupt__"][0]["value"];
    assert_eq!(
        value["review_configs"][0]["allowed_decisions"],
        json!(["approve", "reject"])
    );
    value["action_requests"][0].clone()
}

fn approved(world: &World) -> String {
    let done = world.json(0, &["resume", "clerk/t", "--approve"]);
    tool_contents(&done)[0].to_owned()
}

fn unasked(world: &World, file: &str) -> String {
    let done = world.json(0, &["run", file, "--input", "x", "--thread", "t"]);
    tool_contents(&done)[0].to_owned()
}

#[test]
fn a_file_is_written_after_it_was_asked_and_the_question_says_how_many_lines_where() {
    let world = World::new();
    let args = json!({"path": "notes/a.txt", "content": "one\ntwo\nthree"});
    let file = agent(&world, "write_file", &args, "");
    let request = asked(&world, &file);
    assert_eq!(request["description"], "Write 3 lines to notes/a.txt");
    let written = world.path().join("clerk/work/notes/a.txt");
    assert!(!written.exists());
    assert_eq!(approved(&world), "wrote 13 bytes to `notes/a.txt`");
    assert_eq!(fs::read_to_string(written).unwrap(), "one\ntwo\nthree");
}

#[test]
fn content_that_is_null_deletes_and_the_question_says_so() {
    let world = World::new();
    let file = agent(
        &world,
        "write_file",
        &json!({"path": "a.txt", "content": null}),
        "",
    );
    world.write("clerk/work/a.txt", "text");
    let request = asked(&world, &file);
    assert_eq!(request["description"], "Delete file: a.txt");
    assert_eq!(approved(&world), "deleted `a.txt`");
    assert!(!world.path().join("clerk/work/a.txt").exists());
}

#[test]
fn a_rejected_write_changes_nothing() {
    let world = World::new();
    let file = agent(
        &world,
        "write_file",
        &json!({"path": "a.txt", "content": null}),
        "",
    );
    world.write("clerk/work/a.txt", "text");
    asked(&world, &file);
    let done = world.json(0, &["resume", "clerk/t", "--reject", "keep it"]);
    assert!(tool_contents(&done)[0].contains("keep it"));
    assert!(world.path().join("clerk/work/a.txt").exists());
}

#[test]
fn a_call_without_content_is_not_a_deletion() {
    let world = World::new();
    let file = agent(&world, "write_file", &json!({"path": "a.txt"}), "");
    world.write("clerk/work/a.txt", "text");
    assert!(unasked(&world, &file).contains("content"));
    assert!(world.path().join("clerk/work/a.txt").exists());
}

#[test]
fn a_file_is_edited_after_it_was_asked() {
    let world = World::new();
    let args =
        json!({"path": "a.txt", "old_string": "two", "new_string": "2", "replace_all": true});
    let file = agent(&world, "edit_file", &args, "");
    world.write("clerk/work/a.txt", "one two two\n");
    let request = asked(&world, &file);
    assert_eq!(request["description"], "Edit file: a.txt (all occurrences)");
    assert_eq!(approved(&world), "edited `a.txt`");
    let text = fs::read_to_string(world.path().join("clerk/work/a.txt")).unwrap();
    assert_eq!(text, "one 2 2\n");
}

#[test]
fn a_shell_command_runs_after_it_was_asked() {
    let world = World::new();
    let args = json!({"command": "echo hello >a; cat a; exit 3"});
    let file = agent(&world, "shell", &args, "");
    let request = asked(&world, &file);
    assert_eq!(
        request["description"],
        "Execute shell command: echo hello >a; cat a; exit 3"
    );
    assert_eq!(approved(&world), "[exit code 3]\nhello");
    assert!(world.path().join("clerk/work/a").exists());
}

#[test]
fn a_command_in_the_sandbox_runs_after_it_was_asked_and_sees_nothing_else() {
    let world = World::new();
    let secret = world.path().join("holdpoint.db");
    let command = format!(
        "echo inside >a; cat a; cat '{}' /etc/passwd; echo x >../out; cat /proc/1/environ",
        secret.display()
    );
    let file = agent(&world, "execute", &json!({"command": command}), "");
    let request = asked(&world, &file);
    assert_eq!(
        request["description"],
        format!("Execute command in the sandbox: {command}")
    );
    assert!(secret.exists());
    let told = approved(&world);
    assert!(
        told.starts_with("[exit code 1]\ninside\n[stderr]\n"),
        "{told}"
    );
    assert!(
        !told.contains("SQLite") && !told.contains("root:"),
        "{told}"
    );
    assert!(!world.path().join("clerk/out").exists());
    let names = fs::read_dir(world.path().join("clerk/work")).unwrap();
    assert_eq!(names.count(), 1);
}

#[test]
fn what_only_looks_at_the_workspace_is_not_asked_about() {
    for (tool, args, expected) in [
        (
            "read_file",
            json!({"path": "a.txt"}),
            "     1\tone\n     2\ttwo\n",
        ),
        ("ls", json!({}), "a.txt\nin/"),
        ("glob", json!({"pattern": "**/*.md"}), "in/b.md"),
        ("grep", json!({"pattern": "^t"}), "a.txt:2:two"),
        (
            "write_todos",
            json!({"todos": [{"content": "look", "status": "pending"}]}),
            r#"[{"content":"look","status":"pending"}]"#,
        ),
        (
            "ls",
            json!({"path": ".."}),
            "`..` has a `..`, which is not followed; paths are seen from the workspace",
        ),
    ] {
        let world = World::new();
        let file = agent(&world, tool, &args, "");
        world.write("clerk/work/a.txt", "one\ntwo\n");
        world.write("clerk/work/in/b.md", "");
        let told = unasked(&world, &file);
        assert!(told.contains(expected), "{tool}: {told}");
    }
}

/// A server that gives this answer to whoever asks.
fn server(answer: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn with_tool(world: &World, tool: &str, args: &Value) -> String {
    let file = agent(world, tool, args, "");
    let path = world.path().join(&file);
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("{builtin: ls}", &format!("{{builtin: {tool}}}"));
    fs::write(path, text).unwrap();
    file
}

#[test]
fn a_document_is_fetched_after_it_was_asked() {
    let body = "<title>News</title><p>Nothing &amp; nobody</p>";
    let length = body.len();
    let port = server(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ));
    let mut world = World::new();
    let url = format!("http://127.0.0.1:{port}/news");
    let file = with_tool(&world, "fetch_url", &json!({"url": url}));
    // The operator says that this host is fine.
    world.set("HOLDPOINT_FETCH_PRIVATE", "localhost, 127.0.0.1");
    let request = asked(&world, &file);
    assert_eq!(request["description"], format!("Fetch URL: {url}"));
    assert_eq!(request["preview"]["body"], format!("GET {url}\n"));
    assert_eq!(approved(&world), format!("[{url}]\nNews\nNothing & nobody"));
}

#[test]
fn a_private_address_is_not_fetched_and_nobody_is_asked_about_it() {
    let world = World::new();
    let port = server("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret".to_owned());
    let url = format!("http://127.0.0.1:{port}/");
    let file = with_tool(&world, "fetch_url", &json!({"url": url}));
    let told = unasked(&world, &file);
    assert!(
        told.contains("private address") && !told.contains("secret"),
        "{told}"
    );
}

#[test]
fn the_web_is_searched_after_it_was_asked_where_that_is_configured() {
    let mut world = World::new();
    let file = with_tool(
        &world,
        "web_search",
        &json!({"query": "hold points", "max": 1}),
    );
    let refused = world.hold(&["run", &file, "--input", "x", "--thread", "t", "--json"]);
    assert_ne!(refused.code, 0);
    assert_ne!(refused.code, 3);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("HOLDPOINT_SEARCH_URL"), "{said}");
    let body =
        r#"[{"title":"T","url":"https://t/","snippet":"S"},{"title":"U","url":"https://u/"}]"#;
    let length = body.len();
    let port = server(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ));
    let endpoint = format!("http://127.0.0.1:{port}/?q={{query}}");
    world.set("HOLDPOINT_SEARCH_URL", &endpoint);
    let request = asked(&world, &file);
    assert_eq!(request["description"], "Search the web: hold points");
    assert_eq!(approved(&world), "1. T\n   https://t/\n   S");
}

#[test]
fn a_task_is_asked_about_where_there_are_built_in_tools() {
    let world = World::new();
    let args = json!({"subagent_type": "helper", "description": "look around"});
    let more = "  subagents: [{name: helper, description: d, system_prompt: p}]\n";
    let file = agent(&world, "task", &args, more);
    let request = asked(&world, &file);
    assert_eq!(request["description"], "Give a task to helper: look around");
}

#[test]
fn an_empty_map_opens_all_and_check_warns_of_it() {
    let world = World::new();
    let args = json!({"path": "a.txt", "content": "x"});
    let file = agent(&world, "write_file", &args, "  interrupt_on: {}\n");
    assert_eq!(unasked(&world, &file), "wrote 1 bytes to `a.txt`");
    let checked = world.hold(&["check", &file]);
    assert!(
        checked
            .stderr
            .contains("nobody is asked before a call of `write_file`")
            || checked
                .stdout
                .contains("nobody is asked before a call of `write_file`"),
        "{checked:?}"
    );
    world.hold(&["check", "--strict", &file]).ends(2);
}

#[test]
fn a_workspace_with_the_store_in_it_is_refused() {
    let world = World::new();
    let file = agent(&world, "ls", &json!({}), "");
    let store = format!("sqlite:{}", world.path().join("clerk/work/s.db").display());
    let refused = world.hold(&["run", &file, "--input", "x", "--store", &store]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("choose another folder"),
        "{refused:?}"
    );
}

#[test]
fn what_a_write_would_change_is_shown_and_nothing_else_is_done() {
    let world = World::new();
    let args = json!({"path": "a.txt", "content": "one\nzwei\n"});
    let file = agent(&world, "write_file", &args, "");
    world.write("clerk/work/a.txt", "one\ntwo\n");
    let preview = &asked(&world, &file)["preview"];
    assert_eq!(preview["form"], "diff");
    let diff = preview["body"].as_str().unwrap();
    assert!(
        diff.contains("\n-two\n+zwei\n") && diff.contains("\n one\n"),
        "{diff}"
    );
    // People at a terminal see it, too.
    let shown = world.hold(&["show", "clerk/t"]);
    assert!(
        shown.stdout.contains("-two") && shown.stdout.contains("+zwei"),
        "{}",
        shown.stdout
    );
    // Somebody else changes the file: what was approved is not what would be done.
    world.write("clerk/work/a.txt", "one\ntwo\nthree\n");
    let again = world.json(3, &["resume", "clerk/t", "--approve"]);
    let text = fs::read_to_string(world.path().join("clerk/work/a.txt")).unwrap();
    assert_eq!(text, "one\ntwo\nthree\n");
    let request = &again["__interrupt__"][0]["value"]["action_requests"][0];
    let diff = request["preview"]["body"].as_str().unwrap();
    assert!(diff.contains("-three"), "{diff}");
    assert_eq!(approved(&world), "wrote 9 bytes to `a.txt`");
    let text = fs::read_to_string(world.path().join("clerk/work/a.txt")).unwrap();
    assert_eq!(text, "one\nzwei\n");
}

#[test]
fn an_edit_that_names_another_file_is_asked_about_with_what_it_would_do_there() {
    let world = World::new();
    let args = json!({"path": "a.txt", "content": "one\n"});
    let file = agent(
        &world,
        "write_file",
        &args,
        "  interrupt_on: {write_file: true}\n",
    );
    world.write("clerk/work/precious.txt", "gold\n");
    world.json(3, &["run", &file, "--input", "x", "--thread", "t"]);
    let other = json!({"path": "precious.txt", "content": "one\n"});
    let edit = json!([{"type": "edit", "edited_action": {"name": "write_file", "args": other}}]);
    let again = world.json(3, &["resume", "clerk/t", "--decisions", &edit.to_string()]);
    let read = |name: &str| fs::read_to_string(world.path().join("clerk/work").join(name));
    assert_eq!(read("precious.txt").unwrap(), "gold\n");
    let request = &again["__interrupt__"][0]["value"]["action_requests"][0];
    assert_eq!(request["args"], other);
    let diff = request["preview"]["body"].as_str().unwrap();
    assert!(diff.contains("-gold\n+one\n"), "{diff}");
    world.json(0, &["resume", "clerk/t", "--approve"]);
    assert_eq!(read("precious.txt").unwrap(), "one\n");
    assert!(read("a.txt").is_err());
}
