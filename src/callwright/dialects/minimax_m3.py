"""MiniMax M3: calls as nested elements, each tag behind the token `]<]minimax[>[`.

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="f">]<]minimax[>[<k>v]<]minimax[>[</k>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

The name of an element is the parameter's. Objects and lists go on in elements (`<item>` for each of a list); the schema
says which of the two, and what a text is. Read as vLLM's and llama.cpp's parsers do; prompts are checked against the
model's chat template.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from callwright.calls.toolset import Toolset
from callwright.conversation import AssistantTurn, Call, Conversation
from callwright.dialects._minimax import END, minimax_frame, with_system
from callwright.dialects.base import Dialect, PromptBy, ReadBy
from callwright.dialects.prompts.chat_messages import arguments_object
from callwright.dialects.prompts.template import ThinkingOptions
from callwright.dialects.readers.arguments_writer import ArgumentsWriter, unwritten
from callwright.dialects.readers.held_text import HeldText, Tag
from callwright.dialects.readers.parameters import ParameterReader, ParameterTags, attributes
from callwright.events import CallEnded, Markup, Problem
from callwright.prompt import Prompt, PromptBuilder
from callwright.schema.keywords import properties
from callwright.stream_reader import Markers, Parse, StreamReader, fast_path_of
from callwright.tolerant_json.codec import encode

__all__ = ["DIALECT"]


_MARK: Final = "]<]minimax[>["
_OPEN: Final = f"{_MARK}<tool_call>"
_CLOSE: Final = f"{_MARK}</tool_call>"
_TAGS: Final = ParameterTags(
    call=f"{_MARK}<invoke name=",
    call_end=f"{_MARK}</invoke>",
    parameter=f"{_MARK}<",
    parameter_end=f"{_MARK}</",
    blocks=((_OPEN, _CLOSE),),
)
_THOUGHT: Final = ("<mm:think>", "</mm:think>")
_MODES: Final = {
    "open": "enabled. You MUST think step by step before every response, including after receiving function/tool "
    "results.",
    "off": "disabled. Do not output any thinking process.",
    "model": "adaptive. You are encouraged to think for complex decision-making, multi-step reasoning, or when "
    "analyzing function/tool results.",
}
_SYSTEM: Final = (
    "Your model version is MiniMax-M3, developed by MiniMax. Knowledge cutoff: January 2026. Founded in early 2022, "
    "MiniMax is a global AI foundation model company committed to advancing the frontiers of AI towards AGI.\n\n"
    "<thinking_instructions>\nYou have a thinking capability that allows you to reason step by step before responding. "
    "When thinking is enabled, wrap your reasoning in <mm:think></mm:think> tags before your response. When thinking "
    "is disabled, begin your response directly after the </mm:think> prefix. When thinking is adaptive, decide on your "
    "own whether to think for the current turn.\nCurrent thinking mode: {mode}\n</thinking_instructions>"
)
_HOW_TO: Final = """To call tools, wrap all invocations in a single @<tool_call>@</tool_call> block. Parameter values \
containing nested objects or arrays are recursively expanded into XML elements. Example:

@<tool_call>
@<invoke name="tool-name-1">@<param-1>value-1@</param-1>@<param-2>@<item>@<key-a>val-a@</key-a>@<key-b>val-b@</key-b>\
@</item>@</param-2>@</invoke>
@<invoke name="tool-name-2">@<param-1>value-1@</param-1>@</invoke>
@</tool_call>""".replace("@", _MARK)
# An element's tag behind the mark is at most so long, and elements stand at most so deep in each other.
_MAX_TAG: Final = 300
_MAX_DEPTH: Final = 64
_CALL_TAGS: Final = ("invoke", "tool_call")
_CALL_OPENS: Final = "invoke name="
# A piece of a mark: a tag that was broken.
_PIECE = re.compile(r"\]<\]|<\]|\[>|minimax\[")
_TAG = re.compile(r"<(?P<end>/?)(?P<head>[^<>\n]+)>")
_MAY_BE_TAG = re.compile(r"(?:</?[^<>\n]*)?\Z")


class Options(ThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `open` begins the answer in reasoning, `off` behind its end."""


