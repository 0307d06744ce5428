"""Parses calls whose values stand between tags that are marks with names, each a token of its own: read tag by tag.

A value ends at its closer, if a tag follows, or other text and then no further closer before the opening of the next
value or the end of what holds it. An opening in a value is text if it is closed before. Without a closer the value ends
at its first tag. A piece of a mark between tags, behind a closer, or in a value without one, was a tag that broke: then
nobody knows what was meant, and the call is not complete.
"""

import re
from functools import lru_cache, partial

from msgspec import Struct

from callwright.calls.toolset import Toolset
from callwright.dialects.readers.arguments_writer import ArgumentsWriter, unread_json, unwritten, written_stretch
from callwright.dialects.readers.nesting import Fit, Nesting
from callwright.dialects.readers.other_closers import OTHER_CLOSER, OtherClosers
from callwright.dialects.readers.parameters import ParameterReader, ParameterTags
from callwright.dialects.readers.tag_heads import is_odd_key, may_be_parameters
from callwright.dialects.readers.tagged_values import too_many_parameters
from callwright.events import ArgumentsDelta, CallEnded, Markup, Problem
from callwright.schema.keywords import properties
from callwright.stream_reader import Markers, Parse, StreamReader
from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.passthrough import JsonTerminators, pass_json

__all__ = ["HeldText", "Tag", "TaggedForm", "TaggedReader"]


class Tag(Struct, frozen=True):
    """A tag as it is written, mark and all: its name, and whether it closes."""

    text: str
    head: str
    closes: bool


class HeldText:
    """What is held of a text from its first tag on, until its end is known.

    `name` is the text's own tag, `around` are the tags of the elements that hold it, `calls` those of a call and of
    what holds that, the outermost last, `siblings` those of the values that may follow it (none: any may).
    """

    def __init__(self, name: str, around: tuple[str, ...], calls: tuple[str, ...], siblings: frozenset[str]) -> None:
        self._around = (*around, *calls)
        self._calls = calls
        self.siblings = siblings
        self._pieces: list[str] = []
        self.nesting = Nesting(name)
        self._end = 0  # how many pieces belong to the value
        self.closer = ""
        self._behind = 0  # how many pieces came up to its first closer
        self._parts = False  # parts of an answer were opened in it, whose own opening the prompt writes
        self._ends_answer = False  # the closer of an answer came last
        self.in_calls: list[tuple[Tag, Tag]] = []  # the tags of calls, with those of their values
        self._call: Tag | None = None  # the call that was opened last
        self.ends_outside = False  # a closer of what is further out came last
        self.is_unknown = False  # nobody knows whether the first tag is the value's

    @property
    def text(self) -> str:
        """All that is held."""
        return "".join(self._pieces)

    def is_over(self, text: str, tag: Tag | None, place: int, *, guess: bool) -> bool:
        """Take a tag, behind which is `place`, and the text before it; answers whether the end of the value is known.
        `guess`: an opening is taken for the next value, without a look at what closes it.
        """
        if tag is None:
            self._pieces.append(text)
            return True
        self._pieces += (text, tag.text)
        follows = bool(self.closer) and not text.strip() and self._end == len(self._pieces) - 3
        outside, self.ends_outside = self.ends_outside, False
        if not tag.closes:
            is_next = follows or not self.siblings or tag.head in self.siblings
            self._parts = self._parts or not self.nesting.is_open()
            if self._call and self.nesting.innermost == self._calls[0]:
                self.in_calls.append((self._call, tag))
            self.nesting.opens(tag.head.partition(" ")[0], place)
            self._call = tag if self.nesting.innermost == self._calls[0] else self._call
            return guess or (outside and not self._ends_answer) or (bool(self.closer) and is_next)
        fit = self.nesting.closes(tag.head)
        if fit is Fit.UNKNOWN:
            self.is_unknown = not self.closer
        elif fit is Fit.OWN and not follows:
            self._end, self.closer = len(self._pieces) - 1, tag.text
            self._behind = self._behind or len(self._pieces)
        elif fit is Fit.OUTER and tag.head in self._around:
            return self._outer(tag, outside=outside)
        return fit is Fit.UNKNOWN or (fit is Fit.OWN and follows)

    def _outer(self, tag: Tag, *, outside: bool) -> bool:
        """Take a closer of what holds the value: it may stand in it if the value's own comes next."""
        self._ends_answer = self._parts and tag.head == self._around[-1]
        self._parts, self.ends_outside = False, True
        return bool(self.closer) or self.nesting.is_open() or (outside and not self._ends_answer)

    def between(self) -> str:
        """What is held between its tags."""
        return "".join(self._pieces[::2])

    def behind_closer(self) -> str:
        """What belongs to the value behind its first closer."""
        return "".join(self._pieces[self._behind : self._end : 2])

    def value(self) -> tuple[str, str]:
        """What belongs to the value, without its closer, and what does not."""
        rest = self._pieces[self._end + 1 :] if self.closer else self._pieces
        return "".join(self._pieces[: self._end]), "".join(rest)


