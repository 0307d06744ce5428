"""Values between tags that are not closed as they should be: in every format that writes them so, at each place."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

import callwright
from callwright.dialects.base import dialect_names
from tests.support.parsing import pieces

_STRING: Final = {"type": "string"}
_PROPERTIES: Final = {"heading": _STRING, "body": _STRING, "page": {"type": "integer"}, "footer": _STRING}
TOOLS: Final = [
    {
        "type": "function",
        "function": {"name": "print_page", "parameters": {"type": "object", "properties": _PROPERTIES}},
    }
]
VALUES: Final[dict[str, Any]] = {
    "heading": "On rivers",
    "body": "They run\n  down, at 3 < 4",
    "page": 12,
    "footer": "fin",
}
# A value's closer: a tag of its own, in the formats whose values are texts between tags.
_CLOSER: Final = r"(?P<gap>\n?)(?P<tag>\]<\]minimax\[>\[</[^>]*>|</[^>]*>|<\|close\|>\w+<\|sep\|>|<\|tool_arg:end\|>)"


class Place(NamedTuple):
    """Where a value of a written call ends."""

    key: str
    before: str
    gap: str
    tag: str
    behind: str


def _places(dialect: str, calls: int = 1) -> Iterator[Place]:
    """The ends of the values of the first call."""
    written = callwright.write([{"name": "print_page", "arguments": VALUES}] * calls, tools=TOOLS, dialect=dialect)
    for key, value in VALUES.items():
        found = re.search(rf"(?<=[>\n]){re.escape(str(value))}{_CLOSER}", written)
        if found:
            begin, end = found.start("gap"), found.end()
            yield Place(key, written[:begin], found["gap"], found["tag"], written[end:])


PLACES: Final = {name: places for name in dialect_names() if (places := list(_places(name)))}
tagged = pytest.mark.parametrize("dialect", PLACES)


def _reads(output: str, dialect: str) -> callwright.Turn:
    """The turn of an output, which is the same however the output is cut."""
    turn = callwright.parse(output, dialect=dialect, tools=TOOLS)
    for cut in (list(output), *(pieces(output, seed) for seed in range(2))):
        again = callwright.parse(cut, dialect=dialect, tools=TOOLS)
        assert (again.content, again.calls, again.problems) == (turn.content, turn.calls, turn.problems)
    return turn


def _assert_repaired(output: str, dialect: str, calls: int = 1) -> None:
    turn = _reads(output, dialect)
    assert [json.loads(call.arguments) for call in turn.calls] == [VALUES] * calls
    assert all(call.complete for call in turn.calls)
    assert not turn.content
    assert {problem.kind for problem in turn.problems} == {"markup_repaired"}


def test_all_formats_with_values_between_tags_are_tried() -> None:
    assert len(PLACES) == 23


@tagged
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_closer_that_stands_there_again_is_no_part_of_the_value(dialect: str, calls: int, times: int) -> None:
    for place in _places(dialect, calls):
        again = (place.gap + place.tag) * times
        _assert_repaired(place.before + place.gap + place.tag + again + place.behind, dialect, calls)


@tagged
@pytest.mark.parametrize("calls", [1, 2])
def test_a_closer_that_is_named_as_the_parameter_or_as_in_another_format_ends_the_value(
    dialect: str, calls: int
) -> None:
    for place in _places(dialect, calls):
        for name in (place.key, "parameter", "param", "arg_value", f"parameter={place.key}"):
            if f"</{name}>" == place.tag or (dialect == "beam" and place.key == "footer"):
                continue  # its own; the format marks no end of the call, so that the output was cut in the value
            _assert_repaired(f"{place.before}{place.gap}</{name}>{place.behind}", dialect, calls)


@tagged
def test_a_pair_of_tags_in_a_value_is_text(dialect: str) -> None:
    for key in ("heading", "footer"):
        for name in ("parameter", "arg_value", key):
            values = {**VALUES, key: f"as <{name}>x</{name}>"}
            output = callwright.write([{"name": "print_page", "arguments": values}], tools=TOOLS, dialect=dialect)
            turn = _reads(output, dialect)
            assert [json.loads(call.arguments) for call in turn.calls] == [values]
            assert turn.calls[0].complete
            # Without its own closer the value ends behind the pair, but where the pair is of its own tags.
            place = next(place for place in _places(dialect) if place.key == key)
            closer = place.gap + place.tag
            if (dialect != "beam" or key != "footer") and place.tag != f"</{name}>":
                unclosed = output.replace(f"{values[key]}{closer}", f"{values[key]}{place.gap}", 1)
                if unclosed != output:
                    for call in _reads(unclosed, dialect).calls:
                        assert not call.complete or json.loads(call.arguments) == values


@tagged
def test_another_closer_before_the_own_one_is_text(dialect: str) -> None:
    for place in _places(dialect):
        if place.key not in ("heading", "footer"):
            continue
        turn = _reads(f"{place.before}</{place.key}>{place.gap}{place.tag}{place.behind}", dialect)
        expected = {**VALUES, place.key: f"{VALUES[place.key]}</{place.key}>"}
        complete = [json.loads(call.arguments) for call in turn.calls if call.complete]
        assert complete in ([expected], [VALUES] if dialect == "minimax_m3" else [expected])
