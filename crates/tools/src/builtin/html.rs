//! The text of an HTML document, as simply as it can be had.

/// Elements whose content is no text of the document.
const DROPPED: [&str; 6] = ["script", "style", "noscript", "template", "svg", "iframe"];

/// Elements that stand on lines of their own.
const BLOCKS: [&str; 30] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "title",
    "tr",
    "ul",
];

/// The text of a document: without its elements, scripts and styles, each block on lines of its own.
pub(super) fn text(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        say(&mut out, &rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let is_tag = rest[1..].starts_with(|next: char| {
            next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?')
        });
        if !is_tag {
            say(&mut out, "<");
            rest = &rest[1..];
            continue;
        }
        let end = end_of_tag(rest);
        let tag = &rest[1..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        let is_end = tag.starts_with('/');
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect::<String>()
            .to_ascii_lowercase();
        if BLOCKS.contains(&name.as_str()) {
            break_line(&mut out);
            if name == "li" && !is_end {
                out.push_str("- ");
            }
        } else if matches!(name.as_str(), "td" | "th") {
            say(&mut out, " ");
        }
        if !is_end && DROPPED.contains(&name.as_str()) && !tag.ends_with('/') {
            rest = after(rest, &name);
        }
    }
    say(&mut out, rest);
    let lines: Vec<_> = out
        .lines()
        .map(str::trim)
        .filter(|line| !matches!(*line, "" | "-"))
        .collect();
    lines.join("\n")
}

/// Where a tag ends; `>` in a quoted value does not end it.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') if tag.as_bytes()[..at].ends_with(b"=") => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// What follows the end of an element.
fn after<'a>(rest: &'a str, name: &str) -> &'a str {
    let mut at = 0;
    while let Some(found) = rest[at..].find("</") {
        at += found + 2;
        let closes = rest
            .get(at..at + name.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(name));
        if closes {
            return rest[at..].find('>').map_or("", |end| &rest[at + end + 1..]);
        }
    }
    ""
}

fn break_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Adds text, with entities as what they stand for and white space as one blank.
fn say(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (character, used) = if first == '&' {
            entity(rest).unwrap_or(('&', 1))
        } else {
            (first, first.len_utf8())
        };
        rest = &rest[used..];
        if character.is_whitespace() {
            if !out.is_empty() && !out.ends_with([' ', '\n']) {
                out.push(' ');
            }
        } else {
            out.push(character);
        }
    }
}

fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(12).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let character = if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        char::from_u32(code)?
    } else {
        match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "nbsp" => ' ',
            "ndash" => '–',
            "mdash" => '—',
            "hellip" => '…',
            "copy" => '©',
            "euro" => '€',
            "laquo" => '«',
            "raquo" => '»',
            "ldquo" => '“',
            "rdquo" => '”',
            "lsquo" => '‘',
            "rsquo" => '’',
            _ => return None,
        }
    };
    Some((character, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_of_a_document_is_left() {
        for (html, expected) in [
            ("plain", "plain"),
            ("<p>one</p><p>two <b>bold</b>\n\n  end", "one\ntwo bold end"),
            (
                "<title>T</title><script>if (a < b) { x('</p>') }</script>after",
                "T\nafter",
            ),
            ("<STYLE>p{}</Style >x", "x"),
            ("<!-- <p>no</p> -->yes", "yes"),
            (
                "a &amp; b &lt;c&gt; &#233;&#xe9; &unknown; &",
                "a & b <c> éé &unknown; &",
            ),
            ("<a title=\"a > b\" href='x>y'>link</a>", "link"),
            ("1 < 2 and <b>3</b> <", "1 < 2 and 3 <"),
            ("<ul><li>a<li>b</ul>", "- a\n- b"),
            ("<tr><td>1</td><td>2</td></tr>", "1 2"),
            ("<script>never closed", ""),
            ("<p", ""),
            ("é<b>漢</b>&#x1F600;", "é漢😀"),
            ("&#xD800;&#99999999;", "&#xD800;&#99999999;"),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }
}
