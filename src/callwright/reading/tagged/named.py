"""Reads calls whose tags are marks with names, each a token of its own: `<|open|>argument key="k"<|sep|>`, tag by tag.

The end of a value is decided by `tagged_values`. A piece of a mark between tags, after a closer, or in a value without
one, was a tag that broke: then the meaning is unknown, and the call is not complete.
"""

from functools import lru_cache, partial

from callwright.events import ArgumentsDelta, Markup
from callwright.reading.arguments_writer import ArgumentsWriter
from callwright.reading.tagged.call import TaggedCall
from callwright.reading.tagged.heads import is_odd_key, may_be_parameters
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.literals import NamedMarks, Tag, TagKind, TagLiterals, named_marks
from callwright.reading.tagged.values import Ending, TaggedValue, too_many_parameters
from callwright.reading.text.answer_text import AnswerText
from callwright.streaming.reader import Markers, Parse
from callwright.tolerant_json.passthrough import JsonTerminators, pass_json

__all__ = ["NamedCall", "NamedLexer", "NamedMarks", "Tag"]


@lru_cache(maxsize=256)
def _looked_for(form: NamedMarks) -> tuple[Markers, JsonTerminators]:
    """The literals that begin tags, and those that end JSON. The same for each answer of a format."""
    return Markers(*form.marks), JsonTerminators(*form.marks)


class NamedLexer(TagLexer):
    """Reads the tags of one format with the marks `named`. Subclasses read the tag after a mark (`read_named`)."""

    named: NamedMarks

    def _literals(self) -> TagLiterals:
        return named_marks(self.named, self.marks.ends)

    def tag(self, literal: str) -> Parse[Tag | None]:
        """The tag that begins with this literal, which was just read; None, and nothing is read, if it is text."""
        return (yield from self.read_named(literal)) if literal in self.named.marks else self.known.closers[literal]

    def make_tag(self, text: str, closer: str, *, closes: bool, key: str, head: str = "") -> Tag:
        """The tag that is written so, of the element that `closer` names; `key` names its parameter or its tool."""
        calls = self.named.calls
        kind = TagKind.VALUE if closer not in calls else TagKind.CALL if closer == calls[0] else TagKind.BLOCK
        return Tag(text, closer, kind, closes, key, head=head or closer)

    def read_named(self, mark: str) -> Parse[Tag | None]:
        """Read the tag after a mark; None, and nothing is read, if there is no tag."""
        raise NotImplementedError

    def next_tag(self) -> Parse[tuple[str, Tag | None]]:
        """Read up to and past the next tag; returns the text before it. A mark without a tag is text."""
        source = self.source
        pieces: list[str] = []
        while True:
            text, mark = source.scan(_looked_for(self.named)[0])
            pieces.append(text)
            if mark:
                if tag := (yield from self.read_named(mark)):
                    return "".join(pieces), tag
                pieces.append(mark)
            elif source.done:
                return "".join(pieces), None
            else:
                yield


