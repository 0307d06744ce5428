"""A turn in which the gateway runs tools itself: tool search, searches of the web, and tools of MCP servers.

The model is asked, its calls of these tools are run, and it is asked again with their outputs, until it answers or
calls a tool of the client. Nothing interleaves: text that the model writes after such a call is
sent after the output of the call.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Final, TypeAlias

import msgspec

from callwright.calls.citations import CitationReader
from callwright.calls.tool_search import SEARCH_TOOL
from callwright.calls.web_search import SearchResult
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
from callwright.gateway.server_tools.calls import PendingCall, ServerCalls
from callwright.gateway.server_tools.tool_search import Search
from callwright.gateway.server_tools.truncation import Fitting
from callwright.turn.fallback import Rounds
from callwright.turn.model import Events, Model
from callwright.turn.run import run_turn
from callwright.turn.token_limit import reduce_limit
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.server_events import ServerEvent, TurnEvents, WebSearchEnded

_MAX_SEARCHES: Final = 8
_MAX_ROUNDS: Final = 24
_Now: TypeAlias = Event | ServerEvent
_Out: TypeAlias = _Now | PendingCall  # a call marks the position of its output


async def run_server_tools(
    model: Model,
    asked: ParsedRequest,
    calls: ServerCalls,
    *,
    new_id: Callable[[str], str],
    today: str,
    streamed: bool,
    truncates: bool,
    clamps: bool = False,
) -> TurnEvents:
    """The events of a turn. `calls` are those that run here; `new_id` makes their ids, from a prefix. `truncates` and
    `clamps` are those of `Fitting`.

    If the model calls a tool of the client, or a call needs approval, its other calls are run all the same, and the
    turn ends.
    """
    if listed := calls.lists():
        yield listed
    approved = _approved(asked, calls, new_id)
    async with aclosing(_answered(calls, approved, [out for call in approved for out in _whole(calls, call)])) as late:
        async for out in late:
            yield [out]
    conversation = _with_outputs(asked.conversation, approved)
    counted: Usage | None = None
    searches = 0
    sources = dict(asked.sources)
    shared = Rounds()
    for rounds in range(_MAX_ROUNDS + 1):
        if (fields := reduce_limit(asked.fields, counted)) is None:
            yield [Finished("length")]
            break
        is_last = rounds == _MAX_ROUNDS or searches >= _MAX_SEARCHES or calls.are_spent
        turn = _ModelRound(asked, calls, new_id, CitationReader(sources))
        shown = _barred(conversation, asked, calls, is_last=is_last)
        fit = Fitting(truncates=truncates, clamps=clamps)
        events = run_turn(model, shown, fields, today=today, streamed=streamed, fit=fit, rounds=shared)
        async with aclosing(_played(turn, events, asked, calls)) as batches:
            async for batch in batches:
                yield batch
        if turn.counted is not None:
            counted = turn.counted if counted is None else counted.plus(turn.counted)
        sources |= turn.found
        searches += len(turn.made)
        if turn.is_over or is_last or turn.ended.reason in ("length", "content_filter"):
            yield [Finished("stop") if is_last and not turn.is_over else turn.ended]
            break
        conversation = _continued(conversation, asked, turn)
    if counted is not None:
        yield [counted]


async def _played(
    turn: "_ModelRound", events: Events, asked: ParsedRequest, calls: ServerCalls
) -> AsyncGenerator[Sequence[_Now], None]:
    """The events to send of one turn of the model, whose calls and searches are run."""
    async with aclosing(events):
        async for batch in events:
            if now := [out for event in batch for out in turn.take(event)]:
                yield now
    async with aclosing(_answered(calls, turn.calls, turn.held)) as late:
        async for out in late:
            if isinstance(out, WebSearchEnded):
                turn.found |= {result.number: result for result in out.results}
            yield [out]
    turn.made = [Search(asked, arguments) for arguments in turn.searches]
    for search in turn.made:
        yield [search.event]


def _approved(asked: ParsedRequest, calls: ServerCalls, new_id: Callable[[str], str]) -> list[PendingCall]:
    """The calls that were approved, to be run now."""
    return [
        PendingCall(index, new_id(calls.kind(call.name).prefix), call.name, call.arguments, request_id)
        for index, (request_id, call) in enumerate(asked.approved.items())
        if call.name in calls
    ]


def _continued(conversation: Conversation, asked: ParsedRequest, turn: "_ModelRound") -> Conversation:
    """The conversation for the next round, including the output of this one."""
    items = [*conversation.items, *turn.items()]
    for search in turn.made:
        items += search.items(items)
    return msgspec.structs.replace(
        conversation,
        items=tuple(items),
        tools=asked.offer.tools,
        shown_tools=conversation.shown_tools or asked.conversation.tools,  # the schemas found are in the outputs
        tool_choice="auto",
        allowed_tools=None if asked.frees else conversation.allowed_tools,
    )


class _ModelRound:
    """Sorts the events of one turn of the model.

    `calls` are the calls to run, `searches` the arguments of searches for tools, which are `made` at its end. `held`
    are the events from the first such call on, held back for its output. `found` is what its searches of the web found;
    `counted` is its usage, `ended` its final event.
    """

    def __init__(
        self, asked: ParsedRequest, calls: ServerCalls, new_id: Callable[[str], str], citations: CitationReader
    ) -> None:
        self.calls: list[PendingCall] = []
        self.searches: list[str] = []
        self.held: list[_Out] = []
        self.made: list[Search] = []
        self.found: dict[int, SearchResult] = {}
        self.counted: Usage | None = None
        self.ended = Finished("stop")
        self._searches_here = asked.offer.search == "server"
        self._tools = calls
        self._new_id = new_id
        self._citations = citations
        self._is_over = False
        self._said: list[ContentDelta | ReasoningDelta | PendingCall] = []
        self._open: int | None = None  # the index of a call that runs here, while it is written
        self._call: PendingCall | None = None  # that call; None if it is a search for tools
        self._flows = False  # whether it is streamed
        self._pieces: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether the answer ends with this turn of the model."""
        return self._is_over or not (self.calls or self.searches)

    def items(self) -> list[Item]:
        """The model's output and its tool results, as a later turn reads them from the answer."""
        items: list[Item] = []
        for kind, group in groupby(self._said, type):
            text = ""
            for one in group:
                if isinstance(one, PendingCall):
                    items += one.items()
                else:
                    text += one.text
            if text.strip():
                items.append(Reasoning(text) if kind is ReasoningDelta else Message("assistant", (TextPart(text),)))
        return items

    def take(self, event: Event | Usage) -> list[_Now]:
        """Take an event. Returns the events to send now."""
        now: list[_Now] = []
        if isinstance(event, Usage):
            self.counted = event
            return now
        if isinstance(event, Finished):
            self.ended = event
            return now
        for out in self._sorted(event):
            if self.held or isinstance(out, PendingCall):
                self.held.append(out)
            else:
                now.append(out)
        return now

    def _sorted(self, event: Event) -> Sequence[_Out]:
        match event:
            case ContentDelta(text):
                self._said.append(event)
                return [event, *self._citations.feed(text)]
            case ReasoningDelta():
                self._said.append(event)
            case CallStarted(index, name) if name in self._tools:
                kind = self._tools.kind(name)
                self._open, self._pieces = index, []
                self._call = PendingCall(index, self._new_id(kind.prefix), name)
                begun = kind.begins(self._call)
                self._flows = begun is not None
                return [] if begun is None else [begun]
            case CallStarted(index, name) if self._searches_here and name == SEARCH_TOOL.name:
                self._open, self._pieces, self._call, self._flows = index, [], None, False
                return []
            case CallStarted():
                self._is_over = True
            case ArgumentsDelta(index, text) if index == self._open:
                self._pieces.append(text)
                return [event] if self._flows else []
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
        if not event.complete:
            return [event] if self._flows else []
        if (question := self._tools.kind(call.name).asks(call)) is not None:
            self._is_over = True
            return [question]
        self.calls.append(call)
        self._said.append(call)
        return [event, call] if self._flows else _whole(self._tools, call)


