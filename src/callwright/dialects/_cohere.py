"""What Cohere's formats share: the tokens of turns, citations in text, which are left out of it, and the prompt of
Command 4 and 5, as Cohere's own encoder `cohere-melody` writes it.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from callwright.conversation import Conversation
from callwright.dialects.prompts.chat_messages import no_instructions
from callwright.events import Markup
from callwright.prompt import PromptBuilder
from callwright.reading.json.marked import MarkedCalls
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Markers, Parse, read_until

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

TURNS: Final = (
    *("<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    *("<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"),
)
THOUGHT: Final = ("<|START_THINKING|>", "<|END_THINKING|>")
TEXT: Final = ("<|START_TEXT|>", "<|END_TEXT|>")
# `<co>…</co: 0:[1]>` or `<co: 0>…</co: 0>` around cited text.
CITATIONS: Final = ("<co>", "<co:", "</co:", "</co>")
# What begins the text of an answer.
ANSWERS: Final = ("<|START_RESPONSE|>", "<|START_TEXT|>")
_MAX_SOURCES: Final = 200
_SOURCES = re.compile(r"[\s\d:,\[\]]*>")


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = [
        {"name": tool.name, "description": tool.about or "", "parameters": tool.parameters or {}, "responses": None}
        for tool in conversation.tools
    ]
    lines = ",\n    ".join(json.dumps(tool, ensure_ascii=False) for tool in shown)
    out.text("# Available Tools\n```json\n[\n", f"    {lines}", "\n]\n```")


_START: Final = "<|START_OF_TURN_TOKEN|>"
_END: Final = "<|END_OF_TURN_TOKEN|>"
_TEXT: Final = "<|START_TEXT|>$text<|END_TEXT|>"
# The turns of Command 4 and 5. Each of the assistant begins with a thought, which may be empty; text is between
# tokens of its own. Text next to calls remains text, though the encoder shows it as the thought.
COMMAND: Final[Mapping[str, Any]] = {
    "head": (
        f"<BOS_TOKEN>{_START}<|SYSTEM_TOKEN|><|START_TEXT|>"
        "«tools¦$tools¦# Available Tools\n```json\n[\n\n]\n```»«\n\n$notes»"
        f"<|END_TEXT|>{_END}"
    ),
    "gather": no_instructions,
    "system": f"{_START}<|SYSTEM_TOKEN|>{_TEXT}{_END}",
    "user": f"{_START}<|USER_TOKEN|>{_TEXT}{_END}",
    "assistant": (
        f"{_START}<|CHATBOT_TOKEN|><|START_THINKING|>$thought<|END_THINKING|>«text|!calls¦{_TEXT}»$calls{_END}"
    ),
    "thoughts": "all",
    "outputs": f"{_START}<|SYSTEM_TOKEN|>$each{_END}",
    "answer": (f"{_START}<|CHATBOT_TOKEN|>«open¦<|START_THINKING|>$thought»«off¦<|START_THINKING|><|END_THINKING|>»"),
    "tools": _tools,
}


class CohereCalls(MarkedCalls):
    """Marked calls, in text without its marks of citations."""

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read a marker, and its calls, or a mark of a citation."""
        if tag not in CITATIONS:
            return (yield from super().marked(blanks, tag))
        yield from read_citation(self.text, blanks, tag)
        return None


def read_citation(answer: AnswerText, blanks: str, tag: str) -> Parse[None]:
    """Read a mark of a citation, which is no text; what only begins as one is."""
    if blanks:
        answer.emit(answer.say(blanks))
    if tag.endswith(">"):
        answer.emit(Markup(tag))
        return
    sources, end = yield from read_until(answer.source, Markers(">"), _MAX_SOURCES)
    is_citation = bool(_SOURCES.fullmatch(sources + end))
    answer.emit(Markup(tag + sources + end) if is_citation else answer.say(tag + sources + end))
