"""The shared parts of DeepSeek's V3 and V3.1: the markers of calls, read in either form, and the turns.

Their templates show no tools; they are described in words after the system text.
"""

import re
from typing import Final

from callwright.layout.calls import CallLayout
from callwright.reading.json.marked import CallMarks

SEP: Final = "<｜tool▁sep｜>"
_END: Final = "<｜end▁of▁sentence｜>"

# V3: `function<｜tool▁sep｜>NAME`, then a fence with the arguments; V3.1: `NAME<｜tool▁sep｜>` and the arguments.
_HEADER: Final = re.compile(
    rf"\s*+(?:function\s*+{SEP}\s*+([^\n<{{`]*?)(?:\s*+(?:```(?:json)?\s*+|\Z)|\s*\n)|([^\n<{{]*?){SEP}\s*+(?:```\w*+\s*+)?)"
)
_CALL: Final = ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")
_CALLS: Final = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")


def calls(head: str, tail: str = "", between: str = "") -> CallLayout:
    """Calls with the name and the arguments of each between `head` and `tail`."""
    return CallLayout(open=_CALLS[0], begin=_CALL[0] + head, end=tail + _CALL[1], between=between, close=_CALLS[1])


def marks(layout: CallLayout) -> CallMarks:
    """The marks of both forms: the reader accepts either."""
    return CallMarks(layout=layout, opens=_CALL[:1], closes=_CALL[1:], around=_CALLS, header=_HEADER, ends=(_END,))


CONTROLS: Final = (
    *("<｜begin▁of▁sentence｜>", _END, "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", SEP),
    *(*_CALL, *_CALLS, "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
    *("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
)
HEAD: Final = "<｜begin▁of▁sentence｜>«text|tools¦$text«text tools¦\n\n»$tools»"
# The answer to outputs continues without a new turn.
OUTPUT: Final = "<｜tool▁output▁begin｜>$text<｜tool▁output▁end｜>"
