"""Reads the tags of one format of named parameters, from the literal at the beginning of a tag."""

from collections.abc import Collection
from typing import Final

from callwright.reading.tagged.heads import attributes, may_be_longer, parameters_of, split_head
from callwright.reading.tagged.literals import Tag, TagKind, TagLiterals, tag_literals
from callwright.reading.tagged.marks import ParameterMarks
from callwright.reading.text.answer_text import AnswerText
from callwright.streaming.reader import Parse, StreamReader

# The greatest length of the rest of an opening tag, in characters.
MAX_HEAD: Final = 1_000
# Characters of look-ahead over white space between tags.
_MAX_BETWEEN: Final = 1_000


class TagLexer:
    """Reads `<function=f>`, `<parameter=k>` and their kin. `declared` are the parameters of the tool whose call is
    read.
    """

    def __init__(self, text: AnswerText, marks: ParameterMarks) -> None:
        self.text = text
        self.marks = marks
        self.form = marks.form
        self.known = self._literals()
        self.declared: Collection[str] = ()

    @property
    def source(self) -> StreamReader:
        """The source of the answer."""
        return self.text.source

    def _literals(self) -> TagLiterals:
        """The literals with which tags begin in a value."""
        return tag_literals(self.form, self.marks.ends)

    def names_call(self) -> Parse[bool]:
        """Whether a name and the inside of a call follow the opening of a call's tag."""
        form, source = self.form, self.source
        follows = (form.parameter, form.call_end, *self.marks.block_ends, *self.marks.ends, "{")
        while True:
            ahead = source.ahead(MAX_HEAD)
            head, closed, behind = ahead.partition(form.end)
            if "\n" in head or "<" in (head if closed else head[: self.marks.tag_end.partial_match_start(head, 0)]):
                return False
            behind = behind.lstrip()
            if closed and behind.startswith(follows):
                return True
            waits = not closed or not behind or any(literal.startswith(behind) for literal in follows)
            if not waits or not source.more(MAX_HEAD):
                return bool(closed and waits and source.ended)
            yield

    def tag(self, literal: str) -> Parse[Tag | None]:
        form, source = self.form, self.source
        if closer := self.known.closers.get(literal):
            return closer
        if literal == form.parameter:
            key = yield from self.is_parameter()
            return None if key is None else Tag(literal, form.parameter_end, TagKind.VALUE, key=key)
        if literal == form.call:
            if not (yield from self.names_call()):
                return None
            name = self.name_ahead(source.ahead(MAX_HEAD))
            return Tag(literal, form.call_end, TagKind.CALL, key=name, known=self._may_be_tool(name))
        source.unread(literal)
        known = yield from self.call_comes()
        source.take(source.at + len(literal))
        return None if known is None else Tag(literal, dict(form.blocks)[literal], TagKind.BLOCK, known=known)

    def _may_be_tool(self, name: str) -> bool:
        return not name or not self.text.tools.ordered or self.text.tools.resolve_name(name) in self.text.tools

    def call_comes(self) -> Parse[bool | None]:
        """Whether a call is next, of a known tool, with the tags of blocks before it; None if there is no call. Nothing
        is read.
        """
        source, call = self.source, self.form.call
        written = ""
        for begin, _ in self.form.blocks:
            if (yield from self.text.comes(begin)) and not (yield from self.text.comes(call)):
                written += source.take(source.at + len(begin))
                written += yield from self.gap()
        comes: bool | None = None
        if (yield from self.text.comes(call)):
            written += source.take(source.at + len(call))
            tag = yield from self.tag(call)
            comes = tag.known if tag else None
        source.unread(written)
        return comes

    def is_parameter(self) -> Parse[str | None]:
        """The key after the tag of a parameter; None if there is no key."""
        while True:
            key = self.key_ahead(self.source.ahead(MAX_HEAD))
            if key is not None or not self.source.more(MAX_HEAD):
                return key or None
            yield

    def is_foreign(self, call: str, key: str) -> bool:
        declared = parameters_of(call, self.text.tools)
        return bool(declared) and key not in declared

    def message_begins(self) -> Parse[bool]:
        """Whether another message is next, after a stop token. Nothing is read."""
        yield from ()
        return False

    def gap(self) -> Parse[str]:
        """Read white space of the format."""
        return (yield from self.text.held_blanks())

    def key_ahead(self, ahead: str) -> str | None:
        """The name of the parameter at the beginning of a text, `""` without one, None if more text is needed."""
        head, closed, _ = split_head(ahead, self.form.end, self.declared)
        if "\n" in head or "<" in head:
            return ""
        return attributes(head)[0] if closed and not may_be_longer(ahead, self.form.end, self.declared) else None

    def name_ahead(self, ahead: str) -> str:
        """The name of the call at the beginning of a text, `""` if it has none of its own."""
        return attributes(ahead.partition(self.form.end)[0])[0]

    @staticmethod
    def behind_blanks(text: str) -> str:
        """A text without the white space that the format allows between tags."""
        return text.lstrip()

    def followed_by(self, *literals: str) -> Parse[bool]:
        """Whether one of the literals, or the end of the output, follows white space."""
        source = self.source
        literals = (*literals, *self.marks.ends)
        while True:
            behind = self.behind_blanks(source.ahead(_MAX_BETWEEN))
            if behind.startswith(literals):
                return True
            waits = not behind or any(literal.startswith(behind) for literal in literals)
            if not waits or not source.more(_MAX_BETWEEN):
                return not behind and source.ended
            yield
