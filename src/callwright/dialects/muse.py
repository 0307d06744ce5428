"""Muse: messages addressed to someone; those to a tool hold `<atem:invoke name="f">` and its parameters.

     to=self<|message|>…<|eom|><|start|>assistant to=desk.book<|message|><atem:function_calls>
    <atem:invoke name="desk.book">
    <atem:parameter name="guests">4</atem:parameter>
    </atem:invoke>
    </atem:function_calls><|eot|>

A message to `self` is reasoning, one to `user` (or `commentary`) is content, and calls in either are text. In a
message to any other recipient, or to none, calls are read; the name in the call counts. Values are unescaped text.
Prompts are checked against the chat template of Muse-Glimmer.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, ParsedBy, RenderOptions
from callwright.dialects.prompts.layouts import Values
from callwright.dialects.prompts.turns import Turns
from callwright.events import ContentDelta, Markup, Problem, ReasoningDelta, TextEvent
from callwright.layout.calls import CallLayout, TaggedArguments
from callwright.memo.prefixes import once
from callwright.prompt import BREAK, PromptBuilder, own_words
from callwright.reading.tagged.call import TaggedCall
from callwright.reading.tagged.calls import TaggedCalls
from callwright.reading.tagged.heads import surplus, unknown_attributes
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.answer import AnswerReader
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.code_context import CodeContext
from callwright.reading.text.foreign import Formats
from callwright.reading.text.other_answers import reads_others
from callwright.streaming.reader import Markers, Parse, emit_text_until, may_come, read_until

_START: Final = "<|start|>"
_MESSAGE: Final = "<|message|>"
_NEXT: Final = "<|eom|>"
_END: Final = "<|eot|>"
_ENDS: Final = (_NEXT, _END, "<|end_of_text|>")
_TO: Final = "to="
_CONTROLS: Final = ("<|begin_of_text|>", _START, _MESSAGE, *_ENDS)
_ATEM: Final = CallLayout(
    begin='<atem:function_calls>\n<atem:invoke name="${name}">\n',
    arguments=TaggedArguments(begin='<atem:parameter name="${key}">', end="</atem:parameter>\n"),
    end="</atem:invoke>\n</atem:function_calls>",
    between="\n",
)
_NEXT_MESSAGE: Final = f"{_NEXT}{_START}assistant"
_CALLS: Final = msgspec.structs.replace(
    _ATEM, begin=f" {_TO}${{name}}{_MESSAGE}{_ATEM.begin}", between=_NEXT_MESSAGE, stop=_END
)
_TAGS: Final = ParameterTags.of(_ATEM)
_KNOWN: Final = {"self": ReasoningDelta, "user": ContentDelta, "commentary": ContentDelta}
_STRENGTHS: Final = {"none": "low", "minimal": "low", "max": "xhigh"}
# Maximum length of a header.
_MAX_HEADER: Final = 400
_HEADER = re.compile(r"\s*+(?:<\|start\|>)?(?:assistant)?(?:\s*+to=(?P<to>[^\s<]+))?\s*+<\|message\|>")
_MAY_BE_HEADER = re.compile(
    "|".join(
        may_come(
            [r"\s*+", *map(re.escape, begin), *(to and [r"\s*+", *to, r"[^\s<]+"]), r"\s*+", *map(re.escape, _MESSAGE)]
        )
        for begin in (f"{_START}assistant", _START, "assistant", "")
        for to in (_TO, "")
    )
)
# A tool's name, whatever the tag that holds it went over into.
_NAME = re.compile(r"""\s*["']?(?P<name>[^"'<>\s]*)""")
_HOW_TO: Final = """In this environment you have access to a set of tools you can use to answer the user's question.

You can invoke a function by writing a "<atem:function_calls>" block like the following:
<atem:function_calls>
<atem:invoke name="$FUNCTION_NAME">
<atem:parameter name="$PARAMETER_NAME">$PARAMETER_VALUE</atem:parameter>
...
</atem:invoke>
</atem:function_calls>

String and scalar parameters should be specified as is, while lists and objects should use JSON format. Note that \
spaces for string values are not stripped. The output is not expected to be valid XML and is parsed with regular \
expressions.
Here are the functions available in JSONSchema format:
// Tool metadata
"""
_EXAMPLE: Final = """

Here's an example of how to call a function in the tool set:
(If the tool namespace is not specified, invoke the function directly as `example_function_name` rather than \
`example_tool_name.example_function_name`)

to=example_tool_name.example_function_name

<atem:function_calls>
<atem:invoke name="example_tool_name.example_function_name">
<atem:parameter name="example_parameter_1">value_1</atem:parameter>
<atem:parameter name="example_parameter_2">This is the value for the second parameter
that can span
"multiple" lines
</atem:parameter>
</atem:invoke>
</atem:function_calls>"""


class Options(RenderOptions, frozen=True, kw_only=True):
    """`reasoning_effort`: the model knows `low` to `xhigh`, the other levels of the API are rounded. `current_date`
    (`YYYY-MM-DD`) and `knowledge_cutoff` are shown in the system message of a request that has none of its own.
    """

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] = "high"
    current_date: str | None = None
    knowledge_cutoff: str | None = "2026-01-04"

    def slots(self) -> Mapping[str, Any]:
        return {"strength": _STRENGTHS.get(self.reasoning_effort, self.reasoning_effort)}


