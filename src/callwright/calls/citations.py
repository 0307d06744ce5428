"""Marks in an answer that cite results of a search: [1], or [1, 3]. Found while the text is
streamed, regardless of how it is split into chunks.

Marks in code are ignored: there brackets mean something else. Nothing is held back for a mark: text is streamed
immediately; citations follow it.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from callwright.calls.web_search import SearchResult

_MAX_NUMBERS: Final = 8
_MARK: Final = rf"\[[0-9]{{1,4}}(?:, ?[0-9]{{1,4}}){{0,{_MAX_NUMBERS - 1}}}\]"
_TOKEN: Final = re.compile(rf"`+|\n|{_MARK}")
_NUMBER: Final = re.compile(r"[0-9]+")
# What may still become a mark.
_MAX_BEGUN: Final = 64
_BEGUN: Final = re.compile(rf"\[[0-9, ]{{0,{_MAX_BEGUN}}}\Z")
_FENCE: Final = 3


class Cited(Struct, frozen=True):
    """A mark in the latest text. It is `length` characters long, and `behind` characters follow it so far."""

    result: SearchResult
    length: int
    behind: int


class CitationReader:
    """Finds the marks in one text. `sources` are the results that can be cited, by their number."""

    def __init__(self, sources: Mapping[int, SearchResult]) -> None:
        self._sources = sources
        self._begun = ""  # a mark
        self._run = 0  # of backticks, which may grow
        self._ticks = 0  # of the code that is open

    def feed(self, text: str) -> list[Cited]:
        """More of the text; answers the citations that end in it, in order."""
        if not self._sources or not text:
            return []
        if self._run:
            rest = text.lstrip("`")
            self._run += len(text) - len(rest)
            if not rest:
                return []
            self._code(self._run)
            text = rest
        text = self._begun + text
        whole = text.rstrip("`")
        self._run = len(text) - len(whole)
        begun = None if self._run else _BEGUN.search(text, max(0, len(text) - _MAX_BEGUN - 1))
        self._begun = "" if begun is None else begun[0]
        found: list[Cited] = []
        for token in _TOKEN.finditer(whole):
            if token[0][0] != "[":
                self._code(0 if token[0] == "\n" else len(token[0]))
            elif not self._ticks:
                found += self._cited(token[0], len(text) - token.end())
        return found

    def _code(self, ticks: int) -> None:
        """Backticks open code that as many of them close; a line end (none of them) closes what stands within a
        line.
        """
        if not self._ticks:
            self._ticks = ticks
        elif self._ticks < _FENCE:
            self._ticks = 0 if ticks in (0, self._ticks) else self._ticks
        elif ticks >= self._ticks:
            self._ticks = 0

    def _cited(self, mark: str, behind: int) -> list[Cited]:
        numbers = dict.fromkeys(int(number) for number in _NUMBER.findall(mark))
        return [Cited(self._sources[number], len(mark), behind) for number in numbers if number in self._sources]
