"""Asking a person by a Holdpoint server: all that a program needs. Python 3.9 or newer, nothing to install.

HOLDPOINT_URL is the server (http://127.0.0.1:8888 if unsaid), HOLDPOINT_KEY the API key, where it wants one.
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("HOLDPOINT_URL", "http://127.0.0.1:8888") + "/api/v1"
KEY = os.environ.get("HOLDPOINT_KEY")
# How long one request waits. The question itself stays for a day.
PATIENCE = 30
# What a request fails with that does not come through, or whose answer breaks off.
LOST = (OSError, http.client.HTTPException)


def opened(path, body=None, headers=None):
    """The answer to one request, yet to be read."""
    headers = {"Content-Type": "application/json", **(headers or {})}
    if KEY:
        headers["Authorization"] = f"Bearer {KEY}"
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(URL + path, data, headers), timeout=PATIENCE + 10)


def refusal(error):
    """What a server says where it does not do what was asked for."""
    try:
        problem = json.load(error)
        return f"{problem['code']}: {problem['error']}"
    except (ValueError, LookupError, TypeError):
        # It was somebody between us and the server.
        return str(error)


def send(path, body=None):
    """What a request is answered. What does not come through, or whose answer is lost, is sent again.

    Looking twice does no harm. Asking or answering twice might: the first may have come through, and somebody may have
    answered since. So it has a key by which the server knows it again, and says how the first one stands.
    """
    headers = {} if body is None else {"Idempotency-Key": uuid.uuid4().hex}
    while True:
        try:
            with opened(path, body, headers) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (502, 503, 504):
                sys.exit(refusal(error))
        except LOST:
            # The server is away, or was restarted while we waited.
            pass
        time.sleep(1)


def ask(workflow, node, title, kind="approval", occasion=None, **more):
    """Asks, and waits until it is closed.

    `occasion` names this one time that it is asked. A program that was killed, at whatever moment, asks again in the same
    words and with the same occasion, and it is the same question, answered or not. The next time is another occasion.
    Without one, the same question is the same only while it is pending: once it is answered, it is asked anew.
    """
    question = {"workflow_id": workflow, "node_id": node, "type": kind, "title": title, **more}
    if occasion:
        question["checkpoint_id"] = occasion
    asked = send("/interrupts", question)
    print(f"waiting for a person: {asked['id']}", file=sys.stderr, flush=True)
    while asked["status"] == "pending":
        asked = send(f"/interrupts/{asked['id']}/wait?timeout={PATIENCE}")
    return asked


def is_approved(closed):
    return closed["status"] == "resolved"