# --- prompts ---


def render(conversation: Conversation, options: Options) -> Prompt:
    """The whole prompt up to `]~b]ai`. System texts stand in the turn `developer`, behind the model's own."""
    words = f"]~!b[]~b]system\n{_SYSTEM.format(mode=_MODES[options.thinking])}{END}\n"
    return msgspec.structs.replace(_FRAME, begin=words).render(with_system(conversation), options)


def write(turn: AssistantTurn) -> str:
    """A turn as the model writes it: one block for all calls."""
    return _FRAME.write(turn)


def messages(conversation: Conversation, options: Options) -> list[dict[str, Any]]:
    """Chat messages with the tools in the system message, calls as the format's text."""
    return _FRAME.messages(conversation, options)


def _calls(out: PromptBuilder, calls: Sequence[Call], _: int) -> None:
    out.control(_OPEN).text("\n")
    for call in calls:
        out.control(_MARK).text(f'<invoke name="{call.name}">')
        for key, value in arguments_object(call).items():
            _put_element(out, key, value)
        out.control(_MARK).text("</invoke>\n")
    out.control(_CLOSE)


def _put_element(out: PromptBuilder, name: str, value: Any) -> None:
    out.control(_MARK).text(f"<{name}>")
    if isinstance(value, dict):
        for key, member in value.items():
            _put_element(out, key, member)
    elif isinstance(value, list):
        for item in value:
            _put_element(out, "item", item)
    else:
        out.text(value if isinstance(value, str) else json.dumps(value))
    out.control(_MARK).text(f"</{name}>")


_FRAME: Final = msgspec.structs.replace(
    minimax_frame(
        (_OPEN, _CLOSE, _MARK, *_THOUGHT), system="developer", how_to=_HOW_TO, thought=_THOUGHT, calls=_calls
    ),
    no_thought=_THOUGHT[1],
    thoughts="all",
)


# --- output ---


