"""Functionary v3.2: every message begins with its recipient on a line: `all` for the user, or the name of a tool.

The prompt ends in `>>>`, so an answer begins with a recipient; further messages begin with `>>>`. Source: the chat
template of meetkai's functionary-medium-v3.2, in Llama 3's turns: the tools are TypeScript in a
turn of their own, before the system text.
"""

import re
from functools import partial
from typing import Final

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.turns import Turns
from callwright.events import Markup, Problem
from callwright.layout.calls import CallLayout
from callwright.prompt import PromptBuilder, own_words
from callwright.reading.json.marked import CallMarks, MarkedCalls
from callwright.schema.typescript_whole import whole_declaration
from callwright.streaming.reader import Parse

_NEXT: Final = ">>>"
_ALL: Final = "all"
_CALLS: Final = CallLayout(begin="${name}\n", between=_NEXT)
_MARKS: Final = CallMarks(layout=_CALLS, opens=(_NEXT,))
# Maximum length of a recipient's line.
_MAX_LINE: Final = 200
_HOW_TO: Final = (
    "You are capable of executing available function(s) if required.\nOnly execute function(s) when absolutely "
    "necessary.\nAsk for the required input to:recipient==all\nUse JSON for function arguments.\nRespond in this "
    "format:\n>>>${recipient}\n${content}\nAvailable functions:\n"
    "// Supported function definitions that should be called when necessary.\nnamespace functions {\n\n"
)
_AFTER_TOOLS: Final = "} // namespace functions<|eot_id|>"
_CONTROLS: Final = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>")
_LINE = re.compile(r"([^\n<>{}]+)\n\s*(?=\S)")
_MAY_BE_LINE = re.compile(r"[^\n<>{}]*(?:\n\s*)?\Z")


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = "\n\n".join(whole_declaration(tool) for tool in conversation.tools)
    own_words(out.text(f"{shown}\n\n"), _AFTER_TOOLS, _CONTROLS)


_TURNS: Final = Turns(
    controls=_CONTROLS,
    thoughts="none",
    head=(
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
        + _HOW_TO
        + "«tools¦$tools¦"
        + _AFTER_TOOLS
        + "»"
        "«<|start_header_id|>system<|end_header_id|>\n\n$text<|eot_id|>»"
    ),
    system="<|start_header_id|>system<|end_header_id|>\n\n$text<|eot_id|>",
    user="<|start_header_id|>user<|end_header_id|>\n\n$text<|eot_id|>",
    assistant="<|start_header_id|>assistant<|end_header_id|>\n\n>>>$written<|eot_id|>",
    written="«<think>\n$thought:trim\n</think>\n\n»«all\n$text»«text calls¦>>>»$calls",
    outputs="$each",
    output="<|start_header_id|>tool<|end_header_id|>\n\n$text<|eot_id|>",
    answer="<|start_header_id|>assistant<|end_header_id|>\n\n>>>",
    calls=_CALLS,
    tools=_tools,
)


class _Calls(MarkedCalls):
    """Messages, each after its recipient."""

    def begin(self, start: str) -> Parse[None]:
        """Read the recipient with which an answer begins."""
        if start == "assistant":
            yield from self._message("")

    def _opener(self, blanks: str, tag: str) -> Parse[None]:
        if not (yield from self._message(blanks + tag)):
            self.text.emit(self.text.say(blanks + tag))

    def _message(self, opening: str) -> Parse[bool]:
        """Read the recipient of a message, and the call if it is one; False without a recipient."""
        source = self.text.source
        while True:
            ahead = source.ahead(_MAX_LINE)
            if line := _LINE.match(ahead):
                break
            if not source.more(_MAX_LINE) or not _MAY_BE_LINE.match(ahead):
                return False
            yield
        name = line[1].strip()
        if name == _ALL:
            self.text.emit(Markup(opening + source.take(source.at + line.end(1) + 1)))
            return True
        begins_object = ahead.startswith("{", line.end())
        if not begins_object and name in self.text.tools:
            self.text.note_unread(
                Problem("malformed_call", f"a message to {name!r} that does not begin with an object")
            )
        if not begins_object or not (name in self.text.tools or re.fullmatch(r"[\w.-]+", name)):
            return False
        yield from self._headed_call(name, opening + source.take(source.at + line.end()))
        return True


DIALECT = Dialect(
    name="functionary_v32",
    model_families="Functionary v3.2",
    model_globs=("functionary-*-v3.2",),
    template_markers=(">>>all",),
    source="chat template of functionary-medium-v3.2",
    tokenizers=("llama3",),
    stops=("<|eot_id|>", "<|eom_id|>"),
    stop_token_ids=(128009, 128008),
    prompt=_TURNS,
    calls=ReadBy(_CALLS, partial(_Calls, form=_MARKS)),
)
