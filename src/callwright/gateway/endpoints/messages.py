"""`POST /v1/messages`: Anthropic's Messages API. One request, one turn. Nothing is stored of it except the
parts that its client drops.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import date
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from callwright.events import Problem, Usage
from callwright.gateway.config.config import ServerConfig
from callwright.gateway.http import (
    LARGE,
    PROBLEMS_HEADER,
    EventStream,
    PeekedStream,
    cancel_on_disconnect,
    in_client_names,
    json_response,
    off_loop,
    problems_told,
    read_body,
    told_failure,
)
from callwright.gateway.kept_items.keeper import ItemKeeper
from callwright.gateway.kept_items.written_turn import FollowedTurn
from callwright.gateway.request_context import current, note_dropped, note_given
from callwright.gateway.server_tools.kinds import note_not_run, runs_here, server_calls
from callwright.gateway.server_tools.mcp_servers import McpServers, OpenServer
from callwright.gateway.server_tools.run import run_server_tools
from callwright.gateway.server_tools.truncation import Fitting
from callwright.gateway.server_tools.web_searches import WebSearch
from callwright.reading.collect import settle_events
from callwright.settings.bounds import Bounds
from callwright.turn.deferred_tools import estimate_prompt
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.wire.anthropic.request import ParsedMessages, decode_request, read_request
from callwright.wire.anthropic.response import MessageWriter
from callwright.wire.anthropic.tools import read_servers
from callwright.wire.anthropic.types import MessagesRequest, TokenCount
from callwright.wire.body import decoded
from callwright.wire.server_events import TurnEvent, TurnEvents
from callwright.wire.sse import comment

# Claude Code sends one for each session: its requests go to the server that has its prompt in the cache.
_SESSION: Final = "x-claude-code-session-id"
_BETAS: Final = "anthropic-beta"
_MOST_SESSION: Final = 256


class _Prepared(msgspec.Struct):
    """A checked request, ready to run. `input_tokens`: about how many tokens its prompt has."""

    request: MessagesRequest
    parsed: ParsedMessages
    model: Model
    servers: Mapping[str, OpenServer]
    input_tokens: int


class MessagesEndpoint:
    """Answers requests of the Messages API."""

    def __init__(
        self,
        find_model: Callable[[str], Model],
        servers: McpServers,
        keeper: ItemKeeper,
        server: ServerConfig,
        bounds: Bounds,
        search: WebSearch | None = None,
    ) -> None:
        self._find_model = find_model
        self._keeper = keeper
        self._servers = servers
        self._server = server
        self._bounds = bounds
        self._search = search

    async def create(self, request: Request) -> Response:
        """A message, streamed or whole."""
        prepared = await self._prepared(request)
        parsed = prepared.parsed
        # a stop sequence ends the turn before the model does, so there must be something to break off
        streams = parsed.stream or bool(parsed.stop_sequences)
        events = _events(prepared, self._search, streamed=streams)
        followed = self._keeper.follow(parsed.asked.conversation, prepared.model, _call_id)
        if not parsed.stream:
            return await cancel_on_disconnect(request, _whole(prepared, events, followed))
        peeked = PeekedStream(events)
        await peeked.begin(request)
        message = _writer(prepared)
        return EventStream(
            peeked,
            _TurnWriter(message),
            begin=[message.begin()],
            followed=followed,
        )

    async def count_tokens(self, request: Request) -> Response:
        """About how many tokens a request has, counted as the usage of an answer is estimated."""
        prepared = await self._prepared(request, counts=True)
        return json_response(TokenCount(prepared.input_tokens))

    async def _prepared(self, request: Request, *, counts: bool = False) -> _Prepared:
        """A request that is checked. Raises `RequestError`."""
        body = await read_body(request, self._server.max_body_bytes)
        slow = len(body) > LARGE
        given = await off_loop(lambda: decoded(body, self._bounds), slow=slow)
        message = decode_request(given, counts=counts)
        assert isinstance(given, Mapping)
        note_given(given)
        model = self._find_model(message.model)
        labels = () if (message.tool_choice or {}).get("type") == "none" else model.mcp
        opened = await self._servers.open(read_servers(message.mcp_servers, message.tools), labels)
        known = {name: one.server for name, one in opened.items()}
        betas = request.headers.get(_BETAS, "")
        searches = self._search is not None
        parsed = await off_loop(
            lambda: read_request(
                message, given, known, betas, counts=counts, searches_web=searches, rules=model.requests
            ),
            slow=slow,
        )
        parsed = _filter_request(parsed, model, request.headers.get(_SESSION))
        if not parsed.clears_thinking:
            conversation = await self._keeper.put_back(parsed.asked.conversation, model)
            asked = msgspec.structs.replace(parsed.asked, conversation=conversation)
            parsed = msgspec.structs.replace(parsed, asked=asked)
        tokens = await off_loop(lambda: estimate_prompt(model, parsed.asked.conversation), slow=slow)
        return _Prepared(message, parsed, model, opened, tokens)


def _filter_request(parsed: ParsedMessages, model: Model, session: str | None) -> ParsedMessages:
    """A request as its model's server may get it; the context that runs notes what does not pass."""
    asked = parsed.asked
    fields, dropped = model.passes.fields_passed(asked.fields)
    items, inside = model.passes.items_passed(asked.conversation.items)
    note_dropped(parsed.dropped | dropped | inside)
    note_not_run(asked.offer)
    conversation = msgspec.structs.replace(
        asked.conversation, items=items, session_id=session[:_MOST_SESSION] if session else None
    )
    return msgspec.structs.replace(
        parsed, asked=msgspec.structs.replace(asked, conversation=conversation, fields=fields)
    )


