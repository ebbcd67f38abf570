//! A store moves to another, as whoever outgrows one machine does it.

use holdpoint_test_postgres::Database;

use crate::{
    served::Served,
    support::{World, pending},
};

/// Two refunds that wait, and one that was paid.
fn busy() -> World {
    let world = World::with_examples();
    for session in ["a", "b", "c"] {
        let input = "Please refund order 1001";
        let words = [
            "run",
            "refund/agent.yaml",
            "--input",
            input,
            "--thread",
            session,
        ];
        world.hold(&words).ends(3);
    }
    world.hold(&["resume", "c", "--approve"]).ends(0);
    assert_eq!(world.effects(), 1);
    world
}

const OLD: &str = "sqlite:holdpoint.db";

#[test]
fn what_waits_in_a_file_goes_on_in_postgres_and_the_file_is_only_read() {
    let world = busy();
    let database = Database::create().unwrap();
    let new = database.url();
    // Looking makes no store of a database that somebody mistyped.
    let nothing = world.json(2, &["runs", "--store", &new]);
    let reason = nothing["error"].as_str().unwrap();
    assert!(reason.contains("there is no store in it"), "{reason}");
    let asked = world.json(3, &["show", "a"]);
    let before = world.hold(&["trace", "a", "--json"]).ends(0).stdout;

    let moved = world.json(0, &["store", "copy", OLD, &new]);
    assert_eq!(moved["threads"], 3);
    let refused = world.json(4, &["resume", "a", "--approve"]);
    assert_eq!(refused["code"], "cannot_drive");
    let reason = refused["error"].as_str().unwrap();
    assert!(reason.contains("has moved to postgres://"), "{reason}");
    let serve = world.hold(&["serve", "--dev", "refund/agent.yaml", "--store", OLD]);
    assert!(serve.ends(2).stderr.contains("has moved to postgres://"));
    assert_eq!(world.json(3, &["show", "a"]), asked, "it can still be read");
    assert_eq!(world.effects(), 1);

    let there = |code, words: &[&str]| world.json(code, &[words, &["--store", &new]].concat());
    assert_eq!(pending(&there(3, &["show", "a"])), pending(&asked));
    let trace = world.hold(&["trace", "a", "--json", "--store", &new]);
    assert_eq!(trace.ends(0).stdout, before);
    assert_eq!(
        there(0, &["resume", "a", "--approve"])["status"],
        "finished"
    );
    assert_eq!(there(0, &["resume", "b", "--reject"])["status"], "finished");
    assert_eq!(world.effects(), 2);
    let checked = there(0, &["store", "check"]);
    assert_eq!(checked["flaws"], 0);
    assert_eq!(checked["threads"], 3);

    // And back again, into another file.
    let back = "sqlite:back.db";
    world.json(0, &["store", "copy", &new, back]);
    let words = ["store", "check", "--store", back];
    assert_eq!(world.json(0, &words)["threads"], 3);
    let again = world.json(4, &["store", "copy", OLD, &new]);
    assert_eq!(again["code"], "cannot_drive");
}

#[test]
fn a_store_that_is_served_does_not_move() {
    let world = busy();
    let server = Served::start(&world, &["--dev", "refund/agent.yaml", "--store", OLD]);
    let refused = world.json(4, &["store", "copy", OLD, "sqlite:new.db"]);
    assert_eq!(refused["code"], "served");
    assert!(
        !world.path().join("new.db").exists(),
        "nothing is left of it"
    );
    drop(server);
    let words = ["store", "copy", OLD, "sqlite:new.db", "--abandon"];
    assert_eq!(world.json(4, &words)["code"], "not_moving");
}

#[test]
fn a_store_does_not_move_onto_another_nor_into_nothing() {
    let world = busy();
    let words = [
        "run",
        "refund/agent.yaml",
        "--input",
        "Please refund order 1001",
        "--store",
        "sqlite:other.db",
    ];
    world.hold(&words).ends(3);
    let copy = |code, from, to| world.json(code, &["store", "copy", from, to])["code"].clone();
    assert_eq!(copy(4, OLD, "sqlite:other.db"), "not_empty");
    assert_eq!(copy(2, OLD, OLD), "usage");
    assert_eq!(copy(2, OLD, "memory:"), "usage");
    assert_eq!(copy(2, "sqlite:none.db", "sqlite:new.db"), "store_missing");
    world.hold(&["resume", "a", "--approve"]).ends(0);
}

