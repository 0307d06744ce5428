"""How a format's calls are declared, and how an answer with them is read."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from callwright.layout.calls import CallLayout
from callwright.reading.text.answer import AnswerReader
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_reader import CallReader
from callwright.reading.text.foreign import Formats
from callwright.streaming.reader import Parse


class CallFormat(Protocol):
    """The layout of one family's calls, and the reader of them in the text of an answer."""

    @property
    def layout(self) -> CallLayout:
        """The text of calls."""

    def reader(self, text: AnswerText) -> CallReader:
        """The reader of the calls in one answer."""


class ReadBy(Struct, frozen=True):
    """A call format with a reader of its own."""

    layout: CallLayout
    reader: Callable[[AnswerText], CallReader]


class ParsedBy(Struct, frozen=True):
    """A format whose answers are not text with calls in it, but messages with headers: `parse` reads a whole answer.
    Its arguments are those of `read_answer`.
    """

    layout: CallLayout
    parse: Callable[[AnswerText, str, Formats], Parse[None]]


def read_answer(calls: CallFormat | ParsedBy, text: AnswerText, start: str, formats: Formats) -> Parse[None]:
    """Read one answer and emit its events. `start`: see `callwright.prompt.Prompt`. `formats` are all that are known:
    their calls are read, too.
    """
    if isinstance(calls, ParsedBy):
        return calls.parse(text, start, formats)
    return AnswerReader(calls.reader(text), formats).read(start)
