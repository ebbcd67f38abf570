//! `holdpoint serve`, `keys` and `backup`, as whoever runs a server meets them.

use holdpoint_test_postgres::{Database, Programs, Server, Stop};
use serde_json::json;

use crate::{served::Served, support::World};

/// One that is at work is not done either, so its exit code alone says nothing.
fn until_it_asks(world: &World, thread: &str) {
    while world.json(3, &["show", thread])["interrupts"] == json!([]) {}
}

#[test]
fn the_shipped_approval_agent_asks_is_killed_and_goes_on() {
    let world = World::with_examples();
    let served = Served::start(&world, &["--dev", "--config", "server.yaml"]);
    let talk = json!({"agent_id": "approval-agent", "session_id": "deploy-123", "message": "部署 v2.0 到生产环境"});
    let (status, asked) = served.ask("POST", "/api/v1/chat/stream", None, Some(&talk));
    assert_eq!(status, 200);
    assert!(
        asked.contains("\0INTERRUPT:") && asked.ends_with("data: [DONE]\n\n"),
        "{asked}"
    );
    drop(served);
    let served = Served::start(&world, &["--dev", "--config", "server.yaml"]);
    let state = "/api/v1/chat/interrupt_state?agent_id=approval-agent&session_id=deploy-123";
    let (_, shown) = served.ask("GET", state, None, None);
    assert!(shown.contains("Please confirm: 即将部署"), "{shown}");
    let yes = json!({"agent_id": "approval-agent", "session_id": "deploy-123", "input": {"confirm": true}});
    let (status, done) = served.ask("POST", "/api/v1/chat/resume", None, Some(&yes));
    assert_eq!(status, 200);
    assert!(done.contains("部署完成"), "{done}");
    let (status, again) = served.ask("POST", "/api/v1/chat/resume", None, Some(&yes));
    assert_eq!(status, 409, "{again}");
}