def _namespaces(conversation: Conversation) -> Iterable[str]:
    """The prefixes of the tools' names, before the dot."""
    return dict.fromkeys(tool.name.partition(".")[0] for tool in conversation.tools)


def _tools(out: PromptBuilder, conversation: Conversation) -> PromptBuilder:
    lines = [json.dumps({"name": name, "description": ""}, ensure_ascii=False) for name in _namespaces(conversation)]
    lines.append("// Function schemas")
    lines += [json.dumps(tool.as_openai()["function"], ensure_ascii=False) for tool in conversation.tools]
    return own_words(out, _HOW_TO, _CONTROLS).text("\n".join(lines)).text(_EXAMPLE)


def _more(conversation: Conversation) -> Values:
    return {"recipients": once(conversation.tools, "recipients", lambda: _recipients(conversation))}


def _recipients(conversation: Conversation) -> str:
    names = ["self", *(f"{name}.*" for name in _namespaces(conversation)), "user"]
    return ", ".join(f'"{name}"' for name in names)


_OUTPUT: Final = '<tool_output name="$name">\n$text\n</tool_output>'
_TURNS: Final = Turns(
    controls=_CONTROLS,
    head=(
        "<|begin_of_text|><|start|>system<|message|>«text¦$text¦You are a helpful AI assistant."
        "«\nKnowledge cutoff: $knowledge_cutoff.»«\nCurrent date: $current_date.»»"
        "\n\nReasoning strength: $strength.«\n\n$tools»«\n\n$notes»\n\n# Valid recipients: $recipients.<|eot|>"
    ),
    notes_choice=False,
    more=_more,
    system="<|start|>system<|message|>$text<|eot|>",
    user="<|start|>user<|message|>$text<|eot|>",
    assistant="<|start|>assistant$written",
    # A message to itself, to the user, and to each tool.
    written=(
        "« to=self<|message|>$thought<|eom|><|start|>assistant»«text|!calls¦ to=user<|message|>$text»"
        "«text calls¦<|eom|><|start|>assistant»$calls«!calls¦<|eot|>»"
    ),
    thoughts="all",
    outputs="$each",
    output=f"<|start|>tool $name<|message|>{_OUTPUT}<|eot|>",
    answer="<|start|>assistant",
    calls=_CALLS,
    tools=_tools,
    # A chat server writes headers itself: calls have none here.
    chat_written="$text«text calls¦\n»$calls",
    chat_calls=_ATEM,
    chat_tools=_tools,
    chat_output=_OUTPUT,
    chat_between="\n",
)


# --- output ---


def _parse(text: AnswerText, start: str, formats: Formats) -> Parse[None]:
    """Events of an output. `start`: `reasoning` after the header of a message to `self`."""
    if not (yield from reads_others(text, start, formats, own=("<|start|>", "<|message|>", "<|eom|>", "<atem:"))):
        lexer = _Lexer(text, parameter_marks(_TAGS, thoughts=(), ends=(*_ENDS, _START)))
        yield from _Reader(TaggedCalls(_Call(text, lexer)), lexer, formats).read(start)


class _Lexer(TagLexer):
    """The tags of a message to `recipient`, `""` without one."""

    recipient = ""

    def names_call(self) -> Parse[bool]:
        """Whether a call follows its tag: in a message to a tool, any opener begins a call."""
        known = yield from super().names_call()
        return known or bool(self.recipient)


class _Call(TaggedCall):
    """A call in a message, which may name its tool."""

    lexer: _Lexer

    def _read_name(self) -> Parse[tuple[str, str]]:
        """The name of a call. A tool outside any namespace may be called as one in its own: `f.f`."""
        head, end = yield from read_until(self.text.source, self.marks.tag_end, _MAX_HEADER)
        if "<" not in head and (odd := surplus(head) or unknown_attributes(head)):
            self.text.emit(Problem("markup_repaired", f"the tag of a call contains {odd!r}", call=self.text.calls))
        found = _NAME.match(head)
        name = (found["name"] if found else "") or self.lexer.recipient
        space, _, rest = name.partition(".")
        tools = self.text.tools
        return rest if name not in tools and space == rest in tools else name, head + end


