"""Kimi K3: parts of a message between `<|open|>part<|sep|>` and `<|close|>part<|sep|>`, arguments with their types.

An answer is `think`, `response` (which may be empty) and `tools` with a `call` for each; an argument names its key and
its JSON type, and holds a string as it is, anything else as JSON. Source: the chat template of Kimi-K3. Attributes
escape `&` and `"`.
"""

import json
import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from callwright.conversation import Conversation
from callwright.dialects.base import Dialect, ReadBy, RenderOptions, TurnMarks
from callwright.dialects.prompts.chat_messages import choice_note, no_instructions
from callwright.dialects.prompts.layouts import Values
from callwright.dialects.prompts.turns import Turns
from callwright.events import ContentDelta, Markup, Problem
from callwright.layout.calls import CallLayout, TaggedArguments
from callwright.prompt import PromptBuilder
from callwright.reading.arguments_writer import ArgumentsWriter
from callwright.reading.tagged.calls import TaggedCalls
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.named import NamedCall, NamedLexer, NamedMarks, Tag
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.reading.text.code_context import CodeContext
from callwright.streaming.reader import Parse, may_come, read_until


def _escaped(text: str) -> str:
    """A text in an attribute."""
    return text.replace("&", "&amp;").replace('"', "&quot;")


_STOPS: Final = ("<|end_of_msg|>",)

_OPEN: Final = "<|open|>"
_CLOSE: Final = "<|close|>"
_SEP: Final = "<|sep|>"
_CONTROLS: Final = (_OPEN, _CLOSE, _SEP, *_STOPS)
_THINK: Final = (f"{_OPEN}think{_SEP}", f"{_CLOSE}think{_SEP}")
_RESPONSE: Final = (f"{_OPEN}response{_SEP}", f"{_CLOSE}response{_SEP}")
_MESSAGE_END: Final = f"{_CLOSE}message{_SEP}"
_PARTS: Final = (*_RESPONSE, _MESSAGE_END, *_STOPS)
_TAGS: Final = ParameterTags(
    call=f"{_OPEN}call",
    call_end=f"{_CLOSE}call{_SEP}",
    parameter=f"{_OPEN}argument",
    parameter_end=f"{_CLOSE}argument{_SEP}",
    blocks=((f"{_OPEN}tools{_SEP}", f"{_CLOSE}tools{_SEP}"),),
    end=_SEP,
)
_CALLS: Final = CallLayout(
    open=_TAGS.blocks[0][0],
    begin=f'{_OPEN}call tool="${{name}}" index="${{index}}"{_SEP}',
    arguments=TaggedArguments(
        begin=f'{_OPEN}argument key="${{key}}" type="${{type}}"{_SEP}',
        end=f"{_CLOSE}argument{_SEP}",
        types={"integer": "number"},
        key=_escaped,
    ),
    end=f"{_CLOSE}call{_SEP}",
    close=_TAGS.blocks[0][1],
)
# Arguments that are not an object are written as one JSON text.
_JSON: Final = f"{_OPEN}json"
_CALL: Final = "call"
_NAMES: Final = frozenset(("think", "response", "message", "tools", _CALL, "argument", "json"))
_TYPES: Final = frozenset(("string", "number", "boolean", "null", "object", "array"))
_FORM: Final = NamedMarks(
    (_OPEN, _CLOSE), re.compile(r"<\|(?:open|close|sep)|\|>"), (_CALL, "tools", "message"), (f"{_CLOSE}json{_SEP}",)
)
_ATTRIBUTE = re.compile(r"""(?<!\S)(\w+)=(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))(?!\S)""")
# The tag of a part that has blanks around its name, and while it may come.
_PADDED: Final = {
    _OPEN: re.compile(rf"(\s*+)(call(?=\s)|\w++(?=\s*+{re.escape(_SEP)}))(\s*+)"),
    _CLOSE: re.compile(rf"(\s*+)(\w++(?=\s*+{re.escape(_SEP)}))(\s*+)"),
}
_MAY_BE_PADDED = re.compile(may_come([r"\s*+", r"\w++", r"\s*+", *map(re.escape, _SEP)]))
_MAX_PADDED: Final = 64
_LITERALS: Final = frozenset((*_THINK, *_PARTS, _TAGS.call, _TAGS.call_end, *_TAGS.blocks[0]))
# Maximum length of the rest of a tag.
_MAX_HEAD: Final = 1_000
_TOOLS_HEAD: Final = "# Tools\nHere are the available tools, described in JSONSchema."
_EFFORT: Final = (
    "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), "
    "supported values include `low`, `medium`, `high`, and `max`.\n"
    "Now the system is invoked with `thinking_effort=$thinking_effort`."
)
_CHOICES: Final = {
    "required": "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message.",
    "none": "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message.",
}
_RAW_JSON: Final = (
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting."
)


