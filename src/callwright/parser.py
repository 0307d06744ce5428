"""The tool parser and reasoning parser of a dialect, driven over streamed text: `feed` each delta, then `finish`.
Whole text is one delta.

Knows no format, and leaves to a filter what is checked.
"""

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from msgspec.structs import replace

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
from callwright.prompt import BREAK, EDGE_CHARS, open_escape, restored
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
        self.source = StreamReader(self._recorded if trace else self._events.append)
        self._steps = dialect.parse(self.source, start, tools)
        self._filter = filter_
        self._before = ""  # what was written last, as far as it matters to `_repeats`
        self._repeats: _Repeats | None = None  # made where something comes that a repetition holds

    def feed(self, text: str) -> list[Event]:
        """Read a delta; answers the events that have become certain."""
        if self._recorder is not None:
            self._recorder.feed(text)
        source = self.source
        if self._recorder is not None or source.fast_path is None or not source.fast_path(text):
            source.push(text)
            next(self._steps, None)
        out: list[Event] = []
        if self._repeats is None and BREAK not in text and "\\" not in text:
            self._before = (self._before + text[-EDGE_CHARS:])[-EDGE_CHARS:]
            self._filter.push(self._events, out)
        else:
            self._repeats = self._repeats or _Repeats(self._before)
            self._filter.push(self._repeats.restored(self._events), out)
        self._events.clear()
        return out

    def finish(self, reason: FinishReason = "stop") -> list[Event]:
        """The output is over; answers the remaining events, `Finished` last.

        `reason` is `stop` if the model ended it, else why it was cut off: `length` or `content_filter`.
        """
        self.source.end()
        for _ in self._steps:
            raise AssertionError("a dialect asked for more text behind the end")
        assert self.source.done, "a dialect left text unread"
        out: list[Event] = []
        events = self._events
        if self._repeats is not None:
            events = [*self._repeats.restored(events), *self._repeats.finish()]
        self._filter.push(events, out)
        self._filter.finish(reason, out)
        return out

    def spans(self) -> tuple[Span, ...]:
        """Where each character of the output went. Raises `RuntimeError` where that was not asked for."""
        return self.recorder.spans()

    @property
    def recorder(self) -> SpanRecorder:
        """What was recorded of the output. Raises `RuntimeError` where that was not asked for."""
        if self._recorder is None:
            raise RuntimeError("this parser was made without trace=True")
        return self._recorder

    def _recorded(self, event: Event) -> None:
        assert self._recorder is not None
        self._events.append(event)
        self._recorder.add(event, self.source.place)


_Said: TypeAlias = ContentDelta | ReasoningDelta | ArgumentsDelta


class _Repeats:
    """Puts right what the prompt has broken and the model repeats: an edit of a file then matches the file, and a word
    of an enum is that word. Before the check, which compares.

    `before`: the last `EDGE_CHARS` characters of what was written.
    """

    def __init__(self, before: str) -> None:
        self._before = before
        self._held: _Said | None = None  # its text may be the begin of an escape

    def restored(self, events: list[Event]) -> list[Event]:
        """The events that were made of a delta."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, ContentDelta | ReasoningDelta | ArgumentsDelta):
                out += self._put_right(event)
            else:
                out += (*self.finish(), event)
        return out

    def finish(self) -> list[Event]:
        """What was held back."""
        held, self._held = self._held, None
        return [held] if held is not None else []

    def _put_right(self, event: _Said) -> list[Event]:
        out: list[Event] = []
        if self._held is not None:
            if type(event) is type(self._held) and getattr(event, "index", 0) == getattr(self._held, "index", 0):
                event = replace(event, text=self._held.text + event.text)
                self._held = None
            else:
                out = self.finish()
        held = open_escape(event.text, self._before)
        text = restored(event.text.removesuffix(held), self._before)
        if held:
            self._held = replace(event, text=held, **({"logprobs": None} if isinstance(event, ContentDelta) else {}))
        self._before = (self._before + event.text.removesuffix(held))[-EDGE_CHARS:]
        if text or not held:
            out.append(event if text is event.text else replace(event, text=text))
        return out