#[test]
fn whoever_cuts_a_copy_off_is_told_how_it_goes_on() {
    let world = busy();
    let database = Database::create().unwrap();
    let from = database.url();
    world.json(0, &["store", "copy", OLD, &from]);
    // Somebody holds the journals for a while, so that the copy waits in its middle.
    std::thread::scope(|scope| {
        let lock = "BEGIN; LOCK TABLE events; SELECT pg_sleep(4); COMMIT";
        let held = scope.spawn(|| database.execute(lock).unwrap());
        let locks = "SELECT count(*) FROM pg_locks WHERE relation = 'events'::regclass AND granted \
                     AND mode = 'AccessExclusiveLock'";
        while database.numbers(locks).unwrap() != [1] {}
        let mut copy = world.command();
        copy.args(["store", "copy", &from, "sqlite:new.db"]);
        copy.stderr(std::process::Stdio::piped());
        let copying = copy.spawn().unwrap();
        let waits =
            "SELECT count(*) FROM pg_locks WHERE relation = 'events'::regclass AND NOT granted";
        while database.numbers(waits).unwrap() == [0] {}
        let mut interrupt = std::process::Command::new("kill");
        interrupt.args(["-INT", &copying.id().to_string()]);
        assert!(interrupt.status().unwrap().success());
        let ended = copying.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains("the same command goes on with it"), "{said}");
        assert_eq!(ended.status.code(), Some(3));
        assert!(!held.is_finished(), "it was in the middle");
    });
    world.json(0, &["store", "copy", &from, "sqlite:new.db"]);
    world.json(0, &["resume", "a", "--approve", "--store", "sqlite:new.db"]);
}

#[test]
fn a_password_is_not_shown_where_a_dump_is_refused() {
    let world = busy();
    let (original, restored) = (Database::create().unwrap(), Database::create().unwrap());
    world.json(0, &["store", "copy", OLD, &original.url()]);
    drop(restored);
    let restored = original.copy().unwrap();
    // Whoever is trusted may give any password.
    let url = restored.url().replacen('@', ":hunter2@", 1);
    for words in [
        ["resume", "a", "--approve"].as_slice(),
        &["recover"],
        &["cancel", "a"],
    ] {
        let words = [words, &["--store", &url]].concat();
        let plain = world.hold(&words).ends(2);
        let json = world
            .hold(&[words.as_slice(), &["--json"]].concat())
            .ends(2);
        for said in [plain.stderr, plain.stdout, json.stderr, json.stdout] {
            assert!(!said.contains("hunter2"), "{words:?}: {said}");
        }
    }
    let seen = world.hold(&["runs", "--store", &url]).ends(0);
    assert!(
        seen.stderr.contains("note: this store is a backup"),
        "{}",
        seen.stderr
    );
    let moved = world.hold(&["store", "check", "--store", OLD]).ends(0);
    assert!(
        moved.stderr.contains("has moved to postgres://"),
        "{}",
        moved.stderr
    );
}

#[test]
fn a_url_with_a_password_can_stay_in_the_environment() {
    let world = busy();
    let words = ["store", "copy", OLD, "env:NEW_STORE"];
    let unset = world.json(2, &words);
    let expected = "the environment has no variable `NEW_STORE`";
    assert_eq!(
        (&unset["code"], &unset["error"]),
        (&"usage".into(), &expected.into())
    );
    let mut copy = world.command();
    copy.args(words).env("NEW_STORE", "sqlite:new.db");
    assert!(copy.output().unwrap().status.success());
    let refused = world.json(4, &["resume", "a", "--approve"]);
    let reason = refused["error"].as_str().unwrap();
    let new = format!("has moved to sqlite:{}/new.db", world.path().display());
    assert!(
        reason.contains(&new),
        "it is found from any folder: {reason}"
    );
    let mut resume = world.command();
    resume.args(["resume", "a", "--approve", "--store", "env:NEW_STORE"]);
    resume.env("NEW_STORE", "sqlite:new.db");
    assert!(resume.output().unwrap().status.success());
    assert_eq!(world.effects(), 2);
}

