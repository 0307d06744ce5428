"""Text that is read on trial: its reading if its tags were meant, before it is known whether they are."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from callwright.calls.fit import RepairedArguments, repair_and_validate
from callwright.calls.toolset import Toolset
from callwright.events import ArgumentsDelta, Call, CallEnded, CallStarted, ContentDelta, Event, Problem
from callwright.streaming.reader import StreamReader
from callwright.tolerant_json.reader import read_json


class TrialSpan(msgspec.Struct):
    """The position of calls in a held text, and the range of their events. `own`: they are in the format that is read.
    `is_sure`: their opening can mean nothing else.
    """

    begin: int
    end: int
    first: int
    last: int
    own: bool = True
    is_sure: bool = True


class Trial(msgspec.Struct):
    """One reading of a held text: its source, the events so far, and the positions of calls."""

    events: list[Event]
    spans: list[TrialSpan]
    source: StreamReader | None = None

    def places(self, size: int) -> list[tuple[int, int]]:
        """The begin and end of the calls in the text of this size, with the structure that follows each."""
        nexts = [*self.spans[1:], TrialSpan(size, size, len(self.events), len(self.events))]
        return [
            (span.begin, span.end if has_words(self.events[span.last : behind.first]) else behind.begin)
            for span, behind in zip(self.spans, nexts, strict=False)
        ]

    def doubts(self, number: int, tools: Toolset) -> list[Problem]:
        """The problems of the calls at one of the places if they stay text."""
        span = self.spans[number]
        return doubts(self.events[span.first : span.last], tools)


def has_words(events: Sequence[Event]) -> bool:
    """Whether there is text for the user among these events."""
    return any(isinstance(event, ContentDelta) and event.text.strip() for event in events)


def fitted_calls(events: Iterable[Event], tools: Toolset) -> Iterator[tuple[int, str, RepairedArguments | None]]:
    """The calls among these events: their indices, names and arguments ready to be sent; None for one that is
    incomplete, or of no offered tool.
    """
    names: dict[int, str] = {}
    written: dict[int, list[str]] = {}
    whole: set[int] = set()
    for event in events:
        match event:
            case CallStarted(index, name):
                names[index], written[index] = name, []
            case ArgumentsDelta(index, text):
                written[index].append(text)
            case CallEnded(index, complete=True):
                whole.add(index)
    for index, name in names.items():
        node = read_json("".join(written[index])) if index in whole and name in tools else None
        yield index, name, repair_and_validate(node, name, tools) if node else None


def doubts(events: Iterable[Event], tools: Toolset) -> list[Problem]:
    """The problems of calls that stay text: each could be meant, or is not even valid."""
    problems: list[Problem] = []
    for _, name, fitted in fitted_calls(events, tools):
        if fitted is None or fitted.faults:
            problems.append(Problem("incomplete_arguments", f"a possible call of {name!r} is not valid"))
        else:
            detail = f"a call of {name!r} that may only be shown"
            problems.append(Problem("ambiguous_call", detail, candidate=Call(name, fitted.text)))
    return problems
