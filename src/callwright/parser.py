"""The tool parser and reasoning parser of a dialect, driven over streamed text: `feed` each delta, then `finish`.
Whole text is one delta.

Knows no format, and leaves to a filter what is checked.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
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
from callwright.passing import AS_IS, Passing
from callwright.prompt import BREAK, EDGE_CHARS, EDGE_ENDS, open_escape, restored
from callwright.spans import Span, SpanRecorder
from callwright.stream_reader import Parse, StreamReader, Stretch

__all__ = ["Filter", "OutputParser", "PassThrough", "Reads"]


class Reads(Protocol):
    """What is needed of a dialect here: `parse`, a generator that reads one output from `source`.

    `start` says where the output begins: `assistant`, `reasoning` or `message` (see `callwright.prompt.Prompt`).
    """

    def parse(self, source: StreamReader, start: str, tools: Toolset) -> Parse[None]: ...


class Filter(Protocol):
    """What stands between a parser and its consumer, to check and repair; see `callwright.calls.check.Check`.

    The last two append the events that may go out to `out`. `Markup` passes as it is, at once.
    """

    def passing(self, call: int | None) -> Passing | None:
        """What passes on more arguments of a call, with its index, or with None text that is no call's; None where each
        event is to be pushed.
        """

    def push(self, events: Iterable[Event], out: list[Event]) -> None: ...

    def finish(self, reason: FinishReason, out: list[Event]) -> None: ...


class PassThrough:
    """The filter that changes nothing."""

    def __init__(self) -> None:
        self._called = False
        self._unfinished = False

    def passing(self, call: int | None) -> Passing:
        """See `Filter`."""
        return AS_IS

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
        self._recent: deque[str] = deque(maxlen=EDGE_CHARS)  # what was written last, as far as it matters to `_repeats`
        self._repeats: _Repeats | None = None  # made where something comes that a repetition holds
        self._flow: _Flow | None = None  # to be given the next delta
        self._next_flow: _Flow | None = None  # for the stretch that was `_waited_in`, once a delta has gone on in it
        self._waited_in: Stretch | None = None

    def feed(self, text: str) -> list[Event]:
        """Read a delta; answers the events that have become certain."""
        flow = self._flow
        if flow is not None and (out := flow.feed(text)) is not None:
            if self._events:  # markup before what is said
                out[:0] = self._events
                self._events.clear()
            return out
        if self._recorder is not None:
            self._recorder.feed(text)
        source, stretch, events = self.source, self.source.stretch, self._events
        taken = stretch.take(text) if stretch is not None and flow is None and self._recorder is None else None
        if taken is None:
            source.push(text)
            next(self._steps, None)
        else:
            events += taken
        out = []
        self._filter.push(self._restored(events), out)
        events.clear()
        self._flow = None
        stretch, repeats = source.stretch, self._repeats
        if stretch is not None and self._recorder is None and (repeats is None or not repeats.holds):
            if stretch is not self._waited_in:
                self._waited_in, self._next_flow = stretch, None
            elif self._next_flow is None and (passing := self._filter.passing(stretch.call)) is not None:
                self._next_flow = _Flow(stretch, passing, self._recent)
            self._flow = self._next_flow
        return out

    def finish(self, reason: FinishReason = "stop") -> list[Event]:
        """The output is over; answers the remaining events, `Finished` last.

        `reason` is `stop` if the model ended it, else why it was cut off: `length` or `content_filter`.
        """
        self._flow = None
        self.source.end()
        for _ in self._steps:
            raise AssertionError("a dialect asked for more text behind the end")
        assert self.source.done, "a dialect left text unread"
        out: list[Event] = []
        self._filter.push(self._restored(self._events), out)
        if self._repeats is not None:
            self._filter.push(self._repeats.finish(), out)
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

    def _restored(self, events: list[Event]) -> list[Event]:
        """The events with what the model repeats put right: see `_Repeats`. Judged by what is said, not by what was
        written, for which a format may have escapes of its own.
        """
        if self._repeats is None:
            said: list[str] = [event.text for event in events if type(event) in _SAID and event.text]  # type: ignore[union-attr]  # isinstance is slow to deny
            if not any(map(_may_repeat, said)):
                self._recent += said
                return events
            self._repeats = _Repeats(self._recent)
        return self._repeats.restored(events)

    def _recorded(self, event: Event) -> None:
        assert self._recorder is not None
        self._events.append(event)
        self._recorder.add(event, self.source.place)


class _Flow:
    """A stretch of text on its way through reader, repetitions and filter: what each of them looks for is looked for at
    once. See `Stretch` and `Passing`.
    """

    def __init__(self, stretch: Stretch, passing: Passing, recent: deque[str]) -> None:
        self.stretch = stretch
        self._passing = passing
        self._recent = recent
        self._holds = "".join([char for char in stretch.holds if char not in (stretch.firsts or "")])
        self._is_certain = _certain(
            stretch.firsts,
            stretch.lasts,
            ('"' if stretch.is_json else "") + passing.matters,
            passing.certain if stretch.is_json else passing.certain_text,
            stretch.certain,
            halves=stretch.is_json or stretch.certain != "",
        )

    def feed(self, text: str) -> list[Event] | None:
        """Read a delta; answers its events, None if it has to go the long way, and then nothing was done."""
        stretch, passing = self.stretch, self._passing
        whole = stretch.held + text if stretch.held else text
        said = whole.rstrip(self._holds) if self._holds else whole
        certain = self._is_certain(said) if passing.flows and said else None
        if certain is not None and (said is not whole or certain.lastindex is not None):
            said = self._without_held(whole, said, is_half=certain.lastindex is not None)
        if certain is not None and said:
            if said is not text:
                stretch.held = whole[len(said) :]
            event = stretch.make(said)
            said = event.text
            passing.pass_on(said)
            if type(event) is not Markup:
                self._recent.append(said)
            return [event]
        if BREAK in whole or ("\\" in whole and _may_repeat(whole, self._recent)):
            return None
        events = stretch.take(text) if text else None
        if events is None:
            return None
        out: list[Event] = []
        for event in events:
            said = event.text
            if type(event) is ArgumentsDelta:
                self._recent.append(said)
                passed = passing.feed(said)
                if passed is not said:
                    if not passed:
                        continue
                    event = ArgumentsDelta(event.index, passed)
            elif type(event) is not Markup:
                self._recent.append(said)
            out.append(event)
        return out

    def _without_held(self, whole: str, said: str, *, is_half: bool) -> str:
        """What can be said of a text without what is held at its end: of blanks and such so many, or half of an escape.
        Empty if it is not to be held.
        """
        if is_half:
            return said[:-1] if said is whole else ""
        return said if len(whole) - len(said) <= self.stretch.most else ""


@lru_cache(maxsize=1024)
def _certain(
    firsts: str | None, lasts: str, matters: str, certain: str, own: str = "", *, halves: bool = False
) -> Callable[[str], re.Match[str] | None]:
    """Matches a text in which nothing but what is `certain` matters, to the check or to the reader (`own`). The group
    is half of an escape at its end. See `Stretch` and `Passing`.
    """
    if firsts is None:
        return re.compile("(?!)").match
    firsts = re.escape(firsts)
    plain = rf"[^{firsts}{matters}{BREAK}\\]*+"
    before = f"(?![{firsts}])" if firsts else ""
    choices = [*([own] if own else []), *([f"{before}(?:{certain})"] if certain else [])]
    others = rf"(?:(?:{'|'.join(choices)}){plain})*+" if choices else ""
    behind = f"(?<![{re.escape(lasts)}])" if lasts else ""
    half = r"(\\)?" if halves else ""
    return re.compile(rf"{plain}{others}{behind}{half}\Z").match


_Said: TypeAlias = ContentDelta | ReasoningDelta | ArgumentsDelta
_SAID: Final = (ContentDelta, ReasoningDelta, ArgumentsDelta)


# Begins of an escape for what a prompt breaks with.
_OPEN_ESCAPES: Final = ("\\", "\\u", "\\u2", "\\u20", "\\u206")


def _may_repeat(text: str, recent: Iterable[str] | None = None) -> bool:
    """Whether a text may hold what a prompt breaks with, as it is or as an escape, or the begin of that.

    `recent` is what was said before the text, where that is known.
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
    """Puts right what the prompt has broken and the model repeats: an edit of a file then matches the file, and a word
    of an enum is that word. Before the check, which compares.

    `recent`: as many of the last texts that were written as may hold the characters that matter, none of them empty.
    """

    def __init__(self, recent: deque[str]) -> None:
        self._recent = recent
        self._held: _Said | None = None  # its text may be the begin of an escape

    def restored(self, events: list[Event]) -> list[Event]:
        """The events that were made of a delta; the same list where nothing is to be put right."""
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
        before = "".join(self._recent)[-EDGE_CHARS:]
        held = open_escape(event.text, before)
        said = event.text.removesuffix(held)
        text = restored(said, before)
        if held:
            self._held = replace(event, text=held, **({"logprobs": None} if isinstance(event, ContentDelta) else {}))
        if said:
            self._recent.append(said)
        if text or not held:
            out.append(event if text is event.text else replace(event, text=text))
        return out
