"""Reads an output whose format is not known: the markup that stands in it tells which one it is."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from callwright.calls.toolset import Toolset
from callwright.conversation import Call, FunctionTool
from callwright.dialects.base import FORMATS, dialect_names, get_dialect
from callwright.events import ArgumentsDelta, CallStarted, ContentDelta, Event, Markup, Problem
from callwright.reading.text.answer_text import AnswerText
from callwright.reading.text.call_format import read_answer
from callwright.reading.text.foreign import valid_calls
from callwright.streaming.reader import Parse, StreamReader

# What tells a format but may mean other things, too, so that it is looked for only where none is named.
_HINTS: Final = {
    "<rfl:": "beam",
    "<atem:": "muse",
    "<|start|>assistant": "harmony",
    "Action:": "cohere_command_r",
    "(": "pythonic",
    "\n{": "functionary_v32",
}
# In these an answer begins with a header, before any text.
_HEADED: Final = ("inkling", "muse", "beam", "harmony")
_PLAIN: Final = "json"


class AutoReader(msgspec.Struct, frozen=True):
    """Holds an output to its end, then reads it as the dialect whose markup it holds; as plain JSON calls if none."""

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]:
        pieces: list[str] = []
        while True:
            pieces.append(source.take(len(source.text)))
            if source.ended:
                break
            yield
        _, events = _best("".join(pieces), start, tools)
        for event in events:
            source.emit(event)


def detected_format(output: str, start: str, tools: Sequence[FunctionTool]) -> str:
    """The dialect as which such an output is read."""
    return _best(output, start, Toolset(tools))[0]


def _best(text: str, start: str, tools: Toolset) -> tuple[str, list[Event]]:
    found = _PLAIN
    best: list[Event] = []
    for name, at in _candidates(text):
        lead = text[: text.rfind("\n", 0, at) + 1] if name in _HEADED and start == "assistant" else ""
        events = read_as(text[len(lead) :], name, start, tools)
        if said := lead.rstrip():  # such a format has a header before any text: this is none of its own
            events[:0] = [ContentDelta(said), Markup(lead[len(said) :])]
        if not best or _fit(name, text, events, tools) > _fit(found, text, best, tools):
            found, best = name, events
    called = any(isinstance(event, CallStarted) for event in best)
    if called and found in _HEADED and start == "assistant":
        return found, best
    name = found if called else _PLAIN
    again = read_as(text, name, start, tools, alone=False)
    told = any(isinstance(event, CallStarted | Problem) for event in again)
    if _worth(again, tools) > _worth(best, tools) or (told and not called):
        found, best = name, again
    return found, best


def _candidates(text: str) -> Iterator[tuple[str, int]]:
    """The dialects whose markup stands in a text, in the order in which it does, and where; the plain one is the
    last.
    """
    found = sorted((at, mark) for mark in FORMATS.openings if (at := text.find(mark)) >= 0)
    own = dialect_names()
    names = [(name, at) for at, mark in found for way in FORMATS.openings[mark] if (name := way.form.name) in own]
    hints = [(name, at) for mark, name in _HINTS.items() if (at := text.find(mark)) >= 0]
    first: dict[str, int] = {}
    for name, at in (*names, *hints):
        first[name] = min(at, first.get(name, at))
    yield from first.items()
    yield _PLAIN, 0


def _fit(name: str, text: str, events: list[Event], tools: Toolset) -> tuple[int, int, bool]:
    """How well a dialect fits a text: by its reading, then by whether it writes these calls like that."""
    written = "".join(get_dialect(name).calls.layout.text(_calls(events)).split())
    return (*_worth(events, tools), bool(written) and written in "".join(text.split()))


def _calls(events: list[Event]) -> list[Call]:
    """The calls among these events, as they were written."""
    names = {event.index: event.name for event in events if isinstance(event, CallStarted)}
    given = [(event.index, event.text) for event in events if isinstance(event, ArgumentsDelta)]
    return [Call(name, "".join([text for at, text in given if at == index])) for index, name in names.items()]


def _worth(events: list[Event], tools: Toolset) -> tuple[int, int]:
    """How well a reading went: the calls that hold, and the problems, of which less is more."""
    return len(valid_calls(events, tools)), -sum(isinstance(event, Problem) for event in events)


def read_as(text: str, dialect: str, start: str, tools: Toolset, *, alone: bool = True) -> list[Event]:
    """The events of a whole text in this dialect; `alone`: calls of other formats are not searched for."""
    events: list[Event] = []
    source = StreamReader(events.append)
    source.push(text)
    source.end()
    calls = get_dialect(dialect).calls
    for _ in read_answer(calls, AnswerText(source, tools, calls.layout, alone=alone), start, FORMATS):
        raise AssertionError("the text is all there")
    return events
