"""Locates the candidates of `ambiguous_call` in the text that holds them, with their fences and markers."""

from collections.abc import Iterator, Sequence
from typing import Final

from callwright.conversation import Call
from callwright.tolerant_json.find import json_places

# How a line begins that is a call's wrapper, and no prose.
_WRAPPER: Final = ("<", "[", "{", "`", "~")


def candidate_spans(text: str, calls: Sequence[Call]) -> list[tuple[int, int]]:
    """The begin and the end of each call in the text, in order.

    A call that shares its fence with the call before it has an empty span after that.
    """
    places = [(place.begin, place.end) for place in json_places(text, whole=False)]
    return list(_spans(text, calls, places))


def _spans(text: str, calls: Sequence[Call], places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    at = read = 0  # end of the last span; and how far the calls in it have been found
    for call in calls:
        if (again := _find_end(text, call, read, at)) > 0:
            read = again
            yield at, at
            continue
        span = next(((begin, end) for begin, end in places if begin >= at and _find_end(text, call, begin, end)), None)
        begin, at = span if span is not None else _lines(text, call, at)
        at = begin + len(text[begin:at].rstrip())
        read = _find_end(text, call, begin, at)
        yield begin, at


def _find_end(text: str, call: Call, begin: int, end: int) -> int:
    """The end of this call in a part of the text, as far as it can be found; 0 if the call is not there."""
    name = text.find(call.name, begin, end)
    if name < 0:
        return 0
    arguments = text.find(call.arguments, begin, end)  # not found if they were repaired
    return max(name + len(call.name), arguments + len(call.arguments) if arguments >= 0 else 0)


def _lines(text: str, call: Call, at: int) -> tuple[int, int]:
    """The same for markup that is no JSON: from the first line of it to the last line that is no prose."""
    name = text.find(call.name, at)
    if name < 0:
        return at, at
    begin = max(text.rfind("\n", at, name) + 1, at)
    while begin > at:
        line = max(text.rfind("\n", at, begin - 1) + 1, at)
        if not text[line:begin].lstrip().startswith(_WRAPPER):
            break
        begin = line
    line_end = text.find("\n", name)
    end = max(name, _find_end(text, call, name, line_end if line_end >= 0 else len(text)))
    for found in range(name, len(text) + 1):
        if found < len(text) and text[found] != "\n":
            continue
        if text[text.rfind("\n", 0, found) + 1 : found].strip().endswith((">", "]", "}", ")", "`", "~")):
            end = found
    return begin, end
