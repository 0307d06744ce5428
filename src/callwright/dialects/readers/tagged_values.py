"""Decides where a value between tags ends, for all formats that write values as plain text.

A value may hold the tags themselves, as in a page about them. What follows a tag decides, never a guess: a value's
closer ends it where another tag of the format follows. Else another closer before the next tag says that the value goes
on; if none comes, the text behind the closer is no value. An opening is part of a value if all that it opens is closed
again before the value's own closer; if not, the value's closer is missing, and it ends there. What is not decided yet
is held; a value that holds tags is named.

A closer may be written twice, or be named as its parameter is, or as another format names it: where nothing that it may
close was opened in the value, and what follows a value comes behind it, it is no part of the value.

The formats themselves, how a key is written and what a call begins with, are the reader's (`TagReader`).
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from callwright.calls.toolset import Toolset
from callwright.dialects.readers.arguments_writer import ArgumentsWriter, written_stretch
from callwright.dialects.readers.nesting import Fit, Nesting
from callwright.dialects.readers.other_closers import OTHER_CLOSER
from callwright.dialects.readers.parameter_tags import ParameterTags
from callwright.dialects.readers.tag_literals import tag_literals
from callwright.stream_reader import Parse, StreamReader

__all__ = [
    "Ending",
    "ParameterTags",
    "TagReader",
    "TaggedValue",
    "ValueReader",
    "too_many_parameters",
]

# The name of a call stands in so many characters behind its tag.
_MAX_NAME: Final = 1_000
# So often a value's closer is read where it comes again.
_MAX_AGAIN: Final = 16


class Ending(Enum):
    """How a value ended: at its closer; at another tag, its own is missing; not at all, the output ended first."""

    CLOSED = "closed"
    MISSING = "missing"
    CUT = "cut"


class TaggedValue(NamedTuple):
    """A value that was read: its pieces, how it ended, and what was odd about it.

    `holds`: it holds tags of the format. `odd`: what is odd about its end, `""` if nothing is. `sure`: it is certain
    that all of this, and nothing else, was meant.
    """

    pieces: list[str]
    ending: Ending
    holds: bool
    odd: str
    sure: bool

    @property
    def text(self) -> str:
        """The value."""
        return "".join(self.pieces)


class TagReader(Protocol):
    """What a reader of a format knows of its tags. Nothing of this reads on."""

    source: StreamReader

    def is_parameter(self) -> Parse[str | None]:
        """The key that follows the tag of a parameter; None if what follows is no key."""

    def names_call(self) -> Parse[bool | None]:
        """Whether what follows the tag of a call makes it one of a known tool; None if it makes it none."""

    def call_comes(self) -> Parse[bool | None]:
        """The same for a call that begins here with the tag of a block around it."""

    def is_foreign(self, call: str, key: str) -> bool:
        """Whether the tool that is named at the begin of this text has no such parameter."""

    def gap(self) -> Parse[str]:
        """The white space of the format that comes next. It is read, the one exception."""


class ValueReader:
    """Reads values of one format. `ends` are the stop tokens of the output."""

    def __init__(self, reader: TagReader, form: ParameterTags, ends: tuple[str, ...]) -> None:
        self._reader = reader
        self._form = form
        self._ends = ends
        self._known = tag_literals(form, ends)
        # Of one source: openings that are known to be never closed, from a search that came by them, so that none
        # begins there again; and up to where it is not known what was meant.
        self._source: StreamReader | None = None
        self._never_closed: set[int] = set()
        self._doubt_to = -1
        self._lost = False
        # Of the value that is being read: what was read of it, what is odd about its end, and whether it went on behind
        # its closer where a tag seems to be broken, or never came.
        self._key = ""
        self._pieces: list[str] = []
        self._text = ""
        self._ends_odd = ""
        self._is_odd = False

    @property
    def lost(self) -> bool:
        """Whether a value has ended where nobody knows whether it did: nothing behind it is certain."""
        self._here()
        return self._lost

    def lose(self) -> None:
        """Note that a value has ended so."""
        self._lost = True

    def in_doubt(self) -> bool:
        """Whether it is not known if the tag that comes next, before which a value has ended, is the value's. If not,
        nothing of what follows is certain.
        """
        here = self._here()
        self._lost = self._lost or here < self._doubt_to
        return self._lost

    @property
    def is_never_closed(self) -> bool:
        """Whether an opening that ends here is known to be never closed in its value."""
        return self._here() in self._never_closed

    def unclosed(self, nesting: Nesting, *, doubtful: bool) -> None:
        """Note what a search came by that did not find the value's closer. `doubtful`: up to here nobody knows what was
        meant.
        """
        here = self._here()
        if doubtful:
            self._doubt_to = max(self._doubt_to, here)
        # No search has to begin there again.
        self._never_closed.update(nesting.never_closed)

    def read(self, key: str, writer: ArgumentsWriter | None, declares: Callable[[str], bool]) -> Parse[TaggedValue]:
        """Read the value of a parameter to its end; its closer is read, and any other tag that ends it is not.

        `writer` writes the pieces of a value that flows. `declares`: whether the call has a parameter of this name.
        """
        source, form, marks = self._reader.source, self._form, self._known.flowing
        lines = form.lines
        pieces = self._pieces = []
        keep = pieces.append
        holds, lost, begun = False, self.lost, ""
        self._key, self._ends_odd, self._is_odd = key, "", False
        if lines:
            while source.more(1):
                yield
            if source.text.startswith("\n", source.at):
                begun = source.take(source.at + 1)
                source.markup(begun)
        keeps = len(form.gap) + lines
        stretch = written_stretch(marks, writer, keep, holds="\n" if keeps else "", most=keeps)
        hopeless = False  # an opening in it was never closed
        while True:
            text, marker = source.scan(marks)
            text, held, stretch.held = stretch.held + text, "", ""  # held: the last line breaks may be the format's
            ending: Ending | None = None
            if marker == OTHER_CLOSER:
                text += marker + (yield from self._known.others.rest(source, key))
            elif marker:
                self._text = text
                ending, inside = yield from self._judge(marker, declares, hopeless=hopeless)
                if ending is None:
                    text += marker + (inside or "")
                    holds = holds or inside != "" or not self._is_opening(marker)
                    hopeless = hopeless or inside is None
                elif ending is Ending.MISSING:
                    self._lost = self.in_doubt() or hopeless
            elif source.done:
                ending = Ending.CUT
            if ending is not None:
                text, held = self._ended(key, text, ending)
            elif text:
                at = self._known.others.place(text, key)
                kept = max(at - keeps, len(text[:at].rstrip("\n")))
                text, stretch.held = text[:kept], text[kept:]
            if text:
                keep(text)
                if writer is not None:
                    writer.text(text)
            if ending is not None:
                break
            if not marker:
                source.wait_in(stretch)
                yield
        source.markup(held)
        whole = "".join(pieces)
        self._lost = self._lost or (ending is Ending.MISSING and self._known.is_markup(whole))
        holds = holds or form.parameter_end[:-1] in whole
        self._is_odd = self._is_odd or (holds and ending is Ending.CLOSED and self._known.ends_unopened(whole))
        self._is_odd = self._is_odd or (ending is Ending.MISSING and not pieces)  # it never came
        if lines and ending is Ending.CLOSED and bool(begun) != bool(held) and any(pieces):
            self._ends_odd = self._ends_odd or "a line break stands on one side of a value only"
        return TaggedValue(pieces, ending, holds, self._ends_odd, (lost or not self._lost) and not self._is_odd)

    def _ended(self, key: str, text: str, ending: Ending) -> tuple[str, str]:
        """The end of a value, and what is the format's behind it: line breaks, or another tag for its closer."""
        said, others = text, self._known.others
        if ending is Ending.MISSING:
            at = others.place(text, key)
            closes = at < len(text) and others.closes(self._pieces, text, at)
            said = text[:at] if closes else text.removesuffix(self._form.gap)
        if self._form.lines:
            said = said.removesuffix("\n")
        return said, text[len(said) :]

    # --- what a tag in a value means ---

    def _judge(
        self, marker: str, declares: Callable[[str], bool], *, hopeless: bool
    ) -> Parse[tuple[Ending | None, str | None]]:
        """How a tag, which was just read, ends the value. If it does not: None, and the text behind it that is the
        value's, too; no text if the tag opens what is never closed.
        """
        form, source = self._form, self._reader.source
        if marker == form.parameter_end:
            return (yield from self._closer(declares))
        if self._is_opening(marker):
            again = False  # the value itself is begun again
            if marker == form.parameter:
                key = yield from self._reader.is_parameter()
                if key is None:
                    return None, ""
                is_sibling, again = declares(key), key == self._key
            else:
                known = yield from self._opens(marker)
                is_sibling = bool(known)
                if known is None:
                    return None, ""
            inside = None if hopeless else (yield from self._balanced(marker))
            if inside is None:
                self._is_odd = self._is_odd or again or (is_sibling and marker != form.parameter)
                if is_sibling:
                    source.unread(marker)
                    return Ending.MISSING, ""
            return None, inside
        ending = Ending.CUT if marker in self._ends else Ending.MISSING
        inside = None
        follows = yield from self._what_follows()
        own = (*self._ends, *self._known.block_ends) if ending is Ending.MISSING else ()
        if follows not in ("", form.call, *self._known.begins, *own):
            inside = yield from self._up_to_closer(declares)
        if inside is None and follows != "" and ending is Ending.CUT:
            inside = yield from self._balanced("")
        if inside is None:
            yield from self._closes_again()
            source.unread(marker)
            return ending, ""
        return None, inside

    def _closer(self, declares: Callable[[str], bool]) -> Parse[tuple[Ending | None, str]]:
        """Whether the value's closer, which was just read, ends it."""
        source, form = self._reader.source, self._form
        follows = yield from self._what_follows()
        if follows is None and (again := (yield from self._comes_again())):
            if self._known.others.is_open(self._pieces, self._text):
                source.unread(again)
                return None, ""
            source.markup(form.parameter_end + again)
            self._ends_odd = f"{form.parameter_end} stands there more than once"
            yield from self._closes_again()
            return Ending.CLOSED, ""
        if follows is None:
            inside = yield from self._up_to_closer(declares)
            if inside is not None and not self._known.pieces.search(inside):
                self._is_odd = self._is_odd or inside.lstrip().startswith(self._known.opens)
                return None, inside
            source.unread(inside or "")
        elif follows in self._known.closers:
            yield from self._closes_again()
        source.markup(form.parameter_end)
        return Ending.CLOSED, ""

    def _comes_again(self) -> Parse[str]:
        """Read the value's closer where it comes again, if what follows a value stands behind it; else nothing is read,
        and this is `""`.
        """
        source, own = self._reader.source, (self._form.parameter_end,)
        read: list[str] = []
        follows: str | None = None
        while follows is None and len(read) < 2 * _MAX_AGAIN:
            blanks = yield from self._reader.gap()
            if not (yield from self._literal(own)):
                source.unread(blanks)
                break
            read += (blanks, source.take(source.at + len(own[0])))
            follows = yield from self._what_follows()
        if follows is None:
            source.unread("".join(read))
            return ""
        return "".join(read)

    def _closes_again(self) -> Parse[None]:
        """Look behind the closers of calls that come next: where one of a value stands there, nobody knows whether they
        were a value's.
        """
        source = self._reader.source
        read: list[str] = []
        tag = ""
        while tag != self._form.parameter_end:
            read.append((yield from self._reader.gap()))
            if not (tag := (yield from self._literal(self._known.closes))):
                break
            read.append(source.take(source.at + len(tag)))
        source.unread("".join(read))
        self._lost = self._lost or tag == self._form.parameter_end

    def _what_follows(self) -> Parse[str | None]:
        """The tag that follows white space, `""` at the end of the output, None if there is other text."""
        source = self._reader.source
        blanks = yield from self._reader.gap()
        tag = yield from self._tag()
        if tag is None and source.done:
            tag = ""
        source.unread(blanks)
        return tag

    def _tag(self) -> Parse[str | None]:
        """The tag that comes next, None if there is none, or it does not go on as one."""
        source = self._reader.source
        tag = yield from self._literal(self._known.behind)
        if not tag:
            return None
        source.take(source.at + len(tag))
        holds: bool | None = True
        if self._is_opening(tag):
            holds = yield from self._opens(tag)
        elif tag in self._ends:  # with other text behind it, it is only mentioned
            blanks = yield from self._reader.gap()
            holds = (yield from self._literal(self._known.behind)) != "" or source.done or None
            source.unread(blanks)
        source.unread(tag)
        return None if holds is None else tag

    def _literal(self, literals: Sequence[str]) -> Parse[str]:
        """Which of these literals, the longest first, comes next; `""` if none does."""
        source, size = self._reader.source, len(literals[0])
        while True:
            begin = source.ahead(size)
            if not (source.more(size) and any(literal.startswith(begin) for literal in literals if literal != begin)):
                return next((literal for literal in literals if begin.startswith(literal)), "")
            yield

    def _is_opening(self, tag: str) -> bool:
        return tag in (self._form.parameter, self._form.call) or tag in self._known.begins

    def _opens(self, tag: str) -> Parse[bool | None]:
        """Whether an opening tag, which was just read, goes on as one, to the name of something known; None if not."""
        if tag == self._form.parameter:
            return True if (yield from self._reader.is_parameter()) is not None else None
        if tag == self._form.call:
            return (yield from self._reader.names_call())
        source = self._reader.source
        source.unread(tag)
        comes = yield from self._reader.call_comes()
        source.take(source.at + len(tag))
        return comes

    # --- what is not decided by the next tag ---

    def _up_to_closer(self, declares: Callable[[str], bool]) -> Parse[str | None]:
        """Read up to the value's next closer, if it comes before the next parameter or call and before a closer further
        out that counts, as a tag or the end follows it; else None, and nothing is read.
        """
        source, form = self._reader.source, self._form
        read: list[str] = []
        while True:
            text, marker = source.scan(self._known.in_value)
            read.append(text)
            if marker == form.parameter_end:
                source.unread(marker)
                return "".join(read)
            if marker:
                if marker == form.parameter:
                    key = yield from self._reader.is_parameter()
                    stops = key is not None and declares(key)
                elif self._is_opening(marker):
                    stops = bool((yield from self._opens(marker)))
                else:
                    stops = (yield from self._what_follows()) is not None
                read.append(marker)
                if stops:
                    break
            elif source.done:
                break
            else:
                yield
        source.unread("".join(read))
        return None

    def _balanced(self, opening: str) -> Parse[str | None]:
        """Read behind an opening, or a stop token (`""`), up to the value's closer, if all that was opened is closed by
        then; else None, and nothing is read. Where it is not known which of the two was meant, the calls up to there
        are in doubt.
        """
        source, form = self._reader.source, self._form
        start = self._here()
        if start in self._never_closed:
            return None
        closers = {form.parameter: form.parameter_end, form.call: form.call_end, **dict(form.blocks)}
        nesting = Nesting(form.parameter_end)
        if opening:
            nesting.opens(closers[opening])
        read: list[str] = []
        fit = Fit.OUTER
        call, foreign = "", False  # the call that it came by last, and whether it has parameters of another tool
        while True:
            if opening == form.call:
                call = source.ahead(_MAX_NAME)
            elif opening == form.parameter and call and not foreign:
                key = yield from self._reader.is_parameter()
                foreign = key is not None and self._reader.is_foreign(call, key)
            text, marker = source.scan(self._known.in_value)
            read += [text, marker]
            opening = ""
            if not marker:
                if source.done:
                    break
                yield
            elif self._is_opening(marker):
                if (yield from self._opens(marker)) is not None:
                    nesting.opens(closers[marker], source.place)
                    opening = marker
            elif marker not in self._ends:
                fit = nesting.closes(marker)
                if fit is Fit.OWN:
                    source.unread(read.pop())
                    return "".join(read)
                if fit is not Fit.INSIDE:
                    yield from self._closes_again()
                    break
        written = "".join(read)
        unclosed = source.done and nesting.is_open(form.parameter_end, form.call_end)
        broken = self._known.pieces.search(written) is not None
        self.unclosed(nesting, doubtful=fit is Fit.UNKNOWN or unclosed or foreign or broken)
        self._never_closed.add(start)
        source.unread(written)
        return None

    def _here(self) -> int:
        """The place that comes next. What is known of places is known of one source."""
        source = self._reader.source
        if source is not self._source:
            self._source, self._never_closed, self._doubt_to, self._lost = source, set(), -1, False
        return source.place


def too_many_parameters(tools: Toolset) -> str:
    """What is wrong with a call of more parameters than are read."""
    return f"a call of more than {tools.max_parameters} parameters: the others are not read"
