"""The tool parser and reasoning parser of a dialect, driven over streamed text: `feed` each delta, then `finish`.
Whole text is one delta.

Knows no format, and leaves to a filter what is checked.
"""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from callwright.calls.toolset import Toolset
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    FinishReason,
    ReasoningDelta,
    finished,
)
from callwright.prompt import BREAK, restored
from callwright.spans import Span, SpanRecorder
from callwright.stream_reader import Parse, StreamReader

__all__ = ["Filter", "OutputParser", "PassThrough", "Reads"]


class Reads(Protocol):
    """What is needed of a dialect here: `parse`, a generator that reads one output from `source`.

    `start` says where the output begins: `assistant`, `reasoning` or `message` (see `callwright.prompt.Prompt`).
    """

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]: ...


class Filter(Protocol):
    """What stands between a parser and its consumer, to check and repair; see `callwright.calls.check.Check`.

    Both methods append the events that may go out to `out`.
    """

    def push(self, events: Iterable[Event], out: list[Event]) -> None: ...

    def finish(self, reason: FinishReason, out: list[Event]) -> None: ...


class PassThrough:
    """The filter that changes nothing."""

    def __init__(self) -> None:
        self._called = False
        self._unfinished = False

    def push(self, events: Iterable[Event], out: list[Event]) -> None:
        """Pass the events on."""
        for event in events:
            self._called = self._called or isinstance(event, CallStarted)
            self._unfinished = self._unfinished or (isinstance(event, CallEnded) and not event.complete)
            out.append(event)

    def finish(self, reason: FinishReason, out: list[Event]) -> None:
        """Append `Finished`; a stop behind a call has the finish reason `tool_calls`."""
        out.append(finished(reason, calls=self._called, unfinished=self._unfinished))


class OutputParser:
    """Parses one output of a model, streamed or whole, into events. Made anew for each output.

    `trace`: it is recorded where each character goes, see `spans`.
    """

    def __init__(
        self, dialect: Reads, tools: Toolset, filter_: Filter, start: str = "assistant", *, trace: bool = False
    ) -> None:
        self._events: list[Event] = []
        self._recorder = SpanRecorder() if trace else None
        self._source = StreamReader(self._recorded if trace else self._events.append)
        self._steps = dialect.parse(self._source, start, tools)
        self._filter = filter_
        self._may_repeat = False  # it may repeat what was broken in its prompt
        self._before = ""  # what it wrote last

    def feed(self, text: str) -> list[Event]:
        """Read a delta; answers the events that have become certain."""
        if self._recorder is not None:
            self._recorder.feed(text)
        if self._recorder is not None or not self._source.try_fast_path(text):
            self._source.push(text)
            next(self._steps, None)
        out: list[Event] = []
        self._filter.push(self._events, out)
        self._events.clear()
        if self._may_repeat or BREAK in text or "\\" in text:
            self._may_repeat = True
            self._restore(out)
        else:
            self._before = text
        return out

    def finish(self, reason: FinishReason = "stop") -> list[Event]:
        """The output is over; answers the remaining events, `Finished` last.

        `reason` is `stop` if the model ended it, else why it was cut off: `length` or `content_filter`.
        """
        self._source.end()
        for _ in self._steps:
            raise AssertionError("a dialect asked for more text behind the end")
        assert self._source.done, "a dialect left text unread"
        out: list[Event] = []
        self._filter.push(self._events, out)
        self._events.clear()
        self._filter.finish(reason, out)
        if self._may_repeat:
            self._restore(out)
        return out

    def spans(self) -> tuple[Span, ...]:
        """Where each character of the output went. Raises `RuntimeError` where that was not asked for."""
        if self._recorder is None:
            raise RuntimeError("this parser was made without trace=True")
        return self._recorder.spans()

    def _recorded(self, event: Event) -> None:
        assert self._recorder is not None
        self._events.append(event)
        self._recorder.add(event, self._source.place)

    def _restore(self, events: list[Event]) -> None:
        """Put right what the prompt has broken: an edit of a file that the model repeats then matches the file."""
        for number, event in enumerate(events):
            if isinstance(event, ContentDelta | ReasoningDelta | ArgumentsDelta):
                text = restored(event.text, self._before)
                self._before = event.text or self._before
                if text is not event.text:
                    events[number] = msgspec.structs.replace(event, text=text)
