"""Outcome of a call, by its problems, and outcome and end of a turn: functions of an observation."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from callwright.errors import RequestError
from callwright.events import OF_INVALID_CALLS, ProblemKind
from callwright.turn.observe import Observation, SeenCall

CallOutcome: TypeAlias = Literal["right", "repaired", "leaked", "invalid", "unknown_tool", "unchecked", "truncated"]
# Outcome of a turn: all calls valid as written; text alone; repairs; the model was asked again; it was asked whether it
# meant a call; an invalid call; an error; refused before any turn; or the client left. Empty while it runs.
TurnOutcome: TypeAlias = Literal[
    "", "right", "text", "mended", "asked_again", "ambiguous", "invalid", "failed", "refused", "left"
]
# How a turn ended, for a person: with text; with calls; at the token limit; by a filter of its server; the model
# declined; the request was refused; it failed; or the client left. Empty while it runs.
TurnEnd: TypeAlias = Literal["", "answered", "called", "cut", "filtered", "declined", "refused", "failed", "left"]
_ENDS: Final[Mapping[str | None, TurnEnd]] = {"length": "cut", "content_filter": "filtered"}
_WRONG: Final = frozenset(("truncated", "unknown_tool", "invalid"))
# The outcome of a call is the first of these with one of its problems.
_OUTCOMES: Final[tuple[tuple[CallOutcome, frozenset[ProblemKind]], ...]] = (
    ("truncated", frozenset(("incomplete_arguments",))),
    ("unknown_tool", frozenset(("unknown_tool",))),
    ("invalid", frozenset(("invalid_arguments", "invalid_input", "malformed_call", "non_json_arguments"))),
    ("leaked", frozenset(("call_in_text",))),
    ("unchecked", frozenset(("arguments_unchecked",))),
)
# Problems that, without a call, show that one was written and withheld.
WITHHELD: Final = OF_INVALID_CALLS | {"call_not_allowed"}


def call_outcome(call: SeenCall) -> CallOutcome:
    """The outcome of a call that was sent."""
    if not call.complete:
        return "truncated"
    if not call.problems:
        return "right"
    for found, kinds in _OUTCOMES:
        if not kinds.isdisjoint(call.problems):
            return found
    return "repaired"


def turn_outcome(seen: Observation) -> TurnOutcome:
    """How a turn that is over went."""
    if seen.error is not None:
        return "failed" if isinstance(seen.error, Exception) else "left"
    for problem in seen.problems:
        if problem.call is None and problem.kind in WITHHELD:
            return "invalid"
    for call in seen.calls.values():
        if (call.problems or not call.complete) and call_outcome(call) in _WRONG:
            return "invalid"
    if seen.ambiguous is not None:
        return "ambiguous"
    if len(seen.asked) > 1 and seen.retries:
        return "asked_again"
    if seen.problems:
        return "mended"
    return "right" if seen.calls else "text"


def turn_end(seen: Observation) -> TurnEnd:
    """How a turn that is over ended."""
    if (error := seen.error) is not None:
        return "refused" if isinstance(error, RequestError) else "failed" if isinstance(error, Exception) else "left"
    if seen.declined:
        return "declined"
    return _ENDS.get(seen.reason) or ("called" if seen.calls else "answered")