def _whole(tools: ServerCalls, call: PendingCall) -> list[_Out]:
    """All events of a call."""
    return [*tools.kind(call.name).whole(call), call]


async def _answered(
    tools: ServerCalls, calls: Sequence[PendingCall], held: Sequence[_Out]
) -> AsyncGenerator[_Now, None]:
    """The held events, sent while the calls run, with each output in its place."""
    if not held:
        return
    async with tools.running(calls) as outcome:
        for out in held:
            if isinstance(out, PendingCall):
                yield await outcome(out)
            else:
                yield out


def _with_outputs(conversation: Conversation, calls: Sequence[PendingCall]) -> Conversation:
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


def _barred(conversation: Conversation, asked: ParsedRequest, calls: ServerCalls, *, is_last: bool) -> Conversation:
    """The conversation with exhausted tools forbidden; in the last round, all tools that run here. The prompt still
    lists them, so its prefix stays the same.
    """
    barred = calls.names if is_last else calls.spent
    if is_last and asked.offer.search == "server":
        barred.add(SEARCH_TOOL.name)
    if not barred:
        return conversation
    allowed = conversation.allowed_tools
    names = [tool.name for tool in conversation.tools] if allowed is None else allowed
    left = tuple(name for name in names if name not in barred)
    if not left:
        return msgspec.structs.replace(conversation, tool_choice="none", allowed_tools=None)
    return msgspec.structs.replace(conversation, allowed_tools=left)
