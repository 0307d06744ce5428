"""A value may show calls of its own format, whole or broken off: what is complete is what was meant, and what cannot be
known is said.
"""

import json
from collections.abc import Iterator

import pytest

import callwright
from callwright.conversation import AssistantTurn, Call, Message, TextPart
from callwright.dialects.base import dialect_names, get_dialect
from tests.support.parsing import merged, pieces, read

names = pytest.mark.parametrize("name", dialect_names())

_TEXT = {"type": "string"}
_TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
    for name, properties in (
        ("change_page", {"before": _TEXT, "after": _TEXT, "times": {"type": "integer"}}),
        ("drop_table", {"table": _TEXT}),
    )
]
_SHOWN = {"name": "drop_table", "arguments": {"table": "guests"}}


def _pages(shown: str) -> Iterator[dict[str, object]]:
    """Arguments in which the text stands first, between others, and last."""
    yield {"before": shown, "after": "none", "times": 2}
    yield {"before": "all", "after": shown, "times": 2}
    yield {"before": "all", "after": shown}


def _shown(name: str) -> Iterator[str]:
    """What a page about this format shows: calls, a turn with words and a thought, tokens with which a turn ends."""
    own = callwright.write([_SHOWN], dialect=name)
    yield own
    yield f"first {own} last"
    yield own * 2
    yield callwright.write([_SHOWN, _SHOWN], dialect=name)
    call = Call("drop_table", '{"table": "guests"}')
    yield get_dialect(name).write(AssistantTurn("Hm.", Message("assistant", (TextPart("Now."),)), [call]))
    for stop in get_dialect(name).stops:
        yield own + stop
        yield f"it ends with {stop} there"


def _calls(output: str, name: str) -> tuple[list[tuple[str, object]], bool]:
    """The complete calls of an output, and whether anything is said of it; in pieces it is read alike."""
    turn = callwright.parse(output, dialect=name, tools=_TOOLS)
    whole = merged(read([output], dialect=name, tools=_TOOLS))
    assert merged(read(list(output), dialect=name, tools=_TOOLS)) == whole, output
    assert merged(read(pieces(output, 7), dialect=name, tools=_TOOLS)) == whole, output
    return [(call.name, json.loads(call.arguments)) for call in turn.calls if call.complete], bool(turn.problems)


@names
def test_calls_that_a_value_shows_whole_are_its_text(name: str) -> None:
    for shown in _shown(name):
        for page in _pages(shown):
            output = callwright.write([{"name": "change_page", "arguments": page}], dialect=name)
            assert _calls(output, name)[0] == [("change_page", page)], output


@names
def test_a_call_that_a_value_shows_without_its_end_never_runs(name: str) -> None:
    own = callwright.write([_SHOWN], dialect=name).rstrip()
    for size in (2, 4, 6):
        for page in _pages(own[:-size]):
            output = callwright.write([{"name": "change_page", "arguments": page}], dialect=name)
            calls, said = _calls(output, name)
            assert calls in ([], [("change_page", page)]), output
            assert calls or said, output
