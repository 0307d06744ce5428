"""Looks for several delimiters in a stream simultaneously: the one that begins first, of those the longest."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic, NamedTuple, TypeVar

from callwright.response_template.expression import Behind
from callwright.response_template.pattern import Match, Pattern, compile_literals, either
from callwright.streaming.reader import StreamReader

K = TypeVar("K")

# The maximum length of a delimiter. A candidate that continues to the end of the next stretch of this size is not a
# delimiter: decided by its position, so that the cut of the stream changes nothing.
MAX_DELIMITER: Final = 500
# After this many longer candidates, the last of them is skipped as a whole: so a text in which a delimiter may begin
# anywhere is looked at a bounded number of times.
_MAX_GIVEN_UP: Final = 8
# Text held for longer than this is examined again after it has grown by a sixteenth, not with each piece.
_LOOKED_AT_EACH_TIME: Final = 256


class Found(NamedTuple, Generic[K]):
    """A delimiter of some kind: its text, and the texts of its named groups."""

    kind: K
    text: str
    groups: Mapping[str, str]


class Watch(Generic[K]):
    """The delimiters to look for: patterns, or lists of literals, each with its kind. Of two equal ones the first
    counts, of a literal and a pattern the literal.
    """

    def __init__(self, delimiters: Sequence[tuple[K, Pattern | Sequence[str]]]) -> None:
        self._literals: dict[str, K] = {}
        for kind, what in delimiters:
            if not isinstance(what, Pattern):
                self._literals |= {text: kind for text in what if text not in self._literals}
        self._kinds = [kind for kind, what in delimiters if isinstance(what, Pattern)]
        self.patterns = [what for _, what in delimiters if isinstance(what, Pattern)]
        if self._literals:
            self.patterns.insert(0, compile_literals(self._literals))
        self.any = either(self.patterns) if self.patterns else None

    @cached_property
    def may_begin(self) -> Callable[[str, int], re.Match[str] | None]:
        """Searches for a character with which a delimiter may begin: ASCII characters are tried, of the others any that
        is part of a delimiter counts.
        """
        if self.any is None:
            return re.compile("(?!)").search
        begins = "".join(char for char in map(chr, range(128)) if self.any.find(char, "more", here=True))
        chars = {token.written for token in self.any.tokens if token.kind == "char" and not token.is_ascii}
        others = f"|(?![\\0-\\x7f])(?:{'|'.join(sorted(chars))})" if chars else ""
        return re.compile((f"[{re.escape(begins)}]" if begins else "(?!)") + others, re.DOTALL).search

    def begin(self, *, start: bool = False) -> "Watching[K]":
        """Look from here on; `start`: nothing was read before."""
        return Watching(self, start=start)

    def delimiter(self, number: int, match: Match, text: str) -> Found[K]:
        """The delimiter of the pattern with this number, matched at the beginning of a text."""
        written = text[: match.end]
        literals = len(self.patterns) - len(self._kinds)
        kind = self._literals[written] if number < literals else self._kinds[number - literals]
        groups = {name: text[begin:end] for name, (begin, end) in match.groups.items()}
        return Found(kind, written, groups)


class Watching(Generic[K]):
    """One way through a text, up to the next delimiter."""

    def __init__(self, watch: Watch[K], *, start: bool) -> None:
        self._watch = watch
        self._first = start  # the next text is the beginning of the input
        self._held = start  # a delimiter may begin with the next text
        self._begun = 0  # the position at which this began, relative to the beginning of the present text
        self._again = 0  # how much must be held for another look
        self._given_up = 0
        self._step = 1

    def scan(self, source: StreamReader) -> tuple[str, Found[K] | None]:
        """Read up to and with the next delimiter; returns the text before it and the delimiter, or, without a
        delimiter, the text that is certainly not part of one, and None. After a delimiter another `Watching`
        continues.
        """
        text, begin, ended = source.text, source.at, source.ended
        if self._held and not ended and len(text) - begin < self._again:
            return "", None
        self._begun += begin
        at: int | None = begin if self._held else self._next(text, begin, ended=ended)
        self._held = False
        while at is not None and not self._held:
            here = self._here(text, at, ended=ended)
            self._held = any(match.open for _, match in here)
            if here and not self._held:
                number, match = max(here, key=lambda each: each[1].end)
                source.at = at + match.end
                return text[begin:at], self._watch.delimiter(number, match, text[at : source.at])
            if not here:
                at = self._next(text, at + self._step, ended=ended)
                self._first, self._step = False, 1
        source.at = len(text) if at is None else at
        held = len(text) - source.at
        self._again = held + held // 16 if held > _LOOKED_AT_EACH_TIME else 0
        self._begun -= source.at
        return text[begin : source.at], None

    def _here(self, text: str, at: int, *, ended: bool) -> list[tuple[int, Match]]:
        """The matches that begin there, each with the number of its pattern."""
        view, behind = self._view(text, at, ended=ended)
        found: list[tuple[int, Match]] = []
        goes_on = False
        for number, pattern in enumerate(self._watch.patterns):
            match = pattern.find(view, behind, first=self._first, here=True)
            if match is not None and match.open and at + len(view) < len(text):
                match = pattern.find(view, "other", first=self._first, here=True)
                goes_on = goes_on or match is None
            if match is not None:
                found.append((number, match))
        if goes_on and not found:
            self._given_up += 1
            self._step = 1 if self._given_up % _MAX_GIVEN_UP else MAX_DELIMITER
        return found

    def _next(self, text: str, at: int, *, ended: bool) -> int | None:
        """The next position at which a delimiter may begin."""
        if self._watch.any is None:
            return None
        begins = self._watch.may_begin(text, at)
        if begins is None and not ended:
            return None
        at = begins.start() if begins else max(at, len(text))
        while at <= len(text):
            view, behind = self._view(text, at, ended=ended)
            match = self._watch.any.find(view, behind)
            if match is not None and (match.start < len(view) or behind == "nothing"):
                return at + match.start
            at += len(view)
            if at == len(text):
                break
        return None

    def _view(self, text: str, at: int, *, ended: bool) -> tuple[str, Behind]:
        """The text examined for a delimiter that begins there: the rest of its stretch, and the next one."""
        end = at + 2 * MAX_DELIMITER - (at - self._begun) % MAX_DELIMITER
        return text[at:end], "nothing" if ended and end >= len(text) else "more"
