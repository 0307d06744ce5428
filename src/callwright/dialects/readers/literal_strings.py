"""Strings in notations that look like program code, streamed as JSON.

A string in quotes that cannot be escaped ends at the next one. An ordinary quote ends its string only if the notation
goes on behind it: models forget to escape, as in `say(text="He said "hi" to me")`. What ends a call also ends a string
that was never closed.
"""

import re
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from callwright.dialects.readers.literal_escapes import ESCAPE, MAX_ESCAPE, key_patterns, unescaped
from callwright.events import Markup
from callwright.stream_reader import Markers, Parse, StreamReader
from callwright.tolerant_json.codec import encode

__all__ = ["CLOSERS", "QUOTES", "Level", "StringReader"]

CLOSERS: Final = frozenset("}])")
QUOTES: Final = ('"""', "'''", '"', "'")
# Characters of look-ahead behind a possible end of a string.
_MAX_AHEAD: Final = 1_000
_PREFIX = re.compile(r"[rRbBuUfF]{0,2}(?=[\"'])")
_MAY_BE_PREFIX = re.compile(r"[rRbBuUfF]{0,2}\Z")
_RUN = re.compile(r"[\s)\]}]*+")
_NAME = re.compile(r"[\w./-]*+\Z").match
_CALLED = re.compile(r"[\w./-]++\(").match
# Closers at the end of a string that was never closed: they belong to the call, so they are held back.
_MAX_SWALLOWED: Final = 64
_SWALLOWED = re.compile(rf"[\s)\]}}]{{1,{_MAX_SWALLOWED}}}\Z")
_SWALLOWABLE: Final = "".join(filter(str.isspace, map(chr, range(0x3001)))) + ")]}"


class Level(msgspec.Struct):
    """An open bracket: its closer, the JSON container that it stands for, and whether anything was written in it."""

    closer: str
    kind: Literal["object", "array"]
    separator: str = ":"
    begun: bool = False


