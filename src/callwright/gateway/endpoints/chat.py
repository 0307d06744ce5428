"""`POST /v1/chat/completions`: one request, one turn. Nothing is stored of it except the parts that its client drops.

If the gateway runs tools itself, a turn has rounds, of which the client sees one message.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from datetime import date
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from callwright.errors import RequestError
from callwright.events import CallStarted, Event, Usage
from callwright.gateway.access.keys import caller
from callwright.gateway.config.config import ServerConfig
from callwright.gateway.endpoints.chat_choices import (
    ChoiceChunks,
    ChoiceEvents,
    ChoiceGoesOn,
    fields_of_choice,
    side_by_side,
)
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
from callwright.gateway.server_tools.kinds import server_calls
from callwright.gateway.server_tools.mcp_servers import McpServers, OpenServer
from callwright.gateway.server_tools.run import run_server_tools
from callwright.gateway.server_tools.web_searches import WebSearch
from callwright.openai_format.request_rules import STRICT
from callwright.openai_format.tool_names import ToolNames
from callwright.reading.collect import collect
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Events, Model
from callwright.turn.run import run_turn
from callwright.wire.body import decoded
from callwright.wire.bounds import check_choices
from callwright.wire.chat.request import ChatRequest, DecodedChat, decode_request, read_decoded
from callwright.wire.chat.response import ChatChunks, completion
from callwright.wire.chat.server_tools import OneMessage, read_servers
from callwright.wire.errors import error_body
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.pass_rules import PassRules
from callwright.wire.server_events import TurnEvents
from callwright.wire.sse import DONE, comment, data


class ChatEndpoint:
    """Answers chat requests."""

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
        self._servers = servers
        self._keeper = keeper
        self._server = server
        self._bounds = bounds
        self._search = search

    async def create(self, request: Request) -> Response:
        """A completion, streamed or whole."""
        body = await read_body(request, self._server.max_body_bytes)
        slow = len(body) > LARGE or b"custom" in body
        mend = self._server.history == "mend"

        def read() -> tuple[DecodedChat, Model | None]:
            came = decoded(body, self._bounds)
            model = self._maybe_model(came)
            return decode_request(came, mend=mend, rules=STRICT if model is None else model.requests), model

        given, model = await off_loop(read, slow=slow)
        note_given(given.given)
        check_choices(given.body.n or 1, "n")
        model = model or self._find_model(given.body.model)
        labels = () if given.forbids_calls else model.mcp
        opened = await self._servers.open(read_servers(given.given.get("tools") or ()), labels)
        servers = {label: one.server for label, one in opened.items()}
        searches = self._search is not None
        chat = await off_loop(partial(read_decoded, given, servers, searches_web=searches), slow=slow)
        chat = _filter_request(chat, model.passes)
        if keeps := self._keeper.keeps and model.keeps_reasoning and chat.fields.get("store") is not False:
            chat = msgspec.structs.replace(chat, conversation=await self._keeper.put_back(chat.conversation, model))
            keeps = bool(chat.conversation.tools)  # the key is the call

        def turn(fields: dict[str, Any]) -> Events:
            one = _events(model, msgspec.structs.replace(chat, fields=fields), opened, self._search)
            if keeps:
                one = self._keeper.watch(one, chat.conversation, model, _call_id)
            return one if chat.names is None else _as_named(in_client_names(one, chat.names), chat.names)

        events: Events | ChoiceEvents
        followed: FollowedTurn | None = None
        if chat.choices == 1 and chat.names is None:
            events = _events(model, chat, opened, self._search)
            followed = self._keeper.follow(chat.conversation, model, _call_id) if keeps else None
        elif chat.choices == 1:
            events = turn(chat.fields)
        else:
            for _ in range(1, chat.choices):
                await caller().begin()  # each choice counts as a request
            events = side_by_side([turn(fields_of_choice(chat.fields, index)) for index in range(chat.choices)])
        if not chat.stream:
            return await cancel_on_disconnect(request, self._whole(chat, events, followed))
        chunks = self._chunks(chat)
        peeked = PeekedStream(events)
        await peeked.begin(request)
        writer = _TurnWriter(chunks)
        return EventStream(peeked, writer, followed=followed)

    def _maybe_model(self, given: object) -> Model | None:
        """The model that a request names; None for an unknown one, which is reported after its form."""
        name = given.get("model") if isinstance(given, Mapping) else None
        try:
            return self._find_model(name) if isinstance(name, str) else None
        except RequestError:
            return None

    async def _whole(self, chat: ChatRequest, events: Events | ChoiceEvents, followed: FollowedTurn | None) -> Response:
        choices: list[list[Event]] = [[] for _ in range(chat.choices)]
        kept = choices[0]
        usage: Usage | None = None
        async with aclosing(events):
            async for batch in events:
                for event in batch if followed is None else followed.take(batch):
                    if type(event) is Usage:
                        usage = event
                    elif type(event) is ChoiceGoesOn:
                        kept = choices[event.index]
                    else:
                        kept.append(event)
        if followed is not None:
            await followed.end()
        turn, *others = map(collect, choices)
        context = current()
        answer = completion(
            turn,
            usage,
            others=others,
            legacy=chat.legacy,
            cost=None if context is None else context.turns.cost,
            **self._identity(chat),
        )
        problems = [*turn.problems]
        for other in others:
            problems += other.problems
        return json_response(answer, headers={PROBLEMS_HEADER: problems_told(problems)} if problems else None)

    def _chunks(self, chat: ChatRequest) -> ChatChunks | ChoiceChunks:
        how = {
            "include_usage": chat.include_usage,
            "legacy": chat.legacy,
            **self._identity(chat),
        }
        choices = [ChatChunks(choice=index, **how) for index in range(chat.choices)]
        return choices[0] if len(choices) == 1 else ChoiceChunks(choices)

    def _identity(self, chat: ChatRequest) -> Mapping[str, Any]:
        return {
            "id_": f"chatcmpl-{os.urandom(12).hex()}",
            "created": int(time.time()),
            "model": chat.model,
            "call_id": _call_id,
        }


def _filter_request(chat: ChatRequest, passes: PassRules) -> ChatRequest:
    """A request as its model's server may get it; the context that runs notes what does not pass."""
    fields, dropped = passes.fields_passed(chat.fields)
    items, inside = passes.items_passed(chat.conversation.items)
    if dropped or inside or chat.unread:
        note_dropped(dropped | inside | chat.unread)
    return msgspec.structs.replace(
        chat, conversation=msgspec.structs.replace(chat.conversation, items=items), fields=fields
    )


