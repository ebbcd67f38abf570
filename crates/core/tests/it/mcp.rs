//! What servers offer, as it comes into a definition: hints only ever tighten, and what changed is asked about.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::{
    Allowed, DecisionKind, Definition, Effect, Gate, HttpHeader, McpHints, McpOffer, McpServer,
    McpTransport, McpVariable, Policy, Ruling, Runner, Span,
};
use serde_json::{Value, json};

fn offer(name: &str) -> McpOffer {
    McpOffer {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: json!({"type": "object"}),
        hints: McpHints::default(),
    }
}

/// What the mildest server says of its tools.
fn mild() -> McpHints {
    McpHints {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
    }
}

fn server() -> McpServer {
    McpServer::stdio("s", ["server"], "/srv")
}

fn with(server: &McpServer, offers: &[McpOffer]) -> Result<Definition, String> {
    let definition = Definition::new("clerk", "test").with_mcp_server(server.clone());
    definition.with_offers(server, offers)
}

fn listed(server: &McpServer, offers: &[McpOffer]) -> Definition {
    with(server, offers).unwrap()
}

fn effect(definition: &Definition, tool: &str) -> Effect {
    definition.tool(tool).unwrap().effect
}

/// The gate that holds for a tool.
fn gate(definition: &Definition, tool: &str) -> Option<Gate> {
    definition.policy.interrupt_on.get(tool).cloned()
}

