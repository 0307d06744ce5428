"""Every dialect over every other: what A writes and B reads makes no call that A did not make, and loses nothing.

The round trip is the diagonal: there the calls come out as they went in, however the text is cut.
"""

import json
from typing import Any

import pytest

import callwright
from callwright.dialects.base import dialect_names
from tests.support.examples import some
from tests.support.parsing import lost, pieces, read
from tests.support.values import TOOLS

CALLS: dict[str, list[dict[str, Any]]] = {
    "plain": [{"name": "save_text", "arguments": {"path": "a.txt", "text": "one two"}}],
    "no arguments": [{"name": "clock", "arguments": {}}],
    "two": [
        {"name": "clock", "arguments": {}},
        {"name": "save_text", "arguments": {"path": "b", "text": "zwei ☃ 😀", "mode": 420}},
    ],
    "types": [
        {
            "name": "save_text",
            "arguments": {
                "path": "007",
                "text": "true",
                "mode": -3,
                "ratio": 0.25,
                "force": False,
                "owner": None,
                "tags": ["a", "b, c", ""],
                "meta": {"deep": {"er": [1, -2]}, "s": "1", "none": None},
            },
        }
    ],
    "code": [
        {
            "name": "save_text",
            "arguments": {"path": "x.py", "text": 'def f(a):\n    return {"k": [a, \'b\'], "<t>": "\\n"}  # </end>\n'},
        }
    ],
    "white space": [{"name": "save_text", "arguments": {"path": " p ", "text": "\n\n  indented\n\ttab\r\n "}}],
    "empty": [{"name": "save_text", "arguments": {"path": "", "text": "", "tags": [], "meta": {}}}],
    "JSON in a text": [{"name": "save_text", "arguments": {"path": "j", "text": '{"name": "clock", "arguments": {}}'}}],
    "markers": [
        {
            "name": "save_text",
            "arguments": {
                "path": "m",
                "text": "</tool_call> <tool_call> </parameter> [/TOOL_CALLS] <|end|> </think> <|call|> ]<]x[>[ x",
            },
        }
    ],
}
names = pytest.mark.parametrize("name", dialect_names())
calls_of = pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)


def found(text: Any, dialect: str) -> list[dict[str, Any]]:
    turn = callwright.parse(text, dialect=dialect, tools=TOOLS)
    return [{"name": call.name, "arguments": json.loads(call.arguments)} for call in turn.calls]


@names
@calls_of
def test_what_is_written_is_read_however_it_is_cut(name: str, calls: list[dict[str, Any]]) -> None:
    written = callwright.write(calls, tools=TOOLS, dialect=name)
    assert found(written, name) == calls
    assert found(list(written), name) == calls
    for seed in range(3):
        assert found(pieces(written, seed), name) == calls


@names
@calls_of
def test_another_dialect_makes_no_call_of_it_that_was_not_made(name: str, calls: list[dict[str, Any]]) -> None:
    written = callwright.write(calls, tools=TOOLS, dialect=name)
    for other in some(dialect_names(), dialect_names().index(name) + len(written)):
        turn = callwright.parse(written, dialect=other, tools=TOOLS)
        for call in turn.calls:
            made = [each for each in calls if each["name"] == call.name]
            assert made, f"{other} makes {call} of it"
        assert not lost(written, read(list(written), dialect=other, tools=TOOLS, check="verbatim")), other
