"""The tool parser and reasoning parser of a dialect, driven over streamed text: `feed` each delta, then `finish`. Whole
text is one delta.

Independent of the format; checks are left to a filter.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeAlias

from msgspec.structs import replace

from callwright.calls.toolset import Toolset
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    FinishReason,
    Markup,
    ReasoningDelta,
    finished,
)
from callwright.prompt import BREAK, EDGE_CHARS, EDGE_ENDS, open_escape, restore_breaks
from callwright.reading.spans import Span, SpanRecorder
from callwright.streaming.fast_path import AS_IS, Flow, Passing
from callwright.streaming.reader import Parse, StreamReader, Stretch


class Reads(Protocol):
    """The part of a dialect needed here: `parse`, a generator that reads one output from `source`.

    `start` is the place at which the output begins: `assistant`, `reasoning` or `message` (see
    `callwright.prompt.Prompt`).
    """

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]: ...


class Filter(Protocol):
    """Checks and repairs events between a parser and its consumer; see `callwright.calls.check.Check`.

    The last two methods append the events that may be sent to `out`. `Markup` passes unchanged, immediately.
    """

    def passing(self, call: int | None) -> Passing | None:
        """The check for more arguments of a call, with its index, or (None) for text outside of calls; None if each
        event must be pushed.
        """

    def push(self, events: Sequence[Event], out: list[Event]) -> None: ...

    def finish(self, reason: FinishReason, out: list[Event]) -> None: ...


class PassThrough:
    """The filter that changes nothing."""

    def __init__(self) -> None:
        self._called = False
        self._unfinished = False

    def passing(self, call: int | None) -> Passing:
        return AS_IS

    def push(self, events: Sequence[Event], out: list[Event]) -> None:
        """Pass the events on."""
        for event in events:
            self._called = self._called or isinstance(event, CallStarted)
            self._unfinished = self._unfinished or (isinstance(event, CallEnded) and not event.complete)
            out.append(event)

    def finish(self, reason: FinishReason, out: list[Event]) -> None:
        """Append `Finished`; a stop after a call has the finish reason `tool_calls`."""
        out.append(finished(reason, calls=self._called, unfinished=self._unfinished))


class OutputParser:
    """Parses one output of a model, streamed or whole, into events. Created for each output.

    `trace`: record where each character goes, see `spans`.
    """

    def __init__(
        self, dialect: Reads, tools: Toolset, filter_: Filter, start: str = "assistant", *, trace: bool = False
    ) -> None:
        self._events: list[Event] = []
        self._recorder = SpanRecorder() if trace else None
        self.source = StreamReader(self._recorded if trace else self._events.append)
        self._steps = dialect.parse(self.source, start, tools)
        self._filter = filter_
        # the tail of the output, as far as it matters to `_repeats`
        self._recent: deque[str] = deque(maxlen=EDGE_CHARS)
        self._repeats: _Repeats | None = None  # created at the first text that may contain a repetition
        self._flow: Flow | None = None  # to be given the next delta
        self._next_flow: Flow | None = None  # for the `_waited_in` stretch, once a delta has continued it
        self._waited_in: Stretch | None = None

    def feed(self, text: str) -> list[Event]:
        """Read a delta; returns the events that have become certain."""
        flow = self._flow
        if flow is not None:
            try:
                whole = flow.rest + text
                found = flow.match(whole)
            except TypeError:  # it is no text
                return self._read(text)
            if found is not None:
                if found.lastindex is None and whole:
                    flow.rest = ""
                    call = flow.call
                    if call is None:
                        return flow.say(whole)
                    flow.told(whole)
                    return [ArgumentsDelta(call, whole)]
                out = flow.more(whole, found)
                if out is not None:
                    return out
            flow.settle(self.source)
            self._flow = None
        return self._read(text)

    def _read(self, text: str) -> list[Event]:
        """Read a delta by all steps; the next one may flow."""
        if self._recorder is not None:
            self._recorder.feed(text)
        source = self.source
        source.push(text)
        next(self._steps, None)
        out = self._checked() if self._events else []
        stretch = source.stretch
        if stretch is None or self._recorder is not None or (self._repeats is not None and self._repeats.holds):
            return out
        flow = self._next_flow
        if stretch is not self._waited_in:
            self._waited_in, flow = stretch, None
        elif flow is None and (passing := self._filter.passing(stretch.call)) is not None:
            flow = Flow(stretch, passing, self._recent)
        self._next_flow = flow
        if flow is not None and flow.begins():
            self._flow = flow
        return out

    def _checked(self) -> list[Event]:
        """The emitted events that may be sent. Breaks that the model repeats are restored first: see `_Repeats`. Judged
        by the decoded text, not the written one, for which a format may have its own escapes.
        """
        out: list[Event] = []
        events, repeats = self._events, self._repeats
        if list(map(type, events)).count(ArgumentsDelta) > 1:
            events = _joined(events)
        if repeats is None:
            said: list[str] = []
            for event in events:
                if type(event) in _SAID and event.text:  # type: ignore[union-attr]  # isinstance is slow to deny
                    said.append(event.text)  # type: ignore[union-attr]
            whole = "".join(said)
            if ("\\" in whole or BREAK in whole) and any(map(_may_repeat, said)):
                repeats = self._repeats = _Repeats(self._recent)
            else:
                self._recent += said
        self._filter.push(events if repeats is None else repeats.restore(events), out)
        self._events.clear()
        return out

    def finish(self, reason: FinishReason = "stop", last: str = "") -> list[Event]:
        """End the output; returns the remaining events, `Finished` last.

        `reason` is `stop` if the model ended it, else why it was cut off: `length` or `content_filter`. `last` is the
        final delta, or all of the output, if that is known in advance: nothing in it has to wait for more.
        """
        if self._flow is not None:
            self._flow.settle(self.source)
            self._flow = None
        if last:
            if self._recorder is not None:
                self._recorder.feed(last)
            self.source.push(last)
        self.source.end()
        for _ in self._steps:
            raise AssertionError("a dialect asked for more text after the end")
        assert self.source.done, "a dialect left text unread"
        out = self._checked() if self._events else []
        if self._repeats is not None:
            self._filter.push(self._repeats.finish(), out)
        self._filter.finish(reason, out)
        return out

    def spans(self) -> tuple[Span, ...]:
        """The part that each character of the output belongs to. Raises `RuntimeError` without `trace`."""
        return self.recorder.spans()

    @property
    def recorder(self) -> SpanRecorder:
        """The record of the output. Raises `RuntimeError` without `trace`."""
        if self._recorder is None:
            raise RuntimeError("this parser was made without trace=True")
        return self._recorder

    def _recorded(self, event: Event) -> None:
        assert self._recorder is not None
        self._events.append(event)
        self._recorder.add(event, self.source.place)


def _joined(events: list[Event]) -> list[Event]:
    """Join a call's argument deltas if only markup is between them: values in tags arrive in many pieces, and one
    joined piece is checked in one go. It takes the place of the last of them.
    """
    out: list[Event] = []
    runs: list[tuple[int, list[str]]] = []  # their calls and texts, the last first
    is_open = False  # what precedes belongs to the last one
    for event in reversed(events):
        if type(event) is ArgumentsDelta:
            if is_open and runs[-1][0] == event.index:
                runs[-1][1].append(event.text)
                continue
            runs.append((event.index, [event.text]))
            is_open = True
        elif type(event) is not Markup:
            is_open = False
        out.append(event)
    return [_whole(event, runs) if type(event) is ArgumentsDelta else event for event in reversed(out)]


def _whole(first: ArgumentsDelta, runs: list[tuple[int, list[str]]]) -> ArgumentsDelta:
    """The last of these runs as one delta; it is taken from them."""
    index, texts = runs.pop()
    return ArgumentsDelta(index, "".join(reversed(texts))) if len(texts) > 1 else first


_Said: TypeAlias = ContentDelta | ReasoningDelta | ArgumentsDelta
_SAID: Final = (ContentDelta, ReasoningDelta, ArgumentsDelta)


# Beginnings of an escape of the character with which a prompt breaks look-alikes.
_OPEN_ESCAPES: Final = ("\\", "\\u", "\\u2", "\\u20", "\\u206")


def _may_repeat(text: str, recent: Iterable[str] | None = None) -> bool:
    """Whether a text may contain the prompt's break character, literally or escaped, or the beginning of its escape.

    `recent` is the output before the text, if known.
    """
    if "\\" not in text:
        return BREAK in text
    if BREAK in text or "\\u2060" in text:
        return True
    if not text.endswith(_OPEN_ESCAPES):
        return False
    at = text.rindex("\\")
    if recent is None or (at and text[at - 1] not in EDGE_ENDS):
        return recent is None
    return open_escape(text, "".join(recent)[-EDGE_CHARS:]) != ""


class _Repeats:
    """Restores text that the prompt has broken and the model repeats: an edit of a file then matches the file, and a
    word of an enum is that word. Runs before the check, which compares.

    `recent`: as many of the latest texts as may hold the characters that matter, none of them empty.
    """

    def __init__(self, recent: deque[str]) -> None:
        self._recent = recent
        self._held: _Said | None = None  # its text may be the beginning of an escape

    def restore(self, events: list[Event]) -> list[Event]:
        """The events of a delta with breaks restored; the same list if there is nothing to restore."""
        out: list[Event] | None = None
        for number, event in enumerate(events):
            if isinstance(event, _SAID):
                text = event.text
                if self._held is None and not _may_repeat(text, self._recent):
                    if text:
                        self._recent.append(text)
                    if out is not None:
                        out.append(event)
                    continue
                out = events[:number] if out is None else out
                out += self._put_right(event)
            elif out is not None or self._held is not None:
                out = events[:number] if out is None else out
                out += (*self.finish(), event)
        return events if out is None else out

    @property
    def holds(self) -> bool:
        """Whether something is held back."""
        return self._held is not None

    def finish(self) -> list[Event]:
        """The held-back event, if any."""
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
        before = "".join(self._recent)[-EDGE_CHARS:]
        held = open_escape(event.text, before)
        said = event.text.removesuffix(held)
        text = restore_breaks(said, before)
        if held:
            self._held = replace(event, text=held, **({"logprobs": None} if isinstance(event, ContentDelta) else {}))
        if said:
            self._recent.append(said)
        if text or not held:
            out.append(event if text is event.text else replace(event, text=text))
        return out