#[test]
fn a_flaw_is_found_and_what_is_flawed_does_not_move() {
    let world = busy();
    assert_eq!(
        world
            .hold(&["store", "check"])
            .ends(0)
            .stdout
            .lines()
            .count(),
        1
    );
    let conn = rusqlite::Connection::open(world.path().join("holdpoint.db")).unwrap();
    let changed = conn.execute(
        "UPDATE events SET payload = CAST(replace(payload, '1001', '9999') AS BLOB) WHERE pos = (SELECT min(pos) + 1 FROM events)",
        [],
    );
    assert_eq!(changed, Ok(1));
    let removed = conn.execute("DELETE FROM entries WHERE key = 'b'", []);
    assert_eq!(removed, Ok(1));
    drop(conn);
    let said = world.hold(&["store", "check", "--json"]).ends(1);
    let lines = said.lines();
    let flaws: Vec<&str> = lines.iter().filter_map(|it| it["flaw"].as_str()).collect();
    assert_eq!(flaws.len(), 2, "{lines:?}");
    assert!(flaws[0].contains("hash chain is broken"), "{flaws:?}");
    assert!(flaws[1].contains("rows in the indexes"), "{flaws:?}");
    assert!(lines[1]["thread_id"].is_string());
    assert_eq!(lines[2]["flaws"], 2);
    let failed = world.json(1, &["store", "copy", OLD, "sqlite:new.db"]);
    assert_eq!(failed["code"], "damaged");
    assert_eq!(
        world.json(4, &["resume", "refund/b", "--approve"])["code"],
        "cannot_drive"
    );
    world
        .hold(&["store", "copy", OLD, "sqlite:new.db", "--abandon"])
        .ends(0);
    world.hold(&["resume", "refund/b", "--approve"]).ends(0);

    // So is one whose row does not fit its journal, and nobody waits for ever for it.
    let conn = rusqlite::Connection::open(world.path().join("holdpoint.db")).unwrap();
    let raise = "UPDATE threads SET version = version + 1 WHERE id = 3";
    assert_eq!(conn.execute(raise, []), Ok(1));
    drop(conn);
    let said = world.hold(&["store", "check", "--json"]).ends(1);
    let incomplete = |line: &serde_json::Value| {
        let flaw = line["flaw"].as_str().unwrap_or_default();
        flaw.contains("does not lead to the head")
    };
    assert!(said.lines().iter().any(incomplete), "{said:?}");
    assert_eq!(world.json(2, &["pause", "refund/c"])["code"], "damaged");

    // What cannot even be read is a flaw of its own thread, and the others are looked at.
    let conn = rusqlite::Connection::open(world.path().join("holdpoint.db")).unwrap();
    let changed = "UPDATE events SET codec = 99 WHERE pos = (SELECT max(pos) FROM events)";
    assert_eq!(conn.execute(changed, []), Ok(1));
    let said = world.hold(&["store", "check", "--json"]).ends(1);
    assert_eq!(said.lines().last().unwrap()["threads"], 3);
}

#[test]
fn whatever_is_wrong_is_found_one_by_one() {
    // What is done to a store, what is said of it, and how many threads that concerns.
    for (change, flaw, threads) in [
        (
            "UPDATE threads SET codec = 77 WHERE id = 2",
            "its head cannot be read",
            1,
        ),
        (
            "DELETE FROM blobs",
            "its run needs the definition sha256:",
            2,
        ),
        (
            "INSERT INTO events SELECT pos + 1, header, salt, codec, key_id, payload, hash FROM events
             WHERE pos = (SELECT max(pos) FROM events WHERE pos / 16777216 = 2)",
            "its journal goes on after its head",
            1,
        ),
    ] {
        let world = busy();
        let conn = rusqlite::Connection::open(world.path().join("holdpoint.db")).unwrap();
        assert_ne!(conn.execute(change, []), Ok(0), "{change}");
        drop(conn);
        let said = world.hold(&["store", "check", "--json"]).ends(1);
        let lines = said.lines();
        let flaws: Vec<&str> = lines.iter().filter_map(|it| it["flaw"].as_str()).collect();
        assert_eq!(flaws.len(), threads, "{flaws:?}");
        assert!(flaws.iter().all(|it| it.contains(flaw)), "{flaws:?}");
        assert_eq!(lines.last().unwrap()["threads"], 3);
    }
}
