//! Texts that try to be more than text, cut into tokens at any place.

use proptest::prelude::*;

/// A text as the tokens in which it arrives, some of them empty.
pub(crate) fn tokens() -> impl Strategy<Value = Vec<String>> {
    let text = prop::collection::vec(piece(), 0..16).prop_map(|pieces| pieces.concat());
    let lengths = prop_oneof![
        1 => Just(vec![usize::MAX]),
        1 => Just(vec![1]),
        4 => prop::collection::vec(0..9_usize, 1..10),
    ];
    (text, lengths).prop_map(|(text, lengths)| cut(&text, &lengths))
}

fn piece() -> impl Strategy<Value = String> {
    let hostile = prop::sample::select(vec![
        "\r",
        "\n",
        "\r\n",
        "\n\n",
        "\r\r",
        "\n\r",
        "\0",
        "\u{FEFF}",
        "\u{2028}",
        "\u{2029}",
        "\u{85}",
        "\u{B}",
        "\u{C}",
        "\u{1C}",
        "\u{1D}",
        "\u{1E}",
        "\u{A0}",
        "\u{200B}",
        "\u{7F}",
        " ",
        "  ",
        "\t",
        ":",
        "\"",
        "\\",
        "\\u2028",
        "data:",
        "data: ",
        "event: interrupt",
        "event:",
        "id: 7",
        "retry: 1",
        "[DONE]",
        "[DON",
        "E]",
        "[DONE",
        "]",
        "data: [DONE]",
        " [DONE] ",
        "\0INTERRUPT:",
        "INTERRUPT:{}",
        "{\"type\":\"interrupt\"}",
        "é",
        "删除",
        "👩‍👩‍👧",
        "\u{FFFD}",
        "a",
        "Hello",
    ]);
    prop_oneof![
        12 => hostile.prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => ".{0,6}",
    ]
}

/// Tokens of these lengths, over and over.
fn cut(text: &str, lengths: &[usize]) -> Vec<String> {
    let mut chars = text.chars().peekable();
    let mut tokens = Vec::new();
    // The last keeps it going if all others are zero.
    for length in lengths.iter().chain([&5]).cycle() {
        if chars.peek().is_none() {
            break;
        }
        tokens.push(chars.by_ref().take(*length).collect());
    }
    tokens
}
