"""Parses calls whose values stand between tags that are marks with names, each a token of its own: read tag by tag.

Where a value ends, `tagged_values` decides. A piece of a mark between tags, behind a closer, or in a value without one,
was a tag that broke: then nobody knows what was meant, and the call is not complete.
"""

from functools import lru_cache, partial

from callwright.calls.toolset import Toolset
from callwright.dialects.readers.arguments_writer import ArgumentsWriter
from callwright.dialects.readers.parameters import ParameterReader, ParameterTags
from callwright.dialects.readers.tag_heads import is_odd_key, may_be_parameters
from callwright.dialects.readers.tag_literals import NamedMarks, Tag, TagKind, TagLiterals, named_marks
from callwright.dialects.readers.tagged_values import too_many_parameters
from callwright.events import ArgumentsDelta, Markup
from callwright.stream_reader import Markers, Parse, StreamReader
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
        self._key = ""  # of the value that is being read

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
        return None if text is None else self._sink.cast(names[-1], text, schema)

    # --- calls ---

    def _arguments(self, name: str) -> Parse[None]:
        """See `ParameterReader`: the values of a call, to its end."""
        writer = self._sink.writer
        yield from self.skip_blanks()
        if self.source.text.startswith("{", self.source.at):
            yield from self._json()
            return
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
                if not (yield from self._parameter_of(tag, writer)):
                    whole = False
                    break
            elif text.strip() or tag.head != last:  # what opened it is missing, or broken
                self._sink.doubt(f"{tag.text} closes nothing")
            else:
                self._sink.odd(f"{tag.text} twice")
        self._whole = self._sink.end(is_whole=whole and (bool(values) or not self._sink.strayed))

    def _surplus_values(self, tag: Tag, writer: ArgumentsWriter) -> Parse[None]:
        """Read past the values that are too many, to the end of the call."""
        pieces = [tag.text]
        while True:
            text, end = yield from self._read_tag()
            pieces.append(text)
            if end is None or self._is_end(end, writer):
                break
            pieces.append(end.text)
        self._sink.odd(too_many_parameters(self.tools), "malformed_call", "".join(pieces))
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
            self._sink.odd("the end of the call is missing")

    def _json(self) -> Parse[None]:
        """Read a JSON object in place of values: its bytes are the arguments."""
        index = self._sink.index
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
                self._sink.sure = False
                self._between(tag.text)
        if tag is not None:
            self._close_call(tag)
        self._whole = self._sink.end(is_whole=tag is not None and end.is_sure, writes=False)

    def _parameter_of(self, tag: Tag, writer: ArgumentsWriter) -> Parse[bool]:
        """Read one value of a call, behind its tag; False if the output ended in it. A text flows, the rest is held."""
        name, key, schema = self._value_tag(tag, writer)
        sink, self._key = self._sink, key
        if key == tag.head and is_odd_key(key) and not writer.declares(key):
            sink.doubt(f"{tag.text} names no parameter")
        if writer.text_only(schema) and not writer.is_untyped(schema) and not sink.is_given(key):
            writer.key(key)
            writer.open_text()
            text = yield from self._values.read(name, key, writer, sink.may_follow(key))
            if not sink.is_read(text, name, flows=True):
                return False
            sink.end_text(key, text)
            return True
        value = yield from self._value_of((name,), schema, writer)
        if value is None:
            return False
        if value[0] == '"' and self._says_json(tag):
            sink.doubt(f"the JSON of {key!r} cannot be read", "non_json_arguments")
        sink.put(key, value, value)
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
        self._sink.strayed = True
        if self._piece.search(text) or may_be_parameters(text, ()):
            self._sink.sure = False
        self._sink.odd("text between tags", "arguments_trailing_text", text)

    # --- texts ---

    def _held(self, names: tuple[str, ...]) -> Parse[str | None]:
        """The text of a value that does not flow; None when the output was cut in it."""
        key, follows = (self._key, self._sink.may_follow(self._key)) if len(names) == 1 else (names[-1], _any_comes)
        value = yield from self._values.read(names[-1], key, None, follows, names[:-1])
        return value.text if self._sink.is_read(value, names[-1], flows=False) else None

    def _missing(self, name: str, text: str) -> None:
        """The closer of an element is missing. Where a broken one may be in its text, nobody knows where it ended."""
        self._sink.odd(f"the end of {name!r} is missing")
        if self._piece.search(text) or f"</{name}" in text:
            self._sink.sure = False


def _any_comes(_: str) -> bool:
    """In an element any other may be next."""
    return True