class StringReader:
    """Reads strings inside the brackets of a call, which are in `_levels`; see `LiteralReader` for the parameters."""

    def __init__(
        self,
        source: StreamReader,
        put: Callable[[str], object],
        verbatim: tuple[str, ...],
        ends: tuple[str, ...],
        begins: tuple[str, ...],
    ) -> None:
        self._source = source
        self._put = put
        self._verbatim = verbatim
        self._ends = ends
        self._begins = begins
        self._levels: list[Level] = []
        self._raw = False
        self._in_string = {quote: Markers(quote, *ends) for quote in verbatim}
        self._in_string |= {quote: Markers(quote, "\\", *ends) for quote in QUOTES}

    def _quote(self) -> Parse[str]:
        """Read the quote that opens a string here, with a prefix such as `r` or `f`; `""` if there is none."""
        source = self._source
        if (yield from self._at(self._verbatim)):
            return self._taken(self._verbatim)
        while source.more(5) and _MAY_BE_PREFIX.match(source.ahead(5)):
            yield
        prefix = _PREFIX.match(source.ahead(5))
        if prefix is None:
            return ""
        while source.more(prefix.end() + 3):
            yield
        self._raw = "r" in prefix.group().lower()
        source.markup(source.take(source.at + prefix.end()))
        return self._taken(QUOTES)

    def _taken(self, quotes: tuple[str, ...]) -> str:
        """Read an opening quote."""
        source = self._source
        quote = next(quote for quote in quotes if source.text.startswith(quote, source.at))
        source.emit(Markup(source.take(source.at + len(quote))))
        return quote

    def _next_part(self) -> Parse[str]:
        """Read the quote that opens the next part of a string, as Python joins them: `"a" "b"`; `""` if there is no
        more.
        """
        blanks = yield from self._blanks()
        source = self._source
        if source.text.startswith(('"', "'"), source.at):
            source.markup(blanks)
            return (yield from self._quote())
        source.unread(blanks)
        return ""

    def _string(self, quote: str) -> Parse[bool]:
        """Read a string to its end; False if it has none."""
        source, held, markers = self._source, "", self._in_string[quote]

        def fast_path(text: str) -> bool:
            nonlocal held
            said = text.rstrip(_SWALLOWABLE)
            if not said or len(text) - len(said) > _MAX_SWALLOWED or markers.first(text):
                return False
            self._text(held + said)
            held = text[len(said) :]
            return True

        while True:
            text, marker = source.scan(markers)
            if marker == "\\":
                source.unread(marker)
                self._text(held + text)
                held = ""
                self._text((yield from self._escape()))
                continue
            text, held = held + text, ""
            if marker == quote and (quote in self._verbatim or (yield from self._closes(quote))):
                self._text(text)
                source.emit(Markup(quote))
                return True
            if marker and marker != quote and (yield from self._ends_call(marker, quote)):
                source.unread(marker)
                self._swallowed(text)
                return False
            text += marker
            if source.done:
                self._text(text)
                return False
            if found := _SWALLOWED.search(text, max(0, len(text) - _MAX_SWALLOWED)):
                text, held = text[: found.start()], found.group()
            self._text(text)
            if not marker:
                source.set_fast_path(fast_path)
                yield

    def _text(self, text: str) -> None:
        if text:
            self._put(encode(text).decode()[1:-1])

    def _swallowed(self, text: str) -> None:
        """Write the rest of a string that was never closed, without closers at its end: `f(a="x)` is `f(a="x")`."""
        listed = self._levels[0].closer == ")" and text.rstrip().endswith("]")  # the `]` of a list of calls, too
        found = re.search(rf"[)\]}}]{{1,{len(self._levels) + listed}}}\s*\Z", text[-_MAX_AHEAD:])
        end = len(text) - (len(found.group()) if found else 0)
        self._text(text[:end])
        self._source.markup(text[end:])

    def _closes(self, quote: str) -> Parse[bool]:
        """Whether a quote that was just read ends its string, by what follows."""
        while True:
            more = self._source.more(_MAX_AHEAD)
            closes = self._closes_before(self._source.ahead(_MAX_AHEAD).lstrip(), more=more)
            if closes is not None:
                return closes
            yield

    def _closes_before(self, behind: str, *, more: bool) -> bool | None:
        """The same for the text behind the quote; None if that is not known yet, which needs `more` to come."""
        level = self._levels[-1]
        if not behind:
            return None if more else True
        if behind[0] == ",":
            whole, part = key_patterns(level.separator, self._verbatim)
            rest = behind[1:].lstrip()
            if level.kind == "array" or whole(rest) or rest.startswith(("}", "]", ")")):
                return True
            return None if more and part(rest) else not rest
        if behind[0] in CLOSERS:
            return self._ends_members(behind, more=more)
        if more and any(end.startswith(behind) for end in self._ends):
            return None
        return behind[0] in QUOTES or behind.startswith(self._ends)

    def _ends_members(self, behind: str, *, more: bool) -> bool | None:
        """Whether the closers behind a quote are the notation's. In code inside a string, such as `print("a") if x`,
        text follows.
        """
        run = _RUN.match(behind)
        assert run is not None  # it matches always
        rest = behind[run.end() :]
        if not rest:
            return None if more else True
        if not (rest[0] in QUOTES or rest[0].isalnum()):
            return True
        if self._levels[0].closer != ")":
            return behind[1].isspace()
        if more and _NAME(rest):
            return None
        return "]" in run.group() or _CALLED(rest) is not None

    def _ends_call(self, end: str, quote: str) -> Parse[bool]:
        """Whether a literal inside a string ends the call, so that the string was never closed: the output ends behind
        it, or another call begins, and the next quote does not close a string.
        """
        source = self._source
        while True:
            ahead = source.ahead(_MAX_AHEAD)
            behind = ahead.lstrip()
            full = not source.more(_MAX_AHEAD)
            if not behind and full:
                return False
            if behind and not behind.startswith((*self._begins, *self._ends)):
                may_come = any(literal.startswith(behind) for literal in (*self._begins, *self._ends))
                if full or not may_come:
                    return False
            elif quote in ahead:
                rest = ahead.partition(quote)[2].lstrip()
                if rest or full:
                    return rest[:1] not in (",", "}", "]", ")")
            elif full:
                return True
            yield

    def _escape(self) -> Parse[str]:
        """Read an escape; answers its text. In a raw string that is the escape itself."""
        source = self._source
        if self._raw:
            while source.more(2):
                yield
            return source.take(min(source.at + 2, len(source.text)))
        while source.more(MAX_ESCAPE):
            begin = source.ahead(MAX_ESCAPE)
            if len(begin) > 1 and begin[1] not in "uUx01234567":
                break
            yield
        found = ESCAPE.match(source.text, source.at)
        if found is None:
            return source.take(source.at + 1)
        source.emit(Markup(found.group()))
        return unescaped(source.take(found.end()))

    # --- reading ---

    def _blanks(self) -> Parse[str]:
        blanks, source = "", self._source
        while True:
            blanks += source.blanks()
            if source.at < len(source.text) or source.ended:
                return blanks
            yield

    def _at(self, literals: tuple[str, ...]) -> Parse[bool]:
        """Whether one of the literals comes next."""
        source = self._source
        longest = max(map(len, literals), default=0)
        while True:
            begin = source.ahead(longest)
            if begin.startswith(literals):
                return True
            if not source.more(longest) or not any(literal.startswith(begin) for literal in literals):
                return False
            yield
