"""Finds calls of named parameters in the text of an answer: `<function=f><parameter=k>v</parameter></function>`.

The module `values` decides the end of a value. A missing closing tag is supplied, with a problem, if an outer one or
another call follows; anything else between the tags is reported. A call whose tags are broken, so that its meaning is
uncertain, is incomplete.
"""

from msgspec import Struct

from callwright.events import Markup, Problem, ProblemKind
from callwright.layout.calls import CallLayout
from callwright.reading.json.block import read_json_block
from callwright.reading.tagged.call import TaggedCall
from callwright.reading.tagged.lexer import TagLexer
from callwright.reading.tagged.marks import ParameterMarks, parameter_marks
from callwright.reading.tagged.tags import ParameterTags
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.streaming.reader import Parse

__all__ = ["ParameterForm", "ParameterTags", "TaggedCalls"]


class ParameterForm(Struct, frozen=True):
    """The calls of one format, which are written according to its `layout` and read by its `tags`; `thoughts` are the
    tags around reasoning, `ends` stop tokens.
    """

    layout: CallLayout
    tags: ParameterTags
    thoughts: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    ends: tuple[str, ...] = ()

    def reader(self, text: AnswerText) -> CallReader:
        """The reader of the calls in one answer."""
        return TaggedCalls(TaggedCall(text, TagLexer(text, parameter_marks(self.tags, self.thoughts, self.ends))))


class TaggedCalls(CallReader):
    """The blocks of calls, and the calls in them, which `call` reads."""

    def __init__(self, call: TaggedCall) -> None:
        super().__init__(call.text, call.marks.in_text)
        self.call = call
        self.lexer = call.lexer
        self.form = call.form
        self._find: ParameterMarks = call.marks
        self._open: tuple[str, ...] = ()  # the closing tags of the blocks that are open
        self._whole = True  # the last call is complete
        self._unread = False  # an opening tag became text

    def end(self) -> None:
        """Name the closing tags of blocks that were never written."""
        for end in self._open if self._whole else ():
            self.text.emit(Problem("markup_repaired", f"{end} is missing"))
        self._open = ()

    def may_begin_call(self, tag: str) -> Parse[bool]:
        """Whether a block continues with a call, or a call with a name."""
        if tag in self._find.closers or tag in self._find.strays:
            return False
        if tag != self.form.call:
            return (yield from self.text.comes(self.form.call))
        return (yield from self.lexer.names_call())

    def last_call(self, text: str) -> int | None:
        """The position of the first call, which ends reasoning that is never closed."""
        begins = [at for tag in self._find.openers if (at := text.find(tag)) >= 0]
        return min(begins, default=len(text))

    def marked(self, blanks: str, tag: str) -> Parse[CallReader | None]:
        """Read from a tag: calls, the rest of a block, or a mention."""
        if tag in self._find.closers:
            yield from self._lone_closer(blanks, tag)
        elif tag in self._find.strays:
            yield from self.no_call(blanks, tag)
        else:
            yield from self._read_opened(blanks, tag)
        return None

    def no_call(self, blanks: str, tag: str) -> Parse[None]:
        """Treat a call's tag without a call: a word that was mentioned, or a stray token."""
        return self.text.no_call(blanks, tag)

    def _read_opened(self, blanks: str, tag: str) -> Parse[None]:
        """Read from an opening tag."""
        text = self.text
        inner = yield from text.held_blanks()
        if tag == self.form.call:
            if inner or not (yield from self.lexer.names_call()):
                yield from self._becomes_text(blanks, tag, inner)
                return
            text.markup(blanks)
            yield from self._calls(tag)
        elif (yield from text.comes(self.form.call)):
            self._opens_block(blanks + tag + inner, tag)
            yield from self._calls("")
        elif (yield from text.comes(closer := dict(self.form.blocks)[tag])):
            text.empty_call(blanks + tag + inner, closer)
        elif (yield from text.comes(tag)):
            text.emit(Markup(blanks + tag + inner))
        else:
            yield from self._unknown_block(blanks, tag, inner)

    def _opens_block(self, written: str, tag: str) -> None:
        """The opening tag of a block of calls was written."""
        self.text.emit(Markup(written))
        self.end()
        self._open = (*self._open, dict(self.form.blocks)[tag])

    def _closed(self, tag: str) -> None:
        """The closing tag of a block was read."""
        if tag in self._open:
            at = self._open.index(tag)
            self._open = self._open[:at] + self._open[at + 1 :]

    def _lone_closer(self, blanks: str, tag: str) -> Parse[None]:
        """A closing tag in text: the rest of a block after a call, else a mention. Its opening tag may have become
        text.
        """
        text = self.text
        if tag in self._open:
            if not text.apart:
                text.emit(Problem("markup_repaired", f"there is text between a call and {tag}"))
                if blanks:
                    text.emit(text.say(blanks))
                blanks = ""
            self._closed(tag)
            text.emit(Markup(blanks + tag))
            yield from text.skip_blanks()
            return
        if not text.apart and (text.calls or self._unread):
            kind: ProblemKind = "malformed_call" if self._unread else "markup_repaired"
            text.emit(Problem(kind, f"{tag} closes something that is not a call"))
            self._unread = False
        yield from text.lone_end(blanks, tag)

    def _unknown_block(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """A block that does not begin with a call: one in JSON, or text, unless a dialect's subclass knows better."""
        if self.text.source.text.startswith(("{", "["), self.text.source.at):
            yield from read_json_block(
                self.text, blanks + tag + inner, self._find.in_object, (dict(self.form.blocks)[tag],)
            )
        else:
            yield from self._becomes_text(blanks, tag, inner)

    def _becomes_text(self, blanks: str, tag: str, inner: str) -> Parse[None]:
        """An opening tag without a call."""
        self._unread = self._unread or self.text.apart or self.text.at_line_start(blanks)
        self.text.source.unread(inner)
        yield from self.no_call(blanks, tag)

    def _calls(self, tag: str) -> Parse[None]:
        """Read calls, one after the other, to the end of their block. `tag`: the part of the first one that was already
        read.
        """
        text = self.text
        form = self.form
        if self._unread:
            text.emit(Problem("markup_repaired", "an opening tag without a call became text"))
            self._unread = False
        while True:
            if not tag:
                text.emit(Markup(text.take(form.call)))
            else:
                text.emit(Markup(tag))
            tag = ""
            yield from self._call()
            yield from text.skip_blanks()
            if not (yield from self._call_follows()):
                break
        for end in self._find.block_ends:
            if (yield from text.comes(end)):
                text.emit(Markup(text.take(end)))
                self._closed(end)
                yield from text.skip_blanks()

    def _call_follows(self) -> Parse[bool]:
        """Whether another call is next."""
        return (yield from self.text.comes(self.form.call))

    def _call(self) -> Parse[None]:
        """Read one call."""
        self._whole = yield from self.call.read()
