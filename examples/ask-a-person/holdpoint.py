"""Asking a person by a Holdpoint server: all that a program needs. Python 3.9 or newer, nothing to install.

HOLDPOINT_URL is the server (http://127.0.0.1:8888 if unsaid), HOLDPOINT_KEY the API key, where it wants one.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("HOLDPOINT_URL", "http://127.0.0.1:8888") + "/api/v1"
KEY = os.environ.get("HOLDPOINT_KEY")
# How long one request waits. The question itself stays for a day.
PATIENCE = 30


def opened(path, body=None, headers=None):
    """The answer to one request, yet to be read."""
    headers = {"Content-Type": "application/json", **(headers or {})}
    if KEY:
        headers["Authorization"] = f"Bearer {KEY}"
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(URL + path, data, headers), timeout=PATIENCE + 10)


def send(path, body=None):
    """What a request is answered. What does not come through is sent again: asking and looking twice does no harm."""
    while True:
        try:
            with opened(path, body) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            if error.code != 503:
                sys.exit(f"{problem['code']}: {problem['error']}")
        except OSError:
            # The server is away, or was restarted while we waited.
            pass
        time.sleep(1)


def ask(workflow, node, title, kind="approval", **more):
    """Asks, and waits until it is closed. Asked again by a program that was restarted, it is the same question."""
    question = {"workflow_id": workflow, "node_id": node, "type": kind, "title": title, **more}
    asked = send("/interrupts", question)
    print(f"waiting for a person: {asked['id']}", file=sys.stderr, flush=True)
    while asked["status"] == "pending":
        asked = send(f"/interrupts/{asked['id']}/wait?timeout={PATIENCE}")
    return asked


def is_approved(closed):
    return closed["status"] == "resolved"
