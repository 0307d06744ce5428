"""The state of a run: the conversation and the counts. Plain JSON data while it waits for a person."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from callwright.agent.nested import CallRuns, Resumed, Spent
from callwright.calls.history import NOT_RUN
from callwright.conversation import Call, CallOutput, Conversation, Item, TextPart
from callwright.errors import RequestError
from callwright.events import Problem, Usage
from callwright.openai_format.messages import read_messages, write_messages

INTERRUPTED: Final = "Interrupted while it ran; its effect is unknown."
ID_BETWEEN: Final = "/"  # separates the id of a call from that of a call in its nested run
_VERSION: Final = 1


class Counts(msgspec.Struct, forbid_unknown_fields=True):
    """The usage of a run, and the counts that detect one that loops."""

    turns: int = 0
    calls: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()
    released: bool = False
    failures: int = 0
    retries: dict[str, int] = {}
    told: dict[str, str] = {}
    repeats: dict[str, int] = {}
    always: list[tuple[str, str]] = []  # agent and tool, by name
    agent: str = ""


class _Pending(msgspec.Struct):
    """A run that waits for a person."""

    version: int
    calls: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    counts: Counts
    answered: dict[str, tuple[str, str]] = {}  # status and text, by call
    media: dict[str, list[dict[str, Any]]] = {}  # parts of the answers other than text, by call
    nested: dict[str, dict[str, Any]] = {}  # runs that wait, by the call that they run in
    runs: dict[str, CallRuns] = {}  # and the others of these calls
    changed: dict[str, dict[str, Any]] = {}  # the arguments that a person gave these calls


class State:
    """The items so far and the counts: `retries` in a row and the last error (`told`) by tool, `repeats` by call, the
    tools that may `always` run, whether a forced choice was `released`, `failures` in a row, the `agent` that has the
    conversation. For a turn whose nested runs wait: the outputs `answered` so far with their `media`, the `nested`
    runs, the other `runs` of their calls, and the arguments that a person `changed` in these calls.
    """

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.items: list[Item] = list(items)
        self.counts = Counts()
        self.asked: frozenset[str] = frozenset()  # ids of the calls that wait for a person
        self.answered: dict[str, tuple[str, str]] = {}
        self.media: dict[str, list[dict[str, Any]]] = {}
        self.nested: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, CallRuns] = {}
        self.changed: dict[str, dict[str, Any]] = {}
        self.problems: list[Problem] = []
        self.text = ""
        self._ids: set[str] | None = None  # of the calls

    @staticmethod
    def from_pending(given: object) -> "State":
        """The state of a run that waited. Raises `RequestError`."""
        try:
            pending = msgspec.convert(given, _Pending)
        except msgspec.ValidationError as error:
            raise RequestError(f"This is not a pending run: {error}.", param="pending") from error
        if pending.version != _VERSION:
            raise RequestError(f"A pending run of version {pending.version} cannot be read.", param="pending.version")
        state = State(read_messages(pending.messages))
        state.counts = pending.counts
        state.asked = frozenset(str(call.get("id")) for call in pending.calls)
        state.answered, state.media = pending.answered, pending.media
        state.nested, state.runs, state.changed = pending.nested, pending.runs, pending.changed
        return state

    def to_pending(self, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Plain data; `calls` are those that wait."""
        made: dict[str, Any] = msgspec.to_builtins(
            _Pending(
                _VERSION,
                [dict(call) for call in calls],
                write_messages(Conversation(tuple(self.items))),
                self.counts,
                self.answered,
                self.media,
                self.nested,
                self.runs,
                self.changed,
            )
        )
        return made

    def resumed(self, decisions: Mapping[str, Mapping[str, Any]]) -> dict[str, Resumed]:
        """The nested runs to resume, each with its decisions. Raises `RequestError` for an invalid pending run."""
        found: dict[str, Resumed] = {}
        for id_, pending in self.nested.items():
            counts = State.from_pending(pending).counts
            spent = Spent(counts.usage, counts.turns, counts.calls)
            found[id_] = Resumed(pending, decisions.get(id_, {}), spent, self.runs.get(id_, CallRuns()))
        return found

    def new_id(self, wanted: str) -> str:
        """The id for a call: the wanted one, unless another call has it or it looks like that of a nested call."""
        if self._ids is None:
            self._ids = {item.id for item in self.items if isinstance(item, Call)}
        number = len(self._ids)
        id_ = wanted
        while not id_ or id_ in self._ids or ID_BETWEEN in id_:
            id_ = f"call_{number}"
            number += 1
        self._ids.add(id_)
        return id_


def open_calls(items: Sequence[Item]) -> list[Call]:
    """The calls at the end that have no output yet."""
    answered = {item.call_id for item in items if isinstance(item, CallOutput)}
    return [item for item in items if isinstance(item, Call) and item.id not in answered]


def with_outputs(items: Sequence[Item], told: Mapping[str, str]) -> list[Item]:
    """Add an output for each call that has none, after its batch of calls and their outputs. The text is the one in
    `told`, by id, or else that the call was not run.
    """
    missing = {call.id for call in open_calls(items)}
    made: list[Item] = []
    run: list[Call] = []

    def close() -> None:
        made.extend(CallOutput(call.id, (TextPart(told.get(call.id, NOT_RUN)),)) for call in run if call.id in missing)
        run.clear()

    for item in items:
        if not isinstance(item, Call | CallOutput) or (
            isinstance(item, Call) and made and isinstance(made[-1], CallOutput)
        ):
            close()
        made.append(item)
        if isinstance(item, Call):
            run.append(item)
    close()
    return made
