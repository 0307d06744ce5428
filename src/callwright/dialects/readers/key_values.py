r"""Parses calls as a name with elements for keys and values: `f<arg_key>k</arg_key><arg_value>v</arg_value>`.

Tags and values are read as in `parameters`. What differs: the name is bare text, a key has its own element, and a call
may be, or hold, a JSON object instead. Line breaks between elements belong to the format, also those that models write
as a literal `\n`.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from callwright.calls.toolset import Toolset
from callwright.dialects.call_layout import CallLayout
from callwright.dialects.prompts.key_value_tags import KeyValueTags
from callwright.dialects.readers.marked_block import read_json_block
from callwright.dialects.readers.marks import all_ends
from callwright.dialects.readers.parameters import ParameterReader
from callwright.dialects.readers.tag_literals import broken_tag
from callwright.dialects.readers.tagged_values import ParameterTags
from callwright.events import Markup, Problem
from callwright.stream_reader import Markers, Parse, StreamReader, read_until
from callwright.tolerant_json.passthrough import JsonTerminators

__all__ = ["KeyValueForm", "KeyValueReader"]

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

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
        """See `CallFormat`."""
        return KeyValueReader(source, tools, self.tags, thoughts=self.thoughts, ends=self.ends).read(start)


# What follows is the same for each answer of a format.


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
    """What a reader of elements looks for; `over` ends a call, `follows` may stand behind its name."""

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
        behind_name=Markers(*follows, tags.call),
        behind_key=Markers(tags.key_end, *tags.values, tags.value_end, tags.key, *over),
        before_value=Markers(*tags.values, tags.value_end, tags.key, *over),
        stops=JsonTerminators(*over, then=over, ends=all_ends(ends)),
    )


class KeyValueReader(ParameterReader):
    """Parses prose with calls of key/value elements.

    `also`: literals that may open a call in another spelling of the tags; a dialect's subclass says which, in
    `_spelling`.
    """

    def __init__(
        self,
        source: StreamReader,
        tools: Toolset,
        tags: KeyValueTags = KeyValueTags(),  # noqa: B008  # frozen
        *,
        thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),),
        ends: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
    ) -> None:
        super().__init__(source, tools, _parameter_tags(tags), thoughts=thoughts, ends=ends, also=also)
        looked_for = _looked_for(tags, ends)
        self._also = also
        self._elements = tags
        self._over = looked_for.over
        self._follows = looked_for.follows
        self._behind_name = looked_for.behind_name
        self._behind_key = looked_for.behind_key
        self._before_value = looked_for.before_value
        self._stops = looked_for.stops
        self._in_order: list[str] | None = None  # the parameters of the tool, once they are asked for

    # --- where a call begins ---

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        if tag in self._also:
            yield from self._in_other_tags(blanks, tag)
        elif tag != self._form.call:
            yield from super()._marked(blanks, tag)
        elif (yield from self._names_call()) and not (yield from self._mentioned(blanks)):
            self.markup(blanks)
            yield from self._calls(tag)
        else:
            opening = blanks + tag + (yield from self.held_blanks())
            if (yield from self.comes(self._form.call_end)):
                self.empty_call(opening, self._form.call_end)
            elif (yield from self.comes(tag)):
                self.emit(Markup(opening))
            else:
                yield from self._becomes_text(blanks, tag, opening[len(blanks + tag) :])

    def _may_begin_call(self, tag: str) -> Parse[bool]:
        if tag not in self._also:
            return (yield from super()._may_begin_call(tag))
        spelled = yield from self._spelling(tag)
        if spelled is None:
            return False
        rest, tags = spelled
        self.source.take(self.source.at + len(rest))
        other = KeyValueReader(self.source, self.tools, tags)
        begins = yield from other._may_begin_call(tag + rest)
        other.let_go()
        self.source.unread(rest)
        return begins

    def _spelling(self, opener: str) -> Parse[tuple[str, KeyValueTags] | None]:
        """The rest of an opening tag that begins with one of `also`, and the tags of that spelling; nothing is read."""
        yield from ()
        return None

    def _in_other_tags(self, blanks: str, opener: str) -> Parse[None]:
        """A call in another spelling: a reader for that spelling takes over."""
        spelled = yield from self._spelling(opener)
        if spelled is None:
            self.emit(self.say(blanks + opener))
            return
        rest, tags = spelled
        self.source.take(self.source.at + len(rest))
        other = KeyValueReader(self.source, self.tools, tags, ends=self._ends)
        other.go_on_from(self)
        yield from other._marked(blanks, opener + rest)
        other._missing_ends()
        self.go_on_from(other)
        other.let_go()

    def _names_call(self) -> Parse[bool]:
        """See `ParameterReader`: a name and what belongs to a call follow the tag, or a JSON object."""
        source = self.source
        while True:
            ahead = source.ahead(_MAX_HEAD)
            found = _NAME.match(ahead)
            if found is None:
                begin = ahead.lstrip()
                if begin not in ("", "[") or not source.more(_MAX_HEAD):
                    return begin.startswith(("{", "[{"))
            else:
                known = self.tools.resolve_name(found["name"]) in self.tools
                # GLM 5.3 Flash writes `f>{"k": "v"}`, too.
                behind = _LONE_END.sub("", self._behind_blanks(ahead[found.end() :]))
                if behind.startswith(tuple(self._follows)):
                    return known or " " not in found["name"] or bool(self._name_in(found["name"]))
                waits = any(literal.startswith(behind) for literal in (*self._follows, self._form.call))
                if not waits or not source.more(_MAX_HEAD):
                    return known and ((waits and source.ended) or behind.startswith(self._form.call))
            yield

    def _mentioned(self, blanks: str) -> Parse[bool]:
        """Whether a call of an unknown tool without arguments stands in the middle of a line: it is talked about, not
        made.
        """
        source, end = self.source, self._form.call_end
        while True:
            ahead = source.ahead(_MAX_HEAD)
            name, closed, behind = ahead.partition(end)
            if closed and (self.at_line_start(blanks) or self.tools.resolve_name(name) in self.tools):
                return False
            if any(mark in name for mark in self._follows if mark != end):
                return False
            if closed and behind:
                return behind[0] not in "\n<"
            if not source.more(_MAX_HEAD):
                return False
            yield

    def _call_follows(self) -> Parse[bool]:
        if not (yield from self.comes(self._form.call)):
            return False
        self.source.take(self.source.at + len(self._form.call))
        follows = yield from self._names_call()
        self.source.unread(self._form.call)
        return follows

    # --- calls ---

    def _call(self) -> Parse[None]:
        yield from self.skip_blanks()
        if not self.source.text.startswith(("{", "["), self.source.at):
            yield from super()._call()
            return
        yield from read_json_block(self, "", self._stops, (self._form.call_end,))

    def _read_name(self) -> Parse[tuple[str, str]]:
        head, marker = yield from read_until(self.source, self._behind_name, _MAX_HEAD)
        if marker and marker == self._elements.name_end:
            head += marker
        else:
            cut = len(head) if marker else self._behind_name.partial_match_start(head, 0)
            self.source.unread(head[cut:] + marker)
            head = head[:cut]
        name = head.removesuffix(self._elements.name_end).replace("\\n", "\n").strip().removesuffix(">")
        if self.tools.resolve_name(name) not in self.tools and (first := self._name_in(name)):
            text = name[len(first) :]
            self.emit(Problem("arguments_trailing_text", "text behind the name", call=self.calls, text=text))
            self._misplaced = True
            return first, head
        return name, head

    def _name_in(self, text: str) -> str:
        """The tool's name that a text begins with, before other words; `""` if there is none."""
        first = next(iter(text.split()), "")
        return first if len(first) < len(text) and first in self.tools else ""

    def _arguments(self, name: str) -> Parse[None]:
        self._in_order = None
        self.markup((yield from self._gap()))
        yield from super()._arguments(name)

    # --- keys ---

    def _read_key(self) -> Parse[tuple[str, Mapping[str, str]] | None]:
        """See `ParameterReader`. Some models write `<arg_key>k=v</arg_value>`."""
        tags, source = self._elements, self.source
        written, marker = yield from read_until(source, self._behind_key, _MAX_HEAD)
        key, equals, text = written.partition("=")
        if marker == tags.key_end and self._key_ahead(written + marker):
            self.emit(Markup(written + marker))
            rest = (yield from self._up_to_value()) if tags.value else {}
            if rest is None:
                return None if source.done else ("", {})
            return written.strip(), rest
        if marker == tags.value and self._key_ahead(written + tags.key_end):
            self._sink.odd(f"{tags.key_end} is missing")
            self.emit(Markup(written + marker))
            return written.strip(), {}
        if marker == tags.value_end and equals and self._key_ahead(key + tags.key_end):
            self._sink.odd(f"the key {key.strip()!r} and its value stand in one element")
            self.emit(Markup(key + equals))
            source.unread(text + marker)
            return key.strip(), {}
        source.unread(written + marker)
        if not marker and source.ended and len(written) < _MAX_HEAD:
            self.markup(source.take(len(source.text)))
            return None
        return "", {}

    def _up_to_value(self) -> Parse[Mapping[str, str] | None]:
        """Read what stands between a key and its value; answers the attributes of the value, None if there is none.

        The opening tag of the value may be missing.
        """
        tags, source = self._elements, self.source
        rest: dict[str, str] = {}
        written = yield from self._gap()
        if tags.types and (yield from self.comes(tags.types[0])):
            kind, end = yield from read_until(source, Markers(tags.types[1]), _MAX_HEAD)
            rest["type"] = kind.removeprefix(tags.types[0]).strip()
            written += kind + end + (yield from self._gap())
        text, marker = yield from read_until(source, self._before_value, _MAX_VALUE)
        if marker == tags.value:
            if text:
                self._sink.odd("text between a key and its value", "arguments_trailing_text", text)
                self._sink.sure = self._sink.sure and not broken_tag(self._form, text)
            self.markup(written)
            self.emit(Markup(marker))
            return rest
        source.unread(text + marker)
        self.markup(written)
        if not marker and source.ended:
            self.markup(source.take(len(source.text)))
            return None
        if marker != tags.value_end and not text.strip():
            return None
        self._sink.odd(f"{tags.value} is missing")
        self._sink.sure = self._sink.sure and not broken_tag(self._form, text)
        return rest

    def _key_ahead(self, ahead: str) -> str | None:
        head, closed, _ = ahead.partition(self._form.end)
        if not closed:
            head = head[: self._tag_end.partial_match_start(head, 0)]
        name = head.strip()
        if ("\n" in name or "<" in name) and not (name in self._declared if closed else self._begins_key(name)):
            return ""
        return name if closed else None

    def _begins_key(self, text: str) -> bool:
        """Whether a parameter of the tool begins so."""
        keys = self._in_order
        if keys is None:  # sorted once: a tool may have thousands of parameters, and each tag may ask
            keys = self._in_order = sorted(self._declared)
        at = bisect_left(keys, text)
        return at < len(keys) and keys[at].startswith(text)

    def _name_ahead(self, ahead: str) -> str:
        found = _NAME.match(ahead)
        return found["name"] if found else ""

    def gap(self) -> Parse[str]:
        """See `TagReader`."""
        return (yield from self._gap())

    def _gap(self) -> Parse[str]:
        """Read what may stand between elements."""
        gap, source = "", self.source
        while True:
            found = _GAP.match(source.text, source.at)
            assert found is not None  # it matches always
            gap += source.take(found.end())
            if source.ended or source.text[source.at :] not in ("", "\\"):
                return gap
            yield

    @staticmethod
    def _behind_blanks(text: str) -> str:
        found = _GAP_SO_FAR.match(text)
        return text[found.end() :] if found else text
