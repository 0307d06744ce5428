"""Strings in notations that look like program code, streamed as JSON.

A string in quotes that cannot be escaped ends at the next one. An ordinary quote ends its string if the notation goes
on behind it, or if it can be no quotation: models forget to escape, as in `say(text="He said "hi" to me")`. What ends
a call also ends a string that was never closed.

Nothing that was written is taken back. So what shows too late that a string may have been another one, makes the
arguments uncertain: `sound` is False from there on.
"""

import re
from collections.abc import Callable
from typing import Final

from callwright.events import ArgumentsDelta, Markup, Problem, ProblemKind
from callwright.reading.literal.brackets import CLOSERS, Ends, Level, closes_more
from callwright.reading.literal.escapes import (
    CERTAIN_ESCAPE,
    KeyPatterns,
    key_patterns,
    odd_keys,
    read_escape,
    read_escapes,
    with_escapes,
)
from callwright.stream_reader import BLANKS, Markers, Parse, StreamReader, Stretch, Taken
from callwright.tolerant_json.codec import encode_inside

__all__ = ["QUOTES", "StringReader"]

QUOTES: Final = ('"""', "'''", '"', "'")
# Calls that are quoted in a string stand at most so deep in each other.
_MAX_DEPTH: Final = 64
# Characters of look-ahead behind a possible end of a string, and of the text before it.
_MAX_AHEAD: Final = 1_000
_MAX_BEFORE: Final = 400
_PREFIX = re.compile(r"[rRbBuUfF]{0,2}(?=[\"'])")
_MAY_BE_PREFIX = re.compile(r"[rRbBuUfF]{0,2}\Z")
_RUN = re.compile(r"[\s)\]}]*+")
_NAME = re.compile(r"[\w./-]*+\Z").match
_CALLED = re.compile(r"[\w./-]++\(").match
# Before an opening quote in the text of a string.
_BEFORE_QUOTATION = re.compile(r"[\s(\[{=:<>/,]?\Z").match
# What may stand behind the comma of a list: a value, its end, the end of the output.
_ITEM = re.compile(r"[\"'\[({\d.+\-\])}]|[rRuU][\"']|(?:[Tt]rue|[Ff]alse|None|null)\s*+[,\])}]").match
_MAY_BE_ITEM = re.compile(r"\w{0,5}\s*+\Z").match
# Closers at the end of a string that was never closed: they belong to the call, so they are held back.
_MAX_SWALLOWED: Final = 64
_SWALLOWED = re.compile(rf"[\s)\]}}]{{1,{_MAX_SWALLOWED}}}\Z")
_SWALLOWABLE: Final = BLANKS + ")]}"


