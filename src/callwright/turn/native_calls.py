"""What a server has parsed itself, as events: text, reasoning, and calls in pieces.

Servers send the pieces of one call behind the other, but not all of them, and not always with an end: a call is
over when the next one begins and its own arguments are a whole JSON value, or when the answer ends.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    FinishReason,
    Problem,
    ReasoningDelta,
)
from callwright.parser import Filter
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.tolerant_json.passthrough import JsonScanner
from callwright.upstreams.base import ToolCallDelta

__all__ = ["NativeCalls", "PrintedCalls"]


# Far above the numbers of calls that a parser finds in the text of the same answer.
_FIRST = 1 << 20


class _Call(Struct):
    index: int
    span: JsonScanner
    name: str = ""
    id: str | None = None
    waiting: list[str] = []  # arguments that could not go out yet
    said: list[str] = []  # all arguments
    started: bool = False
    whole: bool = False


class NativeCalls:
    """Passes a server's pieces to a filter, as events; calls one behind the other, as OpenAI's API sends them."""

    def __init__(self, filter_: Filter) -> None:
        self._filter = filter_
        self._calls: dict[int, _Call] = {}  # those that are not over, in the order of their begins
        self._seen = 0
        self._all: list[_Call] = []

    @property
    def has_calls(self) -> bool:
        """Whether the server has handed on any call."""
        return bool(self._all)

    def has_made(self, name: str, arguments: str) -> bool:
        """Whether the server has handed on this call."""
        return any(call.name == name and _same("".join(call.said), arguments) for call in self._all)

    def text(self, text: str, logprobs: Mapping[str, Any] | None = None) -> list[Event]:
        """A piece of the answer."""
        return self._pushed([ContentDelta(text, logprobs)] if text or logprobs else [])

    def reasoning(self, text: str) -> list[Event]:
        """A piece of the reasoning."""
        return self._pushed([ReasoningDelta(text)] if text else [])

    def call(self, delta: ToolCallDelta) -> list[Event]:
        """A piece of a call."""
        call = self._calls.get(delta.index) or self._begun(delta.index)
        arguments = delta.arguments
        if arguments:
            call.said.append(arguments)
            if not call.whole:
                _, call.whole = call.span.end(arguments, 0)
        if call.started and len(self._calls) == 1:  # by far the most frequent
            return self._pushed([ArgumentsDelta(call.index, arguments)]) if arguments else []
        call.id = call.id or delta.id
        call.name = call.name or delta.name or ""
        if arguments:
            call.waiting.append(arguments)
        return self._pushed(self._ready())

    def _begun(self, index: int) -> _Call:
        call = self._calls[index] = _Call(_FIRST + self._seen, JsonScanner())
        self._all.append(call)
        self._seen += 1
        return call

    def end(self, *, cut: bool = False) -> list[Event]:
        """The answer is over; `cut`: because of its limit."""
        events: list[Event] = []
        for call in self._calls.values():
            events += _out(call)
            events.append(CallEnded(call.index, complete=call.whole or not cut))
        self._calls.clear()
        return self._pushed(events)

    def _ready(self) -> list[Event]:
        """What may go out: the first call's pieces, and the next one's when it is whole."""
        events: list[Event] = []
        for number, call in list(self._calls.items()):
            over = call.whole and len(self._calls) > 1
            if call.name or over:
                events += _out(call)
            if not over:
                break
            events.append(CallEnded(call.index))
            del self._calls[number]
        return events

    def _pushed(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        self._filter.push(events, out)
        return out


class PrintedCalls:
    """Stands before a filter, for calls that are found in the text of an answer whose calls the server reads itself.

    A call that the server has handed on as well is left out: it was made once. So a call is held where the server has
    handed on any. `is_leak`: such a call is a problem, because its place is not the text.
    """

    def __init__(self, filter_: Filter, native: NativeCalls, *, is_leak: bool) -> None:
        self._filter = filter_
        self._native = native
        self._is_leak = is_leak
        self._held: dict[int, list[Event]] = {}
        self._live: set[int] = set()

    def push(self, events: Iterable[Event], out: list[Event]) -> None:
        """Hand on what is no repetition."""
        kept: list[Event] = []
        for event in events:
            match event:
                case CallStarted(index) | ArgumentsDelta(index) | CallEnded(index) | Problem(call=int(index)):
                    if index in self._live or not (self._held.get(index) or self._native.has_calls):
                        self._live.add(index)
                        kept.append(event)
                        if isinstance(event, CallEnded):
                            kept += self._told(index)
                        continue
                    self._held.setdefault(index, []).append(event)
                    if isinstance(event, CallEnded):
                        kept += self._judged(self._held.pop(index))
                case _:
                    kept.append(event)
        self._filter.push(kept, out)

    def finish(self, reason: FinishReason, out: list[Event]) -> None:
        """See `Filter`."""
        self._filter.finish(reason, out)

    def _judged(self, events: list[Event]) -> list[Event]:
        started = next(event for event in events if isinstance(event, CallStarted))
        index, name = started.index, started.name
        arguments = "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
        if self._native.has_made(name, arguments):
            return [Problem("call_repeated", f"a call of {name!r} stands in the text, too", text=arguments)]
        return events + self._told(index)

    def _told(self, index: int) -> list[Event]:
        return [Problem("call_in_text", "the server left the call in the answer", call=index)] if self._is_leak else []


def _same(one: str, other: str) -> bool:
    try:
        return bool(decode(one or "{}") == decode(other or "{}"))
    except NotJsonError:
        return one == other


def _out(call: _Call) -> list[Event]:
    events: list[Event] = [] if call.started else [CallStarted(call.index, call.name, id=call.id)]
    call.started = True
    events += [ArgumentsDelta(call.index, text) for text in call.waiting]
    call.waiting.clear()
    return events
