"""Asks a person, waits for the answer, and goes on with it. Python 3.9 or newer, nothing to install.

    HOLDPOINT_URL=http://127.0.0.1:8888 python3 ask.py deploy "Deploy 2.0?"

Ends with 0 if it is approved, and with 1 if not. Started again while nobody has answered, it waits for the same question.
HOLDPOINT_KEY is the API key, where the server wants one.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("HOLDPOINT_URL", "http://127.0.0.1:8888") + "/api/v1/interrupts"
KEY = os.environ.get("HOLDPOINT_KEY")
# How long one request waits. The question itself stays for a day.
PATIENCE = 30


def send(path, body=None):
    """One request. What does not come through is sent again: asking and looking twice does no harm."""
    headers = {"Content-Type": "application/json"}
    if KEY:
        headers["Authorization"] = f"Bearer {KEY}"
    data = None if body is None else json.dumps(body).encode()
    while True:
        request = urllib.request.Request(URL + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE + 10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            if error.code != 503:
                sys.exit(f"{problem['code']}: {problem['error']}")
        except OSError:
            # The server is away, or was restarted while we waited.
            pass
        time.sleep(1)


def ask(node, title):
    asked = send("", {"workflow_id": "ask.py", "node_id": node, "type": "approval", "title": title})
    print(f"waiting for a person: {asked['id']}", file=sys.stderr)
    while asked["status"] == "pending":
        asked = send(f"/{asked['id']}/wait?timeout={PATIENCE}")
    return asked


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    closed = ask(*sys.argv[1:])
    said = closed.get("response", {})
    print(json.dumps({"status": closed["status"], "by": said.get("user_id"), "comment": said.get("comment", "")}))
    sys.exit(0 if closed["status"] == "resolved" else 1)
