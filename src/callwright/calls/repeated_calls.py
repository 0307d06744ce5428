"""Calls that a model makes again and again, though their outputs stay the same. A pure function of a history.

Parallel calls count as one. A message of the user or the system in between ends a row, and so does any other call; a
message of the model does not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from callwright.conversation import Call, CallOutput, Item, Message, Part, TextPart
from callwright.memo.prefixes import fold
from callwright.tolerant_json.codec import UNDECODABLE


class RepeatedCalls(Struct, frozen=True):
    """Calls of one turn, made for the `times`-th time in a row, each time with the same outputs. `end` is the index of
    the next item.
    """

    names: tuple[str, ...]
    times: int
    end: int


class _Made(Struct):
    """The calls of a turn, and their outputs in the order of the calls."""

    calls: list[Call]
    outputs: list[CallOutput]

    def is_same(self, other: "_Made") -> bool:
        if len(self.calls) != len(other.calls):
            return False
        # outputs first: most calls differ there, and to compare texts is cheap
        if not all(map(_is_same_output, self.outputs, other.outputs)):
            return False
        return all(map(_is_same_call, self.calls, other.calls))


class _Counted(NamedTuple):
    """Counts of items, and the highest count."""

    times: Counter[Any]
    most: int

    def more(self, things: Iterable[Any]) -> "_Counted":
        times = self.times.copy()
        times.update(things)
        return _Counted(times, max(times.values(), default=0))


_NONE: Final = _Counted(Counter(), 0)


def may_repeat(items: Sequence[Item], times: int) -> bool:
    """Whether any output text and any arguments of calls occur at least this number of times. If not, no row has this
    length; this check is faster than the search for rows.
    """
    if fold(items, _NONE, _outputs).most < times:
        return False
    return fold(items, _NONE, _calls).most >= times


def _outputs(before: _Counted, items: Sequence[Item], start: int) -> _Counted:
    return before.more([item.text for item in items[start:] if type(item) is CallOutput])


def _calls(before: _Counted, items: Sequence[Item], start: int) -> _Counted:
    return before.more([(one.name, one.once("canonical", _canonical)) for one in items[start:] if type(one) is Call])


def rows(items: Sequence[Item]) -> Iterator[RepeatedCalls]:
    """Each turn of calls with all their outputs, with how often it has come in a row by then."""
    before: _Made | None = None
    times = 0
    calls: list[Call] = []
    outputs: list[CallOutput] = []
    for number, item in enumerate((*items, None)):
        if type(item) is CallOutput:
            outputs.append(item)
            continue
        if outputs:
            if (made := _maybe_answered(calls, outputs)) is not None:
                times = times + 1 if before is not None and made.is_same(before) else 1
                yield RepeatedCalls(tuple(dict.fromkeys([call.name for call in calls])), times, number)
            before = made
            calls, outputs = [], []
        if type(item) is Call:
            calls.append(item)
        elif type(item) is Message and item.role != "assistant":
            before, calls = None, []


def _maybe_answered(calls: list[Call], outputs: list[CallOutput]) -> _Made | None:
    """The calls with their outputs; None if any has none, or there are others."""
    if len(calls) != len(outputs):
        return None
    if [call.id for call in calls] != [output.call_id for output in outputs]:
        numbers = {call.id: number for number, call in enumerate(calls)}
        if sorted(numbers) != sorted(output.call_id for output in outputs):
            return None
        outputs = sorted(outputs, key=lambda output: numbers[output.call_id])
    return _Made(calls, outputs)


def _is_same_output(one: CallOutput, two: CallOutput) -> bool:
    """Whether two outputs are the same, regardless of their position."""
    if one.parts == two.parts:
        return True
    if not (one.has_media and two.has_media):
        return False
    return len(one.parts) == len(two.parts) and all(map(_is_same_part, one.parts, two.parts))


def _is_same_part(one: Part, two: Part) -> bool:
    if isinstance(one, TextPart) or isinstance(two, TextPart):
        return one == two
    return one.value == two.value


def _is_same_call(one: Call, two: Call) -> bool:
    """Whether two calls have the same arguments as values, however they are written."""
    if one.name != two.name:
        return False
    return one.arguments == two.arguments or one.once("canonical", _canonical) == two.once("canonical", _canonical)


def _canonical(call: Call) -> bytes | str:
    """Arguments in canonical form, the same for equal values; unchanged if they are not JSON."""
    try:
        return msgspec.json.encode(msgspec.json.decode(call.arguments), order="sorted")
    except UNDECODABLE:
        return call.arguments
