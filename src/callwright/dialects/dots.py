"""dots: `<dots_function_call>` around `<invoke name="f">` and its parameters, or around a call as JSON.

A line feed on each side of a value is structure. Source: the prompt of dots3 as engines have written it down; vLLM's
parser.
"""

from typing import Final

from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, TaggedArguments
from callwright.reading.tagged.call import TaggedCall
from callwright.reading.tagged.calls import TaggedCalls
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Parse

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


def _reader(text: AnswerText) -> CallReader:
    """The reader of the calls in one answer."""
    return _Calls(TaggedCall(text, TagLexer(text, parameter_marks(_TAGS, ends=(_END,)))))


class _Calls(TaggedCalls):
    """Blocks that hold calls in either form."""

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether a call, or JSON, follows the opening tag of a block."""
        is_json = tag == _OPEN and self.text.source.text.startswith(("{", "["), self.text.source.at)
        return is_json or (yield from super().may_begin_call(tag))

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read a tag, and the calls after it. The end of a block at the end of an answer is always structure."""
        if tag != _CLOSE:
            return (yield from super().marked(blanks, tag))
        yield from self.text.stop_token(blanks + tag)
        return None


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
    calls=ReadBy(_CALLS, _reader),
)
