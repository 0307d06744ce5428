"""dots: `<dots_function_call>` around `<invoke name="f">` and its parameters, or around a call as JSON.

A line feed on each side of a value is structure. Source: the prompt of dots3 as engines have written it down; vLLM's
parser.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Call, Conversation
from callwright.dialects.base import Dialect, PromptBy, ReadBy
from callwright.dialects.prompts.chat_messages import arguments_object, own_words
from callwright.dialects.prompts.template import Frame, Result, ThinkingOptions, tool_lines
from callwright.dialects.readers.json_block import MarkedJson
from callwright.dialects.readers.parameters import ParameterReader
from callwright.dialects.readers.tagged_values import ParameterTags
from callwright.events import Markup
from callwright.prompt import Prompt, PromptBuilder
from callwright.stream_reader import Parse, StreamReader
from callwright.tolerant_json.passthrough import JsonTerminators

__all__ = ["DIALECT"]


_END: Final = "<|endofassistant|>"
_OPEN: Final = "<dots_function_call>"
_CLOSE: Final = "</dots_function_call>"
_TAGS: Final = ParameterTags(
    call="<invoke name=",
    call_end="</invoke>",
    parameter="<parameter name=",
    parameter_end="</parameter>",
    blocks=((_OPEN, _CLOSE),),
    lines=True,
    control=False,
)
_CONTROLS: Final = (
    *("<|system|>", "<|endofsystem|>", "<|user|>", "<|endofuser|>", "<|assistant|>", _END),
    *("<think>", "</think>", _OPEN, _CLOSE, "<dots_function_response>", "</dots_function_response>"),
)
_BLOCK: Final = JsonTerminators(_CLOSE, _OPEN, _END, then=(_CLOSE, _OPEN, _END))
_TOOLS: Final = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
_HOW_TO: Final = """
</tools>

When making tool calls, use XML format to invoke tools and pass parameters:

<dots_function_call>
<invoke name="tool-name-1">
<parameter name="param-key-1">
param-value-1
</parameter>
<parameter name="param-key-2">
param-value-2
</parameter>
...
</invoke>
</dots_function_call>"""


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` with a closed, empty
    one.
    """


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt up to `<|assistant|>`. Outputs of one round stand in one turn of the user."""
    return _FRAME.render(conversation, options)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: a block for each call."""
    return _FRAME.write(turn)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls as the format's text."""
    return _FRAME.messages(conversation, options)


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    out.text(_TOOLS, tool_lines(conversation))
    own_words(out, _HOW_TO, _CONTROLS)


def _calls(out: PromptBuilder, calls: Sequence[Call], _: int) -> None:
    for number, call in enumerate(calls):
        out.text("\n" if number else "").control(_OPEN).text(f'\n<invoke name="{call.name}">')
        for key, value in arguments_object(call).items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            out.text(f'\n<parameter name="{key}">\n{text}\n</parameter>')
        out.text("\n</invoke>\n").control(_CLOSE)


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    for result in results:
        out.text("\n").control("<dots_function_response>").text(f"\n{result.text}\n")
        out.control("</dots_function_response>")


_FRAME: Final = Frame(
    controls=_CONTROLS,
    system=("<|system|>", "<|endofsystem|>"),
    user=("<|user|>", "<|endofuser|>"),
    assistant=("<|assistant|>", _END),
    tool=("<|user|>", "<|endofuser|>"),
    tools=_tools,
    calls=_calls,
    results=_results,
    gap="\n",
)


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<think>` open."""
    return _Reader(source, tools, _TAGS, ends=(_END,)).read(start)


class _Reader(ParameterReader):
    """Prose, and blocks that hold calls in either form."""

    def _may_begin_call(self, tag: str) -> Parse[bool]:
        """See `ProseReader`: JSON in a block may be one, too."""
        return (yield from super()._may_begin_call(tag)) or (tag == _OPEN and self._begins_json())

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        """See `ProseReader`. The end of a block with which an answer ends is structure, whatever came before."""
        if tag == _CLOSE:
            yield from self._end_token(blanks + tag)
        else:
            yield from super()._marked(blanks, tag)

    def _unknown_block(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """See `ParameterReader`: a call as JSON."""
        if not self._begins_json():
            yield from super()._unknown_block(blanks, tag, inner)
            return
        apart = self._apart
        self.call_begins()
        block = MarkedJson(self.source, self.tools, _BLOCK, self.calls)
        stop, rest = yield from block.read()
        self.calls = block.calls
        closing = stop if stop == _CLOSE else ""
        if block.refused:
            self._apart = apart
            self.emit(self.say(blanks + tag + inner + block.refused + closing))
        else:
            self.emit(Markup(blanks + tag + inner))
            self.markup(closing)
        self.source.unread(rest if closing else rest + stop)
        yield from self.skip_blanks()

    def _begins_json(self) -> bool:
        return self.source.text.startswith(("{", "["), self.source.at)


DIALECT = Dialect(
    name="dots",
    aliases=("dots3",),
    model_families="dots 3",
    model_globs=("dots3*", "dots-3*", "dots*3*"),
    template_markers=("<dots_function_call>",),
    source="prompt of dots3 as engines have written it down; vLLM's parser",
    tokenizers=("dots",),
    stops=("<|endofassistant|>",),
    options=Options,
    prompt=PromptBy(render=render, messages=messages, write=write),
    calls=ReadBy(parse),
)
