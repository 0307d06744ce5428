"""Calls in the markup of another family, in the text of an answer: read with all that follows them, and judged."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from callwright.dialects.readers.foreign import (
    Reading,
    Way,
    WholeText,
    header_at,
    header_firsts,
    numbered_from,
    openings,
    read_foreign,
    stripped_call,
    takes_as_much,
    unoffered_header,
    wrong_with,
)
from callwright.events import Problem
from callwright.free_text.intent import find_runs, verdict
from callwright.stream_reader import Parse

if TYPE_CHECKING:
    from callwright.dialects.readers.prose import ProseReader

__all__ = ["ForeignInText"]

# The name of a tool follows so soon, and that of a parameter; and so often is looked for foreign calls in one answer.
_MAX_NAME_AHEAD: Final = 200
_MAX_CALL_AHEAD: Final = 600
_MAX_FOREIGN: Final = 8
# Characters of look-ahead for a header at the begin of an answer.
_MAX_HEADER: Final = 300
_ANY_TAG: Final = re.compile(r"[<\[][^<>\[\]]*[>\]]")


class ForeignInText:
    """Reads foreign calls for the reader of an answer. `left`: so often may still be looked for some."""

    def __init__(self, text: "ProseReader") -> None:
        self._text = text
        self.left = 0 if isinstance(text.source, WholeText) else _MAX_FOREIGN
        self._own = text.source.layout
        self.unread: Problem | None = None  # what is wrong with what began as a call does, and was not read
        self._said = ""  # the end of the text before that

    def begins_with_header(self) -> Parse[bool]:
        """Read calls with which the answer begins, that have a header and no tag before it."""
        source, tools = self._text.source, self._text.tools
        header = ""
        ways: tuple[Way, ...] = ()
        firsts = header_firsts(tools.names) if self.left else ""
        while firsts:
            begin = source.ahead(_MAX_HEADER).lstrip()
            if begin and (begin[0] not in firsts or begin.startswith(self._text.tags)):
                break
            header, ways, may_be = header_at(begin, tools)
            if header or not may_be or not source.more(_MAX_HEADER):
                break
            yield
        # A format whose own calls begin so reads them itself.
        if not header or any(way.form.calls.layout == self._own and not way.lead for way in ways):
            return False
        return (yield from self.calls("", ways))

    def own_tag(self, blanks: str, tag: str) -> Parse[bool]:
        """The same behind a tag of the format itself that does not go on as its calls do."""
        ways = [way for way in openings()[tag] if way.is_sure and way.form.calls.layout != self._own]
        if ways:
            return (yield from self.calls(blanks + tag, ways, own=True))
        source = self._text.source
        while source.more(_MAX_CALL_AHEAD):
            yield
        if self.left:
            self._note(blanks, tag + source.ahead(_MAX_CALL_AHEAD), None)
        return False

    def calls(self, opening: str, ways: Sequence[Way], *, own: bool = False, strict: bool = False) -> Parse[bool]:
        """Read calls in another family's markup behind its `opening`, and what follows them. False, and nothing is
        read, if there are none.

        `own`: the opening is one of the format itself. `strict`: what is not read without any problem is
        read in another way.
        """
        text = self._text
        source, tools = text.source, text.tools
        while source.more(_MAX_NAME_AHEAD):
            yield
        ahead = source.ahead(_MAX_NAME_AHEAD)
        begins = not text.before or text.at_line_start(opening)
        ways = [way for way in ways if way.lead or way.form.calls.layout != self._own]
        if not self.left or not (begins or any(name in ahead for name in tools.names)):
            return False
        self.left -= 1
        if text.trial is None:
            yield from text.doubtful(opening, own=own)
            return True
        blanks = opening[: len(opening) - len(opening.lstrip())]
        begin = source.at - len(opening) + len(blanks)
        written = source.text[begin:]
        reading = read_foreign(written, ways, tools)
        if reading is None or not reading.good or (strict and (reading.bad or reading.problems)):
            self._note(blanks, written, reading)
            return False
        self._tell(reading, blanks, begin)
        return True

    def _tell(self, reading: Reading, blanks: str, begin: int) -> None:
        """Emit the calls that were read at this place, behind some `blanks`."""
        text = self._text
        text.markup(blanks)
        told = [Problem("foreign_format", f"a call as {reading.way.form.name} writes it", call=text.calls)]
        text.read_on_trial(begin, begin + reading.end, [*told, *numbered_from(reading.events, text.calls)], reading.way)
        text.calls += reading.good + reading.bad
        text.call_begins()

    def _note(self, blanks: str, written: str, reading: Reading | None) -> None:
        """Note what is wrong with what is no call, though it begins as one does. Where it may only be shown that is not
        asked about.
        """
        text = self._text
        begins = not text.before or text.at_line_start(blanks)
        problem = wrong_with(written, reading, text.tools, begins=begins)
        if self.unread is not None or problem is None:
            return
        end = reading.end if reading is not None else len(written.rstrip())
        runs = find_runs(written, [(0, end)], text.before, text.tools.is_text)
        meant = verdict(runs, demanded=text.tools.choice != "auto", names=text.tools.names)
        if meant == "ambiguous" and problem.kind != "unknown_tool":
            problem = Problem("incomplete_arguments", f"{problem.detail}; it may only be shown")
        if meant != "text":
            self.unread, self._said = problem, text.before

    def settle(self) -> None:
        """Something was said of what was not read."""
        self.unread = None

    def call_begins(self) -> None:
        """A call begins. Where only tags stand between, it is what was not read."""
        if not _ANY_TAG.sub("", self._text.before.removeprefix(self._said)).strip():
            self.unread = None

    def tell_unread(self) -> None:
        """At the end of an answer, name calls that could not be read: without their tokens, or of unknown tools."""
        text = self._text
        said = text.before.lstrip()
        if self.left and not text.calls and said and (ways := unoffered_header(said, text.tools)):
            reading = read_foreign(said, ways, text.tools)
            if reading is not None and (reading.way.is_sure or takes_as_much(reading, text.tools)):
                self._note("", said, reading)
        if self.left and not text.calls and self.unread is None and (name := stripped_call(text.begun, text.tools)):
            self.unread = Problem("malformed_call", f"what may be a call of {name!r}, without its control tokens")
        if self.unread is not None:
            self._text.emit(self.unread)