class TaggedForm(Struct, frozen=True):
    """The marks that begin tags, what matches a piece of one, and the names of the tags of a call and of what holds it.
    `around_json` are tags that may stand around arguments in JSON.
    """

    marks: tuple[str, ...]
    piece: re.Pattern[str]
    calls: tuple[str, ...]
    around_json: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def _looked_for(form: TaggedForm) -> tuple[Markers, Markers, JsonTerminators]:
    """What begins tags, what may end a text in a call, and JSON. The same for each answer of a format."""
    return Markers(*form.marks), Markers(*form.marks, OTHER_CLOSER), JsonTerminators(*form.marks)


class TaggedReader(ParameterReader):
    """Prose, and calls of tags. Subclasses read a tag (`_tag`), say which ends a call (`_is_end`) and which value a
    tag begins (`_value_tag`).
    """

    def __init__(
        self,
        source: StreamReader,
        tools: Toolset,
        tags: ParameterTags,
        form: TaggedForm,
        *,
        thoughts: tuple[tuple[str, str], ...],
        ends: tuple[str, ...],
        also: tuple[str, ...] = (),
    ) -> None:
        super().__init__(source, tools, tags, thoughts=thoughts, ends=ends, also=also, tokens=(*form.marks, tags.end))
        self._marks, self._flowing, self._in_json = _looked_for(form)
        self._others = OtherClosers("")
        self._key = ""  # of the value that is being read
        self._begins = form.marks
        self._piece = form.piece
        self._call_tags = form.calls
        self._around_json = form.around_json
        self._index = 0
        self._strayed = False  # text stood where a parameter should
        self._certain = True  # nothing in the call was broken so that its values are a guess
        self._guesses = False  # a value was found to end before what was held: no other is held as long
        self._siblings: frozenset[str] = frozenset()  # the names of tags that begin a value

    def _tag(self, mark: str) -> Parse[Tag | None]:
        """Read the tag behind a mark; None when there is none."""
        raise NotImplementedError

    def _is_end(self, tag: Tag, writer: ArgumentsWriter | None) -> bool:
        """Whether a tag ends a call: its own, or what comes next to it."""
        raise NotImplementedError

    def _value_tag(self, tag: Tag, writer: ArgumentsWriter) -> tuple[str, str, object]:
        """The name of the tag that ends a value, the value's name, and its schema."""
        raise NotImplementedError

    def _says_json(self, tag: Tag) -> bool:
        """Whether a tag says that the value which it begins is JSON, and no text."""
        return False

    def _is_misplaced(self, call: Tag, value: Tag) -> bool:
        """Whether the tool that one tag calls has no such parameter as another tag begins."""
        raise NotImplementedError

    def _names_of_values(self, tool: str) -> frozenset[str]:
        """The names of the tags that begin a value of this tool; none if any may."""
        found = self.tools.get(self.tools.resolve_name(tool))
        return frozenset(properties(found.parameters if found else None))

    def _value_of(self, names: tuple[str, ...], schema: object, writer: ArgumentsWriter) -> Parse[str | None]:
        """The JSON of a value, from behind its tag on; None when the output was cut in it. `names` are the elements
        around it and, last, its own.
        """
        pieces: list[str] = []
        whole = yield from self._text(names[-1], pieces, None, names[:-1])
        text = "".join(pieces)
        if not whole:
            writer.cut(text)
            return None
        value = writer.cast_to_schema(text, schema)
        self.markup(unwritten(text, value))
        if value[0] in "{[" and value != text.strip():
            self.emit(Problem("json_repaired", f"the JSON of {names[-1]!r} was repaired", call=self._index))
        return value

    def call_begins(self) -> None:
        """See `ProseReader`."""
        super().call_begins()
        self._index, self._certain, self._strayed = self.calls, not self._values.lost, False

    # --- calls ---

    def _arguments(self, index: int, name: str) -> Parse[None]:
        """See `ParameterReader`: the values of a call, to its end."""
        source = self.source
        self._guesses = False
        self._siblings = self._names_of_values(name)
        yield from self.skip_blanks()
        if source.text.startswith("{", source.at):
            yield from self._json(index)
            return
        writer = ArgumentsWriter(self.emit, index, name, self.tools)
        given: dict[str, str] = {}
        last = ""
        values = 0
        while True:
            text, tag = yield from self._read_tag()
            self._between(text)
            if tag is None:
                whole = False
                break
            if self._is_end(tag, writer):
                whole = bool(values) or self._closes_call(tag)
                self._close_call(tag)
                break
            if not tag.closes and values == self.tools.max_parameters:
                yield from self._surplus_values(tag, writer)
                whole = False
                break
            values += not tag.closes
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
        self._whole = whole and self._certain and (bool(values) or not self._strayed)
        if self._whole:
            writer.close()
        self.emit(CallEnded(index, complete=self._whole))

    def _surplus_values(self, tag: Tag, writer: ArgumentsWriter) -> Parse[None]:
        """Read past the values that are too many, to the end of the call."""
        pieces = [tag.text]
        while True:
            text, end = yield from self._read_tag()
            pieces.append(text)
            if end is None or self._is_end(end, writer):
                break
            pieces.append(end.text)
        detail = too_many_parameters(self.tools)
        self.emit(Problem("malformed_call", detail, call=self._index, text="".join(pieces)))
        if end is not None:
            self._close_call(end)

    def _closes_call(self, tag: Tag) -> bool:
        return tag.closes and tag.head == self._call_tags[0]

    def _close_call(self, tag: Tag) -> None:
        """The tag that ends a call: its own, or what comes next."""
        if self._closes_call(tag):
            self.emit(Markup(tag.text))
        else:
            self.source.unread(tag.text)
            self._repaired("the end of the call is missing")

    def _json(self, index: int) -> Parse[None]:
        """Read a JSON object in place of values: its bytes are the arguments."""
        end = yield from pass_json(self.source, self._in_json, partial(ArgumentsDelta, index), index)
        self.source.unread(end.stop)
        while True:
            text, tag = yield from self._read_tag()
            self._between(text)
            if tag is None or self._is_end(tag, None):
                break
            if tag.text in self._around_json:
                self.emit(Markup(tag.text))
            else:
                self._certain = False
                self._between(tag.text)
        if tag is not None:
            self._close_call(tag)
        self._whole = tag is not None and self._certain and end.is_sure
        self.emit(CallEnded(index, complete=self._whole))

    def _parameter_of(self, tag: Tag, writer: ArgumentsWriter, given: dict[str, str]) -> Parse[bool]:
        """Read one value of a call, behind its tag; False if the output ended in it. A text flows, the rest is held.

        `given` are the values before, by their names.
        """
        name, key, schema = self._value_tag(tag, writer)
        self._key = key
        if key == tag.head and is_odd_key(key) and not writer.declares(key):
            self._doubt(f"{tag.text} names no parameter")
        if writer.text_only(schema) and not writer.is_untyped(schema) and key not in given:
            pieces: list[str] = []
            writer.key(key)
            writer.open_text()
            if not (yield from self._text(name, pieces, writer)):
                return False
            writer.close_text()
            given[key] = encode("".join(pieces)).decode()
            return True
        value = yield from self._value_of((name,), schema, writer)
        if value is None:
            return False
        unread = unread_json(writer, key, value, self._index)
        if not unread and value[0] == '"' and self._says_json(tag):
            unread = Problem("non_json_arguments", f"the JSON of {key!r} cannot be read", call=self._index)
        if unread:
            self._certain = False
            self.emit(unread)
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

    def _read_tag(self) -> Parse[tuple[str, Tag | None]]:
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

    def _between(self, text: str) -> None:
        """What stands between two tags: white space, or else a problem. A piece of a mark in it was a tag."""
        if not text.strip():
            self.markup(text)
            return
        self._strayed = True
        self._certain = not (self._piece.search(text) or may_be_parameters(text, ())) and self._certain
        self.emit(Problem("arguments_trailing_text", "text between tags", call=self._index, text=text))

    def _repaired(self, detail: str) -> None:
        self.emit(Problem("markup_repaired", detail, call=self._index))

    def _doubt(self, detail: str) -> None:
        """Name what leaves open which values were meant."""
        self._certain = False
        self._repaired(detail)

    # --- texts ---

    def _text(
        self, name: str, pieces: list[str], writer: ArgumentsWriter | None, around: tuple[str, ...] = ()
    ) -> Parse[bool]:
        """Read a text into `pieces`, to its end; False if the output ended in it. It flows if there is a `writer`.
        `around` are the elements that hold it.

        A tag behind its closer shows that it is one. What else holds a tag is held until it is known where it ends.
        """
        source, key = self.source, name if around else self._key

        def flow(text: str) -> None:
            if text:
                pieces.append(text)
                if writer is not None:
                    writer.text(text)

        stretch = written_stretch(self._flowing, writer, pieces.append)
        found: Tag | None = None
        while not found:
            text, mark = source.scan(self._flowing)
            text = stretch.held + text
            if mark == OTHER_CLOSER:
                text += mark + (yield from self._others.rest(source, key))
            elif mark and not (found := (yield from self._tag(mark))):
                text += mark
            at = self._others.place(text, key)
            flow(text[:at])
            stretch.held = text[at:]
            if not mark and source.done:
                flow(stretch.held)
                return False
            if not mark:
                source.wait_in(stretch)
                yield
        held = HeldText(name, around, self._call_tags, self._siblings if not around else frozenset())
        tag: Tag | None = found
        text = ""
        guess = self._guesses or (not found.closes and self._values.is_never_closed)
        while not held.is_over(text, tag, source.place, guess=guess):
            text, tag = yield from self._read_tag()
        is_cut = tag is None and not held.closer and not held.ends_outside
        other = ""
        if not (held.closer or is_cut or self._piece.search("".join(pieces))):
            other = stretch.held if self._others.closes(pieces, stretch.held, 0) else ""
        self.markup(other)
        flow(stretch.held.removeprefix(other))
        if is_cut:
            self.emit(Problem("incomplete_arguments", "a value that was cut", call=self._index, text=held.text))
            return False
        value, rest = held.value()
        again = held.ends_outside and (yield from self._closes_again(name))
        written = len(pieces)
        if value:
            flow(value)
            self.emit(Problem("markers_in_value", f"tags in {name!r}", call=self._index))
            self._certain = self._certain and not self._piece.search(held.behind_closer())
        if held.closer:
            self.emit(Markup(held.closer))
        else:
            broken = not found.closes and self._piece.search(held.between()) is not None
            next_names = (*held.siblings, *self._call_tags) if held.siblings else ()
            foreign = bool(next_names) and not found.closes and found.head.partition(" ")[0] not in next_names
            foreign = foreign or any(self._is_misplaced(call, value) for call, value in held.in_calls)
            self._values.unclosed(held.nesting, doubtful=held.is_unknown or broken or foreign)
        self._guesses = self._guesses or not held.closer or not rest.lstrip().startswith(self._begins)
        source.unread(rest)
        if not held.closer:
            self._missing(name, "".join(pieces[:written]))
        if again:
            self._values.lose()
            self._doubt(f"nobody knows where {name!r} ends")
        return True

    def _closes_again(self, name: str) -> Parse[bool]:
        """Whether behind the closers of calls that come next one of this value stands: then nobody knows whether they
        were its own. Nothing is read.
        """
        source = self.source
        read: list[str] = []
        closes = False
        while True:
            read.append((yield from self.held_blanks()))
            mark = yield from self._literal((*self._begins, *self._ends))
            if not mark:
                break
            read.append(source.take(source.at + len(mark)))
            if mark in self._ends:
                continue
            tag = yield from self._tag(mark)
            if tag is None:
                break
            read.append(tag.text.removeprefix(mark))
            closes = tag.closes and tag.head == name
            if closes or not tag.closes or tag.head not in self._call_tags:
                break
        source.unread("".join(read))
        return closes

    def _literal(self, literals: tuple[str, ...]) -> Parse[str]:
        """Which of these literals comes next; `""` if none does."""
        for literal in literals:
            if (yield from self.comes(literal)):
                return literal
        return ""

    def _missing(self, name: str, text: str) -> None:
        """The closer of an element is missing. Where a broken one may be in its text, nobody knows where it ended."""
        detail = f"the end of {name!r} is missing"
        if self._piece.search(text) or f"</{name}" in text or self._values.in_doubt():
            self._values.lose()
            self._doubt(detail)
        else:
            self._repaired(detail)
