"""Talks with an agent and shows what it says as it says it. Where it stops to ask, you are asked, and it goes on.

    python3 talk.py approval-agent deploy-123 "部署 v2.0 到生产环境"

Your answers are read from standard input: `y`, or anything else for no. Each call that would be made is shown as it is stored,
whatever the agent says of it, and has an answer of its own. Started again where it waits, it asks you the same.
"""

import json
import sys
import time
import urllib.error
import urllib.parse

from holdpoint import LOST, opened, refusal, send


def visible(text):
    """A text that is only text to a terminal: what would move the cursor, hide, or turn words round is shown by its number."""
    return "".join(it if it.isprintable() or it == "\n" else json.dumps(it)[1:-1] for it in text)


def as_json(value):
    return visible(json.dumps(value, ensure_ascii=False))


def prompt(text):
    """What you say to this."""
    print(visible(text), end=" ", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def events(answer):
    """The events of a stream, each as its JSON."""
    for line in answer:
        text = line.decode().rstrip("\n")
        if text.startswith("data: "):
            yield json.loads(text[len("data: "):])


def show(path, body):
    """Shows one answer of the agent. Returns what it asks, if it stopped to ask."""
    asked = None
    try:
        with opened(path, body, {"X-A2UI": "true"}) as answer:
            for event in events(answer):
                if event["type"] == "text":
                    print(visible(event["data"]["delta"]), end="", flush=True)
                elif event["type"] == "interrupt":
                    asked = event["data"]
                elif event["type"] == "error":
                    sys.exit(f"error: {as_json(event['data'])}")
    except urllib.error.HTTPError as error:
        sys.exit(refusal(error))
    except LOST as error:
        sys.exit(f"the server cannot be reached, or went away: {error}")
    print()
    return asked


def decide(actions):
    """Your decision on each of these calls."""
    decisions = []
    for action in actions:
        said = prompt(f"{action['name']} {as_json(action['args'])}\nApprove [y/n]")
        kind = "approve" if said.lower() == "y" else "reject"
        decisions.append({"type": kind, "action_id": action["action_id"]})
    return decisions


def fill(fields):
    """The form, filled in."""
    form = {}
    for field in fields:
        choices = "y/n" if field["type"] == "confirm" else "/".join(field.get("options", []))
        said = prompt(f"{field['label']} [{choices}]" if choices else field["label"])
        form[field["name"]] = said.lower() == "y" if field["type"] == "confirm" else said
    return form


def answer(who, asked):
    """Asks you what the agent asks, and shows how it goes on. Returns what it asks next, if anything."""
    question = send(f"/interrupts/{asked['interrupt_id']}")
    actions = question["agent"]["actions"]
    if not all("params_hash" in action for action in actions):
        # It is not about calls.
        print(visible(f"{question['title']}\n{question['description']}"), file=sys.stderr)
        if "data" in question:
            print(as_json(question["data"]), file=sys.stderr)
        form = fill(asked["fields"])
    elif [field["name"] for field in asked["fields"]] != ["confirm"]:
        # More than yes and no is possible, or something else: one answer for all.
        for action in actions:
            print(f"{visible(action['name'])} {as_json(action['args'])}", file=sys.stderr)
        form = fill(asked["fields"])
    else:
        decisions = decide(actions)
        kinds = {decision["type"] for decision in decisions}
        if len(kinds) > 1:
            return part(who, question, decisions)
        form = {"confirm": kinds == {"approve"}}
    return show("/chat/resume", {**who, "input": form, "interrupt_id": question["id"]})


def part(who, question, decisions):
    """Approves some calls and not others. A form has one answer for all, so this goes another way, which is no stream."""
    seen = {action["action_id"]: action["params_hash"] for action in question["agent"]["actions"]}
    send(f"/interrupts/{question['id']}/resolve", {"decisions": decisions, "params_hash": seen})
    while (run := send(f"/runs/{question['run_id']}"))["status"] in ("running", "sleeping"):
        time.sleep(0.2)
    print(visible(run.get("output") or run.get("error") or ""))
    return pending(who)


def pending(who):
    """What the conversation waits for, if it does."""
    return send(f"/chat/interrupt_state?{urllib.parse.urlencode(who)}").get("state")


def main(agent, session, message):
    who = {"agent_id": agent, "session_id": session}
    asked = pending(who)
    if asked:
        print("it asked something before, and waits; what you say now is not sent", file=sys.stderr)
    else:
        asked = show("/chat/stream", {**who, "message": message})
    while asked:
        asked = answer(who, asked)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
