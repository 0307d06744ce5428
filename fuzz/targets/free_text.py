"""Replies in words, with calls in them or not: the pieces hold the whole text, and a call that is found is valid."""

from callwright.calls.toolset import Toolset
from callwright.conversation import FunctionTool, NamedTool
from callwright.free_text.recover import recover
from fuzz import values, words
from tests.support.cases import TOOLS
from tests.support.choices import Choices
from tests.support.properties import assert_segments_hold

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
    assert_segments_hold(text, recover(text, tools, before=before), tools)