class _Reader:
    """Consecutive messages."""

    def __init__(self, calls: TaggedCalls, lexer: _Lexer, formats: Formats) -> None:
        self.text = calls.text
        self._calls = calls
        self._answer = AnswerReader(calls, formats)
        self._lexer = lexer
        self._in_words = Markers(*_ENDS, _START, _TO)
        self._in_call = Markers(*_ENDS, _START, _TO, *calls.marks.tags)
        self._said: dict[object, str] = {}  # the end of the text so far, by kind of event

    def read(self, start: str) -> Parse[None]:
        """Read the whole answer. Text without a header continues the message that the prompt began."""
        text = self.text
        self._lexer.recipient = (yield from self._header()) or ("self" if start == "reasoning" else "")
        while True:
            self._said[text.make] = text.before
            text.make = _KNOWN.get(self._lexer.recipient, ContentDelta)
            text.before, text.code = self._said.get(text.make, ""), CodeContext()
            calls, to = text.calls, self._lexer.recipient
            yield from self._body()
            if to and to not in _KNOWN and text.calls == calls:
                text.emit(Problem("malformed_call", f"a message to {to!r} in which no call is"))
            if text.source.done:
                return
            text.apart = True
            self._lexer.recipient = (yield from self._header(behind=True)) or ""

    def _header(self, *, behind: bool = False) -> Parse[str | None]:
        """Read a header and return its recipient, `""` without one; None if there is no header.

        `behind`: after a message, so that an incomplete header at the end counts as one.
        """
        source = self.text.source
        while True:
            ahead = source.ahead(_MAX_HEADER)
            if found := _HEADER.match(ahead):
                self.text.emit(Markup(source.take(source.at + found.end())))
                return found["to"] or ""
            if not _MAY_BE_HEADER.match(ahead):
                return None
            if not source.more(_MAX_HEADER):
                if source.ended and (behind or ahead.lstrip().startswith(_START)):
                    cut = source.take(len(source.text))
                    if _TO in cut:
                        self.text.emit(Problem("incomplete_header", "the output ended inside a header", text=cut))
                    else:
                        self.text.markup(cut)
                return None
            yield

    def _begins_header(self) -> Parse[bool]:
        """Whether the next text is a header with a recipient or with `<|start|>`."""
        source = self.text.source
        while True:
            ahead = source.ahead(_MAX_HEADER)
            if _HEADER.match(ahead):
                return True
            if not _MAY_BE_HEADER.match(ahead) or not source.more(_MAX_HEADER):
                return False
            yield

    def _is_for_tool(self) -> Parse[bool]:
        """Whether the recipient, which may be a reader too, is a tool: its message begins with a call."""
        if self._lexer.recipient not in self.text.tools:
            return False
        return (yield from self.text.comes(_TAGS.blocks[0][0])) or (yield from self.text.comes(_TAGS.call))

    def _body(self) -> Parse[None]:
        """Read a message from after its header to the next message."""
        in_words = self._lexer.recipient in _KNOWN and not (yield from self._is_for_tool())
        markers = self._in_words if in_words else self._in_call
        repeats = False  # the message repeats a text with escaped tags: tags after it are text

        def say(text: str) -> TextEvent:
            nonlocal repeats
            repeats = repeats or BREAK in text
            return self.text.say(text)

        while not self.text.source.done:
            blanks, marker = yield from emit_text_until(self.text.source, markers, say)
            if marker in self._calls.marks.tags and not (self.text.code.inside(blanks) or repeats):
                # A message to a tool holds a call; without a header, tags are judged as in any answer.
                yield from (self._calls.marked if self._lexer.recipient else self._answer.own_tag)(blanks, marker)
            elif marker in _ENDS and (yield from self._lexer.followed_by(_TO, _MESSAGE)):
                self.text.emit(Markup(blanks + marker))
                return
            elif marker in (_START, _TO):
                self.text.source.unread(marker)
                if (marker == _START or blanks) and (yield from self._begins_header()):
                    self.text.markup(blanks)
                    return
                self.text.emit(self.text.say(blanks + self.text.take(marker)))
            elif marker:
                self.text.emit(self.text.say(blanks + marker))


DIALECT = Dialect(
    name="muse",
    aliases=("muse_glimmer", "muse_spark", "atem"),
    model_families="Meta Muse Spark, Muse Glimmer",
    model_globs=("muse-glimmer", "muse-spark"),
    template_markers=("<atem:",),
    source="chat template of Muse-Glimmer, the open sister of Muse-Spark",
    tokenizers=("muse",),
    stops=("<|eot|>",),
    options=Options,
    prompt=_TURNS,
    calls=ParsedBy(_CALLS, _parse),
)