class NamedCall(TaggedCall):
    """Reads the calls of one format. Subclasses decide which tag ends a call (`_is_end`) and which value a tag begins
    (`_value_tag`).
    """

    lexer: NamedLexer

    def __init__(self, text: AnswerText, lexer: NamedLexer) -> None:
        super().__init__(text, lexer)
        self._key = ""  # of the value that is being read

    def _is_end(self, tag: Tag, writer: ArgumentsWriter | None) -> bool:
        """Whether a tag ends a call: its own closer, or the next tag outside of it."""
        raise NotImplementedError

    def _value_tag(self, tag: Tag, writer: ArgumentsWriter) -> tuple[str, str, object]:
        """The name of the tag that ends a value, the value's name, and its schema."""
        raise NotImplementedError

    def _says_json(self, tag: Tag) -> bool:
        """Whether a tag declares that its value is JSON, not text."""
        return False

    def _value_of(self, names: tuple[str, ...], schema: object, writer: ArgumentsWriter) -> Parse[str | None]:
        """The JSON of a value, read from after its tag; None when the output was cut in it. `names` are the elements
        around it and, last, its own.
        """
        text = yield from self._read_held(names)
        return None if text is None else self.sink.cast(names[-1], text, schema)

    def arguments(self, name: str) -> Parse[bool]:
        """Read the values of a call, to its end; returns whether it is complete."""
        writer = self.sink.writer
        yield from self.text.skip_blanks()
        if self.text.source.text.startswith("{", self.text.source.at):
            return (yield from self._json())
        last = ""
        values, most = 0, self.text.tools.max_parameters
        while True:
            text, tag = yield from self.lexer.next_tag()
            if tag and tag.closes and values < most and self._without_opener(text, tag, writer):
                values += 1
                last = tag.head
                continue
            self._between(text)
            if tag is None:
                whole = False
                break
            if self._is_end(tag, writer):
                whole = bool(values) or self._closes_call(tag)
                self._close_call(tag)
                break
            if not tag.closes and values == most:
                yield from self._surplus_values(tag, writer)
                whole = False
                break
            values += not tag.closes
            self.text.emit(Markup(tag.text))
            if not tag.closes:
                last = tag.head
                if not (yield from self._parameter_of(tag, writer)):
                    whole = False
                    break
            elif text.strip() or tag.head != last:  # its opening tag is missing, or broken
                self.sink.doubt(f"{tag.text} closes nothing")
            else:
                self.sink.odd(f"{tag.text} twice")
        return self.sink.end(is_whole=whole and (bool(values) or not self.sink.strayed))

    def _without_opener(self, text: str, tag: Tag, writer: ArgumentsWriter) -> bool:
        """Whether the text before a closing tag is a value whose opening tag is missing; then it is written."""
        return False

    def _surplus_values(self, tag: Tag, writer: ArgumentsWriter) -> Parse[None]:
        """Read past the values that are too many, to the end of the call."""
        pieces = [tag.text]
        while True:
            text, end = yield from self.lexer.next_tag()
            pieces.append(text)
            if end is None or self._is_end(end, writer):
                break
            pieces.append(end.text)
        self.sink.odd(too_many_parameters(self.text.tools), "malformed_call", "".join(pieces))
        if end is not None:
            self._close_call(end)

    def _closes_call(self, tag: Tag) -> bool:
        return tag.closes and tag.head == self.lexer.named.calls[0]

    def _close_call(self, tag: Tag) -> None:
        """The tag that ends a call: its own closer, or the next tag."""
        if self._closes_call(tag):
            self.text.emit(Markup(tag.text))
        else:
            self.text.source.unread(tag.text)
            self.sink.odd("the end of the call is missing")

    def _json(self) -> Parse[bool]:
        """Read a JSON object in place of values: its bytes are the arguments."""
        index = self.sink.index
        end = yield from pass_json(
            self.text.source, _looked_for(self.lexer.named)[1], partial(ArgumentsDelta, index), index
        )
        self.text.source.unread(end.stop)
        while True:
            text, tag = yield from self.lexer.next_tag()
            self._between(text)
            if tag is None or self._is_end(tag, None):
                break
            if tag.text in self.lexer.named.around_json:
                self.text.emit(Markup(tag.text))
            else:
                self.sink.sure = False
                self._between(tag.text)
        if tag is not None:
            self._close_call(tag)
        return self.sink.end(is_whole=tag is not None and end.is_sure, writes=False)

    def _parameter_of(self, tag: Tag, writer: ArgumentsWriter) -> Parse[bool]:
        """Read one value of a call, after its tag; False if the output ended in it. A text streams."""
        name, key, schema = self._value_tag(tag, writer)
        sink, self._key = self.sink, key
        if key == tag.head and is_odd_key(key) and not writer.declares(key):
            sink.doubt(f"{tag.text} names no parameter")
        if writer.text_only(schema) and not writer.is_untyped(schema) and not sink.is_given(key):
            writer.key(key)
            writer.open_text()
            text = yield from self.values.read(name, key, writer, sink.may_follow(key))
            if not self._is_read(text, name, flows=True):
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

    def _between(self, text: str) -> None:
        """The text between two tags: white space, or else a problem. A piece of a mark in it was a tag."""
        if not text.strip():
            self.text.markup(text)
            return
        self.sink.strayed = True
        if self.lexer.named.piece.search(text) or may_be_parameters(text, ()):
            self.sink.sure = False
        self.sink.odd("text between tags", "arguments_trailing_text", text)

    def _read_held(self, names: tuple[str, ...]) -> Parse[str | None]:
        """The text of a value that does not flow; None when the output was cut in it."""
        key, follows = (self._key, self.sink.may_follow(self._key)) if len(names) == 1 else (names[-1], _any_comes)
        value = yield from self.values.read(names[-1], key, None, follows, names[:-1])
        return value.text if self._is_read(value, names[-1], flows=False) else None

    def _is_read(self, value: TaggedValue, name: str, *, flows: bool) -> bool:
        """Report anything unusual about a value, as `CallSink.is_read` does, and a doubled mark of its closer."""
        if value.ending is not Ending.CUT and value.text.endswith(self.lexer.named.marks):
            self.sink.odd(f"{name!r} ends with a mark of the format", "markers_in_value")
        return self.sink.is_read(value, name, flows=flows)


def _any_comes(_: str) -> bool:
    """In an element any other may be next."""
    return True
