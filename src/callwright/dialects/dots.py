"""dots: `<dots_function_call>` around `<invoke name="f">` and its parameters, or around a call as JSON.

A line feed on each side of a value is structure. Source: the prompt of dots3 as engines have written it down; vLLM's
parser.
"""

from typing import Final

from callwright.calls.toolset import Toolset
from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.call_layout import CallLayout, TaggedArguments
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.dialects.readers.json_block import MarkedJson
from callwright.dialects.readers.parameters import ParameterReader
from callwright.dialects.readers.tagged_values import ParameterTags
from callwright.events import Markup
from callwright.stream_reader import Parse, StreamReader
from callwright.tolerant_json.passthrough import JsonTerminators

__all__ = ["DIALECT"]


_END: Final = "<|endofassistant|>"
_OPEN: Final = "<dots_function_call>"
_CLOSE: Final = "</dots_function_call>"
_CALLS: Final = CallLayout(
    begin=f'{_OPEN}\n<invoke name="${{name}}">\n',
    arguments=TaggedArguments(begin='<parameter name="${key}">\n', end="\n</parameter>\n"),
    end=f"</invoke>\n{_CLOSE}",
    between="\n",
)
_TAGS: Final = ParameterTags.of(_CALLS, control=False)
_CONTROLS: Final = (
    *("<|system|>", "<|endofsystem|>", "<|user|>", "<|endofuser|>", "<|assistant|>", _END),
    *("<think>", "</think>", _OPEN, _CLOSE, "<dots_function_response>", "</dots_function_response>"),
)
_BLOCK: Final = JsonTerminators(_CLOSE, _OPEN, _END, then=(_CLOSE, _OPEN, _END), ends=(_END,))
_SHOW_TOOLS: Final = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
$lines
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


# --- prompts ---


_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="«text|tools¦<|system|>$text«text tools¦\n\n»$tools<|endofsystem|>»",
    system="<|system|>$text<|endofsystem|>",
    user="<|user|>$text<|endofuser|>",
    assistant="<|assistant|>$written<|endofassistant|>",
    written="«<think>\n$thought:trim\n</think>\n\n»$text«text calls¦\n»$calls",
    outputs="<|user|>$each<|endofuser|>",
    output="\n<dots_function_response>\n$text\n</dots_function_response>",
    answer="<|assistant|>«off¦<think>\n\n</think>\n\n»«open¦<think>\n$thought»",
    calls=_CALLS,
    tools=_SHOW_TOOLS,
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
    model_globs=("dots-3*",),
    template_markers=("<dots_function_call>",),
    source="prompt of dots3 as engines have written it down; vLLM's parser",
    tokenizers=("dots",),
    stops=("<|endofassistant|>",),
    options=ThinkingOptions,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, parse),
)
