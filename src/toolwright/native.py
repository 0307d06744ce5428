"""What a server has parsed itself, as events: text, reasoning, and calls in pieces.

Servers send the pieces of one call behind the other, but not all of them, and not always with an end: a call is
over when the next one begins and its own arguments are a whole JSON value, or when the answer ends.
"""

from msgspec import Struct

from toolwright.events import ArgumentsDelta, CallEnded, CallStarted, ContentDelta, Event, ReasoningDelta
from toolwright.jsonspan import JsonSpan
from toolwright.parser import Filter
from toolwright.upstreams.base import ToolCallDelta

__all__ = ["NativeCalls"]


class _Open(Struct):
    index: int
    span: JsonSpan
    started: bool = False
    name: str = ""
    id: str | None = None
    early: str = ""  # arguments that came before the name
    whole: bool = False


class NativeCalls:
    """Passes a server's pieces to a filter, as events."""

    def __init__(self, filter_: Filter) -> None:
        self._filter = filter_
        self._open: dict[int, _Open] = {}
        self._seen = 0

    def text(self, text: str) -> list[Event]:
        """A piece of the answer."""
        return self._pushed([ContentDelta(text)] if text else [])

    def reasoning(self, text: str) -> list[Event]:
        """A piece of the reasoning."""
        return self._pushed([ReasoningDelta(text)] if text else [])

    def call(self, delta: ToolCallDelta) -> list[Event]:
        """A piece of a call."""
        events: list[Event] = []
        call = self._open.get(delta.index)
        if call is None:
            for index in [index for index, other in self._open.items() if other.whole]:
                events.append(CallEnded(self._open.pop(index).index))
            call = self._open[delta.index] = _Open(self._seen, JsonSpan())
            self._seen += 1
        call.id = call.id or delta.id
        call.name = call.name or delta.name or ""
        text = call.early + delta.arguments
        if call.name and not call.started:
            call.started = True
            events.append(CallStarted(call.index, call.name, id=call.id))
        if not call.started:
            call.early = text
        elif text:
            call.early = ""
            if not call.whole:
                _, call.whole = call.span.end(text, 0)
            events.append(ArgumentsDelta(call.index, text))
        return self._pushed(events)

    def end(self, *, cut: bool = False) -> list[Event]:
        """The answer is over; `cut`: because of its limit."""
        events: list[Event] = []
        for call in self._open.values():
            if not call.started:  # arguments without a name: shown as a call that names nothing
                events += [CallStarted(call.index, call.name, id=call.id), ArgumentsDelta(call.index, call.early)]
            events.append(CallEnded(call.index, complete=call.whole or not cut))
        self._open.clear()
        return self._pushed(events)

    def _pushed(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        self._filter.push(events, out)
        return out
