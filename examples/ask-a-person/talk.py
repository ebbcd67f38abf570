"""Talks with an agent and shows what it says as it says it. Where it stops to ask, you are asked, and it goes on.

    python3 talk.py approval-agent deploy-123 "部署 v2.0 到生产环境"

Your answers are read from standard input: `y`, or anything else for no.
"""

import json
import sys

from holdpoint import opened


def events(answer):
    """The events of a stream, each as its JSON."""
    for line in answer:
        text = line.decode().rstrip("\n")
        if text.startswith("data: "):
            yield json.loads(text[len("data: "):])


def show(path, body):
    """Shows one answer of the agent. Returns what it asks, if it stopped to ask."""
    asked = None
    with opened(path, body, {"X-A2UI": "true"}) as answer:
        for event in events(answer):
            if event["type"] == "text":
                print(event["data"]["delta"], end="", flush=True)
            elif event["type"] == "interrupt":
                asked = event["data"]
            elif event["type"] == "error":
                sys.exit(f"error: {event['data']}")
    print()
    return asked


def main(agent, session, message):
    who = {"agent_id": agent, "session_id": session}
    asked = show("/chat/stream", {**who, "message": message})
    while asked:
        form = {}
        for field in asked["fields"]:
            print(f"{field['label']} [y/n] ", end="", file=sys.stderr, flush=True)
            form[field["name"]] = sys.stdin.readline().strip().lower() == "y"
        asked = show("/chat/resume", {**who, "input": form})


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
