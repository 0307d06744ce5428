"""Judges a run by what happened: what the client did with its files, what it printed, what the gateway saw of it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.clients.agents.rows import Api, Client, Task
from tests.clients.agents.served import Asked, Seen

__all__ = ["FAILS", "NOT_RUN", "WORKS", "Outcome", "Ran", "judged", "not_run"]

WORKS: Final = "works"
FAILS: Final = "fails: "
NOT_RUN: Final = "not run: "
_ENDPOINTS: Final[Mapping[str, Api]] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/responses (websocket)": "websocket",
    "/v1/messages": "messages",
}
_REFUSED: Final = 400
_SHOWN_CHARS: Final = 160


class Ran(Struct, frozen=True):
    """How the client's program ended: its exit status (None where it came to no end), and what it printed."""

    status: int | None
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        """The last thing that it said, of its errors before all."""
        lines = [line.strip() for text in (self.output, self.errors) for line in text.splitlines() if line.strip()]
        return lines[-1][:_SHOWN_CHARS] if lines else "it said nothing"


class Outcome(Struct, frozen=True):
    """A row of the table. `requests` are those that asked the model, `tools` those that it called, by name."""

    name: str
    result: str
    apis: list[str] = []
    streamed: str = ""
    requests: int = 0
    tools: list[str] = []


def not_run(client: Client, why: str) -> Outcome:
    """The row of a client that is not here."""
    return Outcome(client.name, NOT_RUN + why)


def judged(client: Client, task: Task, ran: Ran, seen: Seen, work: Path) -> Outcome:
    """What became of a run. The texts of `task` are those of this run, without placeholders."""
    why = next(_faults(client, task, ran, seen, work), None)
    borne = "".join(f"; {_named(asked)}, and it went on" for asked in _refused(seen) if asked.status != task.refused)
    modes = sorted({"streamed" if turn.streamed else "whole" for turn in seen.turns})
    return Outcome(
        client.name,
        WORKS + borne if why is None else FAILS + why,
        apis=list(dict.fromkeys(_ENDPOINTS.get(turn.endpoint, turn.endpoint) for turn in seen.turns)),
        streamed=" and ".join(modes),
        requests=len(seen.turns),
        tools=list(dict.fromkeys(call.name for turn in seen.turns for call in turn.calls)),
    )


def _refused(seen: Seen) -> list[Asked]:
    """What was refused, or failed in the middle of its answer."""
    return [asked for asked in seen.asked if asked.status >= _REFUSED or asked.error]


def _named(asked: Asked) -> str:
    return f"{asked.method} {asked.path} was answered with {asked.status}"


def _faults(client: Client, task: Task, ran: Ran, seen: Seen, work: Path) -> Iterator[str]:
    """What is not as it should be, what explains most first."""
    for asked in _refused(seen):
        if asked.status != task.refused and _named(asked) not in client.refused:
            yield f"{_named(asked)} {asked.error}".rstrip()
    if ran.status is None:
        yield f"it came to no end in {client.patience_s:g} s"
    elif ran.status != 0:
        yield f"exit status {ran.status}: {ran.last_line}"
    for api in client.apis:
        if not any(_ENDPOINTS.get(turn.endpoint) == api for turn in seen.turns):
            yield f"it did not use the API {api}"
        if task.refused and (api, task.refused) not in [(_ENDPOINTS.get(one.path), one.status) for one in seen.asked]:
            yield f"nothing was refused with {task.refused} over the API {api}"
    calls = [call for turn in seen.turns for call in turn.calls]
    if client.calls and not calls:
        yield "no tool was called"
    elif client.calls and max(len(turn.calls) for turn in seen.turns) < task.together:
        yield f"no answer has {task.together} calls"
    for call in calls:
        if not call.complete:
            yield f"a call of {call.name} was cut"
    for name, text in task.after.items():
        path = work / name
        if not path.is_file():
            yield f"{name} is not there"
        elif (found := path.read_text(errors="replace")) != text:
            yield f"{name} holds {found[:_SHOWN_CHARS]!r}"
    if task.says not in ran.output:
        yield f"its answer lacks {task.says!r}: {ran.last_line}"
