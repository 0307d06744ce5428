"""Parses calls whose values stand between tags that are marks with names, each a token of its own: read tag by tag.

Where a value ends, `tagged_values` decides. A piece of a mark between tags, behind a closer, or in a value without one,
was a tag that broke: then nobody knows what was meant, and the call is not complete.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from callwright.calls.toolset import Toolset
from callwright.dialects.readers.arguments_writer import ArgumentsWriter, unread_json, unwritten
from callwright.dialects.readers.parameters import ParameterReader, ParameterTags
from callwright.dialects.readers.tag_heads import is_odd_key, may_be_parameters
from callwright.dialects.readers.tag_literals import NamedMarks, Tag, TagKind, TagLiterals, named_marks
from callwright.dialects.readers.tagged_values import Ending, too_many_parameters
from callwright.events import ArgumentsDelta, CallEnded, Markup, Problem
from callwright.stream_reader import Markers, Parse, StreamReader
from callwright.tolerant_json.codec import encode
from callwright.tolerant_json.passthrough import JsonTerminators, pass_json

__all__ = ["NamedMarks", "Tag", "TaggedReader"]


@lru_cache(maxsize=256)
def _looked_for(form: NamedMarks) -> tuple[Markers, JsonTerminators]:
    """The literals that begin tags, and those that end JSON. The same for each answer of a format."""
    return Markers(*form.marks), JsonTerminators(*form.marks)


class TaggedReader(ParameterReader):
    """Prose, and calls of tags. Subclasses read a tag (`_tag`), say which ends a call (`_is_end`) and which value a
    tag begins (`_value_tag`).
    """

    def __init__(
        self,
        source: StreamReader,
        tools: Toolset,
        tags: ParameterTags,
        form: NamedMarks,
        *,
        thoughts: tuple[tuple[str, str], ...],
        ends: tuple[str, ...],
        also: tuple[str, ...] = (),
    ) -> None:
        self._named = form
        super().__init__(source, tools, tags, thoughts=thoughts, ends=ends, also=also, tokens=(*form.marks, tags.end))
        self._marks, self._in_json = _looked_for(form)
        self._piece = form.piece
        self._index = 0
        self._key = ""  # of the value that is being read, and the values before it
        self._written: Mapping[str, str] = {}
        self._strayed = False  # text stood where a parameter should
        self._certain = True  # nothing in the call was broken so that its values are a guess

    def _literals(self) -> TagLiterals:
        """See `ParameterReader`."""
        return named_marks(self._named, self._ends)

    def tag(self, literal: str) -> Parse[Tag | None]:
        """See `TagReader`."""
        return (yield from self._tag(literal)) if literal in self._named.marks else self._known.closers[literal]

    def _made(self, text: str, closer: str, *, closes: bool, key: str, head: str = "") -> Tag:
        """The tag that is written so, of the element that `closer` names; `key` names its parameter or its tool."""
        calls = self._named.calls
        kind = TagKind.VALUE if closer not in calls else TagKind.CALL if closer == calls[0] else TagKind.BLOCK
        return Tag(text, closer, kind, closes, key, head=head or closer)

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

    def _value_of(self, names: tuple[str, ...], schema: object, writer: ArgumentsWriter) -> Parse[str | None]:
        """The JSON of a value, from behind its tag on; None when the output was cut in it. `names` are the elements
        around it and, last, its own.
        """
        text = yield from self._held(names)
        if text is None:
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
        self._declared = self._parameters_of(name)
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
        return tag.closes and tag.head == self._named.calls[0]

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
            if tag.text in self._named.around_json:
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
        self._key, self._written = key, given
        if key == tag.head and is_odd_key(key) and not writer.declares(key):
            self._doubt(f"{tag.text} names no parameter")
        if writer.text_only(schema) and not writer.is_untyped(schema) and key not in given:
            writer.key(key)
            writer.open_text()
            text = yield from self._text(name, key, writer, self._may_come)
            if text is None:
                return False
            writer.close_text()
            given[key] = encode(text).decode()
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

    def _held(self, names: tuple[str, ...]) -> Parse[str | None]:
        """The text of a value that does not flow; None when the output was cut in it."""
        key, declares = (self._key, self._may_come) if len(names) == 1 else (names[-1], _any_comes)
        return (yield from self._text(names[-1], key, None, declares, names[:-1]))

    def _may_come(self, key: str) -> bool:
        """Whether the value of this parameter may be next to the one that is read."""
        return (not self._declared or key in self._declared) and key != self._key and key not in self._written

    def _text(
        self,
        name: str,
        key: str,
        writer: ArgumentsWriter | None,
        declares: Callable[[str], bool],
        around: tuple[str, ...] = (),
    ) -> Parse[str | None]:
        """Read a text to its end, of the element `name`; None if the output ended in it. It flows if there is a
        `writer`. `around` are the elements that hold it.
        """
        value = yield from self._values.read(name, key, writer, declares, around)
        if value.holds:
            self.emit(Problem("markers_in_value", f"tags in {name!r}", call=self._index))
        if value.odd:
            self._repaired(value.odd)
        if value.ending is Ending.CUT:
            text = "" if writer else value.text
            self.emit(Problem("incomplete_arguments", "a value that was cut", call=self._index, text=text))
            return None
        if value.ending is Ending.MISSING:
            self._repaired(f"the end of {name!r} is missing")
        if not value.sure:
            self._doubt(f"nobody knows where {name!r} ends")
        return value.text

    def _missing(self, name: str, text: str) -> None:
        """The closer of an element is missing. Where a broken one may be in its text, nobody knows where it ended."""
        self._repaired(f"the end of {name!r} is missing")
        self._certain = self._certain and not (self._piece.search(text) or f"</{name}" in text)


def _any_comes(_: str) -> bool:
    """In an element any other may be next."""
    return True
