"""A front-end for a voice: commands come in as lines of text, and what is to be said goes out as lines of plain words.

    arecord … | whisper … | python3 voice.py | espeak

A few commands are known to do no harm, and are done at once; everything else waits for a person. (Here, doing it is only
saying so.)
"""

import hashlib
import re
import sys

from holdpoint import ask, is_approved

# These, word for word. What is dangerous can be said in more ways than anybody lists; what is harmless is listed easily.
HARMLESS = {"lights on", "lights off", "what time is it", "stop the music", "开灯", "关灯", "几点了"}


def speakable(text):
    """Words that a speaking program reads as they are: no marks, no line breaks, no end in sight."""
    words = re.sub(r"[^\w\s.,?!'%-]", " ", text)
    return " ".join(words.split())[:300]


def say(text):
    print(speakable(text), flush=True)


def obey(command):
    plain = command.strip(" .,!?。,!?").lower()
    if plain in HARMLESS:
        return say(f"OK. {plain}.")
    say("One moment. I am asking for approval.")
    # The same command said twice while nobody has answered is one question. Once it is answered, a command is a new one
    # each time that it is heard, so there is no occasion to name: nobody's yes of this morning unlocks a door tonight.
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
