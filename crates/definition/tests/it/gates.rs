//! Gates that are fine, and what they say.

use std::collections::BTreeMap;

use holdpoint_core::{
    Allowed, DecisionKind, Gate, InterruptMode, OnTimeout, Policy, Rule, Ruling, Span, Terms,
};

use crate::{AGENT, folder, read};

/// The policy of [`AGENT`] with another gate for `delete_file`, and more in its `spec`.
fn policy(gate: &str, more: &str) -> Policy {
    let dir = folder();
    let text = AGENT.replace("delete_file: true", &format!("delete_file: {gate}"));
    let loaded = read(&format!("{text}{more}"), dir.path());
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.warnings, []);
    loaded.definition.policy
}

fn gate(gate: &str) -> Gate {
    policy(gate, "").interrupt_on.remove("delete_file").unwrap()
}

fn two() -> Allowed {
    Allowed::new(vec![DecisionKind::Approve, DecisionKind::Reject]).unwrap()
}

fn rule(when: &str, then: Ruling) -> Rule {
    Rule {
        when: when.to_owned(),
        then,
    }
}

#[test]
fn a_condition_asks_where_it_holds_and_allows_elsewhere() {
    let expected = Gate {
        rules: vec![rule("args.amount > 100", Ruling::Interrupt)],
        otherwise: Ruling::Allow,
        terms: Terms::new(two()),
    };
    let read = gate("{allowed_decisions: [approve, reject], when: args.amount > 100}");
    assert_eq!(read, expected);
    assert!(read.may_ask());
}

#[test]
fn rules_keep_their_order_and_what_none_is_about_is_asked() {
    let expected = Gate {
        rules: vec![
            rule("args.path == \"/\"", Ruling::Deny),
            rule("user.name == 'ada'", Ruling::Interrupt),
            rule("args.path.startsWith(\"tmp/\")", Ruling::Allow),
        ],
        otherwise: Ruling::Interrupt,
        terms: Terms::new(two()),
    };
    let text = r#"
      allowed_decisions: [approve, reject]
      rules:
        - {when: 'args.path == "/"', then: deny}
        - {when: "user.name == 'ada'", then: interrupt}
        - then: allow
          when: args.path.startsWith("tmp/")"#;
    assert_eq!(gate(text), expected);
}

#[test]
fn what_a_person_is_told_may_speak_of_the_call() {
    let told = "Delete {{ args.path }}{% if args.force %} by force{% endif %}?";
    let read = gate(&format!(
        "{{allowed_decisions: [approve, reject], description: \"{told}\"}}"
    ));
    let terms = Terms {
        description: Some(told.to_owned()),
        ..Terms::new(two())
    };
    assert_eq!(read.terms, terms);
}

#[test]
fn rules_that_all_ask_are_a_warning() {
    let dir = folder();
    let gate =
        "delete_file: {allowed_decisions: [approve], rules: [{when: \"true\", then: interrupt}]}";
    let loaded = read(&AGENT.replace("delete_file: true", gate), dir.path()).unwrap();
    let shown: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "agent.yaml:14:56: spec.interrupt_on.delete_file.rules: every rule asks, and so does a call that no rule is about\n  help: say `when` to ask in one case only, or end with `{when: \"true\", then: allow}`"
        ]
    );
}

#[test]
fn a_question_may_end_by_itself_and_never_by_an_approval() {
    for (word, on_timeout) in [
        (", on_timeout: expire", OnTimeout::Expire),
        (", on_timeout: reject", OnTimeout::Reject),
        (", on_timeout: keep", OnTimeout::Keep),
        ("", OnTimeout::Expire),
    ] {
        let terms = Terms {
            timeout: Some(Span::from_secs(900)),
            on_timeout,
            ..Terms::new(two())
        };
        let read = gate(&format!(
            "{{allowed_decisions: [approve, reject], timeout: 15m{word}}}"
        ));
        assert_eq!(read.terms, terms);
        assert_eq!(read.otherwise, Ruling::Interrupt);
    }
}

#[test]
fn every_key_may_be_written_in_camel_case() {
    let dir = folder();
    let snake = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: {name: clerk}
spec:
  model: {primary: "scripted:scenario.yaml"}
  system_prompt: Hello.
  true_includes_respond: true
  interrupt_mode: per_call
  tools: [{name: t, effect: read, input_schema: {type: object, required: [some_thing]}, command: [t]}]
  interrupt_on:
    t: {allowed_decisions: [approve], always_ask: true, requires_token: true, timeout: 1h, on_timeout: keep}
  subagents:
    - {name: s, description: d, system_prompt: p, interrupt_mode: batched, interrupt_on: {t: true}}
"#;
    let mut camel = snake.replace("apiVersion", "api_version");
    for (from, to) in [
        ("system_prompt", "systemPrompt"),
        ("true_includes_respond", "trueIncludesRespond"),
        ("interrupt_mode", "interruptMode"),
        ("input_schema", "inputSchema"),
        ("interrupt_on", "interruptOn"),
        ("allowed_decisions", "allowedDecisions"),
        ("always_ask", "alwaysAsk"),
        ("requires_token", "requiresToken"),
        ("on_timeout", "onTimeout"),
    ] {
        assert!(camel.contains(from), "{from}");
        camel = camel.replace(from, to);
    }
    let snake = read(snake, dir.path()).unwrap();
    assert_eq!(read(&camel, dir.path()).unwrap(), snake);
    assert_eq!(snake.definition.interrupt_mode, InterruptMode::PerCall);
    let terms = &snake.definition.policy.interrupt_on["t"].terms;
    assert!(terms.always_ask && terms.requires_token);
    // What is not a key of ours keeps its spelling.
    let schema = &snake.definition.tools[0].input_schema;
    assert_eq!(schema["required"][0], "some_thing");
}

#[test]
fn true_includes_a_response_only_where_that_is_said() {
    use DecisionKind::{Approve, Edit, Reject, Respond};
    let four = Allowed::new(vec![Approve, Edit, Reject, Respond]).unwrap();
    let with = "  true_includes_respond: true\n";
    let named = |gate| BTreeMap::from([("delete_file".to_owned(), gate)]);
    assert_eq!(
        policy("true", with).interrupt_on,
        named(Gate::ask(four.clone()))
    );
    let off = "  true_includes_respond: false\n";
    assert_eq!(
        policy("true", off).interrupt_on,
        named(Gate::ask(Allowed::standard()))
    );
    // A list says itself what it allows.
    let list = "{allowed_decisions: [approve, reject]}";
    assert_eq!(policy(list, with).interrupt_on, named(Gate::ask(two())));
    // The same for tools that are not named.
    let asked = policy("false", &format!("{with}  default: interrupt\n"));
    let expected = BTreeMap::from([
        ("delete_file".to_owned(), Gate::open()),
        ("*".to_owned(), Gate::ask(four)),
    ]);
    assert_eq!(asked.interrupt_on, expected);
    assert_eq!(asked.default, Ruling::Interrupt);
    let denied = policy("false", &format!("{with}  default: deny\n"));
    assert_eq!(denied.interrupt_on, named(Gate::open()));
}
