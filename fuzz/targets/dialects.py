"""Outputs in every dialect, with tools, choices and all beginnings: cut anywhere they read alike, nothing is lost, and
a call that nothing is said against is valid.
"""

from typing import Any

from fuzz import values, words
from tests.support.cases import TOOLS, tools
from tests.support.choices import Choices
from tests.support.properties import output_holds

__all__ = ["asked", "run"]

CATALOGUE = tuple(TOOLS)
PING = {"type": "function", "function": {"name": "ping"}}
CHOICES: tuple[Any, ...] = ("auto", "auto", "none", "required", PING)


def run(draw: Choices) -> None:
    """See the module."""
    dialect = draw.about = draw.one(words.DIALECTS)
    request = {"dialect": dialect, **asked(draw)}
    output_holds(draw, words.output(draw, dialect), draw.one(("stop", "length")), request)


def asked(draw: Choices) -> dict[str, Any]:
    """What goes with an output: tools, choice, whether calls may be parallel, where the output begins."""
    offered = tools(*draw.one((CATALOGUE, CATALOGUE, ("roll_dice", "ping"), ("launch", "ledger", "ping"), ("ping",))))
    if draw.once_in(4):
        for tool in offered:
            tool["function"] = {**tool["function"], "parameters": values.arguments(draw, sane=True)}
    return {
        "tools": offered,
        "tool_choice": draw.one(CHOICES),
        "parallel_tool_calls": not draw.once_in(4),
        "start": draw.one((None, None, "assistant", "reasoning", "message")),
    }
