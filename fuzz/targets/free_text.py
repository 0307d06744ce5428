"""Replies in words, with calls in them or not: the pieces hold the whole text, and a call that is found is valid."""

from collections import Counter

from callwright.calls.check import arguments_problem
from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool, NamedTool
from callwright.free_text.recover import RecoveredCall, Segment, TextSegment, recover, recover_arguments
from fuzz import values, words
from tests.support.cases import TOOLS
from tests.support.choices import Choices
from tests.support.properties import strict_json

__all__ = ["run"]

ATOMS = (*words.JSON_ATOMS, *words.TEXT_ATOMS)


def run(draw: Choices) -> None:
    """See the module."""
    tools = Toolset(
        [
            FunctionTool(name, None, values.arguments(draw) if draw.once_in(6) else tool["parameters"])
            for name, tool in TOOLS.items()
        ],
        draw.one(("auto", "auto", "none", "required", NamedTool("ping"))),
        infer_bare_arguments=not draw.once_in(2),
    )
    text = draw.text(ATOMS, 14) if draw.once_in(2) else words.output(draw, "json")
    before = draw.one(("", "", "For example:", "\n", "```json\n"))
    pieces = recover(text, tools, before=before)
    _assert_whole(text, pieces)
    _assert_calls(pieces, tools)
    _assert_calls(recover_arguments(text, tools), tools)


def _assert_whole(text: str, pieces: list[Segment]) -> None:
    if not any(isinstance(piece, RecoveredCall) for piece in pieces):
        assert "".join(piece.text for piece in pieces) == text
    told = Counter("".join(piece.text for piece in pieces))
    for piece in pieces:
        if isinstance(piece, TextSegment) and piece.problem:
            told.update(piece.problem.text)
    missing = Counter(text) - told
    assert not missing, f"{missing} of {text!r} are lost in {pieces!r}"


def _assert_calls(pieces: list[Segment], tools: Toolset) -> None:
    for piece in pieces:
        if isinstance(piece, RecoveredCall):
            assert piece.name in tools
            strict_json(piece.arguments)
            assert arguments_problem(piece.name, piece.arguments, tools) is None
