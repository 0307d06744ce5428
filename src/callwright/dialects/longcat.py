"""LongCat: `<longcat_tool_call>` around `{"name": …, "arguments": {…}}`, a block for each call.

Some models write the name and `<longcat_arg_key>`, `<longcat_arg_value>` for each argument in place of the object.
Source: the format as vLLM's parser and tests state it. Turns are written plainly, as `USER:` and `ASSISTANT:`; of the
template only the markers are known, so the tools are described in words.
"""

from functools import partial
from typing import Final

from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, in_json
from callwright.layout.key_values import KeyValueTags
from callwright.reading.json.marked import CallMarks, MarkedCalls
from callwright.reading.tagged.key_values import KeyValueCalls
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Parse

_OPEN: Final = "<longcat_tool_call>"
_CLOSE: Final = "</longcat_tool_call>"
_END: Final = "</longcat_s>"
_THINK: Final = ("<longcat_think>", "</longcat_think>")
_CALLS: Final = CallLayout(begin=f"{_OPEN}\n" + in_json(), end=f"}}\n{_CLOSE}", between="\n")
_MARKS: Final = CallMarks.of(_CALLS, special=False, thoughts=(_THINK, ("<think>", "</think>")), ends=(_END,))
_TAGS: Final = KeyValueTags(
    call=_OPEN,
    call_end=_CLOSE,
    key="<longcat_arg_key>",
    key_end="</longcat_arg_key>",
    value="<longcat_arg_value>",
    value_end="</longcat_arg_value>",
)


_TURNS: Final = Turns(
    controls=(_OPEN, _CLOSE, _END, *_THINK),
    head="«text|tools¦SYSTEM:$text«text tools¦\n\n»$tools\n»",
    system="SYSTEM:$text\n",
    user="USER:$text\n",
    assistant="ASSISTANT:$written</longcat_s>",
    written="«<longcat_think>\n$thought:trim\n</longcat_think>\n»$text«text calls¦\n»$calls",
    outputs="$each",
    output="TOOL:$text\n",
    answer="ASSISTANT:«off¦<longcat_think>\n\n</longcat_think>\n»«open¦<longcat_think>\n$thought»",
    calls=_CALLS,
)


class _Calls(MarkedCalls):
    """Reads both forms: if a name follows the opening tag, the call consists of elements."""

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read a marker, and its calls."""
        if tag == _OPEN:
            source = self.text.source
            inner = yield from self.text.held_blanks()
            is_json = source.text.startswith(("{", "["), source.at)
            source.unread(inner)
            elements = KeyValueCalls(self.text, _TAGS, thoughts=_MARKS.thoughts, ends=_MARKS.ends)
            if not is_json and (yield from elements.lexer.names_call()):
                return (yield from elements.marked(blanks, tag))
        return (yield from super().marked(blanks, tag))


DIALECT = Dialect(
    name="longcat",
    aliases=("longcat_flash",),
    model_families="LongCat-Flash",
    model_globs=("longcat-flash",),
    template_markers=("<longcat_tool_call>",),
    source="vLLM 0.33.0: parser and tests of longcat",
    tokenizers=("longcat",),
    stops=("</longcat_s>",),
    options=ThinkingOptions,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, partial(_Calls, form=_MARKS)),
)
