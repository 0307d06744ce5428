"""A turn in which the gateway runs tools itself: tool search, and tools of MCP servers.

The model is asked, its calls of these tools are run, and it is asked again with their outputs, until it answers or
calls a tool of the client. Nothing interleaves: what the model writes behind a call that runs here follows when that
call has its output.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Final, TypeAlias

import msgspec

from callwright.calls.tool_search import SEARCH_TOOL
from callwright.conversation import CallOutput, Conversation, Item, Message, Reasoning, TextPart
from callwright.events import (
    ArgumentsDelta,
    CallEnded,
    CallStarted,
    ContentDelta,
    Event,
    Finished,
    Problem,
    ReasoningDelta,
    Usage,
)
from callwright.gateway.server_tools.mcp_calls import McpCalls, PendingMcpCall
from callwright.gateway.server_tools.tool_search import Search
from callwright.gateway.server_tools.truncation import with_truncation
from callwright.turn.model import Model
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.server_events import McpApprovalAsked, McpStarted, ServerEvent, TurnEvents

__all__ = ["run_server_tools"]

_MAX_SEARCHES: Final = 8
_MAX_ROUNDS: Final = 24
_Now: TypeAlias = Event | ServerEvent
_Out: TypeAlias = _Now | PendingMcpCall  # a call stands where its output belongs


async def run_server_tools(
    model: Model,
    asked: ParsedRequest,
    mcp: McpCalls,
    *,
    new_id: Callable[[], str],
    today: str,
    streamed: bool,
    truncates: bool,
    clamps: bool = False,
) -> TurnEvents:
    """The events of a turn. `new_id` makes the ids of the calls that are run here. `truncates` and `clamps` are told to
    `with_truncation` each time that the model is asked.

    If the model calls a tool of the client, or a call needs approval, its other calls are run all the same, and the
    turn ends.
    """
    if listed := mcp.lists():
        yield listed
    approved = [
        PendingMcpCall(index, new_id(), call.name, call.arguments, request_id)
        for index, (request_id, call) in enumerate(asked.approved.items())
        if call.name in mcp
    ]
    async with aclosing(_answered(mcp, approved, [out for call in approved for out in _whole(call)])) as late:
        async for out in late:
            yield [out]
    conversation = _with_outputs(asked.conversation, approved)
    counted: Usage | None = None
    searches = 0
    for rounds in range(_MAX_ROUNDS + 1):
        is_last = rounds == _MAX_ROUNDS or searches >= _MAX_SEARCHES or mcp.are_spent
        turn = _ModelRound(asked, mcp, new_id)
        ended = Finished("stop")
        shown = _barred(conversation, asked, mcp) if is_last else conversation
        events = with_truncation(
            model, shown, asked.fields, today=today, streamed=streamed, truncates=truncates, clamps=clamps
        )
        async with aclosing(events):
            async for batch in events:
                now: list[_Now] = []
                for event in batch:
                    if isinstance(event, Usage):
                        counted = event if counted is None else counted.plus(event)
                    elif isinstance(event, Finished):
                        ended = event
                    else:
                        now += turn.take(event)
                if now:
                    yield now
        async with aclosing(_answered(mcp, turn.calls, turn.held)) as late:
            async for out in late:
                yield [out]
        made = [Search(asked, arguments) for arguments in turn.searches]
        for search in made:
            yield [search.event]
        searches += len(made)
        if turn.is_over or is_last or ended.reason in ("length", "content_filter"):
            yield [Finished("stop") if is_last and not turn.is_over else ended]
            break
        items = [*conversation.items, *turn.said()]
        for search in made:
            items += search.told(items)
        conversation = msgspec.structs.replace(
            conversation,
            items=tuple(items),
            tools=asked.offer.tools,
            shown_tools=conversation.shown_tools or asked.conversation.tools,  # the schemas found stand in the outputs
            tool_choice="auto",
            allowed_tools=None if asked.frees else conversation.allowed_tools,
        )
    if counted is not None:
        yield [counted]


class _ModelRound:
    """Sorts the events of one turn of the model.

    `calls` are the calls to run, `searches` the arguments of searches. `held` are the events from the first such call
    on, held back for its output.
    """

    def __init__(self, asked: ParsedRequest, mcp: McpCalls, new_id: Callable[[], str]) -> None:
        self.calls: list[PendingMcpCall] = []
        self.searches: list[str] = []
        self.held: list[_Out] = []
        self._searches_here = asked.offer.search == "server"
        self._mcp = mcp
        self._new_id = new_id
        self._is_over = False
        self._said: list[ContentDelta | ReasoningDelta | PendingMcpCall] = []
        self._open: int | None = None  # the index of a call that runs here, while it is written
        self._call: PendingMcpCall | None = None  # that call; None if it is a search
        self._pieces: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether the answer ends with this turn of the model."""
        return self._is_over or not (self.calls or self.searches)

    def said(self) -> list[Item]:
        """What the model wrote and the outputs of its calls, as a later turn reads them from the answer."""
        items: list[Item] = []
        for kind, group in groupby(self._said, type):
            text = ""
            for one in group:
                if isinstance(one, PendingMcpCall):
                    items += one.items()
                else:
                    text += one.text
            if text.strip():
                items.append(Reasoning(text) if kind is ReasoningDelta else Message("assistant", (TextPart(text),)))
        return items

    def take(self, event: Event) -> list[_Now]:
        """Take an event; answers what goes out now."""
        now: list[_Now] = []
        for out in self._sorted(event):
            if self.held or isinstance(out, PendingMcpCall):
                self.held.append(out)
            else:
                now.append(out)
        return now

    def _sorted(self, event: Event) -> Sequence[_Out]:
        match event:
            case ContentDelta() | ReasoningDelta():
                self._said.append(event)
            case CallStarted(index, name) if name in self._mcp:
                self._open, self._pieces = index, []
                self._call = call = PendingMcpCall(index, self._new_id(), name)
                return [] if self._mcp.may_wait(name) else [McpStarted(index, call.id, name)]
            case CallStarted(index, name) if self._searches_here and name == SEARCH_TOOL.name:
                self._open, self._pieces, self._call = index, [], None
                return []
            case CallStarted():
                self._is_over = True
            case ArgumentsDelta(index, text) if index == self._open:
                self._pieces.append(text)
                return [event] if self._call is not None and not self._mcp.may_wait(self._call.name) else []
            case CallEnded(index) if index == self._open:
                return self._end(event)
            case Problem(call=int(index)) if index == self._open and self._call is None:
                return []
        return [event]

    def _end(self, event: CallEnded) -> Sequence[_Out]:
        """The open call is over."""
        call, arguments = self._call, "".join(self._pieces)
        self._open = None
        if call is None:
            self.searches += [arguments] if event.complete else []
            return []
        call.arguments = arguments
        waits = self._mcp.may_wait(call.name)
        if not event.complete:
            return [] if waits else [event]
        if waits and self._mcp.holds(call):
            self._is_over = True
            return [McpApprovalAsked(call.name, arguments)]
        self.calls.append(call)
        self._said.append(call)
        return _whole(call) if waits else [event, call]


