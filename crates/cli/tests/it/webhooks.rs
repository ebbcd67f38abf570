//! `holdpoint webhooks`: what could not be told, as whoever is on call meets it.

use serde_json::{Value, json};

use crate::{served::Served, support::World};

const SERVER: &str = r#"
apiVersion: holdpoint/v1
kind: Server
spec:
  store: sqlite:holdpoint.db
  webhooks:
    # Nobody listens there.
    - {name: sink, url: "http://127.0.0.1:9/hook", secret: SINK_SECRET, give_up_after: 1ms, allow_private: [127.0.0.1]}
"#;

fn dead(world: &World) -> Vec<Value> {
    let said = world.hold(&["webhooks", "dead", "sink", "--json"]).ends(0);
    said.lines()
}

#[test]
fn what_could_not_be_told_is_listed_sent_again_and_forgotten() {
    let world = World::new();
    let rules = "  - when: {turn: 1}\n    call: [{tool: act, args: {n: 1}}]\n  - say: Done.\n";
    let file = world.agent("clerk", "true", rules);
    world.write("server.yaml", SERVER);
    let served = Served::start(&world, &["--dev", "--config", "server.yaml", &file]);
    let body = json!({"workflow_id": "w", "node_id": "n", "type": "approval", "title": "?"});
    let (status, asked) = served.ask("POST", "/api/v1/interrupts", None, Some(&body));
    assert_eq!(status, 201);
    let asked: Value = serde_json::from_str(&asked).unwrap();
    while dead(&world).is_empty() {}
    drop(served);
    let [letter] = &dead(&world)[..] else {
        panic!("one is dead");
    };
    assert_eq!(letter["interrupt_id"], asked["id"]);
    assert!(letter["attempts"].as_u64() >= Some(2), "{letter}");
    assert!(
        letter["error"]
            .as_str()
            .is_some_and(|it| it.contains("refused"))
    );
    let plain = world.hold(&["webhooks", "dead", "sink"]).ends(0).stdout;
    assert!(
        plain.contains(", tried ") && plain.contains("refused"),
        "{plain}"
    );

    // Whoever decides in a terminal leaves word, too.
    world
        .hold(&["run", &file, "--input", "go", "--thread", "t"])
        .ends(3);
    world.hold(&["resume", "t", "--approve"]).ends(0);
    let listed = world.json(0, &["webhooks", "list"]);
    let expected = json!({"name": "sink", "types": [], "undelivered": 2, "dead_letters": 1});
    assert_eq!(listed, expected);
    world.hold(&["store", "check"]).ends(0);

    let other = "int_00000000000000000000000000000000";
    let none = world.json(0, &["webhooks", "resend", "sink", other]);
    assert_eq!(none, json!({"count": 0}));
    let again = world.json(0, &["webhooks", "resend", "sink"]);
    assert_eq!(again, json!({"count": 1}));
    assert_eq!(world.json(0, &["webhooks", "list"])["undelivered"], 3);
    assert_eq!(dead(&world), Vec::<Value>::new());
    let none = world.json(0, &["webhooks", "discard", "sink"]);
    assert_eq!(none, json!({"count": 0}));

    for words in [["dead", "snik"], ["resend", "snik"], ["remove", "snik"]] {
        let unknown = world.hold(&["webhooks", words[0], words[1]]).ends(4);
        assert!(
            unknown.stderr.contains("no webhook `snik`"),
            "{}",
            unknown.stderr
        );
    }
    // Until it is known that the server is gone, it is not taken from it.
    let removed = loop {
        let removed = world.hold(&["webhooks", "remove", "sink"]);
        if !removed.stderr.contains("a server delivers to it") {
            break removed;
        }
    };
    removed.ends(0);
    let listed = world.hold(&["webhooks", "list"]).ends(0);
    assert_eq!(listed.stdout, "");
    world.hold(&["webhooks", "dead", "sink"]).ends(4);
    world.hold(&["store", "check"]).ends(0);
}

#[test]
fn a_server_without_the_secret_of_its_webhook_says_which_variable_is_missing() {
    let world = World::new();
    let file = world.agent("clerk", "true", "  - say: Done.\n");
    let text = SERVER.replace("SINK_SECRET", "NO_SUCH_SECRET");
    world.write("server.yaml", &text);
    let refused = world
        .hold(&["serve", "--dev", "--config", "server.yaml", &file])
        .ends(2);
    let said = "webhook `sink`: the environment has no `NO_SUCH_SECRET`";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
}
