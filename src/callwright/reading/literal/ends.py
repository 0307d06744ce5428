"""Finds the end of a string in notations that look like program code, by the text after a quote. Reads nothing.

A string in quotes that cannot be escaped ends at the next one. An ordinary quote ends its string if the notation
continues after it, or if it can be no quotation: models forget to escape, as in `say(text="He said "hi" to me")`. A
literal that ends a call also ends a string that was never closed.
"""

from collections.abc import Sequence
from typing import Final

from callwright.reading.literal.brackets import CLOSERS, Level
from callwright.reading.literal.form import LiteralForm, looked_for
from callwright.streaming.reader import Parse, StreamReader, read_blanks
from callwright.tolerant_json.strings import AHEAD, is_delimited

# Characters of look-ahead after a literal that may end a call.
_MAX_AHEAD: Final = 1_000
# How deep calls that are quoted in a string may be nested.
_MAX_DEPTH: Final = 64
_OPENERS: Final = {"}": "{", "]": "[", ")": "("}


class StringEnds:
    """Decides if a quote or a literal ends a string inside the brackets `levels`."""

    def __init__(self, source: StreamReader, form: LiteralForm, levels: Sequence[Level]) -> None:
        self._source = source
        self._form = form
        self._levels = levels
        self._ends = form.ends.all
        self._marks = looked_for(form.verbatim, form.ends)
        self._no_calls: set[int] = set()  # openings in strings that are known to begin no whole calls
        self._looked_to, self._told = 0, False  # the place `_is_told` has looked up to, and its answer

    def closes(self, quote: str, *, odd: bool = False) -> Parse[bool]:
        """Whether the notation continues after a quote that was just read. `odd`: it may end a quotation, too."""
        source, level, outer = self._source, self._levels[-1], self._levels[0]
        open_ = [_OPENERS[level.closer] for level in self._levels]
        while True:
            ahead, ended = source.ahead(AHEAD), not source.more(AHEAD)
            if quote in self._form.verbatim and ahead.lstrip()[:1] in CLOSERS:
                return True
            closes = is_delimited(
                ahead, quote, level.kind, open_, ended=ended, odd=odd, notation=self._form.notation(outer.separator)
            )
            if closes is not None:
                return closes
            yield

    def ends_call(self, end: str, quote: str) -> Parse[bool]:
        """Whether a literal inside a string ends the call, so that the string was never closed: it closes the call and
        the output ends after it, or another call begins, and the next quote does not close a string.
        """
        if (yield from self._is_told(quote)):
            return False
        source = self._source
        while True:
            ahead = source.ahead(_MAX_AHEAD)
            behind = ahead.lstrip()
            full = not source.more(_MAX_AHEAD)
            if not behind and full:
                return end in self._form.ends.closes
            begins = end in self._form.ends.begins and quote in self._form.verbatim
            if not begins and behind and not behind.startswith(self._ends):
                may_come = any(literal.startswith(behind) for literal in self._ends)
                if full or not may_come:
                    return False
            elif quote in ahead:
                rest = ahead.partition(quote)[2].lstrip()
                if rest or full:
                    return rest[:1] not in (",", "}", "]", ")")
            elif full:
                return True
            yield

    def _is_told(self, quote: str) -> Parse[bool]:
        """Whether the string continues to a quote that closes it by the rules: then no literal in it ends the call."""
        source = self._source
        if quote in self._form.verbatim:
            return False
        if source.place < self._looked_to:
            return self._told
        read: list[str] = []
        while True:
            text, marker = source.scan(self._marks.escaped[quote])
            read += (text, marker)
            if marker == quote or source.done:
                break
            if not marker:
                yield
                continue
            while source.more(1):
                yield
            read.append(source.take(min(source.at + 1, len(source.text))))
        place = source.place
        told = marker == quote and (yield from self.closes(quote)) and (yield from self._goes_on_behind())
        source.unread("".join(read))
        self._looked_to, self._told = place, told
        return told

    def _goes_on_behind(self) -> Parse[bool]:
        """Whether a comma or a closer is next."""
        blanks = yield from read_blanks(self._source)
        goes_on = self._source.ahead(1) in (",", *CLOSERS)
        self._source.unread(blanks)
        return goes_on

    def whole_calls(self, quote: str) -> Parse[int]:
        """The length of the text after an opening inside a string that belongs to whole calls, up to a quote that ends
        the string; 0 if they are not closed before, so that the opening is no text.
        """
        source, ends = self._source, self._form.ends
        tried = [source.place]  # openings of calls side by side
        opened = [source.place]
        read: list[str] = []
        size = at = 0
        closed = False
        while len(opened) <= _MAX_DEPTH and tried[-1] not in self._no_calls:
            text, marker = source.scan(self._marks.calls[quote])
            read += (text, marker)
            size += len(text) + len(marker)
            if marker in ends.begins and marker:
                if not opened:
                    tried.append(source.place)
                opened.append(source.place)
            elif marker in ends.closes:
                if not opened:
                    break
                opened.pop()
                at = size
            elif marker and not opened:
                closed = yield from self._goes_on_behind()
                break
            elif not marker and source.done:
                break
            elif not marker:
                yield
        source.unread("".join(read))
        if not closed:
            self._no_calls.update((*tried, *opened))
        return at if closed else 0
