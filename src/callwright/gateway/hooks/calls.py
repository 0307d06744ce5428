"""Calls of a turn on their way to the client: each is held until it is complete and the hooks have judged it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from callwright.conversation import Conversation, FunctionTool
from callwright.errors import RequestError
from callwright.events import (
    ArgumentsDelta,
    Call,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    Problem,
    RefusalDelta,
    Usage,
)
from callwright.hooks import Verdict
from callwright.tolerant_json.codec import NotJsonError, decode, encode

# The last argument is the tool as it was offered.
JudgesCall: TypeAlias = Callable[[Call, Any, FunctionTool | None], Awaitable[Verdict]]
_Some: TypeAlias = Event | Usage
_FORBIDDEN: Final = 403


class _Held(Struct):
    """A call that is written. `verdict` is set once it was judged."""

    started: CallStarted
    pieces: list[str] = []
    complete: bool = True
    verdict: Verdict | None = None

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class CallFilter:
    """Takes the events of a turn; `judge` is asked about each call.

    A denied call is left out and becomes a problem with the model's text. The numbers of later calls, and the reason
    why the turn ended, are those of an answer without it. If no call is left, a refusal has the reason; where
    the request demands a call, it is an error.
    """

    def __init__(self, conversation: Conversation, judge: JudgesCall) -> None:
        self._tools = {tool.name: tool for tool in conversation.tools}
        self._demands = conversation.tool_choice not in ("auto", "none")
        self._judge = judge
        self._held: list[_Some] = []
        self._calls: dict[int, _Held] = {}
        self._open: set[int] = set()
        self._index: dict[int, int | None] = {}  # of calls that were judged: None for a denied one
        self._sent = 0
        self._denied: list[str] = []

    async def take(self, batch: Sequence[_Some]) -> AsyncGenerator[list[_Some], None]:
        """The events to send now, in batches: none waits for the judgement about a later one."""
        now: list[_Some] = []
        for event in batch:
            if type(event) is Finished or type(event) is Usage:
                now += await self._release()
                now += self._ending(event) if type(event) is Finished else [event]
            elif self._is_held(event):
                if now:
                    yield now
                    now = []
                self._hold(event)
                if self._calls and not self._open:
                    now += await self._release()
            else:
                now.append(self._renumber(event))
        if now:
            yield now

    def _is_held(self, event: _Some) -> bool:
        if self._held or type(event) is CallStarted:
            return True
        return type(event) is Problem and event.call is not None and event.call not in self._index

    def _hold(self, event: _Some) -> None:
        self._held.append(event)
        if type(event) is CallStarted:
            self._calls[event.index] = _Held(event)
            self._open.add(event.index)
        elif type(event) is ArgumentsDelta:
            self._calls[event.index].pieces.append(event.text)
        elif type(event) is CallEnded:
            self._calls[event.index].complete = event.complete
            self._open.discard(event.index)

    async def _release(self) -> list[_Some]:
        """The held events, after all their calls were judged."""
        held, self._held = self._held, []
        for index, call in self._calls.items():
            call.verdict = await self._verdict(call)
            if call.verdict.action in ("deny", "ask"):
                self._index[index] = None
            else:
                self._index[index] = self._sent
                self._sent += 1
        now = [out for event in held for out in self._events_of(event)]
        self._calls, self._open = {}, set()
        return now

    async def _verdict(self, call: _Held) -> Verdict:
        started, text = call.started, call.arguments
        given = Call(
            started.name,
            text,
            id=started.id or "",
            kind=started.kind,
            namespace=started.namespace,
            complete=call.complete,
        )
        arguments: Any = text
        if started.kind == "function":
            try:
                arguments = decode(text)
            except NotJsonError:
                arguments = None
        return await self._judge(given, arguments, self._tools.get(started.name))

    def _events_of(self, event: _Some) -> list[_Some]:
        if not isinstance(event, CallStarted | ArgumentsDelta | CallEnded):
            return [self._renumber(event)]
        call = self._calls[event.index]
        verdict, index = call.verdict, self._index[event.index]
        assert verdict is not None
        if index is None:
            return [self._denial(call, verdict)] if type(event) is CallEnded else []
        if verdict.action != "replace":
            return [replace(event, index=index)]
        if type(event) is ArgumentsDelta:
            return []
        if type(event) is not CallEnded:
            return [replace(event, index=index)]
        new = verdict.arguments
        text = new if call.started.kind == "custom" else encode(new).decode()
        about = f"the arguments of {call.started.name!r} were changed by a rule of the gateway"
        problem = Problem("call_changed", about, call=index, text=call.arguments)
        return [ArgumentsDelta(index, text), CallEnded(index), problem]

    def _denial(self, call: _Held, verdict: Verdict) -> Problem:
        told = _words_of(call.started.name, verdict)
        self._denied.append(told)
        return Problem("call_denied", told, text=call.arguments)

    def _renumber(self, event: _Some) -> _Some:
        if type(event) is Problem and event.call is not None:
            return replace(event, call=self._index.get(event.call))
        return event

    def _ending(self, event: Finished) -> list[_Some]:
        """The end of the turn. Raises `RequestError` if the demanded call was denied."""
        if not self._denied or self._sent:
            return [event]
        told = " ".join(self._denied)
        if self._demands:
            raise RequestError(told, code="call_denied", status=_FORBIDDEN)
        is_of_calls = event.reason == "tool_calls" or event.unfinished
        return [RefusalDelta(told), Finished("stop") if is_of_calls else event]


def _words_of(name: str, verdict: Verdict) -> str:
    """The refusal for the client."""
    why = verdict.message or "A rule of this gateway does not allow it."
    if verdict.action == "ask":
        return f"The call of {name!r} was not made: a person must approve it first. {verdict.message}".rstrip()
    return f"The call of {name!r} was not made: {why}"