def _events(model: Model, chat: ChatRequest, servers: Mapping[str, OpenServer], search: WebSearch | None) -> Events:
    today = date.today().isoformat()
    if chat.offer is None:  # no tool runs here
        return run_turn(model, chat.conversation, chat.fields, today=today, streamed=chat.stream)
    asked = ParsedRequest(chat.conversation, chat.offer, chat.fields)
    return _one_message(
        run_server_tools(
            model,
            asked,
            server_calls(asked, servers, search, None),
            new_id=_new_id,
            today=today,
            streamed=chat.stream,
            truncates=False,
        )
    )


async def _as_named(events: Events, names: ToolNames) -> Events:
    """The events with calls as the client knows their tools."""
    async with aclosing(events):
        async for batch in events:
            yield [
                msgspec.structs.replace(event, name=names.client(event.name).name)
                if type(event) is CallStarted
                else event
                for event in batch
            ]


async def _one_message(events: TurnEvents) -> Events:
    message = OneMessage()
    try:
        async with aclosing(events):
            async for batch in events:
                if shown := [one for event in batch for one in message.events(event)]:
                    yield shown
    except RequestError as error:
        if error.param == "input":  # the name of the field in errors of rounds
            error.param = "messages"
        raise


class _TurnWriter:
    """Writes the chunks of a turn. A failure becomes an event after the token counts: clients stop reading there.

    Problems of the turn are sent as a comment before the end: the headers have been sent by then.
    """

    is_over = False

    def __init__(self, chunks: ChatChunks | ChoiceChunks) -> None:
        self.write, self.heartbeat = chunks.write, chunks.heartbeat
        self._chunks = chunks

    async def end(self) -> list[bytes]:
        # Clients that asked for the counts wait for them; a server that counts nothing leaves zeros.
        return self._ending(self._chunks.counted or Usage(), b"")

    def fail(self, error: Exception) -> list[bytes]:
        return self._ending(self._chunks.counted, data(encode(error_body(told_failure(error)))))

    def _ending(self, usage: Usage | None, failure: bytes) -> list[bytes]:
        problems = self._chunks.problems
        told = comment(f"{PROBLEMS_HEADER}: {problems_told(problems)}") if problems else b""
        context = current()
        cost = None if context is None else context.turns.cost
        return [self._chunks.usage(usage, cost), failure, told, DONE]


def _call_id(given: str | None = None) -> str:
    return given or _new_id("call")


def _new_id(prefix: str) -> str:
    return f"{prefix}_{os.urandom(12).hex()}"
