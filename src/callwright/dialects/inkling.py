"""Inkling: parts that begin with `<|content_…|>` and end with `<|end_message|>`; a call is the part of its tool.

`NAME<|content_invoke_tool_json|>{"name": …, "args": {…}}<|end_message|>`; the name before the part may be missing.
Source: the format as vLLM's parser and tests state it. The template was not seen: the tools are described in words.
"""

import re
from functools import partial
from typing import Final

from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.events import Markup, Problem
from callwright.layout.calls import CallLayout, in_json
from callwright.reading.json.block import MarkedJson
from callwright.reading.json.marked import CallMarks, MarkedCalls
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Parse

_INVOKE: Final = "<|content_invoke_tool_json|>"
_END: Final = "<|end_message|>"
_MODEL: Final = "<|message_model|>"
_TEXT: Final = "<|content_text|>"
_THINKING: Final = "<|content_thinking|>"
_CALLS: Final = CallLayout(begin=f"${{name}}{_INVOKE}" + in_json(arguments="args"), end=f"}}{_END}", between=_MODEL)
_MARKS: Final = CallMarks(
    layout=_CALLS,
    opens=(_INVOKE,),
    closes=(_END,),
    around=(_MODEL, _TEXT, "<|content_tool_error|>"),
    thoughts=((_THINKING, _END),),
    ends=("<|content_model_end_sampling|>",),
    end_thoughts=(_INVOKE,),  # the part of a call is no draft, for it ends as a thought does
)
# Maximum length of the tool's name before its part.
_MAX_NAME: Final = 128
_NAME = re.compile(rf"([^\n<{{}}]+?)(?={re.escape(_INVOKE)})")
_WORD = re.compile(r"[\w.:/-]+")


_TURNS: Final = Turns(
    controls=("<|message_system|>", "<|message_user|>", "<|message_tool|>", _MODEL, _TEXT, _THINKING, _INVOKE, _END),
    head="«text|tools¦<|message_system|><|content_text|>$text«text tools¦\n\n»$tools<|end_message|>»",
    system="<|message_system|><|content_text|>$text<|end_message|>",
    user="<|message_user|><|content_text|>$text<|end_message|>",
    assistant="<|message_model|>$written",
    written=(
        "«<|content_thinking|>$thought:trim<|end_message|><|message_model|>»"
        "«<|content_text|>$text<|end_message|>»«text calls¦<|message_model|>»$calls"
    ),
    outputs="$each",
    output="<|message_tool|><|content_text|>$text<|end_message|>",
    answer=(
        "<|message_model|>«off¦<|content_thinking|><|end_message|><|message_model|>»«open¦<|content_thinking|>$thought»"
    ),
    calls=_CALLS,
)


class _Calls(MarkedCalls):
    """Parts, of which a thought and a call end alike, and in which the name of a tool may precede its call."""

    _named = ""  # the name before the next part

    def begin(self, start: str) -> Parse[None]:
        """Read the name of a tool with which an answer begins."""
        if start != "reasoning":
            yield from self._name()

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read the token of a part, and its calls."""
        name, self._named, calls = self._named, "", self.text.calls
        if tag == _END:
            self.text.emit(Markup(blanks + tag))
        else:
            yield from super().marked(blanks, tag)
        if name and self.text.calls == calls:
            self.text.emit(Problem("malformed_call", f"the name of {name!r} before a part that is no call of it"))
        if tag == _MODEL:
            yield from self._name()
        return None

    def _name(self) -> Parse[None]:
        """Read the name of a tool before its part."""
        source = self.text.source
        while True:
            begin = source.ahead(_MAX_NAME)
            if (found := _NAME.match(begin)) and self._may_be_name(found.group() + _INVOKE):
                name = source.take(source.at + found.end())
                self._named = name if (yield from self._names(name)) else ""
                self.text.emit(Markup(name) if self._named else self.text.say(name))
                return
            if not source.more(_MAX_NAME) or not self._may_be_name(begin):
                return
            yield

    def _names(self, name: str) -> Parse[bool]:
        """Whether the next part is a call of this tool."""
        opening = self.text.take(_INVOKE) + (yield from self.text.held_blanks()) + (yield from self._words())
        head = yield from MarkedJson(self.text.source, self.text.tools, self._find.stops).head()
        is_json = self.text.source.text.startswith(("{", "[", "`"), self.text.source.at)
        self.text.source.unread(opening)
        return head["name"] == name if head else is_json and name in self.text.tools

    def _may_be_name(self, begin: str) -> bool:
        """Whether this may be the begin of a tool's name and of its part."""
        name, mark, rest = begin.partition("<")
        known = any(tool.startswith(name) if not mark else tool == name for tool in self.text.tools.names)
        return (known or not begin or bool(_WORD.fullmatch(name))) and _INVOKE.startswith(mark + rest)


DIALECT = Dialect(
    name="inkling",
    model_families="Inkling",
    model_globs=("inkling",),
    template_markers=("<|content_invoke_tool_json|>",),
    source="vLLM 0.33.0: parser and tests of inkling",
    tokenizers=("inkling",),
    stops=("<|content_model_end_sampling|>",),
    options=ThinkingOptions,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, partial(_Calls, form=_MARKS)),
)