class StringReader:
    """Reads strings inside the brackets of a call, which are in `_levels`; see `LiteralReader` for the parameters."""

    def __init__(
        self,
        source: StreamReader,
        make: Callable[[str], ArgumentsDelta],
        verbatim: tuple[str, ...],
        ends: Ends,
        call: int,
        names: frozenset[str],
    ) -> None:
        self.sound = True
        self.lost = False  # nothing of what follows is certain either
        self._source = source
        self._make = make
        self._call = call
        self._verbatim = verbatim
        self._odd_keys = odd_keys(names)
        self._closes_call = ends.closes
        self._begins = ends.begins
        self._calls_in = {quote: Markers(quote, *ends.begins, *ends.closes) for quote in verbatim}
        # Of one source: openings in strings that are known to begin no whole calls.
        self._searched: StreamReader | None = None
        self._no_calls: set[int] = set()
        self._stops = ends.stops
        self._ends = ends.all
        self._levels: list[Level] = []
        self._log: list[str] = []  # the values as they were written
        self._silent = False  # a member is read again: it is logged only
        self._aside: list[str] | None = None  # a string in foreign text
        self._raw = False
        self._escaped = {quote: Markers(quote, "\\") for quote in QUOTES}
        # The source and the place up to which was looked for the end of a string, and whether it is one.
        self._looked_in: StreamReader | None = None
        self._looked_to, self._told = 0, False
        self._in_string = {quote: Markers(quote, *self._ends) for quote in verbatim}
        self._in_string |= {quote: Markers(quote, "\\", *self._ends) for quote in QUOTES}

    def _put(self, text: str, lead: str = "") -> None:
        """Write JSON. `lead` is what stands before a value: a comma, a key."""
        self._log.append(text)
        if not self._silent:
            self._source.emit(self._make(lead + text))

    def _tell(self, kind: ProblemKind, detail: str, text: str = "", *, doubt: bool = True) -> None:
        """Report a problem. `doubt`: nobody knows what was meant."""
        self._source.emit(Problem(kind, detail, call=self._call, text=text))
        self.sound = self.sound and not doubt

    def _quote(self) -> Parse[str]:
        """Read the quote that opens a string here, with a prefix such as `r`; `""` if there is none."""
        source = self._source
        if (yield from self._at(self._verbatim)):
            return self._taken(self._verbatim)
        while source.more(5) and _MAY_BE_PREFIX.match(source.ahead(5)):
            yield
        prefix = _PREFIX.match(source.ahead(5))
        if prefix is None or set(prefix.group().lower()) & {"f", "b"}:  # an expression, or no text
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
        source, markers = self._source, self._in_string[quote]
        said: list[str] = []  # what was read of it
        plain = 0  # from where on it holds no escape
        quotes, odd = 0, False  # quotes in its text, and whether a quotation in it is open

        escapes = with_escapes(markers.firsts) if quote in QUOTES and not self._raw else None

        def inside(text: str) -> str:
            return read_escapes(text).inside if escapes is not None and "\\" in text else encode_inside(text)

        def marks(text: str) -> None:
            if escapes is not None and "\\" in text:
                source.emit(read_escapes(text).markup)

        def make(text: str) -> ArgumentsDelta:
            nonlocal plain
            if escapes is not None and "\\" in text:
                read = read_escapes(text)
                said.extend(read.said)
                plain, json = len(said) - 1, read.inside
            else:
                said.append(text)
                json = encode_inside(text)
            self._log.append(json)
            return self._make(json)

        def take(stretch: Stretch, text: str) -> Taken:
            whole, half = stretch.held + text, ""
            if markers.first(whole):
                found = escapes(whole) if escapes is not None else None
                if found is None:
                    return None
                half = found[1]
            flowing = whole.removesuffix(half).rstrip(_SWALLOWABLE)
            held = whole[len(flowing) :]
            if len(held) > _MAX_SWALLOWED:
                return None
            stretch.held = held
            marks(flowing)
            return [make(flowing)] if flowing else ()

        certain = CERTAIN_ESCAPE if escapes is not None else ""
        stretch = Stretch(
            take,
            make,
            markers.firsts,
            markers.literals,
            holds=_SWALLOWABLE,
            most=_MAX_SWALLOWED,
            call=self._call,
            certain=certain,
            inside=inside,
            marks=marks if escapes is not None else None,
            note=lambda text: make(text).text,
        )
        while True:
            text, marker = source.scan(markers)
            if marker == "\\":
                source.unread(marker)
                text, stretch.held = stretch.held + text, ""
                self._text(text)
                escape = yield from read_escape(source, raw=self._raw)
                self._text(escape)
                said += (text, escape)
                plain = len(said)
                continue
            text, stretch.held = stretch.held + text, ""
            if marker == quote:
                said.append(text)
                inner = False
                if not (yield from self._closes(quote, odd=odd)):
                    before = "".join(said[max(plain, len(said) - _MAX_BEFORE) :])[-_MAX_BEFORE:]
                    if not odd and (opening := self._opening(before)):
                        # Its closer is missing: what it opens is the next value.
                        self._text(text)
                        source.unread(opening + quote)
                        self._tell("markup_repaired", "a text without its closing quote")
                        return False
                    begins = not source.ahead(1).isspace() and _BEFORE_QUOTATION(before[-1:]) is not None
                    in_word = before[-1:].isalnum() and source.ahead(1).isalnum()
                    inner = quote not in self._verbatim and (odd or begins or in_word)
                    odd = not odd and begins
                if not inner:
                    self._text(text)
                    source.emit(Markup(quote))
                    if quotes:
                        self._quoted("".join(said), odd=odd)
                    return True
                quotes += 1
            elif marker in self._begins and quote in self._verbatim and (size := (yield from self._whole_calls(quote))):
                # Calls of this format, from their opening to their closer, are quoted in the text.
                self._tell("markers_in_value", "a call in a text", doubt=False)
                said.append(text + marker + source.take(source.at + size))
                self._text(said[-1])
                continue
            elif marker and not (yield from self._is_told(quote)) and (yield from self._ends_call(marker, quote)):
                source.unread(marker)
                self._swallowed(text, said, quotes)
                # A quote that cannot be escaped closes as it opens: one that is missing leaves all others open.
                self.lost = marker in self._begins and quote in self._verbatim
                self.sound = self.sound and not self.lost
                return False
            text += marker
            if source.done:
                self._text(text)
                return False
            if found := _SWALLOWED.search(text, max(0, len(text) - _MAX_SWALLOWED)):
                text, stretch.held = text[: found.start()], found.group()
            self._text(text)
            if marker == quote:
                said[-1] = text
            else:
                said.append(text)
            if not marker:
                if self._aside is None and not self._silent:
                    source.wait_in(stretch)
                yield
                if stretch.held.endswith("\\"):  # half of an escape, which the source does not have
                    stretch.held = stretch.held[:-1]
                    source.text, source.at = "\\" + source.text[source.at :], 0

    def _text(self, text: str) -> None:
        if text and self._aside is not None:
            self._aside.append(text)
        elif text:
            self._put(encode_inside(text))

    def _opening(self, before: str) -> str:
        """The begin of a member or of another call at the end of a string's text, for which the quote is: `, b=`."""
        level = self._levels[-1]
        key = rf"[\w.$-]+\s*[{re.escape(level.separator)}][\s\[{{(]*\Z"
        opening = rf",\s*{key}"
        if self._levels[0].closer == ")":
            opening = rf",\s*{key}|\)\s*\]?\s*[,;\n]\s*[^\W\d][\w./-]*\(\s*{key}"
        found = re.search(opening, before)
        return found.group() if found else ""

    def _quoted(self, text: str, *, odd: bool) -> None:
        """Name the quotes in a text. If a quotation is open, or members seem to stand in it, it may be another text."""
        separator = re.escape(self._levels[-1].separator)
        doubt = odd or re.search(rf"[,(]\s*[\w.$-]+\s*[{separator}]", text) is not None
        self._tell("markers_in_value", "quotes in a text", doubt=doubt)

    def _swallowed(self, text: str, said: list[str], quotes: int) -> None:
        """Write the rest of a string that was never closed, without closers at its end: `f(a="x)` is `f(a="x")`."""
        listed = self._levels[0].closer == ")" and text.rstrip().endswith("]")  # the `]` of a list of calls, too
        found = re.search(rf"[)\]}}]{{1,{len(self._levels) + listed}}}\s*\Z", text[-_MAX_AHEAD:])
        end = len(text) - (len(found.group()) if found else 0)
        self._text(text[:end])
        self._source.markup(text[end:])
        whole = "".join((*said, text[:end]))
        separator = re.escape(self._levels[-1].separator)
        doubt = quotes or self._holds_piece(whole) or re.search(rf",\s*[\w.$-]+\s*[{separator}]", whole)
        self._tell("markup_repaired", "a text without its closing quote", doubt=bool(doubt) or closes_more(whole))

    def _holds_piece(self, text: str) -> bool:
        """Whether a piece of a quote may stand in a text whose own quote is missing."""
        return any(char in text for quote in self._verbatim for char in quote if not char.isalnum())

    def _keys(self, separator: str) -> KeyPatterns:
        return key_patterns(separator, self._verbatim, self._odd_keys)

    def _closes(self, quote: str, *, odd: bool) -> Parse[bool]:
        """Whether the notation goes on behind a quote that was just read. `odd`: it may end a quotation, too."""
        while True:
            more = self._source.more(_MAX_AHEAD)
            closes = self._closes_before(self._source.ahead(_MAX_AHEAD), quote, more=more, odd=odd)
            if closes is not None:
                return closes
            yield

    def _closes_before(self, ahead: str, quote: str, *, more: bool, odd: bool) -> bool | None:
        """The same for the text behind the quote; None if that is not known yet, which needs `more` to come."""
        level = self._levels[-1]
        behind = ahead.lstrip()
        if not behind:
            return None if more else True
        whole, part = self._keys(level.separator)
        if behind[0] == ",":
            rest = behind[1:].lstrip()
            if level.kind == "array":
                if rest.startswith(self._verbatim or "\0") or _ITEM(rest):
                    return True
                may_come = _MAY_BE_ITEM(rest) or any(mark.startswith(rest) for mark in self._verbatim)
                return None if more and may_come else not rest
            if whole(rest) or rest.startswith(("}", "]", ")")):
                return True
            return None if more and part(rest) else not rest
        if behind[0] in CLOSERS:
            return quote in self._verbatim or self._ends_members(behind, more=more)
        if more and any(end.startswith(behind) for end in self._ends):
            return None
        if behind.startswith(self._ends):
            return True
        if odd or quote in self._verbatim:
            return False
        if behind[0] in QUOTES:
            return True
        if level.kind != "object" or behind is ahead:
            return False
        return bool(whole(behind)) or (None if more and part(behind) else False)  # a comma is missing

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

    def _is_told(self, quote: str) -> Parse[bool]:
        """Whether a string goes on as the notation says, to a quote that closes it: no literal in it is one."""
        source = self._source
        if quote in self._verbatim:
            return False
        if self._looked_in is source and source.place < self._looked_to:
            return self._told
        read: list[str] = []
        while True:
            text, marker = source.scan(self._escaped[quote])
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
        told = marker == quote and (yield from self._closes(quote, odd=False)) and (yield from self._goes_on_behind())
        source.unread("".join(read))
        self._looked_in, self._looked_to, self._told = source, place, told
        return told

    def _goes_on_behind(self) -> Parse[bool]:
        """Whether a comma or a closer comes next."""
        blanks = yield from self._blanks()
        goes_on = self._source.ahead(1) in (",", *CLOSERS)
        self._source.unread(blanks)
        return goes_on

    def _ends_call(self, end: str, quote: str) -> Parse[bool]:
        """Whether a literal inside a string ends the call, so that the string was never closed: it closes the call and
        the output ends behind it, or another call begins, and the next quote does not close a string.
        """
        source = self._source
        while True:
            ahead = source.ahead(_MAX_AHEAD)
            behind = ahead.lstrip()
            full = not source.more(_MAX_AHEAD)
            if not behind and full:
                return end in self._closes_call
            begins = end in self._begins and quote in self._verbatim
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

    def _whole_calls(self, quote: str) -> Parse[int]:
        """How much of what follows an opening inside a string belongs to whole calls, up to a quote that ends the
        string; 0 where they are not closed before, so that the opening is no text.
        """
        source = self._source
        if self._searched is not source:
            self._searched, self._no_calls = source, set()
        tried = [source.place]  # openings of calls that stand side by side
        opened = [source.place]
        read: list[str] = []
        size = at = 0
        ends = False
        while len(opened) <= _MAX_DEPTH and tried[-1] not in self._no_calls:
            text, marker = source.scan(self._calls_in[quote])
            read += (text, marker)
            size += len(text) + len(marker)
            if marker in self._begins and marker:
                if not opened:
                    tried.append(source.place)
                opened.append(source.place)
            elif marker in self._closes_call:
                if not opened:
                    break
                opened.pop()
                at = size
            elif marker and not opened:
                blanks = yield from self._blanks()
                ends = source.ahead(1) in (",", *CLOSERS)
                source.unread(blanks)
                break
            elif not marker and source.done:
                break
            elif not marker:
                yield
        source.unread("".join(read))
        if not ends:
            self._no_calls.update((*tried, *opened))
        return at if ends else 0

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
