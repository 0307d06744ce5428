"""Command 5: `<cofl:tool_calls>` around calls, whose parameters are elements with a type.

    <cofl:tool_calls><cofl:tool_call id="0" name="f"><cofl:value name="k" type="raw">v</cofl:value></cofl:tool_call>
    </cofl:tool_calls>

`raw` is unquoted text, `json` any JSON, `dict` and `list` hold elements; those of a list have no name. Attributes
escape `&`, `<`, `>` and `"`. Source: Cohere's own encoder and parser, `cohere-melody` 0.15.3. An earlier form of it,
`<cofl:tool_param name="k" string="true">`, is read, too. The prompt is that of Command 4 but for calls and results.
"""

import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.dialects._cohere import ANSWERS, CITATIONS, COMMAND, TEXT, THOUGHT, TURNS, Effort, read_citation
from callwright.dialects.base import Dialect, ReadBy
from callwright.dialects.prompts.options import OpenThinkingOptions
from callwright.dialects.prompts.turns import Result, Turns
from callwright.events import Markup
from callwright.layout.calls import CallLayout, TypedArguments
from callwright.prompt import PromptBuilder
from callwright.reading.arguments_writer import ArgumentsWriter, unwritten
from callwright.reading.tagged.calls import TaggedCalls
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.named import NamedCall, NamedLexer, NamedMarks, Tag
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Parse, read_until
from callwright.tolerant_json.codec import NotJsonError, decode, encode


class Options(OpenThinkingOptions, frozen=True, kw_only=True):
    """`thinking`: `open` begins the answer in reasoning, `off` with a closed, empty one, `model` leaves it to the
    model. `reasoning_effort`: `none` is `off`; the model knows no other level.
    """

    reasoning_effort: Effort | None = None

    def slots(self) -> Mapping[str, Any]:
        return {"open": False, "off": True} if self.reasoning_effort == "none" else {}


