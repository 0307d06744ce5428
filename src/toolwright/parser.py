"""Drives a dialect over text in pieces: `feed`, `finish`. The whole-text case is the same with one piece."""

from typing import Protocol

from toolwright.events import CallStarted, Event, Finished, FinishReason
from toolwright.source import Source, Steps
from toolwright.toolset import Toolset

__all__ = ["Filter", "OutputParser", "PassThrough", "Reads"]


class Reads(Protocol):
    """What a parser needs of a dialect."""

    def parse(self, source: Source, start: str, tools: Toolset) -> Steps[None]: ...


class Filter(Protocol):
    """What stands between the dialect and the consumer; see `toolwright.check.Check`."""

    def push(self, event: Event, out: list[Event]) -> None: ...

    def finish(self, reason: FinishReason, out: list[Event]) -> None: ...


class PassThrough:
    """The filter that changes nothing."""

    def __init__(self) -> None:
        self._called = False

    def push(self, event: Event, out: list[Event]) -> None:
        """Hand the event on."""
        self._called = self._called or isinstance(event, CallStarted)
        out.append(event)

    def finish(self, reason: FinishReason, out: list[Event]) -> None:
        """Say how the turn ended."""
        out.append(Finished("tool_calls" if reason == "stop" and self._called else reason))


class OutputParser:
    """Reads one output of a model."""

    def __init__(self, dialect: Reads, tools: Toolset, filter_: Filter, start: str = "assistant") -> None:
        self._source = Source()
        self._steps = dialect.parse(self._source, start, tools)
        self._push = filter_.push
        self._finish = filter_.finish

    def feed(self, text: str) -> list[Event]:
        """Read more text; answers what has become certain."""
        self._source.push(text)
        out: list[Event] = []
        push = self._push
        for event in self._steps:
            if event is None:
                break
            push(event, out)
        return out

    def finish(self, reason: FinishReason = "stop") -> list[Event]:
        """The output is over: `stop` (the model ended it) or `length` (it was cut off). Answers all that is left."""
        source = self._source
        source.end(cut=reason != "stop")
        out: list[Event] = []
        for event in self._steps:
            assert event is not None, "a dialect asked for more text behind the end"
            self._push(event, out)
        assert source.done, "a dialect left text unread"
        self._finish(reason, out)
        return out
