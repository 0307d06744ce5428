"""How well a call was made, by its problems."""

from typing import Final, Literal, TypeAlias

from callwright.events import ProblemKind
from callwright.turn.observe import SeenCall

CallOutcome: TypeAlias = Literal["right", "repaired", "leaked", "invalid", "unknown_tool", "unchecked", "truncated"]
# The outcome of a call is the first of these that one of its problems stands for.
_OUTCOMES: Final[tuple[tuple[CallOutcome, frozenset[ProblemKind]], ...]] = (
    ("truncated", frozenset(("incomplete_arguments",))),
    ("unknown_tool", frozenset(("unknown_tool",))),
    ("invalid", frozenset(("invalid_arguments", "invalid_input", "malformed_call", "non_json_arguments"))),
    ("leaked", frozenset(("call_in_text",))),
    ("unchecked", frozenset(("arguments_unchecked",))),
)
# Problems that, without a call, say that one was written and withheld.
WITHHELD: Final = frozenset(
    (
        "call_not_allowed",
        "incomplete_arguments",
        "invalid_arguments",
        "invalid_input",
        "malformed_call",
        "non_json_arguments",
        "unknown_tool",
    )
)


def call_outcome(call: SeenCall) -> CallOutcome:
    """How well a call that went out was made."""
    if not call.complete:
        return "truncated"
    if not call.problems:
        return "right"
    for found, kinds in _OUTCOMES:
        if not kinds.isdisjoint(call.problems):
            return found
    return "repaired"
