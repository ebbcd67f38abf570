"""Asks for leave, waits for the answer, and goes on with it.

    python3 ask.py deploy "Deploy 2.0?" build-481

Ends with 0 if it is approved, and with 1 if not. The last word names the occasion: whoever kills this, at whatever moment,
and starts it again with the same words gets the same question, and the answer to it. The next time is another occasion, and
is asked anew.
"""

import json
import sys

from holdpoint import ask, is_approved

if __name__ == "__main__":
    if len(sys.argv) != 4 or not all(sys.argv):
        sys.exit(__doc__)
    node, title, occasion = sys.argv[1:]
    closed = ask("ask.py", node, title, occasion=occasion)
    said = closed.get("response", {})
    print(json.dumps({"status": closed["status"], "by": said.get("user_id"), "comment": said.get("comment", "")}))
    sys.exit(0 if is_approved(closed) else 1)
