"""Strings in notations that look like program code, streamed as JSON.

Nothing written is taken back. So if it shows too late that a string may have been another one, the arguments become
uncertain: `Brackets.sound` is False from then on.
"""

import re
from typing import Final

from callwright.events import Markup
from callwright.reading.literal.brackets import Brackets, closes_more
from callwright.reading.literal.ends import StringEnds
from callwright.reading.literal.escapes import CERTAIN_ESCAPE, read_escape, read_escapes
from callwright.reading.literal.form import QUOTES, LiteralForm, looked_for
from callwright.streaming.reader import BLANKS, Markers, Parse, StreamReader, Stretch, comes_next, read_blanks
from callwright.tolerant_json.codec import encode_inside

# Characters of a string's text that are looked at before a quote in it, and at its end.
_MAX_BEFORE: Final = 400
_MAX_END: Final = 1_000
_PREFIX = re.compile(r"[rRbBuUfF]{0,2}(?=[\"'])")
_MAY_BE_PREFIX = re.compile(r"[rRbBuUfF]{0,2}\Z")
# Before an opening quote in the text of a string.
_BEFORE_QUOTATION = re.compile(r"[\s(\[{=:<>/,]?\Z").match
# Closers at the end of a string that was never closed: they belong to the call, so they are held back.
_MAX_SWALLOWED: Final = 64
_SWALLOWED = re.compile(rf"[\s)\]}}]{{1,{_MAX_SWALLOWED}}}\Z")
_SWALLOWABLE: Final = BLANKS + ")]}"


class StringReader:
    """Reads strings inside the brackets of a call; `ends` decides their end."""

    def __init__(self, source: StreamReader, form: LiteralForm, brackets: Brackets, ends: StringEnds) -> None:
        self._source = source
        self._form = form
        self._brackets = brackets
        self._ends = ends
        self._markers = looked_for(form.verbatim, form.ends).in_string
        self._raw = False

    def quote(self) -> Parse[str]:
        """Read the quote that opens a string here, with a prefix such as `r`, or return `""`."""
        source = self._source
        if (yield from comes_next(source, *self._form.verbatim)):
            return self._take_quote(self._form.verbatim)
        while source.more(5) and _MAY_BE_PREFIX.match(source.ahead(5)):
            yield
        prefix = _PREFIX.match(source.ahead(5))
        if prefix is None or set(prefix.group().lower()) & {"f", "b"}:  # an expression, or no text
            return ""
        while source.more(prefix.end() + 3):
            yield
        self._raw = "r" in prefix.group().lower()
        source.markup(source.take(source.at + prefix.end()))
        return self._take_quote(QUOTES)

    def _take_quote(self, quotes: tuple[str, ...]) -> str:
        """Read an opening quote."""
        source = self._source
        quote = next(quote for quote in quotes if source.text.startswith(quote, source.at))
        source.emit(Markup(source.take(source.at + len(quote))))
        return quote

    def next_part(self) -> Parse[str]:
        """Read the quote that opens the next part of a string, as Python joins them: `"a" "b"`; `""` if there is no
        more.
        """
        source = self._source
        blanks = yield from read_blanks(source)
        if source.text.startswith(('"', "'"), source.at):
            source.markup(blanks)
            while source.more(2):
                yield
            if not blanks and source.ahead(2) in ('""', "''"):  # `f(a="return """)`: they may belong to the text
                self._brackets.tell("markers_in_value", "quotes at the end of a text")
            return (yield from self.quote())
        source.unread(blanks)
        return ""

    def read(self, quote: str, aside: list[str] | None = None) -> Parse[bool]:
        """Read a string to its end; False if it has none. It is written, or put `aside` if it is in foreign text."""
        source, ends, markers = self._source, self._form.ends, self._markers[quote]
        verbatim = quote in self._form.verbatim
        text_of = _StringText(source, self._brackets, markers, aside, escapes=quote in QUOTES and not self._raw)
        stretch = text_of.stretch()
        quotes, odd = 0, False  # quotes in its text, and whether a quotation in it is open
        while True:
            text, marker = source.scan(markers)
            text, stretch.held = stretch.held + text, ""
            if marker == "\\":
                source.unread(marker)
                text_of.put(text)
                text_of.put((yield from read_escape(source, raw=self._raw)), escape=True)
                continue
            if marker == quote:
                if (yield from self._ends.closes(quote, odd=odd)):
                    is_inner = False
                elif not odd and (opening := self._opening(text_of.before(text))):
                    # Its closer is missing: this quote opens the next value.
                    text_of.put(text)
                    source.unread(opening + quote)
                    self._brackets.tell("markup_repaired", "a text without its closing quote")
                    return False
                else:
                    is_inner, odd = self._is_inner(quote, text_of.before(text), odd=odd)
                if not is_inner:
                    text_of.put(text)
                    source.emit(Markup(quote))
                    self._report_quotes(text_of, quotes, odd=odd)
                    return True
                quotes += 1
            elif marker in ends.begins and verbatim and (size := (yield from self._ends.whole_calls(quote))):
                # Calls of this format, from their opening to their closer, are quoted in the text.
                self._brackets.tell("markers_in_value", "a call in a text", doubt=False)
                text_of.put(text + marker + source.take(source.at + size))
                continue
            elif marker and (yield from self._ends.ends_call(marker, quote)):
                source.unread(marker)
                self._swallowed(text, text_of, quote, doubt=quotes > 0, begins=marker in ends.begins)
                return False
            text += marker
            if source.done:
                text_of.put(text)
                return False
            if found := _SWALLOWED.search(text, max(0, len(text) - _MAX_SWALLOWED)):
                text, stretch.held = text[: found.start()], found.group()
            text_of.put(text)
            if not marker:
                if aside is None:
                    source.wait_in(stretch)
                yield
                if stretch.held.endswith("\\"):  # half of an escape, which the source does not have
                    stretch.held = stretch.held[:-1]
                    source.text, source.at = "\\" + source.text[source.at :], 0

    def _is_inner(self, quote: str, before: str, *, odd: bool) -> tuple[bool, bool]:
        """Whether a quote, just read after the text `before`, is part of the text; and whether a quotation is open in
        it then. `odd`: whether one was open before.
        """
        ahead = self._source.ahead(1)
        begins = not ahead.isspace() and _BEFORE_QUOTATION(before[-1:]) is not None
        in_word = before[-1:].isalnum() and ahead.isalnum()
        return quote not in self._form.verbatim and (odd or begins or in_word), not odd and begins

    def _opening(self, before: str) -> str:
        """The beginning of a member or of another call at the end of a string's text, to which the quote belongs: `,
        b=`.
        """
        levels = self._brackets.levels
        key = rf"[\w.$-]+\s*[{re.escape(levels[-1].separator)}][\s\[{{(]*\Z"
        opening = rf",\s*{key}"
        if levels[0].closer == ")":
            opening = rf",\s*{key}|\)\s*\]?\s*[,;\n]\s*[^\W\d][\w./-]*\(\s*{key}"
        found = re.search(opening, before)
        return found.group() if found else ""

    def _report_quotes(self, text_of: "_StringText", quotes: int, *, odd: bool) -> None:
        """Report the quotes in a text, if there are any. If a quotation is open, or the text seems to contain members,
        it may be another text.
        """
        if not quotes:
            return
        doubt = odd or self._member(r"[,(]", text_of.whole)
        self._brackets.tell("markers_in_value", "quotes in a text", doubt=doubt)

    def _swallowed(self, text: str, text_of: "_StringText", quote: str, *, doubt: bool, begins: bool) -> None:
        """Write the rest of a string that was never closed, without closers at its end: `f(a="x)` is `f(a="x")`.
        `begins`: the next call does.
        """
        levels = self._brackets.levels
        listed = levels[0].closer == ")" and text.rstrip().endswith("]")  # the `]` of a list of calls, too
        found = re.search(rf"[)\]}}]{{1,{len(levels) + listed}}}\s*\Z", text[-_MAX_END:])
        end = len(text) - (len(found.group()) if found else 0)
        text_of.put(text[:end])
        self._source.markup(text[end:])
        whole = text_of.whole
        doubt = (
            doubt or quote in QUOTES[:2] or self.holds_piece(whole) or self._member(",", whole) or closes_more(whole)
        )
        self._brackets.tell("markup_repaired", "a text without its closing quote", doubt=doubt)
        # A quote that cannot be escaped closes as it opens: one that is missing leaves all others open.
        if begins and quote in self._form.verbatim:
            self._brackets.lost, self._brackets.sound = True, False

    def _member(self, before: str, text: str) -> bool:
        """Whether a member of an open bracket seems to begin in a text, after a pattern."""
        separators = re.escape("".join(level.separator for level in self._brackets.levels))
        return re.search(rf"{before}\s*[\w.$-]+\s*[{separators}]", text) is not None

    def holds_piece(self, text: str) -> bool:
        """Whether a piece of a quote may be in a text whose own quote is missing."""
        return any(char in text for quote in self._form.verbatim for char in quote if not char.isalnum())


