//! What version 3 of the stored format added for guardrails, as files. `HOLDPOINT_BLESS=v3` rewrites them, as those of
//! [`golden`](crate::golden), while no store with them exists.

use std::{collections::BTreeMap, fmt, fs, path::PathBuf};

use holdpoint_core::{
    ActionId, Allowed, Ask, Called, Carried, Cause, CheckedBy, DecisionKind, Definition, Digest,
    Effect, Event, FORMAT, Fate, Flag, FramePath, FramePhase, Guardrail, HeldReply, Hooks,
    HttpHeader, Interrupt, InterruptId, InterruptKind, OnTimeout, Payload, PrincipalKind, RunId,
    Span, Subject, Terms, Timestamp, ToolCall, ToolKind, ToolSpec, Usage, Verdict,
    decode_definition,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::thread::{path, user};

/// What is stored reads as `value`, and `value` is written as what is stored, to the byte.
fn check<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug>(name: &str, value: &T) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("tests/golden/v3").join(name);
    let text = serde_json::to_string_pretty(value).unwrap() + "\n";
    if std::env::var_os("HOLDPOINT_BLESS").is_some_and(|it| it == "v3") {
        fs::write(&file, &text).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap();
    assert_eq!(serde_json::from_str::<T>(&stored).unwrap(), *value);
    assert_eq!(text, stored);
}

fn definition() -> Definition {
    let headers = BTreeMap::from([
        ("x-team".to_owned(), HttpHeader::Text("money".to_owned())),
        (
            "authorization".to_owned(),
            HttpHeader::Secret {
                name: "CHECKER_TOKEN".to_owned(),
                prefix: "Bearer ".to_owned(),
            },
        ),
    ]);
    let asked = CheckedBy::Http {
        url: "https://checks.example.com/look".to_owned(),
        headers,
        allow_private: vec!["10.0.0.7".to_owned()],
    };
    let bare = CheckedBy::Http {
        url: "https://checks.example.com/".to_owned(),
        headers: BTreeMap::new(),
        allow_private: vec![],
    };
    let below = Definition::new("reader", "m").guard("own", Guardrail::keywords(["geheim"]));
    Definition::new("clerk", "scripted:/srv/clerk.yaml")
        .with_tool(ToolSpec::code("mail", Effect::Write))
        .guard(
            "cards",
            Guardrail::command(["/srv/check", "--cards"], "/srv"),
        )
        .guard("asked", Guardrail::new(asked).within(Span::from_secs(3)))
        .guard("bare", Guardrail::new(bare).only_output())
        .guard("code", Guardrail::code("look").of_tools(["mail", "task"]))
        .guard(
            "words",
            Guardrail::keywords(["wire", "überweisen"]).only_calls(),
        )
        .with_subagent("reads", below)
}

#[test]
fn a_definition_with_guardrails_is_stored_as_it_was() {
    let definition = definition();
    assert_eq!(definition.flaw(), None);
    let text = definition.to_canonical().unwrap();
    let stored = decode_definition(&Payload::json(text.into_bytes())).unwrap();
    assert_eq!(stored.format, FORMAT, "older versions refuse it");
    check("guardrails.json", &stored);
    // One in a subagent is enough.
    let below = Definition::new("b", "m").guard("g", Guardrail::keywords(["a"]));
    let boss = Definition::new("a", "m").with_subagent("b", below);
    assert!(boss.to_canonical().unwrap().contains("\"v\":3"));
    // And without any, nothing changes.
    let plain = Definition::new("a", "m").to_canonical().unwrap();
    assert!(plain.contains("\"v\":1") && !plain.contains("guardrails"));
}

fn flags() -> Vec<Flag> {
    vec![
        Flag::new("cards", "a card number in `body`"),
        Flag::failed("asked", "HTTP 503"),
    ]
}

fn question(number: u8, kind: InterruptKind, cause: Cause, ask: Ask) -> Interrupt {
    Interrupt {
        id: InterruptId::from_bytes([number; 16]),
        kind,
        cause,
        run: RunId::from_bytes([1; 16]),
        frame: path("reader#1"),
        asks: vec![ask],
        plan_version: 1,
        definition: Digest::of(b"definition"),
        requester: user("ann").actor,
        asked_at: Timestamp::from_micros(1_800_000_000_000_000),
        expires_at: None,
        on_timeout: OnTimeout::Expire,
        nonce: "nonce".to_owned(),
        supersedes: None,
        changes: vec![],
    }
}

#[test]
fn what_is_held_and_what_is_flagged_is_stored_as_it_was() {
    assert_eq!(user("ann").actor.kind, PrincipalKind::User);
    let wish = ToolCall {
        id: "c1".to_owned(),
        name: "mail".to_owned(),
        arguments: r#"{ "to": "a" }"#.to_owned(),
    };
    let whole = HeldReply {
        text: "Your card is 4111.\nBye.".to_owned(),
        calls: vec![wish.clone()],
        usage: Usage {
            input_tokens: 12,
            output_tokens: 7,
            ..Usage::default()
        },
        model: "openai:gpt-4o".to_owned(),
        carried: Some(Box::new(Carried {
            by: "openai:gpt-4o".to_owned(),
            items: "[]".to_owned(),
        })),
        cut_off: true,
    };
    let plain = HeldReply {
        text: "Hm.".to_owned(),
        ..HeldReply::default()
    };
    let about_words = Ask {
        action_id: ActionId::from_bytes([3; 16]),
        subject: Subject::Output {
            reply: 7,
            text: Digest::of(b"text"),
        },
        allowed: Allowed::new(vec![
            DecisionKind::Approve,
            DecisionKind::Respond,
            DecisionKind::Reject,
        ])
        .unwrap(),
        description: Some("Guardrail `cards`: a card number".to_owned()),
    };
    let flagged = Fate::Action {
        id: ActionId::from_bytes([4; 16]),
        version: "1".to_owned(),
        effect: Effect::Write,
        timeout: Span::from_secs(60),
        settle: Span::from_secs(5),
        hooks: Hooks::default(),
        verdict: Verdict::Ask(Terms::new(Allowed::standard())).flagged(flags()),
        kind: ToolKind::Plain,
        rule: None,
        grant: None,
        shown: None,
        held_by: Some(InterruptId::from_bytes([8; 16])),
    };
    let raised = question(8, InterruptKind::Review, Cause::Review, about_words);
    let events = vec![
        Event::OutputHeld {
            frame: path("reader#1"),
            reply: Box::new(whole),
            flags: flags(),
        },
        Event::OutputHeld {
            frame: FramePath::root(),
            reply: Box::new(plain),
            flags: flags(),
        },
        Event::InterruptRaised(Box::new(raised)),
        Event::ModelReplied {
            frame: FramePath::root(),
            text: String::new(),
            calls: vec![Called {
                call: wish,
                fate: flagged,
            }],
            usage: Usage::default(),
            model: String::new(),
            carried: None,
        },
    ];
    check("guarded_events.json", &events);
    let text = Digest::of(b"text");
    let phases = vec![
        FramePhase::Held { attempt: 1, text },
        FramePhase::Cleared { attempt: 2, text },
    ];
    check("guarded_phases.json", &phases);
}
