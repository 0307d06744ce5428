"""How a dialect writes calls, found out from what it writes: nobody says it twice.

A call with known arguments is written once, twice and three times. What stands before, between and behind the
arguments is the frame of a call. Where values are written as texts see `callwright.constraints.text_values`.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from callwright.constraints.format_pieces import Atoms, Fixed, Splitter, shared_end, shared_start, with_counters
from callwright.conversation import AssistantTurn, Call, Message, TextPart
from callwright.dialects.base import Dialect
from callwright.prompt import Control

__all__ = [
    "MARK",
    "CallFormat",
    "Delimited",
    "answer_span",
    "call_format_of",
    "preamble_span",
    "reasoning_span",
    "written",
]

# Arguments that are found again: as JSON text, or their value as text.
MARK: Final = '{"sentinel_key": "sentinel value"}'
_THOUGHT: Final = "sentinel thought"
_SAID: Final = "sentinel said"


class CallFormat(msgspec.Struct, frozen=True):
    """What stands around the arguments of one call, and around all calls.

    `several`: one answer can hold more than one call. `stop`: the stop token with which the model ends its turn.
    """

    open: Fixed
    begin: Fixed
    end: Fixed
    separator: Fixed
    close: Fixed
    stop: Fixed
    several: bool

    @property
    def outside(self) -> tuple[Fixed, ...]:
        """All that must not depend on the tool."""
        return self.open, self.end, self.separator, self.close, self.stop


class Delimited(msgspec.Struct, frozen=True):
    """Free text between marks of its own."""

    begin: Fixed
    end: Fixed


def written(dialect: Dialect, *calls: Call, reasoning: str | None = None, said: str = "") -> str:
    """What the model would write."""
    message = Message("assistant", (TextPart(said),)) if said else None
    return dialect.write(AssistantTurn(reasoning, message, list(calls)))


def call_format_of(dialect: Dialect, cut: Splitter, call: Call, mark: str) -> CallFormat | None:
    """The frame of calls like this one, whose arguments are written as `mark`; None when they are not found."""
    parts = [written(dialect, *[call] * times).split(mark) for times in (1, 2, 3)]
    if [len(part) for part in parts] != [2, 3, 4]:
        return None
    head = cut.atoms(parts[0][0])
    tail = _behind(cut, [part[-1] for part in parts])
    between = with_counters(cut.atoms(parts[2][1]), cut.atoms(parts[2][2]))
    if tail is None:
        return None
    tail, stop = _stopped(tail, dialect.stops)
    if between is None or (stop and any(atom in dialect.stops for atom in between)):
        return CallFormat((), cut.fixed(head), cut.fixed(tail), (), (), cut.fixed(stop), several=False)
    same = shared_end(head, between)
    begin, gap = between[len(between) - same :], between[: len(between) - same]
    ends = shared_start(gap, tail)
    return CallFormat(
        open=cut.fixed(head[: len(head) - same]),
        begin=cut.fixed(begin),
        end=cut.fixed(_numbered(gap[:ends], tail[:ends])),
        separator=cut.fixed(gap[ends:]),
        close=cut.fixed(tail[ends:]),
        stop=cut.fixed(stop),
        several=True,
    )


def reasoning_span(dialect: Dialect, cut: Splitter, call: Call) -> Delimited | None:
    """How reasoning before a call is marked; None when it is not."""
    return _before(cut, written(dialect, call, reasoning=_THOUGHT), _THOUGHT, written(dialect, call))


def preamble_span(dialect: Dialect, cut: Splitter, call: Call) -> Delimited | None:
    """How text before a call is marked; None when no control token does it: then any text could go on for ever."""
    span = _before(cut, written(dialect, call, said=_SAID), _SAID, written(dialect, call))
    return span if span and any(isinstance(piece, Control) for piece in span.begin) else None


def answer_span(dialect: Dialect, cut: Splitter) -> Delimited | None:
    """How a text that is the answer is marked; None when it is not. Its end is without the stop token."""
    begin, found, end = written(dialect, said=_SAID).partition(_SAID)
    if not (begin and found):
        return None
    return Delimited(cut.fixed(cut.atoms(begin)), cut.fixed(_stopped(cut.atoms(end), dialect.stops)[0]))


def _before(cut: Splitter, text: str, sentinel: str, call: str) -> Delimited | None:
    begin, found, rest = text.partition(sentinel)
    if not (begin and found and rest.endswith(call) and len(rest) > len(call)):
        return None
    return Delimited(cut.fixed(cut.atoms(begin)), cut.fixed(cut.atoms(rest.removesuffix(call))))


def _behind(cut: Splitter, tails: Sequence[str]) -> Atoms | None:
    """What stands behind the last call, with what only counts in it as numbers."""
    found: Atoms | None = cut.atoms(tails[0])
    for tail in tails[1:]:
        other = with_counters(found, cut.atoms(tail)) if found is not None else None
        found = other
    return found


def _stopped(atoms: Atoms, stops: Sequence[str]) -> tuple[Atoms, Atoms]:
    at = next((number for number, atom in enumerate(atoms) if atom in stops), len(atoms))
    return atoms[:at], atoms[at:]


def _numbered(one: Atoms, other: Atoms) -> Atoms:
    """Of two that are the same, each atom from the one that has it as a number."""
    return tuple(b if isinstance(a, str) else a for a, b in zip(one, other, strict=True))