def _escaped(text: str) -> str:
    """A text in an element."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _in_attribute(text: str) -> str:
    return _escaped(text).replace('"', "&quot;")


_END: Final = "<|END_OF_TURN_TOKEN|>"
_CALLS: Final = CallLayout(
    open="<cofl:tool_calls>",
    begin='<cofl:tool_call id="${number}" name="${name}">',
    arguments=TypedArguments(
        begin='<cofl:value name="${key}" type="${type}">',
        item='<cofl:value type="${type}">',
        end="</cofl:value>",
        types={"string": "raw", "object": "dict", "array": "list", "": "json"},
        key=_in_attribute,
    ),
    end="</cofl:tool_call>",
    close="</cofl:tool_calls>",
)
_TAGS: Final = ParameterTags(
    call="<cofl:tool_call ",
    call_end="</cofl:tool_call>",
    parameter="<cofl:value ",
    parameter_end="</cofl:value>",
    blocks=(("<cofl:tool_calls>", "</cofl:tool_calls>"),),
)
_OPEN: Final = "<cofl:"
_CLOSE: Final = "</cofl:"
_RESULTS: Final = ("<cofl:tool_results>", "</cofl:tool_results>")
_CONTROLS: Final = (
    *(*TURNS, *THOUGHT, *TEXT, *_RESULTS, *_TAGS.blocks[0]),
    *("<cofl:tool_call ", "</cofl:tool_call>", "<cofl:value ", "</cofl:value>"),
    *("<cofl:tool_result ", "</cofl:tool_result>", "<cofl:tool_result_item ", "</cofl:tool_result_item>"),
)
_FORM: Final = NamedMarks((_OPEN, _CLOSE), re.compile(r"<cofl|</cofl|cofl:"), ("tool_call", "tool_calls"))
_VALUES: Final = ("value", "tool_param")
_NAMES: Final = frozenset(("tool_calls", "tool_call", *_VALUES))
_TYPES: Final = frozenset(("raw", "json", "dict", "list"))
# The attributes of a value, and of a call.
_ATTRIBUTES: Final = (("name", "string", "type"), ("id", "name"))
_ATTRIBUTE: Final = re.compile(r"""(?<!\S)([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))(?!\S)""")
# A second id of a call changes nothing of it.
_ONLY_IDS: Final = re.compile(r'(?:\s*id="[^"]*")*').fullmatch
# The rest of a tag after its name; quoted values may contain line breaks.
_REST: Final = r"""(?:[^<>\n"']|"[^"<>]*"|'[^'<>]*')*"""
_HEAD: Final = re.compile(rf"(?P<head>\w+)(?P<rest>(?:\s{_REST})?)>")
_MAY_BE_HEAD: Final = re.compile(rf"""\w*(?:\s{_REST}(?:"[^"<>]*|'[^'<>]*)?)?\Z""")
# Maximum length of the rest of a tag, and maximum depth of nested elements.
_MAX_HEAD: Final = 1_000
_MAX_DEPTH: Final = 64


# --- prompts ---


def _results(out: PromptBuilder, results: Sequence[Result]) -> None:
    out.control(_RESULTS[0])
    for result in results:
        out.control("<cofl:tool_result ").text(f'id="{result.number}" is_error="false">')
        out.control("<cofl:tool_result_item ").text('index="0">')
        # Cohere's encoder does not escape `<|` and `|>` here. Without a `<|` no text makes a token, so that one stays.
        out.text(_escaped(json.dumps({"content": result.text}, ensure_ascii=False)).replace("|&gt;", "|>"))
        out.control("</cofl:tool_result_item>", "</cofl:tool_result>")
    out.control(_RESULTS[1])


_TURNS: Final = Turns(
    controls=_CONTROLS,
    **{**COMMAND, "output": _results},
    written="«<|START_THINKING|>$thought<|END_THINKING|>»«<|START_TEXT|>$text<|END_TEXT|>»$calls",
    calls=_CALLS,
)


# --- output ---


def _reader(text: AnswerText) -> CallReader:
    """The reader of the calls in one answer."""
    return _Calls(_Call(text, _Lexer(text, _MARKS)))


# The tokens around a text, and marks of citations.
_AROUND: Final = (*ANSWERS, "<|END_TEXT|>", "<|END_RESPONSE|>", *CITATIONS)
_MARKS: Final = parameter_marks(
    _TAGS,
    thoughts=(THOUGHT,),
    ends=(_END,),
    also=_AROUND,
    tokens=(*_FORM.marks, _TAGS.end),
    structure=_AROUND,
    end_thoughts=ANSWERS,
)


class _Calls(TaggedCalls):
    """Calls in text between tokens of its own, without its marks of citations."""

    def structure(self, blanks: str, marker: str) -> Parse[bool]:
        """Read a token around a text, which is structure, or a mark of a citation, which is left out."""
        text = self.text
        if text.code.inside(blanks):
            return False
        if marker in CITATIONS:
            yield from read_citation(text, blanks, marker)
            return True
        text.emit(Markup(blanks + marker))
        if text.apart:
            yield from text.skip_blanks()
        return True

    def last_call(self, text: str) -> int | None:
        """Offset of the first call, which ends unterminated reasoning."""
        begins = [at for tag in (_TAGS.blocks[0][0], _TAGS.call) if (at := text.find(tag)) >= 0]
        return min(begins, default=len(text))


class _Lexer(NamedLexer):
    """Tags with attributes."""

    named = _FORM

    def read_named(self, mark: str) -> Parse[Tag | None]:
        """Read the tag after a mark; None, with nothing consumed, if there is no tag."""
        while True:
            ahead = self.source.ahead(_MAX_HEAD)
            if found := _HEAD.match(ahead):
                break
            if not self.source.more(_MAX_HEAD) or not _MAY_BE_HEAD.match(ahead):
                return None
            yield
        closes = mark == _CLOSE
        if found["head"] not in _NAMES or (closes and found["rest"].strip()):
            return None
        self.source.at += found.end()
        key = "" if closes else _attributes(mark + found[0])[0].get("name", "")
        return self.make_tag(mark + found[0], found["head"], closes=closes, key=key)

    def name_ahead(self, ahead: str) -> str:
        """The name of the call at the begin of a text, `""` if it has none of its own."""
        return _attributes(f"{_TAGS.call}{ahead.partition('>')[0]}>")[0].get("name", "")


class _Call(NamedCall):
    """A call whose values have declared types."""

    def __init__(self, text: AnswerText, lexer: NamedLexer) -> None:
        super().__init__(text, lexer)
        self._kind = ""  # type declared by the tag of the next value
        self._noise = ""  # unknown text in the tag of a call

    def _is_end(self, tag: Tag, writer: ArgumentsWriter | None) -> bool:
        return tag.head not in _VALUES

    def _value_tag(self, tag: Tag, writer: ArgumentsWriter) -> tuple[str, str, object]:
        named, noise = _attributes(tag.text)
        if noise:
            self._between(noise)
            self.sink.sure = False
        if "name" not in named:
            self.sink.doubt(f"{tag.text} names no parameter")
        key = named.get("name", "")
        self._kind = self._kind_of(tag, named)
        schema = writer.schema(key)
        is_text = self._kind == "raw" and (writer.is_untyped(schema) or writer.allows_text(key))
        return tag.head, key, {"type": "string"} if is_text and not writer.text_only(schema) else schema

    def _kind_of(self, tag: Tag, named: Mapping[str, str]) -> str:
        """The type that a tag declares for its value; a text by default, as in Cohere's parser."""
        if tag.head == "tool_param":
            return "json" if named.get("string") == "false" else "raw"
        kind = named.get("type", "raw")
        if kind not in _TYPES:
            self.sink.odd(f"{kind!r} is not a type of a value")
            return "raw"
        return kind

    def _read_name(self) -> Parse[tuple[str, str]]:
        head, end = yield from read_until(self.text.source, self.marks.tag_end, _MAX_HEAD)
        named, self._noise = _attributes(f"{_TAGS.call}{head}>")
        return named.get("name", ""), head + end

    def arguments(self, name: str) -> Parse[bool]:
        """Read the values of a call to its end; return whether it is complete."""
        if self._noise:
            self._between(self._noise)
        self.sink.sure = self.sink.sure and bool(name) and _ONLY_IDS(self._noise) is not None
        return (yield from super().arguments(name))

    def _value_of(self, names: tuple[str, ...], schema: object, writer: ArgumentsWriter) -> Parse[str | None]:
        """The JSON of a value. Elements of type `dict` and `list` hold elements."""
        kind = self._kind
        if kind in ("dict", "list") and len(names) < _MAX_DEPTH:
            return (yield from self._elements(names, schema, writer, listed=kind == "list"))
        if kind != "json":
            return (yield from super()._value_of(names, schema, writer))
        text = yield from self._read_held(names)
        if text is None:
            return None
        if (value := _json(text)) is None or (value[0] not in '"n' and writer.text_only(schema)):
            value = writer.cast_to_schema(text, schema)
            if value[0] in '"{[' and value != text.strip():
                self.sink.odd("a value is not the JSON that its tag says", "json_repaired")
        self.text.markup(unwritten(text, value))
        return value

    def _elements(
        self, names: tuple[str, ...], schema: object, writer: ArgumentsWriter, *, listed: bool
    ) -> Parse[str | None]:
        """The JSON of an object or a list, read from after its tag; None if the output was cut in it."""
        members: dict[str, str] = {}
        items: list[str] = []
        said: list[str] = []
        while True:
            text, tag = yield from self.lexer.next_tag()
            said.append(text)
            if tag is None:
                writer.cut("".join((*said, *items, *members.values())))
                return None
            if tag.closes and tag.head == names[-1]:
                self.text.markup(tag.text)
                break
            if self._is_end(tag, writer):
                self.text.source.unread(tag.text)
                self.sink.doubt(f"the end of {names[-1]!r} is missing")
                break
            self.text.emit(Markup(tag.text))
            if tag.closes:
                self.sink.doubt(f"{tag.text} closes nothing")
                continue
            key, value = yield from self._element(tag, names, schema, writer, listed=listed)
            if value is None:
                writer.cut("".join((*items, *members.values())))
                return None
            if listed:
                items.append(value)
            elif members.setdefault(key, value) != value:
                self.sink.doubt(f"{key!r} is given twice, with different values")
        written = "".join(said)
        if written.strip() and not (items or members) and (whole := _json(written)) is not None:
            self.sink.odd("a value is JSON instead of elements")
            if (whole[0] == "[") == listed and whole[0] in "[{":
                return whole
        for text in said:
            self._between(text)
        if listed:
            return f"[{','.join(items)}]"
        return f"{{{','.join(f'{encode(key).decode()}:{value}' for key, value in members.items())}}}"

    def _element(
        self, tag: Tag, names: tuple[str, ...], schema: object, writer: ArgumentsWriter, *, listed: bool
    ) -> Parse[tuple[str, str | None]]:
        """The name of an element, whose tag was just read, and its JSON; None when the output was cut in it."""
        named, noise = _attributes(tag.text)
        key = named.get("name")
        if noise or (key is None) != listed:
            self.sink.doubt(f"{tag.text} is not an element of a {'list' if listed else 'dict'}")
        inner = writer.inside(schema, None if listed else key or "")[1]
        self._kind = self._kind_of(tag, named)
        if self._kind == "raw" and (writer.is_untyped(inner) or _takes_text(inner)):
            inner = {"type": "string"}
        return key or "", (yield from self._value_of((*names, tag.head), inner, writer))


def _takes_text(schema: object) -> bool:
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    return kinds == "string" or (isinstance(kinds, list) and "string" in kinds)


def _json(text: str) -> str | None:
    """A text as it is if it is JSON; nothing is null, as Cohere's parser has it."""
    try:
        decode(text)
    except NotJsonError:
        return "null" if not text.strip() else None
    return text.strip()


def _attributes(tag: str) -> tuple[Mapping[str, str], str]:
    """The attributes of a tag, unescaped, and any other text in it."""
    rest = tag.partition(" ")[2].removesuffix(">").strip()
    pairs = [(key, html.unescape(next(filter(None, values), ""))) for key, *values in _ATTRIBUTE.findall(rest)]
    named = dict(pairs)
    known, twice = _ATTRIBUTES[tag.startswith(_TAGS.call)], {key for key, value in pairs if named[key] != value}
    odd = [f'{key}="{value}"' for key, value in pairs if key not in known or key in twice]
    return named, " ".join(filter(None, [_ATTRIBUTE.sub("", rest).strip(), *odd]))


DIALECT = Dialect(
    name="cohere_command5",
    aliases=("command5", "cohere_cofl"),
    model_families="Command 5",
    model_globs=("command-5*",),
    template_markers=("<cofl:tool_calls>",),
    source="Cohere's own encoder and parser, cohere-melody 0.15.3: Command 5",
    tokenizers=("cohere",),
    stops=(_END,),
    options=Options,
    prompt=_TURNS,
    calls=ReadBy(_CALLS, _reader),
)