#[test]
fn a_tool_is_called_by_its_server_and_its_own_name_and_pinned_to_its_words() {
    let definition = listed(&server(), &[offer("look")]);
    let [spec] = &definition.tools[..] else {
        panic!("{:?}", definition.tools);
    };
    assert_eq!(spec.name, "s__look");
    assert_eq!(
        spec.runner,
        Runner::Mcp {
            server: "s".to_owned(),
            tool: "look".to_owned()
        }
    );
    let version = spec.version.clone();
    assert_eq!(version.len(), 32);
    // Every word of it counts.
    let mut words = offer("look");
    words.description.push('!');
    let mut schema = offer("look");
    schema.input_schema = json!({"type": "object", "properties": {}});
    let mut hints = offer("look");
    hints.hints.read_only = Some(false);
    let versions: BTreeSet<String> = [offer("look"), words, schema, hints]
        .iter()
        .map(McpOffer::version)
        .collect();
    assert_eq!(versions.len(), 4);
    assert!(versions.contains(&version));
    // The order of keys does not.
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let mut one = offer("look");
    one.input_schema = parse(r#"{"type":"object","required":["a"]}"#);
    let mut other = offer("look");
    other.input_schema = parse(r#"{"required":["a"],"type":"object"}"#);
    assert_eq!(one.version(), other.version());
}

#[test]
fn whatever_a_server_says_of_itself_a_person_is_asked_unless_it_is_trusted() {
    let hints = [Some(true), Some(false), None];
    for read_only in hints {
        for destructive in hints {
            for idempotent in hints {
                let hints = McpHints {
                    read_only,
                    destructive,
                    idempotent,
                };
                let offer = McpOffer {
                    hints,
                    ..offer("act")
                };
                let offers = [offer];
                let careful = listed(&server(), &offers);
                assert_eq!(effect(&careful, "s__act"), Effect::Write);
                let held = gate(&careful, "s__act").unwrap();
                assert_eq!(held.terms.always_ask, destructive == Some(true));

                let mut trusted = server();
                trusted.trust_hints = true;
                let trusting = listed(&trusted, &offers);
                let expected = match (read_only, destructive, idempotent) {
                    // Whoever says both is not believed.
                    (Some(true), Some(true), _) => Effect::Write,
                    (Some(true), _, _) => Effect::Read,
                    (_, _, Some(true)) => Effect::Idempotent,
                    _ => Effect::Write,
                };
                assert_eq!(effect(&trusting, "s__act"), expected);
                let is_open = gate(&trusting, "s__act").is_none();
                assert_eq!(is_open, expected == Effect::Read);
            }
        }
    }
}

#[test]
fn what_the_definition_says_of_a_tool_counts_before_any_hint() {
    let mut server = server();
    server.trust_hints = true;
    server.effects = BTreeMap::from([("act".to_owned(), Effect::Write)]);
    let offers = [McpOffer {
        hints: mild(),
        ..offer("act")
    }];
    let mine = Gate::ask(Allowed::new(vec![DecisionKind::Approve]).unwrap());
    let mut definition = Definition::new("clerk", "test").with_mcp_server(server.clone());
    definition
        .policy
        .interrupt_on
        .insert("s__act".to_owned(), mine.clone());
    let definition = definition.with_offers(&server, &offers).unwrap();
    assert_eq!(effect(&definition, "s__act"), Effect::Write);
    assert_eq!(gate(&definition, "s__act"), Some(mine));
}

#[test]
fn what_is_denied_unless_named_stays_so() {
    let definition = Definition::new("clerk", "test").with_mcp_server(server());
    let denying = Definition {
        policy: Policy {
            interrupt_on: BTreeMap::new(),
            default: Ruling::Deny,
        },
        ..definition
    };
    let denying = denying.with_offers(&server(), &[offer("act")]).unwrap();
    assert_eq!(gate(&denying, "s__act"), None);
    // Also once it is another tool.
    let changed = McpOffer {
        description: "Other.".to_owned(),
        ..offer("act")
    };
    let changed = denying.with_changed_offers(&server(), &[changed]).unwrap();
    assert_eq!(changed.policy.default, Ruling::Deny);
    assert_eq!(gate(&changed, "s__act"), None);
}

#[test]
fn a_tool_that_changed_is_always_asked_about_and_never_less_grave_than_it_was() {
    let mut trusted = server();
    trusted.trust_hints = true;
    let grave = offer("act");
    let before = listed(&trusted, std::slice::from_ref(&grave));
    let now = McpOffer {
        hints: mild(),
        ..grave
    };
    let after = before
        .with_changed_offers(&trusted, std::slice::from_ref(&now))
        .unwrap();
    assert_eq!(effect(&after, "s__act"), Effect::Write);
    assert!(gate(&after, "s__act").unwrap().terms.always_ask);
    // The same when the file is read again and its server asked anew.
    let again = listed(&trusted, &[now]).as_careful_as(&before);
    assert_eq!(effect(&again, "s__act"), Effect::Write);
    assert!(gate(&again, "s__act").unwrap().terms.always_ask);
}

#[test]
fn a_list_that_lacks_a_tool_changes_nothing_and_none_is_added() {
    let before = listed(&server(), &[offer("act"), offer("look")]);
    for offers in [
        vec![],
        vec![offer("look"), offer("new")],
        vec![offer("look"), offer("act"), offer("new")],
    ] {
        assert_eq!(before.with_changed_offers(&server(), &offers), None);
    }
}

#[test]
fn a_tool_that_changed_is_asked_about_for_as_long_as_the_text_stays_as_it_is() {
    let now = McpOffer {
        description: "Other.".to_owned(),
        ..offer("act")
    };
    let (old, new) = ([offer("act")], std::slice::from_ref(&now));
    // What the text says of it was said of the old one.
    for gates in ["s__act", "*"] {
        let text = || {
            let mut text = Definition::new("clerk", "test").with_mcp_server(server());
            let gates_of = &mut text.policy.interrupt_on;
            gates_of.insert(gates.to_owned(), Gate::open());
            text
        };
        let asks = |it: &Definition| it.policy.may_ask("s__act");
        let publish = |offers: &[McpOffer], before: &Definition| {
            let listed = text().with_offers(&server(), offers).unwrap();
            listed.as_careful_as(before)
        };
        let first = text().with_offers(&server(), &old).unwrap();
        assert!(!asks(&first));
        let noticed = first.with_changed_offers(&server(), new).unwrap();
        assert!(asks(&noticed));
        // Published again and again, with or without somebody having noticed, and after it was gone for a while.
        let again = publish(new, &noticed);
        assert!(asks(&again));
        assert!(asks(&publish(new, &again)));
        // A gate of its own would guard nothing while it is gone, which is refused.
        if gates == "*" {
            let gone = publish(&[], &first);
            assert!(asks(&publish(new, &gone)));
            // The old one again is what the text was written for.
            assert!(!asks(&publish(&old, &gone)));
        }
    }
}

#[test]
fn which_models_answer_is_no_other_text() {
    let helper = Definition::new("helper", "scripted:a").with_mcp_server(server());
    let text = Definition::new("clerk", "scripted:a").with_subagent("Helps.", helper);
    let mut other = text.clone();
    for agent in [true, false] {
        let definition = match agent {
            true => &mut other,
            false => &mut other.subagents[0].definition,
        };
        definition.model = "scripted:b".to_owned();
        definition.fallback = vec!["scripted:c".to_owned()];
    }
    let digest = |it: &Definition| it.digest_of_text().unwrap();
    assert_eq!(digest(&text), digest(&other));
    assert_eq!(text.clone().with_models_of(&other), other);
    other.system_prompt = Some("Be kind.".to_owned());
    assert_ne!(digest(&text), digest(&other));
}

#[test]
fn what_is_said_to_destroy_is_asked_about_each_time_wherever_it_is_asked_about_at_all() {
    let grave = McpOffer {
        hints: McpHints {
            destructive: Some(true),
            ..McpHints::default()
        },
        ..offer("act")
    };
    let with_gate = |name: &str, gate: Gate| {
        let mut definition = Definition::new("clerk", "test").with_mcp_server(server());
        definition.policy.interrupt_on.insert(name.to_owned(), gate);
        let offers = std::slice::from_ref(&grave);
        let definition = definition.with_offers(&server(), offers).unwrap();
        gate_of(&definition)
    };
    fn gate_of(definition: &Definition) -> Option<bool> {
        gate(definition, "s__act").map(|gate| gate.terms.always_ask)
    }
    let asking = || Gate::ask(Allowed::standard());
    assert_eq!(with_gate("s__act", asking()), Some(true));
    assert_eq!(with_gate("*", asking()), Some(true));
    // What the file opens, or has rules for, it means.
    assert_eq!(with_gate("s__act", Gate::open()), Some(false));
    let by_rule = Gate::open().when("args.n > 1", Ruling::Interrupt);
    assert_eq!(with_gate("s__act", by_rule), Some(false));
}

#[test]
fn names_that_no_model_would_take_are_changed_and_stay_apart() {
    let server = server();
    let odd = [
        "a b",
        "a_b",
        "a/b",
        "ä",
        "ü",
        &"x".repeat(100),
        &"x".repeat(101),
    ];
    let names: BTreeSet<String> = odd.iter().map(|name| server.name_of(name)).collect();
    assert_eq!(names.len(), odd.len());
    for name in &names {
        assert!(name.len() <= 64 && name.starts_with("s__"), "{name}");
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')),
            "{name}"
        );
    }
    assert_eq!(server.name_of("a_b"), "s__a_b");
}

#[test]
fn what_no_agent_can_have_is_refused_with_what_would_be_right() {
    let only = |name: &str| McpServer {
        only: Some(BTreeSet::from([name.to_owned()])),
        ..server()
    };
    let no_schema = McpOffer {
        input_schema: json!(7),
        ..offer("act")
    };
    let big = McpOffer {
        description: "x".repeat(1 << 20),
        ..offer("act")
    };
    let many: Vec<McpOffer> = (0..257).map(|n| offer(&format!("t{n}"))).collect();
    for (server, offers, expected) in [
        (
            server(),
            vec![offer("a"), offer("a")],
            "two tools under one name",
        ),
        (only("b"), vec![offer("a")], "has no tool `b`; it has a"),
        (server(), vec![no_schema], "`act` without a schema"),
        (server(), vec![big], "name those that it needs in `tools`"),
        (server(), many, "offers 257 tools"),
    ] {
        let said = with(&server, &offers).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
    // What is not chosen does not count.
    let many: Vec<McpOffer> = (0..257).map(|n| offer(&format!("t{n}"))).collect();
    assert_eq!(listed(&only("t7"), &many).tools.len(), 1);
}

#[test]
fn a_tool_does_not_become_what_no_agent_could_have_from_the_beginning() {
    let next = |n: usize| json!({"$ref": format!("#/$defs/d{}", n + 1)});
    let mut defs: serde_json::Map<String, Value> = (0..30)
        .map(|n| (format!("d{n}"), json!({"anyOf": [next(n), next(n)]})))
        .collect();
    defs.insert("d30".to_owned(), json!({"type": "string"}));
    let heavy = |start: &str| McpOffer {
        input_schema: json!({"type": "object", "anyOf": [{"$ref": start}], "$defs": defs}),
        ..offer("act")
    };
    let no_schema = McpOffer {
        input_schema: json!(7),
        ..offer("act")
    };
    let big = McpOffer {
        description: "x".repeat(1 << 20),
        ..offer("act")
    };
    let before = listed(&server(), &[offer("act"), offer("look")]);
    let server = &before.mcp_servers[0];
    for (now, expected) in [
        (heavy("#/$defs/d0"), "refers to its own parts too often"),
        (heavy("#/%24defs/d0"), "by other than its path"),
        (no_schema, "`act` without a schema"),
        (big, "1048"),
    ] {
        let refused = with(&self::server(), std::slice::from_ref(&now)).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
        // That the other one changed does not carry it along.
        let look = McpOffer {
            description: "Other.".to_owned(),
            ..offer("look")
        };
        let offers = [now, look];
        assert!(
            server
                .check_changed(&offers)
                .unwrap_err()
                .contains(expected)
        );
        assert_eq!(before.with_changed_offers(server, &offers), None);
    }
    // What the agent does not have does not count.
    let other = McpOffer {
        input_schema: json!(7),
        ..offer("other")
    };
    let offers = [offer("act"), other];
    assert_eq!(server.check_changed(&offers), Ok(()));
}

#[test]
fn a_gate_that_guards_nothing_is_refused_once_it_is_known_what_is_offered() {
    let mut definition = Definition::new("clerk", "test").with_mcp_server(server());
    let gate = Gate::ask(Allowed::standard());
    definition
        .policy
        .interrupt_on
        .insert("s__lok".to_owned(), gate);
    let said = definition
        .with_offers(&server(), &[offer("look")])
        .unwrap_err();
    assert!(
        said.contains("`s__lok`") && said.contains("s__look"),
        "{said}"
    );
}

#[test]
fn a_server_that_was_not_asked_is_a_flaw() {
    let definition = Definition::new("clerk", "test").with_mcp_server(server());
    let flaw = definition.flaw().unwrap();
    assert!(flaw.contains("was not asked yet"), "{flaw}");
    assert_eq!(definition.unlisted_servers(), [&server()]);
    let listed = listed(&server(), &[offer("look")]);
    assert_eq!(listed.flaw(), None);
    assert!(listed.unlisted_servers().is_empty());
}

/// Everything that can be said of a server.
pub(crate) fn servers() -> Vec<McpServer> {
    let mut files = McpServer::stdio("files", ["server", "--here"], "/srv");
    let McpTransport::Stdio { env, .. } = &mut files.transport else {
        panic!("it is a program");
    };
    env.insert("PLAIN".to_owned(), McpVariable::Text("text".to_owned()));
    let name = "TOKEN".to_owned();
    env.insert("KEY".to_owned(), McpVariable::Secret { name });
    files.only = Some(BTreeSet::from(["read".to_owned()]));
    files.effects = BTreeMap::from([("read".to_owned(), Effect::Read)]);
    files.permissions = vec!["files".to_owned()];
    let mut web = McpServer::http("web", "https://mcp.example.com/mcp");
    let McpTransport::Http {
        headers,
        allow_private,
        ..
    } = &mut web.transport
    else {
        panic!("it is an address");
    };
    let secret = HttpHeader::Secret {
        name: "TOKEN".to_owned(),
        prefix: "Bearer ".to_owned(),
    };
    headers.insert("authorization".to_owned(), secret);
    allow_private.push("10.0.0.7".to_owned());
    web.trust_hints = true;
    web.unasked = true;
    web.timeout = Span::from_secs(5);
    web.settle = Span::from_secs(1);
    vec![files, web]
}
