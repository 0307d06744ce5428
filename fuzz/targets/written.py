"""Calls as every dialect writes them: read again, however they are cut, they are the same calls and nothing else."""

import json
from collections.abc import Sequence
from typing import Any

import callwright
from fuzz import words
from tests.support.choices import Choices
from tests.support.values import TOOLS

__all__ = ["run"]


def run(draw: Choices) -> None:
    """See the module."""
    dialect = draw.about = draw.one(words.DIALECTS)
    # A format without escapes cannot hold its own marks, which are control tokens where it is written.
    texts = [text for text in words.TRICKY if not words.is_mark(text, dialect)]
    calls = [{"name": "save_text", "arguments": _arguments(draw, texts)} for _ in range(1 + draw.number(2))]
    text = callwright.write(calls, dialect=dialect, tools=TOOLS)
    for output in (text, draw.cuts(text)):
        turn = callwright.parse(output, dialect=dialect, tools=TOOLS)
        got = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in turn.calls]
        assert got == calls, f"{text!r} reads {turn!r}"
        assert (turn.content, turn.reasoning) == (None, None), f"{text!r} reads {turn!r}"


def _arguments(draw: Choices, texts: Sequence[str]) -> dict[str, Any]:
    # What is nothing but a placeholder is no call in prompt mode: no text here looks like one.
    made: dict[str, Any] = {"path": draw.text(texts, 4) + "!", "text": draw.text(texts, 4) + "!"}
    for name, make in _MORE.items():
        if draw.once_in(4):
            made[name] = make(draw, texts)
    return made


_MORE: dict[str, Any] = {
    "mode": lambda draw, texts: draw.one((0, -3, 10**20)),
    "tags": lambda draw, texts: draw.several(2, lambda: draw.text(texts, 2)),
    "ratio": lambda draw, texts: draw.one((0.25, -1e300, 12.0)),
    "force": lambda draw, texts: draw.once_in(2),
    "owner": lambda draw, texts: draw.one((None, "me")),
    "meta": lambda draw, texts: {"s": draw.text(texts, 2), "deep": {"er": [1, -2]}, "none": None},
}
