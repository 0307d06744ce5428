r"""Parses calls as a name with elements for keys and values: `f<arg_key>k</arg_key><arg_value>v</arg_value>`.

Tags and values are read as in the module `calls`. The differences: the name is bare text, a key has its own element,
and a call may be, or contain, a JSON object instead. Line breaks between elements belong to the format, also those that
models write as a literal `\n`.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from callwright.events import Markup, Problem
from callwright.layout.calls import CallLayout
from callwright.layout.key_values import KeyValueTags
from callwright.reading.arguments_writer import ArgumentsWriter
from callwright.reading.json.block import read_json_block
from callwright.reading.tagged.call import TaggedCall
from callwright.reading.tagged.calls import TaggedCalls
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.literals import broken_tag
from callwright.reading.tagged.marks import parameter_marks
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.tagged.values import TaggedValue
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.reading.text.marks import all_ends
from callwright.streaming.reader import Markers, Parse, read_until
from callwright.tolerant_json.passthrough import JsonTerminators

# The greatest length of a name or a key, in characters.
_MAX_HEAD: Final = 1_000
_MAX_VALUE: Final = 4_194_304
_GAP = re.compile(r"(?:\s|\\n|(?!))*+")
_GAP_SO_FAR = re.compile(r"(?:\s|\\n|(?!))*+(?:\\\Z)?")
_LONE_END = re.compile(r"\A>\s*+(?=\{|\Z)")
_NAME = re.compile(r"""\s*+(?P<name>[^\s<>{}()\[\]"'`\\|,;:]++(?:[ ][^\s<>{}()\[\]"'`\\|,;:]++|(?!))*+)""")


class KeyValueForm(Struct, frozen=True):
    """The calls of one format; `thoughts` are the tags around reasoning, `ends` stop tokens."""

    tags: KeyValueTags
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    ends: tuple[str, ...] = ()

    @property
    def layout(self) -> CallLayout:
        """How calls are written."""
        return self.tags.layout

    def reader(self, text: AnswerText) -> CallReader:
        """The reader of the calls in one answer."""
        return KeyValueCalls(text, self.tags, thoughts=self.thoughts, ends=self.ends)


# The following is the same for each answer of a format.


@lru_cache(maxsize=256)
def _parameter_tags(tags: KeyValueTags) -> ParameterTags:
    return ParameterTags(
        call=tags.call,
        call_end=tags.call_end,
        parameter=tags.key,
        parameter_end=tags.value_end,
        blocks=tags.blocks,
        gap=tags.gaps[0],
        end=tags.key_end,
        inner=tuple(filter(None, (tags.value, *tags.types, tags.name_end))),
    )


class _LookedFor(NamedTuple):
    """Search patterns for a reader of elements; `over` ends a call, `follows` may follow its name."""

    over: tuple[str, ...]
    follows: tuple[str, ...]
    behind_name: Markers
    behind_key: Markers
    before_value: Markers
    stops: JsonTerminators


@lru_cache(maxsize=256)
def _looked_for(tags: KeyValueTags, ends: tuple[str, ...]) -> _LookedFor:
    closers = (tags.call_end, *[end for _, end in tags.blocks], *all_ends(ends))
    over = (tags.call, *closers)
    follows = ("{", tags.key, *filter(None, (tags.name_end,)), *closers)
    return _LookedFor(
        over=over,
        follows=follows,
        behind_name=Markers(*follows, tags.value_end, tags.call),
        behind_key=Markers(tags.key_end, *tags.values, tags.value_end, tags.key, *over),
        before_value=Markers(*tags.values, tags.value_end, tags.key, *over),
        stops=JsonTerminators(*over, then=over, ends=all_ends(ends)),
    )


class KeyValueLexer(TagLexer):
    """Reads the tags of elements: the name of a call is bare text, and a key has its own element."""

    def __init__(
        self,
        text: AnswerText,
        elements: KeyValueTags,
        thoughts: tuple[tuple[str, str], ...],
        ends: tuple[str, ...],
        also: tuple[str, ...],
    ) -> None:
        super().__init__(text, parameter_marks(_parameter_tags(elements), thoughts, ends, also))
        self.elements = elements
        self.find = _looked_for(elements, ends)
        self._in_order: tuple[Collection[str], Sequence[str]] = ((), ())  # the parameters of a tool, sorted

    def names_call(self) -> Parse[bool]:
        """Whether the tag is followed by a name and text that belongs to a call, or by a JSON object."""
        source = self.source
        while True:
            ahead = source.ahead(_MAX_HEAD)
            found = _NAME.match(ahead)
            if found is None:
                begin = ahead.lstrip()
                if begin not in ("", "[") or not source.more(_MAX_HEAD):
                    return begin.startswith(("{", "[{"))
            else:
                known = self.text.tools.resolve_name(found["name"]) in self.text.tools
                # GLM 5.3 Flash writes `f>{"k": "v"}`, too.
                behind = _LONE_END.sub("", self.behind_blanks(ahead[found.end() :]))
                if known and behind.startswith(self.elements.value_end):
                    return True
                if behind.startswith(tuple(self.find.follows)):
                    return known or " " not in found["name"] or bool(self.name_in(found["name"]))
                waits = any(literal.startswith(behind) for literal in self.find.behind_name.literals)
                if not waits or not source.more(_MAX_HEAD):
                    return known and ((waits and source.ended) or behind.startswith(self.form.call))
            yield

    def name_in(self, text: str) -> str:
        """The tool's name that a text begins with, before other words, or `""`."""
        first = next(iter(text.split()), "")
        return first if len(first) < len(text) and first in self.text.tools else ""

    def key_ahead(self, ahead: str) -> str | None:
        """The name of the parameter at the beginning of a text, `""` without one, None if more text is needed."""
        head, closed, _ = ahead.partition(self.form.end)
        if not closed:
            head = head[: self.marks.tag_end.partial_match_start(head, 0)]
        name = head.strip()
        if ("\n" in name or "<" in name) and not (name in self.declared if closed else self._begins_key(name)):
            return ""
        return name if closed else None

    def _begins_key(self, text: str) -> bool:
        """Whether a parameter of the tool begins so."""
        declared, keys = self._in_order
        if declared is not self.declared:  # sorted once: a tool may have thousands of parameters, and each tag may ask
            keys = sorted(self.declared)
            self._in_order = self.declared, keys
        at = bisect_left(keys, text)
        return at < len(keys) and keys[at].startswith(text)

    def name_ahead(self, ahead: str) -> str:
        """The name of the call at the beginning of a text, `""` if it has none of its own."""
        found = _NAME.match(ahead)
        return found["name"] if found else ""

    def gap(self) -> Parse[str]:
        """Read the text allowed between elements."""
        gap, source = "", self.source
        while True:
            found = _GAP.match(source.text, source.at)
            assert found is not None  # it matches always
            gap += source.take(found.end())
            if source.ended or source.text[source.at :] not in ("", "\\"):
                return gap
            yield

    @staticmethod
    def behind_blanks(text: str) -> str:
        """A text without the blanks allowed between elements."""
        found = _GAP_SO_FAR.match(text)
        return text[found.end() :] if found else text


class KeyValueCall(TaggedCall):
    """Reads one call of elements."""

    lexer: KeyValueLexer
    _opened_again = False  # the opening tag of the value was written twice

    def _read_name(self) -> Parse[tuple[str, str]]:
        head, marker = yield from read_until(self.text.source, self.lexer.find.behind_name, _MAX_HEAD)
        if marker and marker == self.lexer.elements.name_end:
            head += marker
        else:
            cut = len(head) if marker else self.lexer.find.behind_name.partial_match_start(head, 0)
            self.text.source.unread(head[cut:] + marker)
            head = head[:cut]
        name = head.removesuffix(self.lexer.elements.name_end).replace("\\n", "\n").strip().removesuffix(">")
        if self.text.tools.resolve_name(name) not in self.text.tools and (first := self.lexer.name_in(name)):
            text = name[len(first) :]
            self.text.emit(Problem("arguments_trailing_text", "text after the name", call=self.text.calls, text=text))
            self.misplaced = True
            return first, head
        return name, head

    def arguments(self, name: str) -> Parse[bool]:
        """Read the parameters of a call, to its end; returns whether it is complete."""
        self.text.markup((yield from self.lexer.gap()))
        stray = self.lexer.elements.value_end
        # GLM 5.2 writes it after the name of a call without arguments (fw-ai-external/python-sdk#119).
        if (yield from self.text.comes(stray)):
            self.sink.odd(f"{stray} closes nothing")
            self.text.emit(Markup(self.text.take(stray)))
        return (yield from super().arguments(name))

    def _read_key(self) -> Parse[tuple[str, Mapping[str, str]] | None]:
        """The name of a parameter. Some models write `<arg_key>k=v</arg_value>`."""
        tags, source = self.lexer.elements, self.text.source
        yield from self._skip_again(tags.key)
        self._opened_again = False
        written, marker = yield from read_until(source, self.lexer.find.behind_key, _MAX_HEAD)
        key, equals, text = written.partition("=")
        if marker == tags.key_end and self.lexer.key_ahead(written + marker):
            self.text.emit(Markup(written + marker))
            if not tags.value:
                yield from self._skip_again(marker)
                return written.strip(), {}
            rest = yield from self._up_to_value()
            if rest is None:
                return None if source.done else ("", {})
            return written.strip(), rest
        if marker == tags.value and self.lexer.key_ahead(written + tags.key_end):
            self.sink.odd(f"{tags.key_end} is missing")
            self.text.emit(Markup(written + marker))
            return written.strip(), {}
        if marker == tags.value_end and equals and self.lexer.key_ahead(key + tags.key_end):
            self.sink.odd(f"the key {key.strip()!r} and its value are in one element")
            self.text.emit(Markup(key + equals))
            source.unread(text + marker)
            return key.strip(), {}
        source.unread(written + marker)
        if not marker and source.ended and len(written) < _MAX_HEAD:
            self.text.markup(source.take(len(source.text)))
            return None
        return "", {}

    def _up_to_value(self) -> Parse[Mapping[str, str] | None]:
        """Read the text between a key and its value; returns the attributes of the value, None without a value.

        The opening tag of the value may be missing.
        """
        tags, source = self.lexer.elements, self.text.source
        rest: dict[str, str] = {}
        yield from self._skip_again(tags.key_end)
        written = yield from self.lexer.gap()
        if tags.types and (yield from self.text.comes(tags.types[0])):
            kind, end = yield from read_until(source, Markers(tags.types[1]), _MAX_HEAD)
            rest["type"] = kind.removeprefix(tags.types[0]).strip()
            written += kind + end + (yield from self.lexer.gap())
        text, marker = yield from read_until(source, self.lexer.find.before_value, _MAX_VALUE)
        if marker == tags.value:
            if text:
                self.sink.odd("text between a key and its value", "arguments_trailing_text", text)
                self.sink.sure = self.sink.sure and not broken_tag(self.form, text)
            self.text.markup(written)
            self.text.emit(Markup(marker))
            yield from self._skip_again(marker)
            return rest
        source.unread(text + marker)
        self.text.markup(written)
        if not marker and source.ended:
            self.text.markup(source.take(len(source.text)))
            return None
        if marker != tags.value_end and not text.strip():
            return None
        self.sink.odd(f"{tags.value} is missing")
        self.sink.sure = self.sink.sure and not broken_tag(self.form, text)
        return rest

    def _skip_again(self, tag: str) -> Parse[None]:
        """Read a tag again, if it was written twice."""
        self._opened_again = yield from self.text.comes(tag)
        if self._opened_again:
            self.sink.odd(f"{tag} is repeated")
            self.text.emit(Markup(self.text.take(tag)))

    def _read_value(
        self, key: str, writer: ArgumentsWriter | None, is_sibling: Callable[[str], bool]
    ) -> Parse[TaggedValue]:
        value = yield from super()._read_value(key, writer, is_sibling)
        if self._opened_again and value.odd:  # closed twice, too: the value may show an element
            self.sink.sure = False
        return value


class KeyValueCalls(TaggedCalls):
    """Finds calls of key/value elements.

    `also`: literals that may open a call in another spelling of the tags; a dialect's subclass defines them in
    `_spelling`.
    """

    lexer: KeyValueLexer

    def __init__(
        self,
        text: AnswerText,
        tags: KeyValueTags = KeyValueTags(),  # noqa: B008  # frozen
        *,
        thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),),
        ends: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
    ) -> None:
        super().__init__(KeyValueCall(text, KeyValueLexer(text, tags, thoughts, ends, also)))
        self._also = also

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read from a tag: calls, also in another spelling, the rest of a block, or a mention."""
        if tag in self._also:
            yield from self._in_other_tags(blanks, tag)
        elif tag != self.form.call:
            return (yield from super().marked(blanks, tag))
        elif (yield from self.lexer.names_call()) and not (yield from self._mentioned(blanks)):
            self.text.markup(blanks)
            yield from self._calls(tag)
        else:
            opening = blanks + tag + (yield from self.text.held_blanks())
            if (yield from self.text.comes(self.form.call_end)):
                self.text.empty_call(opening, self.form.call_end)
            elif (yield from self.text.comes(tag)):
                self.text.emit(Markup(opening))
            else:
                yield from self._becomes_text(blanks, tag, opening[len(blanks + tag) :])
        return None

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether a block continues with a call, or a call with a name, in any spelling."""
        if tag not in self._also:
            return (yield from super().may_begin_call(tag))
        spelled = yield from self._spelling(tag)
        if spelled is None:
            return False
        rest, tags = spelled
        self.text.take(rest)
        begins = yield from KeyValueCalls(self.text, tags).may_begin_call(tag + rest)
        self.text.source.unread(rest)
        return begins

    def _spelling(self, opener: str) -> Parse[tuple[str, KeyValueTags] | None]:
        """The rest of an opening tag that begins with one of `also`, and the tags of that spelling; nothing is read."""
        yield from ()
        return None

    def _in_other_tags(self, blanks: str, opener: str) -> Parse[None]:
        """A call in another spelling, with a reader of that."""
        spelled = yield from self._spelling(opener)
        if spelled is None:
            self.text.emit(self.text.say(blanks + opener))
            return
        rest, tags = spelled
        self.text.take(rest)
        other = KeyValueCalls(self.text, tags, ends=self.marks.ends)
        yield from other.marked(blanks, opener + rest)
        other.end()

    def _mentioned(self, blanks: str) -> Parse[bool]:
        """Whether a call of an unknown tool without arguments is in the middle of a line: then it is only mentioned."""
        source, end = self.text.source, self.form.call_end
        while True:
            ahead = source.ahead(_MAX_HEAD)
            name, closed, behind = ahead.partition(end)
            if closed and (self.text.at_line_start(blanks) or self.text.tools.resolve_name(name) in self.text.tools):
                return False
            if any(mark in name for mark in self.lexer.find.follows if mark != end):
                return False
            if closed and behind:
                return behind[0] not in "\n<"
            if not source.more(_MAX_HEAD):
                return False
            yield

    def _call_follows(self) -> Parse[bool]:
        if not (yield from self.text.comes(self.form.call)):
            return False
        self.text.take(self.form.call)
        follows = yield from self.lexer.names_call()
        self.text.source.unread(self.form.call)
        return follows

    def _call(self) -> Parse[None]:
        yield from self.text.skip_blanks()
        if not self.text.source.text.startswith(("{", "["), self.text.source.at):
            yield from super()._call()
        else:
            yield from read_json_block(self.text, "", self.lexer.find.stops, (self.form.call_end,))
