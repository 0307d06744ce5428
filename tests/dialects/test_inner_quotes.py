"""Quotes in a text that the model did not escape: the call is what was meant or in doubt, in all notations."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

import callwright
from tests.support.parsing import pieces

_TEXT: Final = {"type": "string"}
_TOOLS: Final = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
    for name, properties in (
        (
            "pin_card",
            {
                "words": _TEXT,
                "labels": {"type": "array", "items": _TEXT},
                "shelf": {"type": "integer"},
                "more": {"type": "object"},
            },
        ),
        ("ring_bell", {"tower": _TEXT}),
    )
]
# Read as they were meant, wherever they are.
_CLEAR: Final = (
    'the "old" pier',
    '"old" and "new"',
    'boats ("dinghies") and ships',
    'a row ["x"] and more',
    'rows["x"]',
    'rows["x"][0] = "y"',
    'log("a", "b")',
    'log("a") if x else "b"',
    '{"a": "b", "c": [1, "d"]}',
    '[{"a": "b"}, {"c": "d"}]',
    'tide: "low"',
    '<b class="x">y</b>',
    'a = ["x", "y"]; b = ("z")',
    'log("%s", "a");',
)
# More than one call may be meant by them.
_UNCLEAR: Final = (
    'log(a="b", c="d")',
    'a "b", c="d"',
    'return ""',
    '"',
    'a 5" pipe',
    'said: "no", then: "yes"',
)
_LITERAL: Final = ("pythonic", "olmo3", "lfm2", "gemma4", "functiongemma")


def _places(text: str) -> Iterator[dict[str, Any]]:
    """Arguments in which the text is alone, first, between others, last; in a list and in an object."""
    yield {"words": text}
    yield {"words": text, "shelf": 3}
    yield {"shelf": 3, "words": text, "labels": ["n"]}
    yield {"shelf": 3, "words": text}
    yield {"labels": [text, "n"]}
    yield {"labels": ["n", text], "shelf": 3}
    yield {"more": {"a": text, "b": 1}}
    yield {"more": {"b": 1, "a": text}, "shelf": 3}


def _written(dialect: str, arguments: dict[str, Any], quote: str) -> str:
    """Two calls as the format writes them, with the text between quotes that are not escaped."""
    calls = [{"name": "pin_card", "arguments": arguments}, {"name": "ring_bell", "arguments": {"tower": "north"}}]
    output = callwright.write(calls, dialect=dialect, tools=_TOOLS)
    for own in ('<|"|>', "<escape>"):
        output = output.replace(own, '"')
    output = output.replace('\\"', "\0").replace('"', quote).replace("\0", quote)
    return output if dialect in ("gemma4", "functiongemma") else output.replace("'", quote)


def _cases(texts: tuple[str, ...]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for dialect in _LITERAL:
        for quote in ('"', "'"):
            for text in texts:
                for arguments in _places(text.replace('"', quote)):
                    yield dialect, _written(dialect, arguments, quote), arguments


@pytest.mark.parametrize("text", _CLEAR)
def test_quotes_that_are_not_escaped_belong_to_the_text(text: str) -> None:
    for dialect, output, arguments in _cases((text,)):
        turn = callwright.parse(output, dialect=dialect, tools=_TOOLS)
        assert [(json.loads(call.arguments), call.complete) for call in turn.calls] == [
            (arguments, True),
            ({"tower": "north"}, True),
        ], output
        assert "markers_in_value" in [problem.kind for problem in turn.problems], output
        assert callwright.parse(pieces(output, 3), dialect=dialect, tools=_TOOLS).calls == turn.calls, output


@pytest.mark.parametrize("text", _UNCLEAR)
def test_a_text_that_may_hold_more_makes_no_call_of_something_else(text: str) -> None:
    for dialect, output, arguments in _cases((text,)):
        turn = callwright.parse(output, dialect=dialect, tools=_TOOLS)
        call = turn.calls[0]
        assert not call.complete or json.loads(call.arguments) == arguments, output
        assert callwright.parse(pieces(output, 3), dialect=dialect, tools=_TOOLS).calls == turn.calls, output
