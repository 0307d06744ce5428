"""What DeepSeek's V3 and V3.1 share: the markers of calls, read in either form, and the turns.

Their templates show no tools; they are told in words behind the system text.
"""

import re
from collections.abc import Sequence
from typing import Final

from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.template import Frame, Result
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder

__all__ = ["SEP", "calls", "frame", "marks"]

SEP: Final = "<｜tool▁sep｜>"
_END: Final = "<｜end▁of▁sentence｜>"

# V3: `function<｜tool▁sep｜>NAME`, then a fence with the arguments; V3.1: `NAME<｜tool▁sep｜>` and the arguments.
_HEADER: Final = re.compile(
    rf"\s*(?:function\s*{SEP}\s*([^\n<{{`]*?)\s*(?:```(?:json)?\s*|\n|\Z)|([^\n<{{]*?){SEP}\s*(?:```\w*\s*)?)"
)
_CALL: Final = ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")
_CALLS: Final = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")


def calls(head: str, tail: str = "", between: str = "") -> CallLayout:
    """Calls with the name and the arguments of each between `head` and `tail`."""
    return CallLayout(open=_CALLS[0], begin=_CALL[0] + head, end=tail + _CALL[1], between=between, close=_CALLS[1])


def marks(layout: CallLayout) -> CallMarks:
    """What is read: each form, whichever is written."""
    return CallMarks(layout=layout, opens=_CALL[:1], closes=_CALL[1:], around=_CALLS, header=_HEADER, ends=(_END,))


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.control("<｜tool▁output▁begin｜>").text(result.text).control("<｜tool▁output▁end｜>")


def frame(
    layout: CallLayout, tool: tuple[str, str], thought: tuple[str, str], no_thought: str, off: str | None = None
) -> Frame:
    """The turns. `tool` stands around the outputs of a turn; the answer to them goes on without a new turn."""
    return Frame(
        controls=(
            *("<｜begin▁of▁sentence｜>", _END, "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", SEP),
            *(*_CALL, *_CALLS, "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
            *("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
        ),
        begin="<｜begin▁of▁sentence｜>",
        system=("", ""),
        user=("<｜User｜>", ""),
        assistant=("<｜Assistant｜>", _END),
        tool=tool,
        calls=layout,
        results=_results,
        thought=thought,
        no_thought=no_thought,
        off=off,
        resumes=True,
    )
