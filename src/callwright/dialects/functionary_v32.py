"""Functionary v3.2: every message begins with its recipient on a line: `all` for the user, or the name of a tool.

The prompt ends in `>>>`, so an answer begins with a recipient; further messages begin with `>>>`. Source: the chat
template of meetkai's functionary-medium-v3.2, in Llama 3's turns: the tools stand as TypeScript in a
turn of their own, before the system text.
"""

import re
from typing import Final

import msgspec

from callwright.calls.toolset import Toolset
from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, PromptBy, ReadBy, RenderOptions
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.template import Frame
from callwright.dialects.readers.marked import CallMarks, MarkedReader
from callwright.events import Markup
from callwright.prompt import Prompt, PromptBuilder, own_words
from callwright.schema.typescript_whole import whole_declaration
from callwright.stream_reader import Parse, StreamReader

__all__ = ["DIALECT"]


_NEXT: Final = ">>>"
_ALL: Final = "all"
_CALLS: Final = CallLayout(begin="${name}\n", between=_NEXT)
_MARKS: Final = CallMarks(layout=_CALLS, opens=(_NEXT,))
# The line of a recipient is at most so long.
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


def _turn(role: str, before: str = "") -> tuple[str, str]:
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n{before}", "<|eot_id|>"


_FIRST: Final = f"<|begin_of_text|>{_turn('system')[0]}{_HOW_TO}"
_FRAME: Final = Frame(
    controls=_CONTROLS,
    begin=_FIRST + _AFTER_TOOLS,
    thoughts="none",
    system=_turn("system"),
    user=_turn("user"),
    assistant=_turn("assistant", _NEXT),
    tool=_turn("tool"),
    said=(f"{_ALL}\n", ""),
    gap=_NEXT,
    calls=_CALLS,
    each=True,
)
_WITH_TOOLS: Final = msgspec.structs.replace(_FRAME, begin=_FIRST, place="before system", tools=_tools)


def render(conversation: Conversation, options: RenderOptions) -> Prompt:
    """The whole prompt, up to where the model's answer begins."""
    return (_WITH_TOOLS if conversation.tools else _FRAME).render(conversation, options)


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output, which begins with its recipient; an answer that does not is text."""
    return _Reader(source, tools, _MARKS).read(start)


class _Reader(MarkedReader):
    """Messages, each behind its recipient."""

    def _answer(self, start: str) -> Parse[None]:
        """See `ProseReader`."""
        if start == "assistant":
            yield from self._message("")
        yield from super()._answer(start)

    def _opener(self, blanks: str, tag: str) -> Parse[None]:
        if not (yield from self._message(blanks + tag)):
            self.emit(self.say(blanks + tag))

    def _message(self, opening: str) -> Parse[bool]:
        """Read the recipient of a message, and the call if it is one; False when no recipient stands here."""
        source = self.source
        while True:
            ahead = source.ahead(_MAX_LINE)
            if line := _LINE.match(ahead):
                break
            if not source.more(_MAX_LINE) or not _MAY_BE_LINE.match(ahead):
                return False
            yield
        name = line[1].strip()
        if name == _ALL:
            self.emit(Markup(opening + source.take(source.at + line.end(1) + 1)))
            return True
        begins_object = ahead.startswith("{", line.end())
        if not begins_object or not (name in self.tools or re.fullmatch(r"[\w.-]+", name)):
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
    prompt=PromptBy(render=render, messages=_WITH_TOOLS.messages, write=_FRAME.write, marks=_FRAME.marks),
    calls=ReadBy(_CALLS, parse),
)
