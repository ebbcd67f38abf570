"""A guardrail: a text that passes its checks goes through, and one that does not waits for a person's review.

    some-agent | python3 guard.py mail-17 > outbox.txt

Ends with 0 and the text; with 1 and nothing, where a person says no; with 2 and nothing, where the text cannot be put before
a person whole. The word names the occasion: killed and started again with it and the same text, it is the same review.
"""

import hashlib
import json
import re
import sys

from holdpoint import ask, is_approved

# `\b` would not do: there is none between 号 and a digit.
CHECKS = {
    "a card number": re.compile(r"(?<!\d)(?:\d[ -]?){13,19}(?!\d)"),
    "an API key": re.compile(r"(?<![A-Za-z0-9])(?:sk|hp)[-_][A-Za-z0-9_-]{16,}"),
    "an address of a person": re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"),
}
# How much is shown on either side of what was found, in characters.
AROUND = 40
# How much a question holds, in bytes of JSON. The server takes 16384; the rest is for the title and the like.
ROOM = 15_000


def findings(text):
    """What the checks find, each with the passage around it."""
    return [
        {"what": what, "passage": text[max(0, hit.start() - AROUND) : hit.end() + AROUND]}
        for what, pattern in CHECKS.items()
        for hit in pattern.finditer(text)
    ]


def refuse(why):
    print(f"{why}; nothing went out", file=sys.stderr)
    sys.exit(2)


def passed(text, occasion):
    """What may go out: the text, or what a person saw of it and approved, which is all of it; or else nothing."""
    found = findings(text)
    if not found:
        return text
    whats = " and ".join(dict.fromkeys(hit["what"] for hit in found))
    shown = {"found": found, "text": text}
    size = len(json.dumps(shown, ensure_ascii=False).encode())
    if size > ROOM:
        refuse(f"the text has {whats}, and is too long for a review: {size} bytes with what was found, at most {ROOM}")
    node = hashlib.sha256(f"{occasion}\n{text}".encode()).hexdigest()[:16]
    closed = ask("guard", node, f"May this go out? It has {whats}", kind="review", occasion=occasion, data=shown)
    return closed["data"]["text"] if is_approved(closed) else None


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1]:
        refuse(__doc__)
    # As bytes, so that nothing changes on the way, not even the ends of lines.
    try:
        given = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        refuse(f"the text is not UTF-8: {error}")
    out = passed(given, sys.argv[1])
    if out is None:
        sys.exit("a person said no")
    sys.stdout.buffer.write(out.encode())