def _writer(prepared: _Prepared) -> MessageWriter:
    parsed = prepared.parsed
    return MessageWriter(
        id_=_new_id("msg"),
        model=prepared.request.model,
        names=parsed.asked.offer.names,
        new_id=_new_id,
        input_tokens=prepared.input_tokens,
        thinking=parsed.thinking,
        stop_sequences=parsed.stop_sequences,
        edits=parsed.edits,
        prefill=parsed.asked.conversation.prefill,
        is_silent=prepared.request.max_tokens == 0,
    )


def _events(prepared: _Prepared, search: WebSearch | None, *, streamed: bool) -> TurnEvents:
    events, names = _turn(prepared, search, streamed=streamed), prepared.parsed.asked.offer.names
    return in_client_names(events, names) if names.renames else events


def _turn(prepared: _Prepared, search: WebSearch | None, *, streamed: bool) -> TurnEvents:
    asked, today = prepared.parsed.asked, date.today().isoformat()
    if runs_here(asked, prepared.servers):
        return run_server_tools(
            prepared.model,
            asked,
            server_calls(asked, prepared.servers, search, None),
            new_id=_new_id,
            today=today,
            streamed=streamed,
            truncates=False,
            clamps=True,
        )
    fit = Fitting(truncates=False, clamps=True)
    return run_turn(prepared.model, asked.conversation, asked.fields, today=today, streamed=streamed, fit=fit)


async def _whole(prepared: _Prepared, events: TurnEvents, followed: FollowedTurn) -> Response:
    """The answer, after the turn has ended or a stop sequence was found, without waiting for the rest of the output."""
    probe = _writer(prepared) if prepared.parsed.stop_sequences else None
    kept: list[TurnEvent] = []
    usage: Usage | None = None
    problems: list[Problem] = []
    async with aclosing(events):
        async for batch in events:
            for event in followed.take(batch):
                if isinstance(event, Usage):
                    usage = event
                    continue
                kept.append(event)
                if probe is not None:
                    probe.write(event)
                    if isinstance(event, Problem) and event.kind == "unopened_reasoning":
                        probe = _writer(prepared)  # the text before it is not searched
            if probe is not None:
                probe.take()
                if probe.hit is not None:
                    break
        else:
            await followed.end()
    writer = _writer(prepared)
    for event in settle_events(kept):
        if isinstance(event, Problem):
            problems.append(event)
        assert not isinstance(event, Usage)
        writer.write(event)
        writer.take()
    context = current()
    writer.finish(usage, None if context is None else context.turns.cost)
    told = problems_told(problems)
    return json_response(writer.message, headers={PROBLEMS_HEADER: told} if told else None)


class _TurnWriter:
    """Writes the events of a turn. A failure becomes the last of them."""

    def __init__(self, message: MessageWriter) -> None:
        self.heartbeat = message.heartbeat
        self.is_over = False
        self._message = message
        self._usage: Usage | None = None
        self._problems: list[Problem] = []

    def write(self, batch: Sequence[TurnEvent]) -> list[bytes]:
        message = self._message
        for event in batch:
            if type(event) is Usage:
                self._usage = event
                continue
            if type(event) is Problem:
                self._problems.append(event)
            message.write(event)
        self.is_over = message.hit is not None
        return message.take()

    async def end(self) -> list[bytes]:
        context = current()
        ending = self._message.finish(self._usage, None if context is None else context.turns.cost)
        if self._problems:
            ending.insert(-1, comment(f"{PROBLEMS_HEADER}: {problems_told(self._problems)}"))
        return ending

    def fail(self, error: Exception) -> list[bytes]:
        context = current()
        return [self._message.fail(told_failure(error), context.id if context is not None else None)]


def _call_id(_: str | None) -> str:
    """Clients take ids of this form only, whatever the model's server gave."""
    return _new_id("toolu")


def _new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"