def _whole(call: PendingMcpCall) -> list[_Out]:
    """All events of a call at once."""
    return [
        McpStarted(call.index, call.id, call.name, call.request_id),
        ArgumentsDelta(call.index, call.arguments),
        CallEnded(call.index),
        call,
    ]


async def _answered(mcp: McpCalls, calls: Sequence[PendingMcpCall], held: Sequence[_Out]) -> AsyncGenerator[_Now, None]:
    """What was held back, while the calls run, with each output in its place."""
    if not held:
        return
    async with mcp.running(calls) as outcome:
        for out in held:
            if isinstance(out, PendingMcpCall):
                yield await outcome(out)
            else:
                yield out


def _with_outputs(conversation: Conversation, calls: Sequence[PendingMcpCall]) -> Conversation:
    """The conversation with the outputs of approved calls."""
    told = {call.request_id: call.words for call in calls}
    if not told:
        return conversation
    items = tuple(
        CallOutput(item.call_id, (TextPart(told[item.call_id]),))
        if isinstance(item, CallOutput) and item.call_id in told
        else item
        for item in conversation.items
    )
    return msgspec.structs.replace(conversation, items=items)


def _barred(conversation: Conversation, asked: ParsedRequest, mcp: McpCalls) -> Conversation:
    """The conversation with every tool that runs here forbidden. The prompt keeps them, and so its prefix."""
    is_here = {SEARCH_TOOL.name} if asked.offer.search == "server" else set()
    allowed = conversation.allowed_tools
    names = [tool.name for tool in conversation.tools] if allowed is None else allowed
    left = tuple(name for name in names if name not in mcp and name not in is_here)
    if not left:
        return msgspec.structs.replace(conversation, tool_choice="none", allowed_tools=None)
    return msgspec.structs.replace(conversation, allowed_tools=left)
