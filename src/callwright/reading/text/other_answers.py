"""Answers in another family's format from the beginning, for formats whose answers begin with a header."""

from functools import lru_cache
from typing import Final

from callwright.reading.text.answer import AnswerReader
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.reading.text.foreign import Formats
from callwright.reading.text.foreign_in_text import ForeignInText
from callwright.streaming.reader import Parse

# White space before an answer is looked over so far.
_MAX_LEAD: Final = 64


@lru_cache(maxsize=16)
def _beginnings(others: tuple[str, ...]) -> tuple[frozenset[str], int]:
    """The proper prefixes of these texts, and the length of the longest text."""
    begun = {mark[:size] for mark in others for size in range(len(mark))}
    return frozenset(begun), max(map(len, others))


def reads_others(
    text: AnswerText, start: str, formats: Formats, *, own: tuple[str, ...], headers: bool = True
) -> Parse[bool]:
    """Read an answer that begins as another family's call does, for a format whose answers begin with a header. False,
    and nothing is read, if it does not, or begins with one of the format's `own` tokens. `headers`: calls without a
    mark count, too, by their headers.
    """
    if start == "reasoning" or not text.tools.ordered or text.alone:
        return False
    source, others = text.source, formats.foreign_to(own)
    begun, longest = _beginnings(others)
    while True:
        begin = source.ahead(longest + _MAX_LEAD).lstrip()
        found = begin.startswith(others)
        if found or begin not in begun or not source.more(longest + _MAX_LEAD):
            break
        yield
    if found or (headers and (yield from ForeignInText(text, formats).header(own))):
        found = True
        yield from AnswerReader(CallReader(text), formats).read("assistant")
    return found
