//! What a model sends to mislead: arguments that mean two things, and text that steers a terminal.

use crate::support::{World, tool_contents};

#[test]
fn arguments_that_could_mean_two_calls_are_sent_back_and_the_run_goes_on() {
    let world = World::new();
    for (name, raw) in [
        ("large", r#"{"n": 9007199254740993}"#),
        ("twice", r#"{"n": 1, "n": 2}"#),
        ("broken", r#"{"n": "#),
    ] {
        let rules = format!(
            "  - when: {{turn: 1}}\n    call: [{{tool: act, raw: '{raw}'}}]\n  - say: 'I was told: {{result}}'\n"
        );
        let file = world.agent(name, "true", &rules);
        let done = world.json(0, &["run", &file, "--input", "x"]);
        let told = tool_contents(&done)[0];
        match name {
            "large" => assert!(told.contains("send it as a string"), "{told}"),
            "twice" => assert!(told.contains("appears twice"), "{told}"),
            _ => assert!(told.contains("not valid JSON"), "{told}"),
        }
    }
    assert_eq!(world.effects(), 0);
}

#[test]
fn nothing_that_a_model_says_reaches_the_terminal_as_more_than_text() {
    let world = World::new();
    let rules = r#"  - when: {turn: 1}
    say: "\e[2J\u009b31m hello \u202e"
    call: [{tool: act, args: {s: "\e]0;approved\a\r\u200b\n⏸ forged"}}]
  - say: "bye \e[0m{result}"
"#;
    let file = world.agent(
        "rude",
        "{allowed_decisions: [approve], description: \"\\e[1mtrust me\\e[0m\"}",
        rules,
    );
    let mut said = vec![
        world
            .hold(&["run", &file, "--input", "\u{1b}[5m", "--thread", "a"])
            .ends(3),
        world.hold(&["show", "a"]).ends(3),
        world.hold(&["show", "a", "--json"]).ends(3),
        world.hold(&["trace", "a"]).ends(0),
        world.hold(&["trace", "a", "--json"]).ends(0),
        world.hold(&["resume", "a", "--approve"]).ends(0),
        world.hold(&["show", "a"]).ends(0),
    ];
    said.push(world.hold(&["show", "\u{1b}[2J"]).ends(4));
    for said in said {
        for text in [&said.stdout, &said.stderr] {
            let hidden = |char: char| {
                (char.is_control() && char != '\n')
                    || matches!(char, '\u{200b}' | '\u{202e}' | '\u{9b}')
            };
            assert!(!text.chars().any(hidden), "{text:?}");
            assert!(
                !text.lines().any(|line| line.starts_with("⏸ forged")),
                "{text}"
            );
        }
    }
}
