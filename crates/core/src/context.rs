//! What a model is given of a conversation that has become too long for it.
//!
//! The journal keeps everything; this is about one call. The rule, in this order, until what is left fits:
//!
//! 1. Long results of calls are shortened, the oldest first, but none of the last four turns.
//! 2. Turns are left out, the oldest first and each with all its results, but none of the last four turns; and what users
//!    said before their last word. What was left out is said at the beginning of the first word of a user that is left.
//! 3. Results of the last turns are shortened too, the longest first.
//!
//! The last word of a user is never left out, nor is a call without its result or a result without its call. What is left
//! out is rounded up, so that the beginning stays the same for some turns, and a provider that remembers it charges
//! less.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Message, ToolSpec, artifact::note_of};

/// How much of a conversation a model is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRule {
    /// How many tokens it may be, with what the model is told first and what it is offered. They are counted as a third of
    /// the bytes, which is more than most texts have.
    pub max_tokens: u32,
}

impl Default for ContextRule {
    fn default() -> Self {
        Self {
            max_tokens: 120_000,
        }
    }
}

impl ContextRule {
    pub(crate) fn is_unsaid(&self) -> bool {
        *self == Self::default()
    }
}

/// How many of the last turns are left as they are for as long as possible.
const RECENT: usize = 4;
/// How many turns are left out at once.
const STEP: usize = 8;

/// Down to which part of the limit a conversation is cut that has come to it, in hundredths.
const AIM: usize = 80;
/// How many bytes a token has, for whoever counts carefully.
const BYTES: usize = 3;
/// What a message costs beside its text.
const PER_MESSAGE: usize = 8;
/// How much is left of a result that is shortened, at each end.
const END: usize = 200;

/// The messages that a model is given of these, with that much said besides.
#[must_use]
pub fn fit<'m>(
    rule: ContextRule,
    system: Option<&str>,
    tools: &[ToolSpec],
    messages: &'m [Message],
) -> Cow<'m, [Message]> {
    let beside = system.map_or(0, str::len) + tools.iter().map(offered).sum::<usize>();
    let most = usize::try_from(rule.max_tokens).unwrap_or(usize::MAX);
    let fixed = beside / BYTES;
    let size = |messages: &[Message]| messages.iter().map(tokens).sum::<usize>();
    if fixed + size(messages) <= most {
        return Cow::Borrowed(messages);
    }
    let aim = (most.saturating_mul(AIM) / 100).saturating_sub(fixed);
    let mut parts = parts(messages);
    shorten_old(&mut parts, aim);
    leave_out(&mut parts, aim);
    shorten_longest(&mut parts, aim);
    let left = parts.into_iter().flat_map(|part| part.messages);
    Cow::Owned(left.map(Cow::into_owned).collect())
}

/// What users say, or a model's turn with all that it led to.
#[derive(Debug, Clone)]
struct Part<'m> {
    messages: Vec<Cow<'m, Message>>,
    is_turn: bool,
}

impl Part<'_> {
    fn tokens(&self) -> usize {
        self.messages.iter().map(|message| tokens(message)).sum()
    }
}

fn parts(messages: &[Message]) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for message in messages {
        let is_result = matches!(message, Message::Tool { .. });
        match parts.last_mut() {
            Some(part) if is_result && part.is_turn => part.messages.push(Cow::Borrowed(message)),
            Some(_) | None => parts.push(Part {
                messages: vec![Cow::Borrowed(message)],
                is_turn: matches!(message, Message::Assistant { .. }),
            }),
        }
    }
    parts
}

