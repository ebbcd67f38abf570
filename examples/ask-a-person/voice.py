"""A front-end for a voice: commands come in as lines of text, and what is to be said goes out as lines of plain words.

    arecord … | whisper … | python3 voice.py | espeak

What cannot be undone waits for a person; everything else is done at once. (Here, doing it is only saying so.)
"""

import hashlib
import re
import sys

from holdpoint import ask, is_approved

# Words of commands that need somebody's leave.
RISKY = re.compile(r"\b(delete|erase|transfer|pay|unlock|shut down)\b|删除|转账|付款|解锁|关机", re.IGNORECASE)


def speakable(text):
    """Words that a speaking program reads as they are: no marks, no line breaks, no end in sight."""
    words = re.sub(r"[^\w\s.,?!'%-]", " ", text)
    return " ".join(words.split())[:300]


def say(text):
    print(speakable(text), flush=True)


def obey(command):
    if not RISKY.search(command):
        return say(f"OK. {command}.")
    say("One moment. I am asking for approval.")
    # The same command said twice while nobody has answered is one question.
    node = hashlib.sha256(command.encode()).hexdigest()[:16]
    closed = ask("voice", node, command, data={"heard": command}, timeout=3600 * 10**9)
    if is_approved(closed):
        return say(f"Approved by {closed['response']['user_id']}. {command}.")
    why = closed.get("response", {}).get("comment") or "nobody approved it in time"
    say(f"I will not do that. {why}.")


if __name__ == "__main__":
    for line in sys.stdin:
        if line.strip():
            obey(line.strip())
