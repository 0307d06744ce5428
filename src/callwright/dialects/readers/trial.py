"""Text that is read on trial: what it would mean if its tags were meant, before it is known whether they are."""

from collections.abc import Sequence

import msgspec

from callwright.calls.fit import repair_and_validate
from callwright.calls.toolset import Toolset
from callwright.events import ArgumentsDelta, Call, CallEnded, CallStarted, ContentDelta, Event, Problem
from callwright.stream_reader import StreamReader
from callwright.tolerant_json.reader import read_json

__all__ = ["Trial", "TrialSpan", "doubts"]


class TrialSpan(msgspec.Struct):
    """Where calls stand in a held text, and which of the events are theirs."""

    begin: int
    end: int
    first: int
    last: int


class Trial(msgspec.Struct):
    """One reading of a held text: what it reads from, the events so far, and where there are calls."""

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
        """What is said of the calls at one of the places when they stay text."""
        span = self.spans[number]
        return doubts(self.events[span.first : span.last], tools)


def has_words(events: Sequence[Event]) -> bool:
    """Whether there is text for the user among these events."""
    return any(isinstance(event, ContentDelta) and event.text.strip() for event in events)


def doubts(events: Sequence[Event], tools: Toolset) -> list[Problem]:
    """What is said of calls that stay text: each could be meant, or does not even hold."""
    started = [event for event in events if isinstance(event, CallStarted)]
    whole = {event.index for event in events if isinstance(event, CallEnded) and event.complete}
    problems: list[Problem] = []
    for call in started:
        written = "".join(e.text for e in events if isinstance(e, ArgumentsDelta) and e.index == call.index)
        node = read_json(written) if call.index in whole and call.name in tools else None
        fitted = repair_and_validate(node, call.name, tools) if node else None
        if fitted is None or fitted.faults:
            problems.append(Problem("incomplete_arguments", f"what may be a call of {call.name!r} does not hold"))
        else:
            detail = f"a call of {call.name!r} that may only be shown"
            problems.append(Problem("ambiguous_call", detail, candidate=Call(call.name, fitted.text)))
    return problems
