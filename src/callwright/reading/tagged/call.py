"""Reads one call of named parameters, starting at its name, into the sink that writes its values and ends it."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Final

from callwright.events import ArgumentsDelta, Markup, Problem
from callwright.reading.arguments_writer import ArgumentsWriter
from callwright.reading.tagged.heads import (
    attributes,
    is_odd_key,
    may_be_parameters,
    named_schema,
    split_head,
    surplus,
    unknown_attributes,
)
from callwright.reading.tagged.lexer import MAX_HEAD, TagLexer
from callwright.reading.tagged.literals import broken_tag
from callwright.reading.tagged.sink import CallSink
from callwright.reading.tagged.values import TaggedValue, ValueReader, too_many_parameters
from callwright.reading.text.answer_text import AnswerText
from callwright.streaming.reader import Parse, read_until
from callwright.tolerant_json.passthrough import pass_json

_MAX_VALUE: Final = 4_194_304


class TaggedCall:
    """Reads the calls of one format, one at a time. A value has the type of the schema, else the `type` of its tag.

    `strayed`: there is text before the next tag; `misplaced`: before the first.
    """

    sink: CallSink

    def __init__(self, text: AnswerText, lexer: TagLexer) -> None:
        self.text = text
        self.lexer = lexer
        self.marks = lexer.marks
        self.form = lexer.form
        self.values = ValueReader(lexer, lexer.known, lines=self.form.lines, gap=self.form.gap)
        self.strayed = self.misplaced = False

    def read(self) -> Parse[bool]:
        """Read one call, starting at its name; returns whether it is complete."""
        self.misplaced = False
        name, head = yield from self._read_name()
        self.start(name)
        self.text.markup(head)
        self.sink.sure = self.sink.sure and "</" not in head and self.form.parameter not in head
        return (yield from self.arguments(name))

    def start(self, name: str) -> None:
        """A call of this tool starts."""
        index = self.text.start_call(name)
        self.sink = CallSink(self.text.emit, self.text.markup, index, name, self.text.tools)
        self.sink.sure, self.sink.strayed = not self.values.lost, self.misplaced
        self.lexer.declared = self.sink.declared

    def _read_name(self) -> Parse[tuple[str, str]]:
        """Read the name of a call; returns it, and all the text read."""
        head, end = yield from read_until(self.text.source, self.marks.tag_end, MAX_HEAD)
        if odd := surplus(head) or unknown_attributes(head, self.form.attributes):
            self.text.emit(Problem("markup_repaired", f"the tag of a call contains {odd!r}", call=self.text.calls))
        return attributes(head)[0], head + end

    def arguments(self, name: str) -> Parse[bool]:
        """Read the parameters of a call, to its end; returns whether it is complete."""
        sink = self.sink
        self.strayed = False
        yield from self.text.skip_blanks()
        if self.text.source.text.startswith("{", self.text.source.at):
            return (yield from self._object())
        for number in count():
            marker = yield from self._next_tag()
            if marker != self.form.parameter:
                break
            if number == self.text.tools.max_parameters:
                text, end = yield from read_until(self.text.source, self.marks.over_all, _MAX_VALUE)
                sink.doubt(too_many_parameters(self.text.tools), "malformed_call", marker + text)
                marker = end
                break
            self.text.emit(Markup(marker))
            if not (yield from self._parameter()):
                marker, sink.sure = "", False
                break
        self._end(marker)
        needs_nothing = marker in self.marks.block_ends and not self.text.tools.requires_something(name)
        has_begun = bool(number) or self._ends_call(marker) or needs_nothing
        is_cut = not marker or (marker in self.marks.ends and not self._ends_call(marker))
        return sink.end(is_whole=not is_cut and has_begun and (bool(number) or not sink.strayed))

    def _end(self, marker: str) -> None:
        """Read the end of a call, or report that it is missing."""
        if self._ends_call(marker):
            self.text.emit(Markup(marker))
        elif marker:
            self.text.source.unread(marker)
            self.sink.odd(f"{self.form.call_end} is missing")

    def _ends_call(self, marker: str) -> bool:
        """Whether a marker is the format's own end of a call."""
        return marker == self.form.call_end

    def _next_tag(self) -> Parse[str]:
        """Read up to the next tag inside a call; text before it, except white space, is a problem."""
        text = ""
        while True:
            more, marker = yield from read_until(self.text.source, self.marks.inside, _MAX_VALUE)
            text += more
            if marker not in self.marks.openers or (yield from self.lexer.tag(marker)) is not None:
                break
            text += marker
        self.strayed = bool(self.lexer.behind_blanks(text))
        if self.strayed:
            self.sink.odd("text between the tags of a call", "arguments_trailing_text", text)
            self.sink.strayed = True
            if may_be_parameters(text, self.lexer.declared) or broken_tag(self.form, text):
                self.sink.sure = False
        else:
            self.text.markup(text)
        return marker

    def _object(self) -> Parse[bool]:
        """Read a JSON object in place of parameters: its bytes are the arguments."""
        index = self.sink.index
        delta = partial(ArgumentsDelta, index)
        closed, marker, is_sure = yield from pass_json(self.text.source, self.marks.in_object, delta, index)
        if closed:
            marker = yield from self._next_tag()
        self._end(marker)
        return self.sink.end(is_whole=is_sure and (closed or marker not in ("", *self.marks.ends)), writes=False)

    def _parameter(self) -> Parse[bool]:
        """Read one parameter, from its name on. False if the output was cut off in it."""
        head = yield from self._read_key()
        if head is None:
            return False
        key, rest = head
        sink = self.sink
        if not key:
            sink.doubt("the tag of a parameter is broken")
            return True
        if key not in self.lexer.declared and (self.strayed or is_odd_key(key)):
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
        written = self._cast_value(key, value.text, rest)
        if not sink.is_given(key):
            sink.mend(key, value.text, written)
            # JSON that was broken off and started again contains tags, too.
            if value.holds and written[0] in "{[" and written != value.text.strip():
                sink.sure = False
        sink.put(key, written, value.text)
        return True

    def _read_key(self) -> Parse[tuple[str, Mapping[str, str]] | None]:
        """Read the name of a parameter and the attributes of its tag; None if the output ended before the value.

        The name is empty, and nothing is read, if the tag is broken.
        """
        if (yield from self.lexer.is_parameter()) is None and self.lexer.key_ahead(
            self.text.source.ahead(MAX_HEAD)
        ) is not None:
            return "", {}
        source = self.text.source
        head, closed, _ = split_head(source.ahead(MAX_HEAD), self.form.end, self.lexer.declared)
        if closed:
            source.take(source.at + len(head + closed))
        else:
            head, closed = yield from read_until(source, self.marks.tag_end, MAX_HEAD)
        self.text.emit(Markup(head + closed))
        if closed and (odd := surplus(head) or (head.strip()[-1:] == "/" and "/")):
            self.sink.doubt(f"the tag of a parameter holds {odd!r}")
        if closed and (odd := unknown_attributes(head, self.form.attributes)):
            self.sink.odd(f"the tag of a parameter holds {odd!r}")
        return attributes(head) if closed else None

    def _flows(self, key: str, rest: Mapping[str, str]) -> bool:
        """Whether a value can be nothing but text, so that it may stream. `rest` are the attributes of its tag."""
        return self.sink.writer.text_only(named_schema(self.sink.writer, key, rest))

    def _cast_value(self, key: str, text: str, rest: Mapping[str, str]) -> str:
        """The JSON of a held value. `rest` are the attributes of its tag."""
        return self.sink.writer.cast_to_schema(text, named_schema(self.sink.writer, key, rest))

    def _read_value(
        self, key: str, writer: ArgumentsWriter | None, is_sibling: Callable[[str], bool]
    ) -> Parse[TaggedValue]:
        """Read a value to its end; see `ValueReader`."""
        return (yield from self.values.read(self.form.parameter_end, key, writer, is_sibling))