_ROUNDED: Final = {"minimal": "low", "xhigh": "max"}


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking_effort`: how much is thought; `none` begins the answer in its response."""

    thinking_effort: Literal["low", "medium", "high", "max", "none"] = "max"

    def with_effort(self, level: str) -> "Options":
        """See `RenderOptions`: the field has another name here, and other levels are rounded."""
        return replace(self, thinking_effort=_ROUNDED.get(level, level))


# --- prompts ---


def _tools(out: PromptBuilder, conversation: Conversation) -> None:
    shown = _sorted_json([tool.as_openai() for tool in conversation.tools])
    out.text(f"{_TOOLS_HEAD}\n\n```json\n{shown}\n```")


def _wishes(conversation: Conversation) -> Values:
    """The instructions for the next message."""
    choice, wanted = conversation.tool_choice, conversation.response_format
    wish = text = ""
    if conversation.tools and isinstance(choice, str):
        wish = _CHOICES.get(choice, "")
    elif conversation.tools:
        wish = "\n".join(choice_note(conversation))
    if wanted:
        text = f"The system is invoked with `response_format={wanted.type}`.\n{_RAW_JSON}"
        if wanted.schema is not None:
            text += f"\nThe JSON data must match the following schema:\n```json\n{_sorted_json(wanted.schema)}\n```"
    return {"choice": wish, "format": text}


def _sorted_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _message(attributes: str, text: str) -> str:
    """The layout of a message."""
    return f"<|open|>message {attributes}<|sep|>{text}<|close|>message<|sep|><|end_of_msg|>"


_THOUGHT: Final = "<|open|>think<|sep|>$thought<|close|>think<|sep|>"
_SAID: Final = "<|open|>response<|sep|>$text<|close|>response<|sep|>$calls"
_SYSTEM: Final = 'role="system" type="{}"'
_NAMED: Final = '«name¦ name="$name:attribute"»'
_TURNS: Final = Turns(
    controls=_CONTROLS,
    head="«" + _message(_SYSTEM.format("tool-declare"), "$tools") + "»"
    "«!none¦" + _message(_SYSTEM.format("thinking-effort"), _EFFORT) + "»",
    gather=no_instructions,
    more=_wishes,
    system=_message(f'role="system"{_NAMED}', "$text"),
    user=_message(f'role="user"{_NAMED}', "$text"),
    assistant=_message('role="assistant"', f"«!none¦{_THOUGHT}»{_SAID}"),
    written=f"«{_THOUGHT}»{_SAID}<|close|>message<|sep|>",
    thoughts="all",
    outputs="$each",
    output=_message('role="tool" tool="$name:attribute" index="$index"', "$text"),
    close="«" + _message(_SYSTEM.format("tool-choice"), "$choice") + "»"
    "«" + _message(_SYSTEM.format("response-format"), "$format") + "»",
    answer='<|open|>message role="assistant"<|sep|>«none¦<|open|>response<|sep|>¦<|open|>think<|sep|>$thought»',
    calls=_CALLS,
    tools=_tools,
    chat_tools=_tools,
    chat_output="Output of `$name`:\n$text",
    own_marks=TurnMarks(thought=_THINK, answer=(_RESPONSE[0], f"{_RESPONSE[1]}{_MESSAGE_END}"), controls=_CONTROLS),
)


# --- output ---


def _reader(text: AnswerText) -> CallReader:
    """The reader of the calls in one answer."""
    return _Calls(_Call(text, _Lexer(text, _MARKS)))


_MARKS: Final = parameter_marks(
    _TAGS,
    thoughts=(_THINK,),
    ends=_PARTS,
    also=(_OPEN, _CLOSE),
    tokens=(*_FORM.marks, _TAGS.end),
    structure=(_OPEN, _CLOSE, *_PARTS),
)


class _Calls(TaggedCalls):
    """Calls in the parts of a message. One that begins ends the thought before it."""

    _shows = False  # a response that begins in a code block is shown, and so is all that follows there

    def structure(self, blanks: str, marker: str) -> Parse[bool]:
        """Read the token of a part. A tag with blanks around its name is that tag."""
        text = self.text
        self._shows = text.code.inside(blanks) and (self._shows or marker == _RESPONSE[0])
        if self._shows:
            return False
        if marker in _PARTS:
            text.leave_gap(blanks)
            text.emit(Markup(blanks + marker))
            text.code = CodeContext()  # code blocks do not extend over parts
        elif text.code.inside(blanks):
            return False
        elif (yield from self._padded(marker)):
            text.markup(blanks)
        elif text.make is ContentDelta:
            yield from text.stray(blanks, marker)
        else:
            text.emit(text.say(blanks + marker))
        return True

    def _unknown_block(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """A block that does not begin with a call. The one that it begins with may have blanks around its name."""
        if (yield from self.text.comes(_OPEN)):
            self.text.source.at += len(_OPEN)
            if (yield from self._padded(_OPEN)):
                self.text.markup(inner)
                yield from self.marked(blanks, tag)
                return
            self.text.source.unread(_OPEN)
        yield from super()._unknown_block(blanks, tag, inner)

    def _padded(self, mark: str) -> Parse[bool]:
        """Whether the tag of a part continues here with blanks around its name; if so, removes the blanks."""
        source = self.text.source
        while True:
            ahead = source.ahead(_MAX_PADDED)
            if found := _PADDED[mark].match(ahead):
                break
            if not source.more(_MAX_PADDED) or not _MAY_BE_PADDED.match(ahead):
                return False
            yield
        before, name, behind = found.groups()
        literal = f"{mark}{name}" if name == _CALL and mark == _OPEN else f"{mark}{name}{_SEP}"
        if literal not in _LITERALS or not (before or behind):
            return False
        source.at += found.end() if literal.endswith(_SEP) else found.start(3)
        if literal.endswith(_SEP):
            source.at += len(_SEP)
            self.text.markup(behind)
        self.text.markup(before)
        self.text.emit(Problem("markup_repaired", f"blanks around a name: {mark + found[0]!r}"))
        source.text, source.at = literal + source.text[source.at :], 0
        return True


class _Lexer(NamedLexer):
    """Tags that are a mark, a name with attributes, and a separator."""

    named = _FORM

    def names_call(self) -> Parse[bool]:
        """Whether a call follows: the tokens of a call are no words, so all that counts is that its tag ends."""
        source = self.source
        while True:
            head, closed, _ = source.ahead(_MAX_HEAD).partition(_SEP)
            if closed or "\n" in head or not source.more(_MAX_HEAD):
                return bool(closed) and "\n" not in head
            yield

    def read_named(self, mark: str) -> Parse[Tag | None]:
        """Read the tag after a mark, to the next `<|sep|>`. A closing tag holds its name and nothing else."""
        source = self.source
        while True:
            ahead = source.ahead(_MAX_HEAD)
            head, closed, _ = ahead.partition(_SEP)
            begun = head if closed else head[: self.marks.tag_end.partial_match_start(head, 0)]
            if "<|" in begun or "\n" in begun:
                return None
            if closed:
                break
            if not source.more(_MAX_HEAD):
                return None
            yield
        part = head.split()[0] if head.strip() else ""
        closes = mark == _CLOSE
        if part not in _NAMES or (closes and head.strip() != part):
            return None
        source.at += len(head) + len(_SEP)
        named = {} if closes else _attributes(head)[0]
        key = named.get("tool" if part == _CALL else "key", "")
        return self.make_tag(f"{mark}{head}{_SEP}", part, closes=closes, key=key)


class _Call(NamedCall):
    """A call whose values have declared types."""

    _head = ""  # the malformed rest of a call's tag

    def _is_end(self, tag: Tag, writer: ArgumentsWriter | None) -> bool:
        return tag.head not in ("argument", "json") if tag.closes else tag.head != "argument"

    def _value_tag(self, tag: Tag, writer: ArgumentsWriter) -> tuple[str, str, object]:
        named, noise = _attributes(tag.text.removeprefix(_OPEN).removesuffix(_SEP))
        if noise or not named.get("key"):
            self._between(noise)
            if "key" not in named:
                self.sink.doubt(f"{tag.text} names no argument")
        key, kind = named.get("key", ""), named.get("type", "")
        schema = writer.schema(key)
        is_text = kind == "string" and writer.allows_text(key) and not writer.text_only(schema)
        typed = is_text or (writer.is_untyped(schema) and kind in _TYPES)
        return tag.head, key, {"type": kind} if typed else schema

    def _says_json(self, tag: Tag) -> bool:
        kind = _attributes(tag.text.removeprefix(_OPEN).removesuffix(_SEP))[0].get("type", "")
        return kind in _TYPES and kind != "string"

    def _read_name(self) -> Parse[tuple[str, str]]:
        head, end = yield from read_until(self.text.source, self.marks.tag_end, _MAX_HEAD)
        named, noise = _attributes(f"{_CALL}{head}")
        self._head = noise
        return named.get("tool", ""), head + end

    def arguments(self, name: str) -> Parse[bool]:
        """Read the values of a call, to its end; return whether it is complete. JSON is in a part of its own."""
        if self._head:
            self._between(self._head)
        self.sink.sure = self.sink.sure and bool(name)
        if (yield from self.text.comes(_JSON)):
            head, end = yield from read_until(self.text.source, self.marks.tag_end, _MAX_HEAD)
            self.text.emit(Markup(head + end))
        return (yield from super().arguments(name))


def _attributes(head: str) -> tuple[Mapping[str, str], str]:
    """The attributes in a tag after its name, unescaped, and any other text there."""
    part, _, rest = head.strip().partition(" ")
    pairs = [
        (key, next(filter(None, values), "").replace("&quot;", '"').replace("&amp;", "&"))
        for key, *values in _ATTRIBUTE.findall(rest)
    ]
    named = dict(pairs)
    repeated = [f'{key}="{value}"' for key, value in pairs if named[key] != value]
    noise = " ".join(filter(None, [_ATTRIBUTE.sub("", rest).strip(), *repeated]))
    odd = [key for key, value in named.items() if not _is_attribute(part, key, value)]
    return named, noise + "".join(f' {key}="{named.pop(key)}"' for key in odd)


def _is_attribute(part: str, key: str, value: str) -> bool:
    match part, key:
        case ("call", "tool") | ("argument", "key"):
            return True
        case "call", "index":
            return value.isdigit()
        case "argument", "type":
            return value in _TYPES
        case _:
            return False


# A thought is followed by a response, which may be empty; the message ends after the calls.
_WRITTEN: Final = msgspec.structs.replace(
    _CALLS, open="".join(_RESPONSE) + _CALLS.open, close=_CALLS.close + _MESSAGE_END
)

DIALECT = Dialect(
    name="kimi_k3",
    aliases=("kimi_k3_xtml",),
    model_families="Kimi K3",
    model_globs=("kimi-k3",),
    template_markers=("<|open|> + <|sep|>",),
    source="chat template of Kimi-K3",
    tokenizers=("kimi_k3",),
    stops=_STOPS,
    options=Options,
    prompt=_TURNS,
    calls=ReadBy(_WRITTEN, _reader),
)
