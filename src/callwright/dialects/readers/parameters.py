"""Parses calls as named parameters between tags: `<function=f><parameter=k>v</parameter></function>` and its kin.

Where a value ends, `tagged_values` decides. A closing tag that is missing is supplied, with a problem, where one
further out or another call was written; what stands between the tags and is none is named. A call whose tags are
broken, so that nobody knows what was meant, is not complete.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import count
from typing import Final

from callwright.calls.toolset import Toolset
from callwright.dialects.readers.arguments_writer import ArgumentsWriter
from callwright.dialects.readers.call_sink import CallSink, parameters_of
from callwright.dialects.readers.marked_block import read_json_block
from callwright.dialects.readers.parameter_marks import parameter_marks
from callwright.dialects.readers.prose import ProseReader
from callwright.dialects.readers.tag_heads import (
    attributes,
    is_odd_key,
    may_be_longer,
    may_be_parameters,
    named_schema,
    split_head,
    surplus,
)
from callwright.dialects.readers.tag_literals import Tag, TagKind, TagLiterals, broken_tag, tag_literals
from callwright.dialects.readers.tagged_values import (
    ParameterTags,
    TaggedValue,
    ValueReader,
    too_many_parameters,
)
from callwright.events import ArgumentsDelta, CallStarted, Markup, Problem, ProblemKind
from callwright.stream_reader import Parse, StreamReader, read_until
from callwright.tolerant_json.passthrough import pass_json

__all__ = ["ParameterReader", "ParameterTags"]

# The greatest length of the rest of an opening tag, in characters.
_MAX_HEAD: Final = 1_000
# Characters of look-ahead over white space between tags.
_MAX_BETWEEN: Final = 1_000
_MAX_VALUE: Final = 4_194_304


class ParameterReader(ProseReader):
    """Parses prose with calls of named parameters. A value has the type of the schema, else the `type` of its tag.

    `also` are further literals that may open a call, for a dialect's subclass. `tokens` are the control tokens
    inside of calls, if they are not the tags.
    """

    def __init__(
        self,
        source: StreamReader,
        tools: Toolset,
        tags: ParameterTags,
        *,
        thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),),
        ends: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
        tokens: tuple[str, ...] = (),
    ) -> None:
        marks = parameter_marks(tags, thoughts, ends, also, tokens)
        super().__init__(source, tools, marks.in_text)
        self._form = tags
        self._openers = marks.openers
        self._block_ends = marks.block_ends
        self._closers = marks.closers
        self._strays = marks.strays
        self._tag_end = marks.tag_end
        self._inside = marks.inside
        self._over_all = marks.over_all
        self._in_object = marks.in_object
        self._known = self._literals()
        self._values = ValueReader(self, self._known, lines=tags.lines, gap=tags.gap)
        self._open: list[str] = []  # the closing tags of the blocks that are open
        self._whole = True  # the last call is complete
        self._unread = False  # an opening tag became text
        # Of the call that is being read: what takes it, whether text was before the next tag, and before the first; the
        # parameters of its tool.
        self._sink: CallSink
        self._strayed = self._misplaced = False
        self._declared: Collection[str] = ()

    def _parts(self) -> Parse[None]:
        """See `ProseReader`."""
        yield from super()._parts()
        self._missing_ends()

    def _missing_ends(self) -> None:
        """Name the closing tags of blocks that were never written."""
        for end in self._open if self._whole else ():
            self.emit(Problem("markup_repaired", f"{end} is missing"))
        self._open = []

    def _may_begin_call(self, tag: str) -> Parse[bool]:
        """See `ProseReader`: a block goes on with a call, a call with a name."""
        if tag in self._closers or tag in self._strays:
            return False
        if tag != self._form.call:
            return (yield from self.comes(self._form.call))
        return (yield from self._names_call())

    def _last_call(self, text: str) -> int:
        """See `ProseReader`; a call in reasoning that is never closed ends it."""
        begins = [at for tag in self._openers if (at := text.find(tag)) >= 0]
        return min(begins, default=len(text))

    def _marked(self, blanks: str, tag: str) -> Parse[None]:
        if tag in self._closers:
            yield from self._lone_closer(blanks, tag)
            return
        if tag in self._strays:
            yield from self.no_call(blanks, tag)
            return
        inner = yield from self.held_blanks()
        if tag == self._form.call:
            if inner or not (yield from self._names_call()):
                yield from self._becomes_text(blanks, tag, inner)
                return
            self.markup(blanks)
            yield from self._calls(tag)
        elif (yield from self.comes(self._form.call)):
            self._opens_block(blanks + tag + inner, tag)
            yield from self._calls("")
        elif (yield from self.comes(closer := dict(self._form.blocks)[tag])):
            self.empty_call(blanks + tag + inner, closer)
        elif (yield from self.comes(tag)):
            self.emit(Markup(blanks + tag + inner))
        else:
            yield from self._unknown_block(blanks, tag, inner)

    def _opens_block(self, written: str, tag: str) -> None:
        """The opening tag of a block of calls was written."""
        self.emit(Markup(written))
        self._missing_ends()
        self._open.append(dict(self._form.blocks)[tag])

    def _lone_closer(self, blanks: str, tag: str) -> Parse[None]:
        """A closing tag in text: the rest of a block when a call came before, else a mention. What opened it may have
        become text.
        """
        if tag in self._open:
            if not self._apart:
                self.emit(Problem("markup_repaired", f"text stands between a call and {tag}"))
                if blanks:
                    self.emit(self.say(blanks))
                blanks = ""
            self._open.remove(tag)
            self.emit(Markup(blanks + tag))
            yield from self.skip_blanks()
            return
        if not self._apart and (self.calls or self._unread):
            kind: ProblemKind = "malformed_call" if self._unread else "markup_repaired"
            self.emit(Problem(kind, f"{tag} closes what is no call"))
            self._unread = False
        yield from self.lone_end(blanks, tag)

    def _unknown_block(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """A block that does not begin with a call: one in JSON, or text, unless a dialect's subclass knows better."""
        if self.source.text.startswith(("{", "["), self.source.at):
            yield from read_json_block(self, blanks + tag + inner, self._in_object, (dict(self._form.blocks)[tag],))
        else:
            yield from self._becomes_text(blanks, tag, inner)

    def _becomes_text(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """An opening tag without a call."""
        self._unread = self._unread or self._apart or self.at_line_start(blanks)
        self.source.unread(inner)
        yield from self.no_call(blanks, tag)

    def _names_call(self) -> Parse[bool]:
        """Whether the tag of a call goes on with a name, and what belongs to a call follows the tag."""
        form, source = self._form, self.source
        follows = (form.parameter, form.call_end, *self._block_ends, *self._ends, "{")
        while True:
            ahead = source.ahead(_MAX_HEAD)
            head, closed, behind = ahead.partition(form.end)
            if "\n" in head or "<" in (head if closed else head[: self._tag_end.partial_match_start(head, 0)]):
                return False
            behind = behind.lstrip()
            if closed and behind.startswith(follows):
                return True
            waits = not closed or not behind or any(literal.startswith(behind) for literal in follows)
            if not waits or not source.more(_MAX_HEAD):
                return bool(closed and waits and source.ended)
            yield

    # --- what the tags go on with, see `TagReader` ---

    def _literals(self) -> TagLiterals:
        """The literals with which tags begin in a value."""
        return tag_literals(self._form, self._ends)

    def tag(self, literal: str) -> Parse[Tag | None]:
        """See `TagReader`."""
        form, source = self._form, self.source
        if closer := self._known.closers.get(literal):
            return closer
        if literal == form.parameter:
            key = yield from self.is_parameter()
            return None if key is None else Tag(literal, form.parameter_end, TagKind.VALUE, key=key)
        if literal == form.call:
            if not (yield from self._names_call()):
                return None
            name = self._name_ahead(source.ahead(_MAX_HEAD))
            return Tag(literal, form.call_end, TagKind.CALL, key=name, known=self._may_be_tool(name))
        source.unread(literal)
        known = yield from self.call_comes()
        source.take(source.at + len(literal))
        return None if known is None else Tag(literal, dict(form.blocks)[literal], TagKind.BLOCK, known=known)

    def _may_be_tool(self, name: str) -> bool:
        return not name or not self.tools.ordered or self.tools.resolve_name(name) in self.tools

    def call_comes(self) -> Parse[bool | None]:
        """Whether a call comes next, of a known tool, with the tags of blocks before it; None if none comes. Nothing is
        read.
        """
        source, call = self.source, self._form.call
        written = ""
        for begin, _ in self._form.blocks:
            if (yield from self.comes(begin)) and not (yield from self.comes(call)):
                written += source.take(source.at + len(begin))
                written += yield from self.gap()
        comes: bool | None = None
        if (yield from self.comes(call)):
            written += source.take(source.at + len(call))
            tag = yield from self.tag(call)
            comes = tag.known if tag else None
        source.unread(written)
        return comes

    def is_parameter(self) -> Parse[str | None]:
        """The key that follows the tag of a parameter; None if what follows is no key."""
        while True:
            key = self._key_ahead(self.source.ahead(_MAX_HEAD))
            if key is not None or not self.source.more(_MAX_HEAD):
                return key or None
            yield

    def is_foreign(self, call: str, key: str) -> bool:
        """See `TagReader`."""
        declared = parameters_of(call, self.tools)
        return bool(declared) and key not in declared

    def gap(self) -> Parse[str]:
        """Read the white space of the format that comes next."""
        return (yield from self.held_blanks())

    # --- calls ---

    def _calls(self, tag: str) -> Parse[None]:
        """Read calls, one after the other, to the end of their block. `tag`: what of the first was already read."""
        form = self._form
        if self._unread:
            self.emit(Problem("markup_repaired", "an opening tag without a call became text"))
            self._unread = False
        while True:
            if not tag:
                self.emit(Markup(self.source.take(self.source.at + len(form.call))))
            else:
                self.emit(Markup(tag))
            tag = ""
            yield from self._call()
            yield from self.skip_blanks()
            if not (yield from self._call_follows()):
                break
        for end in self._block_ends:
            if (yield from self.comes(end)):
                self.emit(Markup(self.source.take(self.source.at + len(end))))
                if end in self._open:
                    self._open.remove(end)
                yield from self.skip_blanks()

    def _call_follows(self) -> Parse[bool]:
        """Whether another call comes next."""
        return (yield from self.comes(self._form.call))

    def _call(self) -> Parse[None]:
        """Read one call, from its name on."""
        self._misplaced = False
        name, head = yield from self._read_name()
        self._starts(name)
        self.markup(head)
        self._sink.sure = self._sink.sure and "</" not in head and self._form.parameter not in head
        yield from self._arguments(name)

    def _starts(self, name: str) -> None:
        """A call of this tool starts."""
        self.call_begins()
        self._sink = CallSink(self.emit, self.markup, self.calls, name, self.tools)
        self._sink.sure, self._sink.strayed = not self._values.lost, self._misplaced
        self._declared = self._sink.declared
        self.emit(CallStarted(self.calls, name))
        self.calls += 1

    def _read_name(self) -> Parse[tuple[str, str]]:
        """Read the name of a call; answers it, and all that was read."""
        head, end = yield from read_until(self.source, self._tag_end, _MAX_HEAD)
        if odd := surplus(head):
            self.emit(Problem("markup_repaired", f"the tag of a call holds {odd!r}", call=self.calls))
        return attributes(head)[0], head + end

    def _arguments(self, name: str) -> Parse[None]:
        """Read the parameters of a call, to its end."""
        sink = self._sink
        self._strayed = False
        yield from self.skip_blanks()
        if self.source.text.startswith("{", self.source.at):
            yield from self._object()
            return
        for number in count():
            marker = yield from self._next_tag()
            if marker != self._form.parameter:
                break
            if number == self.tools.max_parameters:
                text, end = yield from read_until(self.source, self._over_all, _MAX_VALUE)
                sink.doubt(too_many_parameters(self.tools), "malformed_call", marker + text)
                marker = end
                break
            self.emit(Markup(marker))
            if not (yield from self._parameter()):
                marker, sink.sure = "", False
                break
        self._end(marker)
        needs_nothing = marker in self._block_ends and not self.tools.requires_something(name)
        has_begun = bool(number) or self._ends_call(marker) or needs_nothing
        is_cut = not marker or (marker in self._ends and not self._ends_call(marker))
        self._whole = sink.end(is_whole=not is_cut and has_begun and (bool(number) or not sink.strayed))

    def _end(self, marker: str) -> None:
        """Read what ends a call, or name that it is missing."""
        if self._ends_call(marker):
            self.emit(Markup(marker))
        elif marker:
            self.source.unread(marker)
            self._sink.odd(f"{self._form.call_end} is missing")

    def _ends_call(self, marker: str) -> bool:
        """Whether a marker is what the format writes behind the last parameter of a call."""
        return marker == self._form.call_end

    def _next_tag(self) -> Parse[str]:
        """Read up to the next tag inside a call; what stands before it and is no white space is a problem."""
        text = ""
        while True:
            more, marker = yield from read_until(self.source, self._inside, _MAX_VALUE)
            text += more
            if marker not in self._openers or (yield from self.tag(marker)) is not None:
                break
            text += marker
        self._strayed = bool(self._behind_blanks(text))
        if self._strayed:
            self._sink.odd("text between the tags of a call", "arguments_trailing_text", text)
            self._sink.strayed = True
            if may_be_parameters(text, self._declared) or broken_tag(self._form, text):
                self._sink.sure = False
        else:
            self.markup(text)
        return marker

    def _object(self) -> Parse[None]:
        """Read a JSON object in place of parameters: its bytes are the arguments."""
        index = self._sink.index
        delta = partial(ArgumentsDelta, index)
        closed, marker, is_sure = yield from pass_json(self.source, self._in_object, delta, index)
        if closed:
            marker = yield from self._next_tag()
        self._end(marker)
        self._whole = self._sink.end(is_whole=is_sure and (closed or marker not in ("", *self._ends)), writes=False)

    def _parameter(self) -> Parse[bool]:
        """Read one parameter, from its name on. False if the output was cut off in it."""
        head = yield from self._read_key()
        if head is None:
            return False
        key, rest = head
        sink = self._sink
        if not key:
            sink.doubt("the tag of a parameter is broken")
            return True
        if key not in self._declared and (self._strayed or is_odd_key(key)):
            sink.doubt(f"what should be the tag of a parameter names {key!r}")
        flows = not sink.is_given(key) and self._flows(key, rest)
        if flows:
            sink.writer.key(key)
            sink.writer.open_text()
        value = yield from self._read_value(key, sink.writer if flows else None, sink.may_follow(key))
        if not sink.is_read(value, key, flows=flows):
            return False
        if flows:
            sink.end_text(key, value)
            return True
        written = self._typed(key, value.text, rest)
        if not sink.is_given(key):
            sink.mend(key, value.text, written)
            # JSON that was broken off and begun again holds tags, too.
            if value.holds and written[0] in "{[" and written != value.text.strip():
                sink.sure = False
        sink.put(key, written, value.text)
        return True

    def _read_key(self) -> Parse[tuple[str, Mapping[str, str]] | None]:
        """Read the name of a parameter and the attributes of its tag; None if the output ended before the value.

        The name is empty, and nothing is read, if the tag is broken.
        """
        if (yield from self.is_parameter()) is None and self._key_ahead(self.source.ahead(_MAX_HEAD)) is not None:
            return "", {}
        source = self.source
        head, closed, _ = split_head(source.ahead(_MAX_HEAD), self._form.end, self._declared)
        if closed:
            source.take(source.at + len(head + closed))
        else:
            head, closed = yield from read_until(source, self._tag_end, _MAX_HEAD)
        self.emit(Markup(head + closed))
        if closed and (odd := surplus(head) or (head.strip()[-1:] == "/" and "/")):
            self._sink.doubt(f"the tag of a parameter holds {odd!r}")
        return attributes(head) if closed else None

    def _key_ahead(self, ahead: str) -> str | None:
        """The name of the parameter at the begin of a text; `""` if there is none, None if that is not known yet."""
        head, closed, _ = split_head(ahead, self._form.end, self._declared)
        if "\n" in head or "<" in head:
            return ""
        return attributes(head)[0] if closed and not may_be_longer(ahead, self._form.end, self._declared) else None

    def _name_ahead(self, ahead: str) -> str:
        """The name of the call at the begin of a text, `""` if it has none of its own."""
        return attributes(ahead.partition(self._form.end)[0])[0]

    @staticmethod
    def _behind_blanks(text: str) -> str:
        """A text without the white space that may stand between tags."""
        return text.lstrip()

    def _flows(self, key: str, rest: Mapping[str, str]) -> bool:
        """Whether a value can be nothing but text, so that it may stream. `rest` are the attributes of its tag."""
        return self._sink.writer.text_only(named_schema(self._sink.writer, key, rest))

    def _typed(self, key: str, text: str, rest: Mapping[str, str]) -> str:
        """The JSON of a held value. `rest` are the attributes of its tag."""
        return self._sink.writer.cast_to_schema(text, named_schema(self._sink.writer, key, rest))

    def _read_value(
        self, key: str, writer: ArgumentsWriter | None, is_sibling: Callable[[str], bool]
    ) -> Parse[TaggedValue]:
        """Read a value to its end; see `ValueReader`."""
        return (yield from self._values.read(self._form.parameter_end, key, writer, is_sibling))

    def _followed_by(self, *literals: str) -> Parse[bool]:
        """Whether one of the literals, or the end of the output, follows white space."""
        source = self.source
        literals = (*literals, *self._ends)
        while True:
            behind = self._behind_blanks(source.ahead(_MAX_BETWEEN))
            if behind.startswith(literals):
                return True
            waits = not behind or any(literal.startswith(behind) for literal in literals)
            if not waits or not source.more(_MAX_BETWEEN):
                return not behind and source.ended
            yield