class _StringText:
    """The text of one string so far, and how more of it is written.

    `escapes`: it may contain some. It is put `aside`, or written.
    """

    def __init__(
        self, source: StreamReader, brackets: Brackets, markers: Markers, aside: list[str] | None, *, escapes: bool
    ) -> None:
        self._source = source
        self._brackets = brackets
        self._markers = markers
        self._aside = aside
        self._escapes = escapes
        self._said: list[str] = []
        self._plain = 0  # the first piece after the last escape

    @property
    def whole(self) -> str:
        """The whole text."""
        return "".join(self._said)

    def before(self, text: str) -> str:
        """The end of the text so far, followed by `text`, without any escape."""
        return ("".join(self._said[max(self._plain, len(self._said) - _MAX_BEFORE) :]) + text)[-_MAX_BEFORE:]

    def put(self, text: str, *, escape: bool = False) -> None:
        """Add text."""
        self._said.append(text)
        if escape:
            self._plain = len(self._said)
        if text and self._aside is not None:
            self._aside.append(text)
        elif text:
            self._brackets.put(encode_inside(text))

    def stretch(self) -> Stretch:
        """The stretch that reads it while only text and whole escapes arrive."""
        return Stretch(
            self._markers.firsts,
            self._markers.literals,
            holds=_SWALLOWABLE,
            most=_MAX_SWALLOWED,
            call=self._brackets.call,
            certain=CERTAIN_ESCAPE if self._escapes else "",
            inside=self._inside,
            marks=_escapes_of if self._escapes else None,
            note=self._note,
        )

    def _inside(self, text: str) -> str:
        return read_escapes(text).inside if self._escapes and "\\" in text else encode_inside(text)

    def _note(self, text: str) -> str:
        if not self._escapes or "\\" not in text:
            self._said.append(text)
            return self._brackets.make(encode_inside(text)).text
        read = read_escapes(text)
        self._said += read.said
        self._plain = len(self._said) - 1
        return self._brackets.make(read.inside).text


def _escapes_of(text: str) -> Markup:
    return read_escapes(text).markup
