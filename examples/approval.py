"""A call that a person must approve: the run waits as plain JSON, and another process may go on with it."""

import json
from typing import Annotated

import callwright
from callwright import Hidden

SENT: list[tuple[str, str]] = []


@callwright.tool(approve=True)
def send_email(email: str, subject: str, sender: Annotated[str, Hidden]) -> str:
    """Send an email.

    Args:
        email: The address.
        subject: One line.
    """
    SENT.append((sender, email))
    return f"sent to {email}: {subject}"


agent = callwright.Agent(model="simulated", tools=[send_email])
HIDDEN = {"sender": "me@example.com"}

if __name__ == "__main__":
    waiting = callwright.run_sync(agent, 'Send an email to anna@example.com with the subject "Hello"', hidden=HIDDEN)
    stored = json.dumps(waiting.pending)  # in a database, say

    pending = json.loads(stored)
    for call in pending["calls"]:
        print("May I?", call["name"], call["arguments"])
    decisions = {call["id"]: True for call in pending["calls"]}
    result = callwright.run_sync(agent, pending, decisions=decisions, hidden=HIDDEN)
    print(result.text)
    print(SENT)
