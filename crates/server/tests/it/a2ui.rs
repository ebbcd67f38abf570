//! Named events give the text back, cost no more than promised, and every client reads every one of them.

use holdpoint_core::Timestamp;
use holdpoint_server::frames::{A2ui, Event, Interrupt, beat, is_wide_break};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{golden, seed_client, sse, texts};

const START: i64 = 1_746_000_000_000;

/// The texts of the messages that a client gets, after checking that each event says what has come so far.
fn messages(events: &[(&str, Value)]) -> Vec<String> {
    let mut messages = vec![String::new()];
    for (_, event) in events {
        if event["type"] == "agent_switch" {
            messages.push(String::new());
        }
        if event["type"] == "text" {
            let message = messages.last_mut().unwrap();
            message.push_str(event["data"]["delta"].as_str().unwrap());
            assert_eq!(event["data"]["content"], message.as_str());
            assert_ne!(event["data"]["delta"], "");
        }
    }
    messages
}

/// How a stream goes on behind a token.
#[derive(Debug, Clone, Copy)]
enum Then {
    Text,
    Tick,
    Beat,
    Thinking,
    Switch,
}

fn steps() -> impl Strategy<Value = Vec<(String, i64, Then)>> {
    let then = prop_oneof![
        6 => Just(Then::Text),
        1 => Just(Then::Tick),
        1 => Just(Then::Beat),
        1 => Just(Then::Thinking),
        1 => Just(Then::Switch),
    ];
    let wait = prop_oneof![Just(0_i64), Just(50), -100..200_i64];
    let rest = prop::collection::vec((wait, then), 1..8);
    (texts::tokens(), rest).prop_map(|(tokens, rest)| {
        let steps = tokens.into_iter().zip(rest.into_iter().cycle());
        steps
            .map(|(token, (wait, then))| (token, wait, then))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_receiver_gets_every_event_and_every_message(steps in steps()) {
        let (mut a2ui, mut out, mut now) = (A2ui::default(), Vec::new(), START);
        let mut expected = vec![String::new()];
        let (mut others, mut beats) = (Vec::new(), 0);
        for (token, wait, then) in &steps {
            now += wait;
            let at = Timestamp::from_millis(now);
            a2ui.text(&mut out, at, token);
            expected.last_mut().unwrap().push_str(token);
            match then {
                Then::Text => {}
                Then::Tick => a2ui.tick(&mut out, at),
                Then::Beat => {
                    a2ui.flush(&mut out, at);
                    prop_assert_eq!(a2ui.waiting(), 0);
                    beat(&mut out);
                    beats += 1;
                }
                Then::Thinking => {
                    a2ui.send(&mut out, at, &Event::Thinking { content: token });
                    others.push(json!({"type": "thinking", "timestamp": now, "data": {"content": token}}));
                }
                Then::Switch => {
                    a2ui.begin_message(&mut out, at);
                    a2ui.send(&mut out, at, &Event::AgentSwitch { from_agent: "a", to_agent: token });
                    others.push(json!({"type": "agent_switch", "timestamp": now, "data": {"from_agent": "a", "to_agent": token}}));
                    expected.push(String::new());
                }
            }
        }
        let mut state = golden::question();
        state.reason = expected.concat();
        let at = Timestamp::from_millis(now);
        a2ui.send(&mut out, at, &Event::Interrupt(Interrupt::from(&state)));
        a2ui.send(&mut out, at, &Event::Done);
        let question = json!({"reason": state.reason, "fields": state.fields, "checkpoint_id": state.checkpoint_id});
        others.push(json!({"type": "interrupt", "timestamp": now, "data": question}));
        others.push(json!({"type": "done", "timestamp": now, "data": null}));

        let events = seed_client::read(&out);
        prop_assert_eq!(messages(&events), expected);
        let parsed: Vec<Value> = events.iter().map(|(_, event)| event.clone()).filter(|event| event["type"] != "text").collect();
        prop_assert_eq!(parsed, others);
        for (name, event) in &events {
            prop_assert_eq!(&event["type"], *name);
        }

        // A parser that follows the standard gets the same, and there is nothing else in the stream.
        let standard = sse::read(&out);
        let standard: Vec<_> = standard.iter().map(|event| (event.event.as_str(), event.data.as_str())).collect();
        prop_assert_eq!(standard, seed_client::frames(&out));
        let text = str::from_utf8(&out).unwrap();
        prop_assert_eq!(text.matches("\n\n").count(), events.len() + beats);
        prop_assert_eq!(text.matches('\n').count(), 3 * events.len() + 2 * beats);
        let breaks = text.contains(|char| matches!(char, '\r' | '\0') || is_wide_break(char));
        prop_assert!(!breaks);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_text_costs_is_bounded_however_it_arrives(
        tokens in prop::collection::vec((1..40_usize, prop_oneof![Just(0_i64), Just(49), Just(50), 0..2_000_i64]), 0..300),
        message in 1..200_usize,
    ) {
        let (mut a2ui, mut out, mut now, mut text) = (A2ui::default(), Vec::new(), START, 0);
        let mut forced = 0;
        for (index, (length, wait)) in tokens.into_iter().enumerate() {
            now += wait;
            let at = Timestamp::from_millis(now);
            a2ui.text(&mut out, at, &"x".repeat(length));
            text += length;
            if index % message == 0 {
                let before = out.len();
                a2ui.begin_message(&mut out, at);
                forced += out.len() - before;
            }
        }
        prop_assert!(out.len() - forced <= 4_096 + 32 * text, "{} bytes for {text}", out.len());
    }
}

/// Sends tokens of four bytes with this time between them: what it cost, how many frames, and how much waited at most.
fn spend(text: usize, wait: i64) -> (usize, usize, usize) {
    let (mut a2ui, mut out) = (A2ui::default(), Vec::new());
    let (mut cost, mut frames, mut waited) = (0, 0, 0);
    for token in 0..text / 4 {
        let now = START + wait * i64::try_from(token).unwrap();
        a2ui.text(&mut out, Timestamp::from_millis(now), "word");
        cost += out.len();
        frames += usize::from(!out.is_empty());
        out.clear();
        waited = waited.max(a2ui.waiting());
    }
    (cost, frames, waited)
}

#[test]
fn a_long_text_at_the_worst_pace_stays_in_its_bounds_and_still_flows() {
    let text = 200_000;
    let (cost, frames, waited) = spend(text, 50);
    assert!(cost <= 4_096 + 32 * text, "{cost} bytes");
    assert!(waited <= (text + 100) / 30, "{waited} bytes waited");
    assert!(frames > 200, "{frames} frames");
}

#[test]
fn a_short_text_flows_with_every_breath() {
    let (_, frames, waited) = spend(80, 50);
    assert_eq!((frames, waited), (20, 0));
}

#[test]
fn text_that_comes_at_once_is_sent_each_time_it_doubles() {
    let (cost, frames, _) = spend(200_000, 0);
    assert!((10..=20).contains(&frames), "{frames} frames");
    assert!(cost <= 4 * 200_000, "{cost} bytes");
}

#[test]
fn text_waits_for_fifty_milliseconds_or_for_what_follows_it() {
    let at = |millis| Timestamp::from_millis(START + millis);
    let (mut a2ui, mut out) = (A2ui::default(), Vec::new());
    let mut deltas = |act: &dyn Fn(&mut A2ui, &mut Vec<u8>)| {
        out.clear();
        act(&mut a2ui, &mut out);
        let events = seed_client::read(&out);
        let said = events
            .iter()
            .map(|(name, event)| event["data"]["delta"].as_str().unwrap_or(name).to_owned());
        said.collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(
        deltas(&|a2ui, out| a2ui.text(out, at(0), "Hello")),
        ["Hello"]
    );
    assert_eq!(deltas(&|a2ui, out| a2ui.text(out, at(10), " w")), none);
    assert_eq!(deltas(&|a2ui, out| a2ui.text(out, at(49), "or")), none);
    assert_eq!(
        deltas(&|a2ui, out| a2ui.text(out, at(50), "ld")),
        [" world"]
    );
    assert_eq!(deltas(&|a2ui, out| a2ui.text(out, at(51), "!")), none);
    assert_eq!(deltas(&|a2ui, out| a2ui.tick(out, at(99))), none);
    assert_eq!(deltas(&|a2ui, out| a2ui.tick(out, at(100))), ["!"]);
    assert_eq!(deltas(&|a2ui, out| a2ui.tick(out, at(200))), none);
    assert_eq!(deltas(&|a2ui, out| a2ui.text(out, at(101), " So")), none);
    assert_eq!(
        deltas(&|a2ui, out| a2ui.send(out, at(102), &Event::Done)),
        [" So", "done"]
    );
    assert_eq!(
        deltas(&|a2ui, out| a2ui.text(out, at(103), ", more than there was")),
        [", more than there was"]
    );
}
