"""Looks for several delimiters at once in the stream of a source: the one that begins first, of those the longest."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from callwright.response_template.pattern import Pattern, compile_literals
from callwright.response_template.search import MAX_DELIMITER, Match, Matcher, Search
from callwright.stream_reader import Source

__all__ = ["Found", "Watch"]

K = TypeVar("K")
# The searches go through a long text side by side, in steps of so many characters.
_WINDOW: Final = 1_024


class Found(NamedTuple, Generic[K]):
    """A delimiter of some kind: its text, and what its named groups are."""

    kind: K
    text: str
    groups: Mapping[str, str]


class Watch(Generic[K]):
    """What to look for: patterns, or lists of literals, each with its kind. Of two alike the first counts, of a
    literal and a pattern the literal."""

    def __init__(self, delimiters: Sequence[tuple[K, Pattern | Sequence[str]]]) -> None:
        self._literals: dict[str, K] = {}
        self._kinds: list[K | None] = []
        self._matchers: list[Matcher] = []
        for kind, what in delimiters:
            if not isinstance(what, Pattern):
                self._literals |= {text: kind for text in what if text not in self._literals}
        if self._literals:
            self._kinds.append(None)
            self._matchers.append(Matcher(compile_literals(self._literals)))
        for kind, what in delimiters:
            if isinstance(what, Pattern):
                self._kinds.append(kind)
                self._matchers.append(Matcher(what))
        atoms = sorted({atom for matcher in self._matchers for atom in matcher.first_atoms})
        self.first = re.compile("|".join(atoms) or "(?!)").search

    def begin(self, *, start: bool = False) -> "Watching[K]":
        """Look from here on; `start`: nothing was read before."""
        return Watching(self, self._matchers, start=start)

    def found(self, number: int, match: Match, text: str) -> Found[K]:
        """What the search of this number has found; `text` is what it has matched."""
        kind = self._kinds[number]
        groups = {name: text[begin - match.start : end - match.start] for name, (begin, end) in match.groups.items()}
        return Found(self._literals[text] if kind is None else kind, text, groups)


class Watching(Generic[K]):
    """One way through a text, up to the next delimiter."""

    def __init__(self, watch: Watch[K], matchers: Sequence[Matcher], *, start: bool) -> None:
        self._watch = watch
        self._searches = [Search(matcher, start=start, limit=MAX_DELIMITER) for matcher in matchers]
        self._base = 0  # where `source.at` is, as the searches count
        self._idle = not start  # nothing that was read may become a delimiter

    def scan(self, source: Source) -> tuple[str, Found[K] | None]:
        """Read up to and with the next delimiter; answers the text before it and the delimiter, None while there is
        none: then the text is all that is certainly not part of one. Behind a delimiter another `Watching` goes on.
        """
        text, begin = source.text, source.at
        start = begin
        if self._idle:
            hit = self._watch.first(text, begin)
            start = hit.start() if hit else len(text)
            if hit is None and not source.ended:
                source.at = len(text)
                self._base += start - begin
                return text[begin:], None
            self._base += start - begin
            for search in self._searches:
                search.at = self._base
        found = self._next(text, start, ended=source.ended)
        end = (
            start + self._hold(ended=source.ended) - self._base
            if found is None
            else start + found[1].start - self._base
        )
        end = min(end, len(text))
        self._base += end - start
        source.at = end
        if found is None:
            self._idle = end == len(text) and (end > begin or self._idle)
            return text[begin:end], None
        number, match = found
        written = source.take(end + match.end - match.start)
        return text[begin:end], self._watch.found(number, match, written)

    def _next(self, text: str, at: int, *, ended: bool) -> tuple[int, Match] | None:
        """The delimiter that is certain to be next, if there is one."""
        begin = min((search.at for search in self._searches if not search.over), default=self._base) - self._base + at
        while True:
            window = min(len(text), begin + _WINDOW)
            until: int | None = None
            for search in self._searches:
                search.feed(text, at + search.at - self._base, window, until)
                if ended and window == len(text) and at + search.at - self._base == len(text):
                    search.finish()
                if search.over and search.match is not None:
                    until = search.match.start if until is None else min(until, search.match.start)
            if (best := self._best()) is not None or window == len(text):
                return best
            begin = window

    def _best(self) -> tuple[int, Match] | None:
        done = [(n, search.match) for n, search in enumerate(self._searches) if search.over and search.match]
        if not done:
            return None
        number, match = min(done, key=lambda each: (each[1].start, -each[1].end))
        waits = any(not search.over and search.hold <= match.start for search in self._searches)
        return None if waits else (number, match)

    def _hold(self, *, ended: bool) -> int:
        """Up to where the text is certainly no delimiter."""
        holds = [search.hold for search in self._searches if not search.over or search.match is not None]
        ends = [search.at for search in self._searches]
        return min(holds, default=max(ends, default=self._base)) if not ended else max(ends, default=self._base)