def parse(source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
    """Events of an output. `start`: `reasoning` when the prompt left `<mm:think>` open."""
    return _Reader(source, tools).read(start)


class _Reader(ParameterReader):
    """Prose, and calls whose parameters are elements."""

    def __init__(self, source: StreamReader, tools: Toolset) -> None:
        super().__init__(source, tools, _TAGS, thoughts=(_THOUGHT,), ends=(END,))
        self._marks = Markers(_MARK)
        self._index = 0
        self._certain = True  # nothing in the call was broken so that its values are a guess
        self._guesses = False  # a value was found to end before what was held: no other is held as long
        self._siblings: frozenset[str] = frozenset()  # the declared parameters of the call

    # --- calls ---

    def _arguments(self, index: int, name: str) -> Parse[None]:
        """See `ParameterReader`: the elements of a call, to its end."""
        source = self.source
        self._index, self._certain, self._guesses = index, True, False
        tool = self.tools.get(self.tools.resolve_name(name))
        self._siblings = frozenset(properties(tool.parameters if tool else None))
        yield from self._skip_blanks()
        if source.text.startswith("{", source.at):
            yield from self._object(index)
            return
        writer = ArgumentsWriter(self.emit, index, name, self.tools)
        given: dict[str, str] = {}
        last = ""
        while True:
            text, tag = yield from self._next_tag()
            self._between(text)
            if tag is None:
                whole = False
                break
            is_call = tag.head in _CALL_TAGS and not writer.declares(tag.head)
            if is_call or tag.head.startswith(_CALL_OPENS):
                whole = True
                if tag.closes and tag.head == "invoke":
                    self.emit(Markup(tag.text))
                else:
                    source.unread(tag.text)
                    self._repaired("the end of the call is missing")
                break
            self.emit(Markup(tag.text))
            if not tag.closes:
                last = tag.head
                if not (yield from self._parameter_of(tag, writer, given)):
                    whole = False
                    break
            elif text.strip() or tag.head != last:  # what opened it is missing, or broken
                self._doubt(f"{tag.text} closes nothing")
            else:
                self._repaired(f"{tag.text} twice")
        whole = whole and self._certain
        if whole:
            writer.close()
        self.emit(CallEnded(index, complete=whole))

    def _parameter_of(self, tag: Tag, writer: ArgumentsWriter, given: dict[str, str]) -> Parse[bool]:
        """Read one element of a call, behind its tag; False if the output ended in it. A text flows, the rest is held.

        `given` are the values before, by their names.
        """
        name = key = tag.head
        if name.startswith("parameter name="):  # as M2 writes it
            name, key = "parameter", attributes(name.partition("=")[2])[0]
        schema = writer.schema(key)
        pieces: list[str] = []
        if writer.text_only(schema) and not writer.is_untyped(schema) and key not in given:

            def put(text: str) -> None:
                writer.text(text)
                pieces.append(text)

            writer.key(key)
            writer.open_text()
            if not (yield from self._text(name, put)):
                return False
            writer.close_text()
            given[key] = encode("".join(pieces)).decode()
            return True
        value = yield from self._value_of((name,), schema, writer)
        if value is None:
            return False
        if key not in given:
            given[key] = value
            writer.key(key)
            writer.json(value)
        elif given[key] == value:
            self.emit(Problem("argument_dropped", f"{key!r} twice", call=self._index, text=value))
        else:
            self._certain = False
            self.emit(Problem("argument_repeated", f"{key!r} with another value", call=self._index, text=value))
        return True

    # --- tags, and what stands between them ---

    def _next_tag(self) -> Parse[tuple[str, Tag | None]]:
        """Read up to and past the next tag; answers the text before it. A mark without a tag is text."""
        source = self.source
        pieces: list[str] = []
        while True:
            text, mark = source.scan(self._marks)
            pieces.append(text)
            if mark:
                if tag := (yield from self._tag(mark)):
                    return "".join(pieces), tag
                pieces.append(mark)
            elif source.done:
                return "".join(pieces), None
            else:
                yield

    def _tag(self, mark: str) -> Parse[Tag | None]:
        """Read the tag behind a mark; None when there is none."""
        while True:
            ahead = self.source.ahead(_MAX_TAG)
            if found := _TAG.match(ahead):
                self.source.at += found.end()
                return Tag(mark + found[0], found["head"], bool(found["end"]))
            if not self.source.more(_MAX_TAG) or not _MAY_BE_TAG.match(ahead):
                return None
            yield

    def _between(self, text: str) -> None:
        """What stands between two tags: white space, or else a problem. A piece of a mark in it was a tag."""
        if not text.strip():
            self.markup(text)
            return
        self._certain = self._certain and not _PIECE.search(text)
        self.emit(Problem("arguments_trailing_text", "text between tags", call=self._index, text=text))

    def _repaired(self, detail: str) -> None:
        self.emit(Problem("markup_repaired", detail, call=self._index))

    def _doubt(self, detail: str) -> None:
        """Name what leaves open which values were meant."""
        self._certain = False
        self._repaired(detail)

    # --- texts ---

    def _text(self, name: str, put: Callable[[str], object], around: tuple[str, ...] = ()) -> Parse[bool]:
        """Read a text in pieces for `put`, to its end; False if the output ended in it. `around` are the elements that
        hold it.

        A tag behind its closer shows that it is one. What else holds a tag is held until it is known where it ends.
        """
        source = self.source
        written: list[str] = []

        def flow(text: str) -> None:
            written.append(text)
            put(text)

        fast_path = fast_path_of(self._marks, flow)
        while True:
            text, mark = source.scan(self._marks)
            if text:
                flow(text)
            if mark:
                if found := (yield from self._tag(mark)):
                    break
                flow(mark)
            elif source.done:
                return False
            else:
                source.set_fast_path(fast_path)
                yield
        held = HeldText(name, (*around, *_CALL_TAGS), self._siblings if not around else frozenset())
        tag: Tag | None = found
        text = ""
        while not held.is_over(text, tag, guess=self._guesses):
            text, tag = yield from self._next_tag()
        if tag is None and not held.closer:
            self.emit(Problem("incomplete_arguments", "a value that was cut", call=self._index, text=held.text))
            return False
        value, rest = held.value()
        if value:
            put(value)
            self.emit(Problem("markers_in_value", f"tags in {name!r}", call=self._index))
        if held.closer:
            self.emit(Markup(held.closer))
        else:
            self._missing(name, "".join(written))
        self._guesses = self._guesses or not held.closer or not rest.lstrip().startswith(_MARK)
        source.unread(rest)
        return True

    def _missing(self, name: str, text: str) -> None:
        """The closer of an element is missing. Where a broken one may be in its text, nobody knows where it ended."""
        detail = f"the end of {name!r} is missing"
        if _PIECE.search(text) or f"</{name}" in text:
            self._doubt(detail)
        else:
            self._repaired(detail)

    # --- values ---

    def _value_of(self, names: tuple[str, ...], schema: object, writer: ArgumentsWriter) -> Parse[str | None]:
        """The JSON of an element from behind its tag on; None when the output was cut in it. `names` are the elements
        around it and, last, its own.
        """
        if not _holds(writer, schema) or len(names) >= _MAX_DEPTH:
            pieces: list[str] = []
            whole = yield from self._text(names[-1], pieces.append, names[:-1])
            text = "".join(pieces)
            if not whole:
                writer.cut(text)
                return None
            value = writer.cast_to_schema(text, schema)
            self.markup(unwritten(text, value))
            return value
        source = self.source
        texts: list[str] = []
        members: list[tuple[str, str]] = []
        while True:
            text, tag = yield from self._next_tag()
            texts.append(text)
            if tag is None:
                writer.cut("".join((*texts, *(value for _, value in members))))
                return None
            if tag.head == names[-1] and tag.closes:
                self.markup(tag.text)
                return self._built(texts, members, schema, writer)
            closes_outer = tag.closes and tag.head in (*names, *_CALL_TAGS)
            if closes_outer or tag.head.startswith(_CALL_OPENS) or self._is_next(tag, names, schema, writer):
                source.unread(tag.text)
                self._missing(names[-1], "".join(texts))
                return self._built(texts, members, schema, writer)
            self.markup(tag.text)
            if tag.closes:
                self._doubt(f"{tag.text} closes nothing")
                continue
            member = yield from self._value_of((*names, tag.head), _member(writer, schema, tag.head), writer)
            if member is None:
                writer.cut("".join((*texts, *(value for _, value in members))))
                return None
            members.append((tag.head, member))

    @staticmethod
    def _is_next(tag: Tag, names: tuple[str, ...], schema: object, writer: ArgumentsWriter) -> bool:
        """Whether a tag opens what comes next to an element, not what stands in it."""
        if tag.closes or _takes(writer, schema, tag.head):
            return False
        return tag.head == names[-1] or (len(names) == 1 and writer.declares(tag.head))

    def _built(self, texts: list[str], members: list[tuple[str, str]], schema: object, writer: ArgumentsWriter) -> str:
        """The JSON of what stood in an element."""
        kinds, _ = writer.inside(schema, None)
        if not members:
            text = "".join(texts)
            if text.strip() or not kinds:
                value = writer.cast_to_schema(text, schema)
                self.markup(unwritten(text, value))
                return value
        for text in texts:
            self._between(text)
        listed = "array" in kinds and ("object" not in kinds or all(key == "item" for key, _ in members))
        if listed or (not kinds and all(key == "item" for key, _ in members)):
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
    """Whether elements may stand in a value of this schema."""
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
    template_markers=("]<]minimax[>[",),
    source="chat template of MiniMax-M3",
    stops=(END,),
    options=Options,
    prompt=PromptBy(render=render, messages=messages, write=write),
    calls=ReadBy(parse),
)
