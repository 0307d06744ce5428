"""What DeepSeek's V3 and V3.1 share: the markers of calls, read in either form, and the turns.

Their templates show no tools; they are told in words behind the system text.
"""

import re
from collections.abc import Sequence
from typing import Final

from callwright.conversation import Call
from callwright.dialects.prompts.template import Frame, Result, WriteCalls
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder

__all__ = ["MARKS", "SEP", "frame", "write_calls"]

SEP: Final = "<｜tool▁sep｜>"
_END: Final = "<｜end▁of▁sentence｜>"

# V3: `function<｜tool▁sep｜>NAME`, then a fence with the arguments; V3.1: `NAME<｜tool▁sep｜>` and the arguments.
MARKS: Final = CallMarks(
    opens=("<｜tool▁call▁begin｜>",),
    closes=("<｜tool▁call▁end｜>",),
    around=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    header=re.compile(
        rf"\s*(?:function\s*{SEP}\s*([^\n<{{`]*?)\s*(?:```(?:json)?\s*|\n|\Z)|([^\n<{{]*?){SEP}\s*(?:```\w*\s*)?)"
    ),
    ends=(_END,),
)


def write_calls(out: PromptBuilder, calls: Sequence[Call], head: str, tail: str, between: str) -> None:
    """Calls, the name and the arguments of each between `head` and `tail`."""
    out.control("<｜tool▁calls▁begin｜>")
    for count, call in enumerate(calls):
        out.text(between if count else "").control("<｜tool▁call▁begin｜>")
        before, sep, after = head.partition(SEP)
        out.text(before.format(name=call.name)).control(sep).text(after.format(name=call.name))
        out.json(call.arguments or "{}").text(tail).control("<｜tool▁call▁end｜>")
    out.control("<｜tool▁calls▁end｜>")


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.control("<｜tool▁output▁begin｜>").text(result.text).control("<｜tool▁output▁end｜>")


def frame(
    calls: WriteCalls, tool: tuple[str, str], thought: tuple[str, str], no_thought: str, off: str | None = None
) -> Frame:
    """The turns. `tool` stands around the outputs of a turn; the answer to them goes on without a new turn."""
    return Frame(
        controls=(
            *("<｜begin▁of▁sentence｜>", _END, "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", SEP),
            *(*MARKS.opens, *MARKS.closes, *MARKS.around, "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
            *("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
        ),
        begin="<｜begin▁of▁sentence｜>",
        system=("", ""),
        user=("<｜User｜>", ""),
        assistant=("<｜Assistant｜>", _END),
        tool=tool,
        calls=calls,
        results=_results,
        thought=thought,
        no_thought=no_thought,
        off=off,
        resumes=True,
    )