/// Where the last turns begin, or the last word of a user if that is earlier.
fn recent(parts: &[Part<'_>]) -> usize {
    let turns = parts.iter().enumerate().rev().filter(|(_, it)| it.is_turn);
    let turns = turns.map(|(at, _)| at).nth(RECENT - 1);
    turns.unwrap_or(0)
}

fn total(parts: &[Part<'_>]) -> usize {
    parts.iter().map(Part::tokens).sum()
}

fn shorten_old(parts: &mut [Part<'_>], aim: usize) {
    let (mut size, recent) = (total(parts), recent(parts));
    for part in &mut parts[..recent] {
        for message in &mut part.messages {
            if size <= aim {
                return;
            }
            let before = tokens(message);
            shorten(message, END);
            size -= before - tokens(message);
        }
    }
}

fn leave_out(parts: &mut Vec<Part<'_>>, aim: usize) {
    let last_word = parts.iter().rposition(|part| !part.is_turn);
    let recent = recent(parts);
    // What may go, the oldest first.
    let old: Vec<usize> = (0..recent).filter(|at| Some(*at) != last_word).collect();
    let mut size = total(parts);
    let mut count = 0;
    while size > aim && count < old.len() {
        let step = old[count..].iter().take(STEP);
        size -= step.map(|at| parts[*at].tokens()).sum::<usize>();
        count = (count + STEP).min(old.len());
    }
    if count == 0 {
        return;
    }
    let gone = &old[..count];
    let mut at = 0;
    let mut left_out = 0;
    parts.retain(|part| {
        let goes = gone.contains(&at);
        at += 1;
        left_out += if goes { part.messages.len() } else { 0 };
        !goes
    });
    let note = format!("[{left_out} earlier messages are left out here.]");
    let first = parts.first_mut().and_then(|part| part.messages.first_mut());
    match first.map(Cow::to_mut) {
        Some(Message::User { content }) => content.insert_str(0, &format!("{note}\n\n")),
        // No provider takes a conversation that a model begins.
        Some(Message::Assistant { .. } | Message::Tool { .. }) | None => {
            let messages = vec![Cow::Owned(Message::User { content: note })];
            let is_turn = false;
            parts.insert(0, Part { messages, is_turn });
        }
    }
}

fn shorten_longest(parts: &mut [Part<'_>], aim: usize) {
    let mut size = total(parts);
    for end in [4_000, 1_000, END] {
        if size <= aim {
            return;
        }
        let mut messages: Vec<&mut Cow<'_, Message>> = parts
            .iter_mut()
            .flat_map(|part| &mut part.messages)
            .filter(|message| matches!(&***message, Message::Tool { .. }))
            .collect();
        messages.sort_by_key(|message| std::cmp::Reverse(tokens(message)));
        for message in messages {
            if size <= aim {
                return;
            }
            let before = tokens(message);
            shorten(message, end);
            size -= before - tokens(message);
        }
    }
}

/// Leaves both ends of a result that is longer than that.
fn shorten(message: &mut Cow<'_, Message>, end: usize) {
    // Not for what the note itself takes.
    let is_long = matches!(&**message, Message::Tool { content, .. } if content.len() > 3 * end);
    if !is_long {
        return;
    }
    let Message::Tool { content, .. } = message.to_mut() else {
        return;
    };
    let (head, tail) = (
        content.floor_char_boundary(end),
        content.ceil_char_boundary(content.len() - end),
    );
    let left_out = tail - head;
    // What was too long from the begin can still be read, by an address that is in its middle.
    let note = note_of(content).map(|note| format!("{note}\n"));
    let note = note.unwrap_or_default();
    *content = format!(
        "{}\n[… {left_out} bytes are left out here …]\n{note}{}",
        &content[..head],
        &content[tail..]
    );
}

fn offered(tool: &ToolSpec) -> usize {
    tool.name.len() + tool.description.len() + tool.input_schema.to_string().len()
}

/// About how many tokens a message has, rather more than fewer.
fn tokens(message: &Message) -> usize {
    let bytes = match message {
        Message::User { content } => content.len(),
        Message::Assistant {
            content,
            tool_calls,
            carried,
        } => {
            let calls = tool_calls.iter();
            let calls = calls.map(|call| call.id.len() + call.name.len() + call.arguments.len());
            let carried = carried.as_ref().map_or(0, |carried| carried.items.len());
            content.len() + calls.sum::<usize>() + carried
        }
        Message::Tool {
            tool_call_id,
            content,
            ..
        } => tool_call_id.len() + content.len(),
    };
    bytes.div_ceil(BYTES) + PER_MESSAGE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Carried, ToolCall, ToolStatus};

    fn user(text: &str) -> Message {
        Message::User {
            content: text.to_owned(),
        }
    }

    fn turn(id: usize, results: &[usize]) -> Vec<Message> {
        let call = |at: usize| ToolCall {
            id: format!("c{id}_{at}"),
            name: "read".to_owned(),
            arguments: "{}".to_owned(),
        };
        let calls = (0..results.len()).map(call).collect();
        let mut messages = vec![Message::Assistant {
            content: format!("turn {id}"),
            tool_calls: calls,
            carried: None,
        }];
        messages.extend(results.iter().enumerate().map(|(at, bytes)| Message::Tool {
            tool_call_id: call(at).id,
            name: "read".to_owned(),
            content: "é".repeat(bytes / 2),
            status: ToolStatus::Success,
            action_id: None,
        }));
        messages
    }

    fn rule(max_tokens: u32) -> ContextRule {
        ContextRule { max_tokens }
    }

    fn size(messages: &[Message]) -> usize {
        messages.iter().map(tokens).sum()
    }

    /// What no provider takes.
    fn is_whole(messages: &[Message]) -> bool {
        let mut open: Vec<&str> = Vec::new();
        for message in messages {
            match message {
                Message::Tool { tool_call_id, .. } => {
                    let Some(at) = open.iter().position(|id| id == tool_call_id) else {
                        return false;
                    };
                    open.remove(at);
                }
                Message::User { .. } | Message::Assistant { .. } => {
                    if !open.is_empty() {
                        return false;
                    }
                    if let Message::Assistant { tool_calls, .. } = message {
                        open = tool_calls.iter().map(|call| call.id.as_str()).collect();
                    }
                }
            }
        }
        open.is_empty()
    }

    #[test]
    fn what_fits_is_left_as_it_is() {
        let messages = [vec![user("hello")], turn(1, &[3_000])].concat();
        let fitted = fit(rule(2_000), Some("be brief"), &[], &messages);
        assert!(matches!(fitted, Cow::Borrowed(_)));
    }

    #[test]
    fn old_results_are_shortened_before_anything_is_left_out() {
        let mut messages = vec![user("go")];
        for id in 0..10 {
            messages.extend(turn(id, &[3_000]));
        }
        let fitted = fit(rule(9_000), None, &[], &messages);
        assert_eq!(fitted.len(), messages.len());
        let short = fitted.iter().filter(|message| match message {
            Message::Tool { content, .. } => content.contains("bytes are left out here"),
            Message::User { .. } | Message::Assistant { .. } => false,
        });
        let short = short.count();
        assert!((1..=6).contains(&short), "{short}");
        assert_eq!(fitted[messages.len() - 8..], messages[messages.len() - 8..]);
    }

    #[test]
    fn old_turns_go_with_their_results_and_the_last_word_of_a_user_says_so() {
        let mut messages = vec![user("the first task")];
        for id in 0..40 {
            messages.extend(turn(id, &[300]));
        }
        messages.push(user("the second task"));
        for id in 40..60 {
            messages.extend(turn(id, &[300]));
        }
        let fitted = fit(rule(4_000), None, &[], &messages);
        assert!(is_whole(&fitted));
        let Message::User { content } = &fitted[0] else {
            panic!("a user comes first: {:?}", fitted[0]);
        };
        assert!(
            content.contains("earlier messages are left out"),
            "{content}"
        );
        assert!(fitted.contains(&user("the second task")));
        // The next turn begins in the same way.
        let longer = [messages.clone(), turn(60, &[300])].concat();
        let again = fit(rule(4_000), None, &[], &longer);
        assert_eq!(again[..fitted.len()], fitted[..]);
    }

    #[test]
    fn one_huge_result_is_shortened_wherever_it_is() {
        let messages = [vec![user("go")], turn(1, &[900_000])].concat();
        let fitted = fit(rule(10_000), None, &[], &messages);
        assert!(size(&fitted) <= 10_000);
        assert!(is_whole(&fitted));
    }

    #[test]
    fn what_is_kept_apart_can_still_be_read_when_its_excerpt_is_shortened() {
        let text = "a line\n".repeat(20_000);
        let action = crate::ActionId::from_bytes([1; 16]);
        let address = crate::ArtifactAddress::of_result("read", action, 1);
        let rest = crate::Rest::Readable(&address);
        let mut messages = vec![user("go")];
        messages.extend(turn(0, &[1]));
        let Message::Tool { content, .. } = &mut messages[2] else {
            panic!("a result comes after its call");
        };
        *content = crate::cut(&text).unwrap().excerpt(rest);
        assert!(tokens(&messages[2]) < 5_000, "its excerpt is counted");
        messages.extend((1..20).flat_map(|id| turn(id, &[3_000])));
        let fitted = fit(rule(19_000), None, &[], &messages);
        let Message::Tool { content, .. } = &fitted[2] else {
            panic!("nothing had to go");
        };
        assert!(content.len() < 900, "{content}");
        assert!(content.contains(&address.to_string()), "{content}");
    }

    #[test]
    fn what_is_carried_counts() {
        let mut messages = vec![user("go")];
        messages.push(Message::Assistant {
            content: String::new(),
            tool_calls: vec![],
            carried: Some(Box::new(Carried {
                by: "m".to_owned(),
                items: "x".repeat(90_000),
            })),
        });
        assert!(size(&messages) > 30_000);
    }

    proptest! {
        #[test]
        fn whatever_is_left_is_whole_and_keeps_the_last_word(
            lengths in proptest::collection::vec((0..4_usize, 0..20_000_usize), 1..80),
            every in 3..30_usize,
            most in 200..40_000_u32,
        ) {
            let mut messages = vec![user("the beginning")];
            for (id, (calls, bytes)) in lengths.iter().enumerate() {
                messages.extend(turn(id, &vec![*bytes; *calls]));
                if id % every == every - 1 {
                    messages.push(user(&format!("word {id}")));
                }
            }
            let fitted = fit(rule(most), None, &[], &messages);
            prop_assert!(is_whole(&fitted));
            let first = matches!(fitted[0], Message::User { .. });
            prop_assert!(first);
            let last = |messages: &[Message]| {
                messages.iter().rev().find_map(|message| match message {
                    Message::User { content } => Some(content.clone()),
                    Message::Assistant { .. } | Message::Tool { .. } => None,
                })
            };
            let word = last(&messages).unwrap();
            prop_assert!(last(&fitted).unwrap().ends_with(&word));
            prop_assert!(size(&fitted) <= size(&messages).max(1) + 30);
            // What cannot go is four turns, what a user said last, and the ends of their results.
            let least = 4 * (4 * (3 * END).div_ceil(BYTES) + 200) + 200;
            prop_assert!(size(&fitted) <= (most as usize).max(least), "{} > {most}", size(&fitted));
        }
    }
}
