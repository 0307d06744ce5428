"""What Mistral's formats share: the markers, read in either form, and the turns.

A call is `[TOOL_CALLS]NAME[ARGS]{…}` (v11) or an object in the list behind `[TOOL_CALLS]` (v3). Nothing marks its end.
Ids are nine letters or digits.
"""

import json
import re
from typing import Final

from callwright.calls.history import HistoryRules
from callwright.conversation import Conversation
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.template import Frame, Place, WriteResults
from callwright.dialects.readers.marked import CallMarks
from callwright.prompt import PromptBuilder

__all__ = ["HISTORY", "call_id", "frame", "marks"]

_HEADER: Final = re.compile(r"\s*(?:([^\n<{\[]*?)\s*(?:\[CALL_ID\]\s*[\w-]*\s*)?\[ARGS\]\s*|([\w./-]+)\s*\Z)")


def marks(layout: CallLayout) -> CallMarks:
    """What is read: either form, whichever is written."""
    thoughts = (("[THINK]", "[/THINK]"), ("<think>", "</think>"))
    return CallMarks(layout=layout, opens=("[TOOL_CALLS]",), header=_HEADER, thoughts=thoughts, ends=("</s>",))


def call_id(number: int) -> str:
    """The id of a call by its number in the conversation: nine letters and digits, other ids are refused."""
    return f"call{number:05d}"


HISTORY: Final = HistoryRules(call_id=lambda _, number: call_id(number))


def frame(
    calls: CallLayout, results: WriteResults, *, system: bool, place: Place, reasons: bool, space: str = ""
) -> Frame:
    """The turns; `system`: there are tokens for its turn, `reasons`: such models do, `space`: what stands behind the
    tokens of turns and tools and before an answer.
    """

    def tools(out: PromptBuilder, conversation: Conversation) -> None:
        shown = [tool.as_openai() for tool in conversation.tools]
        out.control("[AVAILABLE_TOOLS]").text(space, json.dumps(shown, ensure_ascii=False))
        out.control("[/AVAILABLE_TOOLS]")

    return Frame(
        controls=(
            *("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[THINK]", "[/THINK]"),
            *("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
            *("[TOOL_RESULTS]", "[TOOL_CONTENT]", "[/TOOL_RESULTS]"),
        ),
        begin="<s>",
        system=("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]") if system else None,
        user=(f"[INST]{space}", "[/INST]"),
        assistant=("", "</s>"),
        said=(space, ""),
        tool=(f"[TOOL_RESULTS]{space}", "[/TOOL_RESULTS]"),
        thought=("[THINK]", "[/THINK]"),
        thoughts="running" if reasons else "none",
        place=place,
        tools=tools,
        calls=calls,
        results=results,
        each=True,
    )
