"""Asks for leave, waits for the answer, and goes on with it.

    python3 ask.py deploy "Deploy 2.0?"

Ends with 0 if it is approved, and with 1 if not. Started again while nobody has answered, it waits for the same question.
"""

import json
import sys

from holdpoint import ask, is_approved

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    closed = ask("ask.py", *sys.argv[1:])
    said = closed.get("response", {})
    print(json.dumps({"status": closed["status"], "by": said.get("user_id"), "comment": said.get("comment", "")}))
    sys.exit(0 if is_approved(closed) else 1)