#[test]
fn names_that_nobody_mapped_are_an_error_at_the_start() {
    let world = World::with_examples();
    let refused = world
        .hold(&["serve", "--dev", "approval-agent/agent.yaml"])
        .ends(2);
    assert!(
        refused.stderr.contains("no model is called `gpt-4o` here"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("`redis`"), "{}", refused.stderr);
    let nobody = world.hold(&["serve", "--dev"]).ends(2);
    assert!(
        nobody.stderr.contains("no agent is named"),
        "{}",
        nobody.stderr
    );
    let open = world
        .hold(&[
            "serve",
            "--dev",
            "--listen",
            "0.0.0.0:0",
            "refund/agent.yaml",
        ])
        .ends(2);
    assert!(open.stderr.contains("`--dev`"), "{}", open.stderr);
}

#[test]
fn a_key_is_made_listed_used_and_revoked() {
    let world = World::with_examples();
    let made = world
        .hold(&[
            "keys", "create", "--tenant", "acme", "--name", "ann", "--role", "clerk",
        ])
        .ends(0);
    let key = made.stdout.trim();
    assert!(key.starts_with("hp_") && !made.stderr.contains(key));
    let served = Served::start(
        &world,
        &["refund/agent.yaml", "--store", "sqlite:holdpoint.db"],
    );
    assert_eq!(served.ask("GET", "/api/v1/agents", None, None).0, 401);
    let (status, agents) = served.ask("GET", "/api/v1/agents", Some(key), None);
    assert_eq!(status, 200);
    assert!(agents.contains("\"agent_id\":\"refund\""), "{agents}");
    let listed = world.json(0, &["keys", "list"]);
    assert_eq!(listed["principal"]["actor"]["name"], "ann");
    assert!(listed.get("secret").is_none());
    let id = listed["id"].as_str().unwrap();
    world.hold(&["keys", "revoke", id]).ends(0);
    assert_eq!(served.ask("GET", "/api/v1/agents", Some(key), None).0, 401);
    world.hold(&["keys", "revoke", "nothing"]).ends(4);
    for bad in [["_system", "x"], ["acme", "holdpoint"], ["a b", "x"]] {
        let refused = world
            .hold(&["keys", "create", "--tenant", bad[0], "--name", bad[1]])
            .ends(2);
        assert!(refused.stderr.starts_with("error: "), "{bad:?}");
    }
    assert!(served.said.iter().any(|line| line.contains("listens on")));
}

#[test]
fn a_store_is_backed_up_while_it_is_served_and_the_copy_is_only_read() {
    let world = World::with_examples();
    let served = Served::start(
        &world,
        &[
            "--dev",
            "refund/agent.yaml",
            "--store",
            "sqlite:holdpoint.db",
        ],
    );
    let body =
        json!({"agent_id": "refund", "session_id": "s", "input": "Please refund order 1001"});
    let (status, _) = served.ask("POST", "/api/v1/runs", None, Some(&body));
    assert_eq!(status, 201);
    until_it_asks(&world, "refund/s");
    world.hold(&["backup", "copy.db"]).ends(0);
    world.hold(&["backup", "copy.db"]).ends(2);
    let shown = world
        .hold(&["show", "refund/s", "--store", "sqlite:copy.db"])
        .ends(3);
    assert!(shown.stdout.contains("issue_refund"), "{}", shown.stdout);
    let refused = world.hold(&[
        "resume",
        "refund/s",
        "--approve",
        "--store",
        "sqlite:copy.db",
    ]);
    assert_eq!(refused.code, 2);
}

#[test]
fn a_command_leaves_the_driving_to_a_server_and_drives_itself_once_that_is_dead() {
    let world = World::new();
    let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: Done.\n";
    let file = world.agent("clerk", "true", rules);
    let text = std::fs::read_to_string(world.path().join(&file)).unwrap();
    let script = "[sh, -c, 'echo by ${DRIVEN_BY:-command} >> done']";
    let text = text.replace("[holdpoint-example-ledger, pay-once]", script);
    world.write(&file, &text);
    let store = ["--dev", &file, "--store", "sqlite:holdpoint.db"];
    let served = Served::start(&world, &store);
    for session in ["a", "b"] {
        let body = json!({"agent_id": "clerk", "session_id": session, "input": "go"});
        let (status, _) = served.ask("POST", "/api/v1/runs", None, Some(&body));
        assert_eq!(status, 201);
        until_it_asks(&world, &format!("clerk/{session}"));
    }
    let done = || std::fs::read_to_string(world.path().join("clerk/done")).unwrap();
    let followed = world.hold(&["resume", "clerk/a", "--approve"]).ends(0);
    assert!(followed.stderr.contains("following"), "{}", followed.stderr);
    assert!(followed.stdout.contains("Done."), "{}", followed.stdout);
    assert_eq!(done(), "by server\n");
    drop(served);
    let driven = world.hold(&["resume", "clerk/b", "--approve"]).ends(0);
    assert!(driven.stdout.contains("Done."), "{}", driven.stdout);
    assert_eq!(done(), "by server\nby command\n");
}

#[test]
fn a_terminal_sees_and_answers_what_another_tenant_asks() {
    let world = World::with_examples();
    let made = world.hold(&["keys", "create", "--tenant", "acme", "--name", "ann"]);
    let key = made.ends(0).stdout.trim().to_owned();
    let store = ["refund/agent.yaml", "--store", "sqlite:holdpoint.db"];
    let served = Served::start(&world, &store);
    let body =
        json!({"agent_id": "refund", "session_id": "s", "input": "Please refund order 1001"});
    let (status, _) = served.ask("POST", "/api/v1/runs", Some(&key), Some(&body));
    assert_eq!(status, 201);
    let nothing = world.hold(&["runs"]).ends(0);
    assert!(
        nothing.stderr.contains("there are no runs of tenant local")
            && nothing.stderr.contains("acme"),
        "{}",
        nothing.stderr
    );
    world.hold(&["show", "refund/s"]).ends(4);
    let acme = ["--tenant", "acme"];
    while world.json(3, &[&["show", "refund/s"][..], &acme].concat())["interrupts"] == json!([]) {}
    let shown = world.hold(&[&["show", "refund/s"][..], &acme].concat());
    assert!(
        shown.ends(3).stdout.contains("--tenant acme"),
        "the commands it names go on in the same place"
    );
    let resume = ["resume", "refund/s", "--approve"];
    world.hold(&[&resume[..], &acme].concat()).ends(0);
    assert_eq!(world.effects(), 1);
    let bad = world.hold(&["runs", "--tenant", "_system"]).ends(2);
    assert!(bad.stderr.contains("cannot be a tenant"), "{}", bad.stderr);
}

#[test]
fn a_server_whose_log_nobody_reads_goes_on() {
    let world = World::with_examples();
    let log = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    drop(port);
    let mut server = world.command();
    server
        .args(["serve", "--dev", "refund/agent.yaml", "--listen", &address])
        .stderr(log);
    let served = Served::beside(server.spawn().unwrap(), &address);
    let (status, said) = served.ask("GET", "/healthz", None, None);
    assert_eq!((status, said.as_str()), (200, "ok\n"));
    let body =
        json!({"agent_id": "refund", "session_id": "s", "input": "Please refund order 1001"});
    let (status, _) = served.ask("POST", "/api/v1/runs", None, Some(&body));
    assert_eq!(status, 201);
    until_it_asks(&world, "refund/s");
}

#[test]
fn what_names_no_store_is_refused_and_not_taken_for_memory() {
    let world = World::with_examples();
    for store in ["foo.db", "redis://x", ""] {
        let refused = world
            .hold(&["serve", "--dev", "refund/agent.yaml", "--store", store])
            .ends(2);
        assert!(
            refused.stderr.contains("sqlite:PATH"),
            "{store}: {}",
            refused.stderr
        );
    }
}

#[test]
fn a_backup_is_not_adopted_by_a_server_whose_address_is_taken() {
    let world = World::with_examples();
    let ask = ["run", "refund/agent.yaml", "--thread", "s", "--input"];
    let refund = ["Please refund order 1001"];
    world.hold(&[&ask[..], &refund].concat()).ends(3);
    world.hold(&["backup", "copy.db"]).ends(0);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let serve = ["serve", "--dev", "--adopt", "refund/agent.yaml"];
    let copy = ["--store", "sqlite:copy.db"];
    let listen = ["--listen", &address];
    let refused = world.hold(&[&serve[..], &copy, &listen].concat()).ends(2);
    assert!(refused.stderr.contains(&address), "{}", refused.stderr);
    let resume = ["resume", "refund/s", "--approve"];
    let resumed = world.hold(&[&resume[..], &copy].concat()).ends(2);
    assert!(resumed.stderr.contains("backup"), "{}", resumed.stderr);
}

#[test]
fn a_server_waits_for_a_database_that_is_not_there_yet() {
    let world = World::with_examples();
    let postgres = Server::start(Programs::find_or_install().unwrap(), &[]).unwrap();
    let database = Database::on(&postgres.url()).unwrap();
    postgres.stop(Stop::Fast).unwrap();
    let url = database.url();
    let words = ["--dev", "refund/agent.yaml", "--store", &url];
    let served = Served::start_hearing(&world, &words, |line| {
        if line.contains("cannot be reached yet") {
            postgres.begin().unwrap();
        }
    });
    let waits = |line: &&String| line.contains("cannot be reached yet");
    assert_eq!(
        served.said.iter().filter(waits).count(),
        1,
        "{:?}",
        served.said
    );
    assert_eq!(served.ask("GET", "/readyz", None, None).0, 200);
    // What waiting cannot mend is said at once.
    let wrong = format!("{}/nowhere", postgres.url());
    let words = ["serve", "--dev", "refund/agent.yaml", "--store", &wrong];
    let refused = world.hold(&words).ends(2);
    assert!(
        refused.stderr.contains("does not exist"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("yet"), "{}", refused.stderr);
}
