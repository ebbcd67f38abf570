//! Long results as users of the command line meet them.

use std::fs;

use holdpoint_test_postgres::Database;
use serde_json::Value;

use crate::support::{World, tool_contents};

const ADDRESS: &str = "artifact://";

/// Nearly a MiB, which is all that is taken of what a command prints. The end of the last line is not.
fn log() -> String {
    let lines: Vec<_> = (1..=45_000)
        .map(|at| format!("line of the log {at}"))
        .collect();
    lines.join("\n")
}

/// An agent that looks through a log, and whose model makes this call.
fn agent(world: &World, call: &str) -> &'static str {
    world.write(
        "looker/scenario.yaml",
        &format!(
            "apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n  - when: {{turn: 1}}\n    call: [{call}]\n  - say: 'end'\n"
        ),
    );
    fs::create_dir_all(world.path().join("looker/work")).unwrap();
    world.write(
        "looker/agent.yaml",
        "apiVersion: holdpoint/v1
kind: Agent
metadata: {name: looker}
spec:
  model: {primary: 'scripted:scenario.yaml'}
  workspace: ./work
  tools:
    - builtin: read_file
    - name: print_log
      effect: read
      command: [seq, -f, 'line of the log %.0f', '1', '45000']
",
    );
    "looker/agent.yaml"
}

fn run(world: &World, store: &str, thread: &str, call: &str) -> Value {
    let file = agent(world, call);
    let words = [
        "run", file, "--input", "x", "--thread", thread, "--store", store,
    ];
    world.json(0, &words)
}

fn address(world: &World, store: &str, thread: &str) -> String {
    let words = ["artifacts", thread, "--store", store];
    let listed = world.json(0, &words);
    assert_eq!(listed["size"], log().len());
    listed["address"].as_str().unwrap().to_owned()
}

/// A store on disk and one in a database.
fn on_both(test: impl Fn(&World, &str)) {
    let database = Database::create().unwrap();
    for store in ["sqlite:holdpoint.db".to_owned(), database.url()] {
        test(&World::new(), &store);
    }
}

#[test]
fn what_a_command_prints_is_kept_and_had_again_byte_for_byte() {
    on_both(|world, store| {
        let done = run(world, store, "t", "{tool: print_log, args: {}}");
        let ends = tool_contents(&done)[0];
        assert!(ends.starts_with("line of the log 1\n") && ends.len() < 13_000);
        assert!(ends.ends_with("\nline of the log 45000"));
        let address = address(world, store, "t");
        assert!(ends.contains(&format!("`read_file` with the path `{address}`")));

        let path =
            format!("{{tool: read_file, args: {{path: '{address}', offset: 44990, limit: 2}}}}");
        let read = run(world, store, "t", &path);
        assert_eq!(
            *tool_contents(&read).last().unwrap(),
            " 44990\tline of the log 44990\n 44991\tline of the log 44991\n[lines 44990 to 44991; go on with offset 44992]\n"
        );

        let short = address.strip_prefix(ADDRESS).unwrap();
        for name in [&*address, short] {
            let words = ["artifacts", "t", name, "--store", store];
            assert!(world.hold(&words).ends(0).stdout == log());
        }
        let words = [
            "artifacts",
            "t",
            &address,
            "--output",
            "log.txt",
            "--store",
            store,
        ];
        assert_eq!(world.hold(&words).ends(0).stdout, "");
        assert!(fs::read_to_string(world.path().join("log.txt")).unwrap() == log());
        world.hold(&words).ends(2);
        let words = ["artifacts", "t", &address, "--store", store];
        assert!(world.json(0, &words)["text"] == log());

        let words = ["trace", "t", "--store", store];
        let story = world.hold(&words).ends(0).stdout;
        assert!(
            story.contains(&format!("kept apart: {address}, ")),
            "{story}"
        );
        let shown = world.json(0, &["show", "t", "--store", store]);
        let name = short.split('/').next().unwrap();
        assert_eq!(shown["checkpoint"]["artifact_refs"][name], *address);

        let checked = world.json(0, &["store", "check", "--store", store]);
        assert_eq!(
            (&checked["artifacts"], &checked["flaws"]),
            (&1.into(), &0.into())
        );
    });
}

#[test]
fn what_a_thread_has_kept_no_other_thread_and_no_other_tenant_has() {
    on_both(|world, store| {
        run(world, store, "t", "{tool: print_log, args: {}}");
        let address = address(world, store, "t");
        let path = format!("{{tool: read_file, args: {{path: '{address}'}}}}");
        let read = run(world, store, "other", &path);
        let refused = format!("there is no such artifact: `{address}`");
        assert_eq!(tool_contents(&read), [refused.as_str()]);
        let there = |code, words: &[&str]| {
            world.json(code, &[&["artifacts"], words, &["--store", store]].concat())["code"].clone()
        };
        assert_eq!(there(4, &["other", &address]), "not_found");
        assert_eq!(there(4, &["t", "--tenant", "acme"]), "not_found");
        assert_eq!(there(2, &["t", "artifact://t"]), "usage");
        assert_eq!(there(2, &["t", "--output", "x"]), "usage");
        let words = ["artifacts", "other", "--store", store];
        assert_eq!(world.hold(&words).ends(0).stdout, "");
    });
}

#[test]
fn a_backup_and_a_store_that_was_moved_have_what_was_kept() {
    let world = World::new();
    let store = "sqlite:holdpoint.db";
    run(&world, store, "t", "{tool: print_log, args: {}}");
    let address = address(&world, store, "t");
    world.hold(&["backup", "copy.db"]).ends(0);
    let database = Database::create().unwrap();
    let url = database.url();
    world.json(0, &["store", "copy", store, &url]);
    let back = "sqlite:back.db";
    world.json(0, &["store", "copy", &url, back]);
    for place in ["sqlite:copy.db", &url, back] {
        let words = ["artifacts", "t", &address, "--store", place];
        assert!(world.hold(&words).ends(0).stdout == log(), "{place}");
        let checked = world.json(0, &["store", "check", "--store", place]);
        assert_eq!(
            (&checked["artifacts"], &checked["flaws"]),
            (&1.into(), &0.into())
        );
    }
}
