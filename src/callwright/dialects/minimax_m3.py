"""MiniMax M3: calls as nested elements, each tag after the token `]<]minimax[>[`.

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="f">]<]minimax[>[<k>v]<]minimax[>[</k>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

The name of an element is the parameter's. Objects and lists are nested elements (`<item>` for each of a list); the
schema decides between the two, and the type of a text. Read as vLLM's and llama.cpp's parsers do; prompts are checked
against the model's chat template.
"""

import re
from typing import Final

from callwright.dialects._minimax import END, OUTPUT, OUTPUTS, TOKENS, TOOL, TOOLS, USER, instructions_or_default
from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.options import ThinkingOptions
from callwright.dialects.prompts.turns import Turns
from callwright.layout.calls import CallLayout, ElementArguments
from callwright.reading.arguments_writer import ArgumentsWriter, unwritten
from callwright.reading.tagged.calls import TaggedCalls
from callwright.reading.tagged.heads import attributes, may_be_longer, split_head
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.named import NamedCall, NamedLexer, NamedMarks, Tag
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.schema.keywords import properties
from callwright.streaming.reader import Parse
from callwright.tolerant_json.codec import encode

_MARK: Final = "]<]minimax[>["
_OPEN: Final = f"{_MARK}<tool_call>"
_CLOSE: Final = f"{_MARK}</tool_call>"
_CALLS: Final = CallLayout(
    open=f"{_OPEN}\n",
    begin=f'{_MARK}<invoke name="${{name}}">',
    arguments=ElementArguments(begin=f"{_MARK}<${{key}}>", end=f"{_MARK}</${{key}}>"),
    end=f"{_MARK}</invoke>\n",
    close=_CLOSE,
)
_TAGS: Final = ParameterTags(
    call=f"{_MARK}<invoke name=",
    call_end=f"{_MARK}</invoke>",
    parameter=f"{_MARK}<",
    parameter_end=f"{_MARK}</",
    blocks=((_OPEN, _CLOSE),),
)
# A piece of a mark is a tag that was broken.
_FORM: Final = NamedMarks((_MARK,), re.compile(r"\]<\]|<\]|\[>|minimax\["), ("invoke", "tool_call"))
_THOUGHT: Final = ("<mm:think>", "</mm:think>")
_SYSTEM: Final = (
    "Your model version is MiniMax-M3, developed by MiniMax. Knowledge cutoff: January 2026. Founded in early 2022, "
    "MiniMax is a global AI foundation model company committed to advancing the frontiers of AI towards AGI.\n\n"
    "<thinking_instructions>\nYou have a thinking capability that allows you to reason step by step before responding. "
    "When thinking is enabled, wrap your reasoning in <mm:think></mm:think> tags before your response. When thinking "
    "is disabled, begin your response directly after the </mm:think> prefix. When thinking is adaptive, decide on your "
    "own whether to think for the current turn.\nCurrent thinking mode: "
    "«open¦enabled. You MUST think step by step before every response, including after receiving function/tool "
    "results.»"
    "«off¦disabled. Do not output any thinking process.»"
    "«model¦adaptive. You are encouraged to think for complex decision-making, multi-step reasoning, or when analyzing "
    "function/tool results.»\n</thinking_instructions>"
)
_HOW_TO: Final = """To call tools, wrap all invocations in a single @<tool_call>@</tool_call> block. Parameter values \
containing nested objects or arrays are recursively expanded into XML elements. Example:

@<tool_call>
@<invoke name="tool-name-1">@<param-1>value-1@</param-1>@<param-2>@<item>@<key-a>val-a@</key-a>@<key-b>val-b@</key-b>\
@</item>@</param-2>@</invoke>
@<invoke name="tool-name-2">@<param-1>value-1@</param-1>@</invoke>
@</tool_call>""".replace("@", _MARK)
# Maximum length of an element's tag after the mark, and maximum depth of nested elements.
_MAX_TAG: Final = 300
_MAX_DEPTH: Final = 64
_CALL_OPENS: Final = "invoke name="
_AS_M2: Final = "parameter name="  # as M2 writes it
_TAG = re.compile(r"<(?P<end>/?)(?P<head>[^<>\n]+)>")
_MAY_BE_TAG = re.compile(r"(?:</?[^<>\n]*)?\Z")


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` after its end."""


# --- prompts ---


# System texts are in the turn `developer`, after the model's own.
_TURNS: Final = Turns(
    controls=(*TOKENS, _OPEN, _CLOSE, _MARK, *_THOUGHT),
    head=(f"]~!b[]~b]system\n{_SYSTEM}[e~[\n«text|tools¦]~b]developer\n$text«text tools¦\n\n»$tools[e~[\n»"),
    gather=instructions_or_default,
    system="]~b]developer\n$text[e~[\n",
    user=USER,
    assistant="]~b]ai\n«!thought¦</mm:think>»$written[e~[\n",
    written="«<mm:think>$thought:trim</mm:think>»$text$calls",
    thoughts="all",
    outputs=OUTPUTS,
    output=OUTPUT,
    answer="]~b]ai\n«off¦</mm:think>»«open¦<mm:think>$thought»",
    calls=_CALLS,
    tools=TOOLS + _HOW_TO,
    tool=TOOL,
)


# --- output ---


def _reader(text: AnswerText) -> CallReader:
    """The reader of the calls in one answer."""
    marks = parameter_marks(_TAGS, thoughts=(_THOUGHT,), ends=(END,), tokens=(*_FORM.marks, _TAGS.end))
    return TaggedCalls(_Call(text, _Lexer(text, marks)))


class _Lexer(NamedLexer):
    """Tags whose names are those of the tool's parameters."""

    named = _FORM

    def read_named(self, mark: str) -> Parse[Tag | None]:
        """Read the tag after a mark; None without a tag."""
        while True:
            ahead = self.source.ahead(_MAX_TAG)
            found = _TAG.match(ahead)
            rest = ahead[found.start("head") :] if found else ""
            if found and not (self.source.more(_MAX_TAG) and may_be_longer(rest, ">", self.declared)):
                head, _, _ = split_head(rest, ">", self.declared)
                written = self.source.take(self.source.at + found.start("head") + len(head) + 1)
                named = head.startswith((_CALL_OPENS, _AS_M2))
                key = attributes(head.partition("=")[2])[0] if named else head
                name = head.partition(" ")[0] if named else head
                return self.make_tag(mark + written, name, closes=bool(found["end"]), key=key, head=head)
            if not self.source.more(_MAX_TAG) or not (found or _MAY_BE_TAG.match(ahead)):
                return None
            yield


class _Call(NamedCall):
    """A call whose values are elements."""

    def _is_end(self, tag: Tag, writer: ArgumentsWriter | None) -> bool:
        is_own = tag.head in _FORM.calls and not (writer and writer.declares(tag.head))
        return is_own or tag.head.startswith(_CALL_OPENS)

    def _value_tag(self, tag: Tag, writer: ArgumentsWriter) -> tuple[str, str, object]:
        return tag.closer, tag.key, writer.schema(tag.key)

    # --- values ---

    def _without_opener(self, text: str, tag: Tag, writer: ArgumentsWriter) -> bool:
        """M3 often writes only the mark of the first opening tag (vLLM's pull request 51075). If the rest of the tag
        follows, it broke, and the begin of the value is unknown.
        """
        before, mark, value = text.partition(_MARK)
        key = tag.head
        if before.strip() or not mark or _FORM.piece.search(value) or f"{key}>" in value:
            return False
        if not writer.declares(key) or self.sink.is_given(key):
            return False
        self.sink.odd(f"the opening tag of {key!r} is missing")
        self.text.markup(before + mark)
        self.sink.put(key, self.sink.cast(key, value, writer.schema(key)), value)
        self.text.markup(tag.text)
        return True

    def _value_of(self, names: tuple[str, ...], schema: object, writer: ArgumentsWriter) -> Parse[str | None]:
        """The JSON of an element, read from after its tag; None if the output was cut in it. `names` are the elements
        around it and, last, its own.
        """
        if not _holds(writer, schema) or len(names) >= _MAX_DEPTH:
            return (yield from super()._value_of(names, schema, writer))
        source = self.text.source
        texts: list[str] = []
        members: list[tuple[str, str]] = []
        while True:
            text, tag = yield from self.lexer.next_tag()
            texts.append(text)
            if tag is None:
                writer.cut("".join((*texts, *(value for _, value in members))))
                return None
            if tag.head == names[-1] and tag.closes:
                self.text.markup(tag.text)
                return self._built(texts, members, schema, writer)
            if self._is_end(tag, writer) and not tag.closes and len(texts) == 1 and writer.is_untyped(schema):
                source.unread(text + tag.text)  # a text that may show a call
                return (yield from super()._value_of(names, schema, writer))
            closes_outer = tag.closes and tag.head in (*names, *_FORM.calls)
            if closes_outer or tag.head.startswith(_CALL_OPENS) or self._is_next(tag, names, schema, writer):
                source.unread(tag.text)
                self._missing(names[-1], "".join(texts))
                return self._built(texts, members, schema, writer)
            self.text.markup(tag.text)
            if tag.closes:
                self.sink.doubt(f"{tag.text} closes nothing")
                continue
            member = yield from self._value_of((*names, tag.head), _member(writer, schema, tag.head), writer)
            if member is None:
                writer.cut("".join((*texts, *(value for _, value in members))))
                return None
            members.append((tag.head, member))

    def _missing(self, name: str, text: str) -> None:
        """The closer of an element is missing. If its text may hold a broken closer, the end is unknown."""
        self.sink.odd(f"the end of {name!r} is missing")
        if _FORM.piece.search(text) or f"</{name}" in text:
            self.sink.sure = False

    @staticmethod
    def _is_next(tag: Tag, names: tuple[str, ...], schema: object, writer: ArgumentsWriter) -> bool:
        """Whether a tag opens the sibling of an element, not its child."""
        if tag.closes or _takes(writer, schema, tag.head):
            return False
        return tag.head == names[-1] or (len(names) == 1 and writer.declares(tag.head))

    def _built(self, texts: list[str], members: list[tuple[str, str]], schema: object, writer: ArgumentsWriter) -> str:
        """The JSON of an element's content."""
        kinds, _ = writer.inside(schema, None)
        if not members:
            text = "".join(texts)
            if text.strip() or not kinds:
                value = writer.cast_to_schema(text, schema)
                self.text.markup(unwritten(text, value))
                return value
        if not kinds and any(map(str.strip, texts)):
            self.sink.doubt("a value is text and elements")
        for text in texts:
            self._between(text)
        listed = "array" in kinds and ("object" not in kinds or all(key == "item" for key, _ in members))
        if listed or (not kinds and all(key == "item" for key, _ in members)):
            if odd := next((key for key, _ in members if key != "item"), ""):
                self.sink.odd(f"an item of a list is called {odd!r}")
            return f"[{','.join(value for _, value in members)}]"
        each: dict[str, list[str]] = {}
        for key, value in members:
            each.setdefault(key, []).append(value)
        shown = (
            f"{encode(key).decode()}:{values[0] if len(values) == 1 else '[' + ','.join(values) + ']'}"
            for key, values in each.items()
        )
        return f"{{{','.join(shown)}}}"


def _holds(writer: ArgumentsWriter, schema: object) -> bool:
    """Whether a value of this schema may contain elements."""
    return bool(writer.inside(schema, None)[0]) or writer.is_untyped(schema)


def _takes(writer: ArgumentsWriter, schema: object, head: str) -> bool:
    """Whether a value of this schema has elements of this name."""
    kinds, _ = writer.inside(schema, None)
    declared = properties(schema)
    listed = "array" in kinds and head == "item"
    return not kinds or listed or ("object" in kinds and (not declared or head in declared))


def _member(writer: ArgumentsWriter, schema: object, head: str) -> object:
    """The schema of an element in a value of this one."""
    kinds, items = writer.inside(schema, None)
    if "array" in kinds and ("object" not in kinds or head == "item"):
        return items
    return writer.inside(schema, head)[1]


DIALECT = Dialect(
    name="minimax_m3",
    model_families="MiniMax M3",
    model_globs=("minimax-m3*",),
    template_markers=("]<]minimax[>[ + ]~b] + <tool_call> + invoke", "]<]minimax[>["),
    source="chat template of MiniMax-M3",
    tokenizers=("minimax_m3",),
    stops=(END,),
    options=Options,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, _reader),
)
