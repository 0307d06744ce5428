"""Answers that are another family's from their begin on, for formats whose answers begin with a header."""

from functools import lru_cache
from typing import Final

from callwright.calls.toolset import Toolset
from callwright.dialects.readers.answer import read_plain
from callwright.dialects.readers.foreign import WholeText, foreign_to
from callwright.stream_reader import Parse, StreamReader

__all__ = ["reads_others"]

# White space before an answer is looked over so far.
_MAX_LEAD: Final = 64


@lru_cache(maxsize=16)
def _beginnings(own: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str], int]:
    """How other families' calls begin, what may become that, and the length of the longest."""
    others = foreign_to(own)
    begun = {mark[:size] for mark in others for size in range(len(mark))}
    return others, frozenset(begun), max(map(len, others))


def reads_others(source: StreamReader, start: str, tools: Toolset, *, own: tuple[str, ...]) -> Parse[bool]:
    """Read an answer that begins as another family's call does, for a format whose answers begin with a header. False,
    and nothing is read, where it does not, or begins with one of the format's `own` tokens.
    """
    if start == "reasoning" or not tools.ordered or isinstance(source, WholeText):
        return False
    others, begun, longest = _beginnings(own)
    while True:
        begin = source.ahead(longest + _MAX_LEAD).lstrip()
        found = begin.startswith(others)
        if found or begin not in begun or not source.more(longest + _MAX_LEAD):
            break
        yield
    if found:
        yield from read_plain(source, "assistant", tools)
    return found
