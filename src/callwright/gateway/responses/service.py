"""One response of the Responses API: fetch the history, ask the model, store the answer.

HTTP and WebSocket share it. It knows the store and the models, not the transport.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import date
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from callwright.conversation import Call
from callwright.errors import RequestError, UpstreamError
from callwright.events import Problem, Usage
from callwright.gateway.http import LARGE, OUR_FAULT, in_client_names, off_loop, store_unavailable
from callwright.gateway.kept_items.keeper import ItemKeeper
from callwright.gateway.kept_items.written_turn import FollowedTurn
from callwright.gateway.parts import Uses
from callwright.gateway.request_context import client_error, current, note_dropped, note_given
from callwright.gateway.responses.context_management import compacted_first, conversation_tokens, is_too_long
from callwright.gateway.responses.given_items import Items, bring_tools, references, to_be_read, with_ids
from callwright.gateway.server_tools.compaction import compacted
from callwright.gateway.server_tools.kinds import note_not_run, runs_here, server_calls
from callwright.gateway.server_tools.mcp_servers import McpServers, OpenServer
from callwright.gateway.server_tools.run import run_server_tools
from callwright.gateway.server_tools.truncation import Fitting
from callwright.gateway.server_tools.web_searches import WebSearch
from callwright.gateway.store.store import Store, StoreDownError, StoredResponse, StoreError
from callwright.memo.prefixes import once
from callwright.openai_format.tool_catalog import ToolCatalog
from callwright.reading.collect import settle_events
from callwright.settings.bounds import Bounds
from callwright.turn.model import Model
from callwright.turn.run import run_turn
from callwright.wire.body import decoded
from callwright.wire.bounds import check_items
from callwright.wire.chat.request import CONSUMED
from callwright.wire.errors import error_body
from callwright.wire.mcp_tools import read_mcp_tools, shown_mcp
from callwright.wire.parsed_request import ParsedRequest
from callwright.wire.pass_rules import PassRules
from callwright.wire.responses.call_ids import CallIds
from callwright.wire.responses.event_types import ResponseStreamEvent
from callwright.wire.responses.request import (
    ResponsesRequest,
    decode_request,
    read_request,
    unknown_fields,
)
from callwright.wire.responses.response import ApiDialect, ResponseWriter, response_object
from callwright.wire.responses.types import Response
from callwright.wire.responses.unread_fields import unread_fields
from callwright.wire.server_events import TurnEvent, TurnEvents

log = logging.getLogger("callwright.gateway")


def new_id(prefix: str) -> str:
    """A new random id."""
    return f"{prefix}_{secrets.token_hex(24)}"


class ConnectionCache:
    """The latest response of a WebSocket connection, which can be continued even if it is not stored."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._items: Items = []
        self._stored = False

    def get(self, id_: str) -> Items | None:
        """The items up to and including this response, if it is the latest and not stored."""
        return list(self._items) if id_ == self._id and not self._stored else None

    def keep(self, id_: str, items: Items, *, stored: bool) -> None:
        """Remember this response in place of the last; one that is `stored` is found in the store."""
        self._id, self._items, self._stored = id_, [] if stored else items, stored

    def evict(self, id_: str) -> None:
        """Forget a response."""
        if id_ == self._id:
            self._id, self._items = None, []


class PreparedResponse(Struct):
    """A fully validated request, ready to be answered. `new`: the items of the request itself."""

    request: ResponsesRequest
    asked: ParsedRequest
    model: Model
    writer: ResponseWriter
    history: Items
    new: Items
    servers: Mapping[str, OpenServer] = {}  # MCP servers, by label
    continues: str | None = None  # the stored response before it
    compacts_first: bool = False  # the conversation is too long
    queued: bool = False  # it runs in the background, and is in the store already
    problems: list[Problem] = []
    usage: Usage | None = None
    ending: list[ResponseStreamEvent] = []  # the last events of the stream, once there are some

    @property
    def id(self) -> str:
        """The id of the response."""
        return self.writer.response.id

    def write(self, batch: Sequence[TurnEvent]) -> list[ResponseStreamEvent]:
        """Take events of the turn; answers the stream events of the API for them."""
        for event in batch:
            if type(event) is Usage:
                self.usage = event
                continue
            if type(event) is Problem:
                self.problems.append(event)
            self.writer.write(event)
        return self.writer.take()

    def finish(self) -> list[ResponseStreamEvent]:
        """The turn is over; answers the last stream events."""
        context = current()
        cost = None if context is None else context.turns.cost
        return self.writer.finish(self.usage, int(time.time()), cost)

    async def check_budgets(self) -> None:
        """Raises `RequestError` (429) if neither the model nor one of its fallbacks has a budget left for it."""
        refusal: RequestError | None = None
        for model in (self.model, *self.model.fallbacks):
            try:
                if model.limit is not None:
                    await model.limit.check()
                return
            except RequestError as error:
                refusal = refusal or error
        assert refusal is not None
        raise refusal

    def stored(self) -> StoredResponse:
        """The response as it is now, for the store."""
        body = msgspec.to_builtins(self.writer.response)
        output = body.pop("output")
        return StoredResponse(
            id=self.id,
            created_at=self.writer.response.created_at,
            body=body,
            input=tuple(self.new if self.continues or self.request.conversation_id else [*self.history, *self.new]),
            output=tuple(output),
            parent=self.continues,
            conversation=self.request.conversation_id,
        )


class ResponseService:
    """Prepares responses and runs them. `find_model` raises `RequestError` for a name that is not served. `uses` counts
    what runs longer than the request that began it.
    """

    def __init__(
        self,
        find_model: Callable[[str], Model],
        store: Store | None,
        servers: McpServers,
        keeper: ItemKeeper,
        search: WebSearch | None = None,
        *,
        mend: bool,
        bounds: Bounds,
        uses: Uses,
    ) -> None:
        self.uses = uses
        self._find_model = find_model
        self._servers = servers
        self._search = search
        self._keeper = keeper
        self._store = store
        self._mend = mend
        self.bounds = bounds

    async def prepare(
        self,
        body: bytes | str,
        memory: ConnectionCache | None = None,
        *,
        flavour: ApiDialect = "openai",
        **changed: Any,
    ) -> PreparedResponse:
        """Check a request together with its history. `changed` overrides fields of the body. Raises `RequestError`."""
        given = await off_loop(lambda: decoded(body, self.bounds), slow=len(body) > LARGE)
        if isinstance(given, Mapping):
            given = {key: it for key, it in {**given, **changed}.items() if it is not None}
        request = decode_request(given)
        assert isinstance(given, Mapping)
        note_given(given)
        model = self._find_model(request.model)
        continues = request.previous_response_id or request.conversation_id
        if self._store is not None and (request.store is not False or continues):
            await self._check_store()
        history = await self._history(request, memory)
        items = await self._new_items(given.get("input"))
        new = with_ids(items)
        check_items([*history, *items] if history else items, self.bounds, "input")
        if request.input is not None:
            request.input = to_be_read(items, new)
        slow = len(body) > LARGE or _may_compile(request.tools or (), [*history, *new])
        labels = () if request.tool_choice == "none" else model.mcp
        opened = await self._servers.open(read_mcp_tools(given.get("tools") or ()), labels)
        servers = {label: one.server for label, one in opened.items()}
        asked = await off_loop(
            lambda: read_request(
                request,
                given,
                history,
                servers=servers,
                mend=self._mend,
                searches_web=self._search is not None,
                rules=model.requests,
            ),
            slow=slow,
        )
        asked = _filter_request(asked, model.passes, unknown_fields(given), unread_fields(given, items))
        if request.store is not False:
            conversation = await self._keeper.put_back(asked.conversation, model)
            asked = msgspec.structs.replace(asked, conversation=conversation)
        writer = _writer(request, given.get("tools") or (), asked, flavour)
        parent = request.previous_response_id
        continues = None if memory and parent and memory.get(parent) is not None else parent
        prepared = PreparedResponse(request, asked, model, writer, history, new, opened, continues)
        prepared.compacts_first = await self._is_too_long(prepared)
        return prepared

    def ask(self, prepared: PreparedResponse, *, streamed: bool) -> tuple[TurnEvents, FollowedTurn]:
        """The events of the turn, and their `FollowedTurn`. Reading them raises `UpstreamError` or `RequestError`."""
        asked, today = prepared.asked, date.today().isoformat()
        if asked.compacts:
            events = compacted(prepared.model, asked, today)
        elif not prepared.compacts_first:
            events = self._turn(prepared, asked, today, streamed=streamed)
        else:
            go_on = partial(self._turn, prepared, today=today, streamed=streamed)
            events = compacted_first(prepared.model, asked, today, go_on)
        taken = {item.id for item in asked.conversation.items if isinstance(item, Call)}
        keeps = prepared.request.store is not False
        ids = CallIds(new_id, taken)
        followed = self._keeper.follow(asked.conversation, prepared.model, ids.of, keeps=keeps)
        if asked.offer.names.renames:
            events = in_client_names(events, asked.offer.names)
        return events if streamed else _settle(events), followed

    def _turn(self, prepared: PreparedResponse, asked: ParsedRequest, today: str, *, streamed: bool) -> TurnEvents:
        truncates = prepared.request.truncation == "auto"
        if runs_here(asked, prepared.servers):
            calls = server_calls(asked, prepared.servers, self._search, prepared.request.max_tool_calls)
            return run_server_tools(
                prepared.model, asked, calls, new_id=new_id, today=today, streamed=streamed, truncates=truncates
            )
        fit = Fitting(truncates=truncates)
        return run_turn(prepared.model, asked.conversation, asked.fields, today=today, streamed=streamed, fit=fit)

    async def whole(self, prepared: PreparedResponse) -> Response:
        """The response, not streamed. Raises `UpstreamError` or `RequestError`."""
        events, followed = self.ask(prepared, streamed=False)
        async with aclosing(events):
            async for batch in events:
                prepared.write(followed.take(batch))
        await followed.end()
        prepared.finish()
        await self._keep(prepared, None)
        return prepared.writer.response

    async def streamed(
        self,
        prepared: PreparedResponse,
        events: TurnEvents,
        followed: FollowedTurn,
        memory: ConnectionCache | None = None,
    ) -> AsyncGenerator[list[ResponseStreamEvent], None]:
        """The stream events, in batches as they arrived: the first begins the response, and the last always carries
        its final status.
        """
        yield prepared.writer.begin()
        try:
            async with aclosing(events):
                async for batch in events:
                    if written := prepared.write(followed.take(batch)):
                        yield written
            await followed.end()
            ending = await self.end(prepared, memory)
        except Exception as error:
            ending = self.fail(prepared, error)
        yield ending

    async def end(self, prepared: PreparedResponse, memory: ConnectionCache | None = None) -> list[ResponseStreamEvent]:
        """Store the response of a finished turn. Returns the last stream events. Raises `StoreError`."""
        prepared.ending = prepared.finish()
        await self._keep(prepared, memory)
        return prepared.ending

    @staticmethod
    def fail(prepared: PreparedResponse, error: Exception) -> list[ResponseStreamEvent]:
        """The last stream events of a response that has failed."""
        if isinstance(error, RequestError | UpstreamError):
            log.debug("%s failed: %.500r", prepared.id, str(error))
            kind, words = _failure(client_error(error))
        elif isinstance(error, StoreDownError):
            log.error("%s could not be stored: %s", prepared.id, error)
            kind, words = "server_error", store_unavailable().message
        else:
            log.error("%s failed", prepared.id, exc_info=error)
            kind, words = "server_error", OUR_FAULT.message
        return prepared.ending[:-1] + prepared.writer.fail(kind, words)

    def warm_up(self, prepared: PreparedResponse, memory: ConnectionCache) -> list[ResponseStreamEvent]:
        """A response without output, which can be continued on this connection."""
        events = prepared.writer.begin() + prepared.writer.finish(None, int(time.time()))
        memory.keep(prepared.id, [*prepared.history, *prepared.new], stored=False)
        return events

    async def _is_too_long(self, prepared: PreparedResponse) -> bool:
        """Whether the conversation must be compacted before the next turn."""
        threshold = prepared.request.compact_threshold
        if threshold is None or prepared.asked.compacts:
            return False
        parent, conversation = prepared.continues, prepared.asked.conversation
        counted = await self._store.get(parent) if self._store is not None and parent is not None else None
        tokens = conversation_tokens(prepared.model, conversation, counted, len(prepared.new))
        return is_too_long(conversation, tokens, threshold)

    async def _check_store(self) -> None:
        """Check the store before the model is asked: without the store, its answer would be lost."""
        assert self._store is not None
        try:
            await self._store.check()
        except StoreDownError as error:
            log.error("a response is refused: %s", error)
            raise store_unavailable() from error

    # --- the history ---

    async def _history(self, request: ResponsesRequest, memory: ConnectionCache | None) -> Items:
        if (parent := request.previous_response_id) is not None:
            items = memory.get(parent) if memory else None
            if items is None and self._store is not None:
                items = await self._store.history(parent)  # type: ignore[assignment]
                await self._refuse_unfinished(parent)
            if items is None:
                raise RequestError(
                    f"Previous response with id '{parent}' not found.",
                    param="previous_response_id",
                    code="previous_response_not_found",
                )
            return items
        if (conversation := request.conversation_id) is not None:
            found = await self._store.conversation_items(conversation) if self._store else None
            if found is None:
                raise RequestError(
                    f"Conversation with id '{conversation}' not found.", param="conversation", status=404
                )
            return list(found)
        return []

    async def _refuse_unfinished(self, id_: str) -> None:
        """Raises `RequestError` for a response that still runs in the background: it cannot be continued yet."""
        stored = await self._store.get(id_) if self._store else None
        if stored is not None and stored.body.get("status") in ("queued", "in_progress"):
            raise RequestError(
                f"Previous response with id '{id_}' is not finished: its status is '{stored.body['status']}'. Wait "
                "until it is completed.",
                param="previous_response_id",
                code="invalid_value",
            )

    async def _new_items(self, given: str | Items | None) -> Items:
        """The items of the input; a reference is replaced by its item."""
        if isinstance(given, str):
            given = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
        found = references(given or ())
        items = list(given or ()) if found or given is None else given
        for number in found:
            stored = await self._store.item(str(items[number].get("id"))) if self._store else None
            items[number] = stored or items[number]
        return items

    async def _keep(self, prepared: PreparedResponse, memory: ConnectionCache | None) -> None:
        """Store a finished response before its last event is sent, so that it can be continued immediately."""
        is_stored = self._store is not None and prepared.request.store is not False
        if memory is not None:
            items = [*prepared.history, *prepared.new, *msgspec.to_builtins(prepared.writer.response.output)]
            memory.keep(prepared.id, items, stored=is_stored)
        if self._store is None or not is_stored:
            return
        if prepared.queued:  # it may have been deleted or cancelled meanwhile, also by another gateway
            await replace_at_last(self._store, prepared.stored())
            return
        try:
            await self._store.put(prepared.stored())
        except StoreError:
            if prepared.continues is None or await self._store.get(prepared.continues) is not None:
                raise
            prepared.continues = None  # its parent was deleted meanwhile: this one is stored with the whole history
            await self._store.put(prepared.stored())


def _writer(request: ResponsesRequest, tools: Any, asked: ParsedRequest, flavour: ApiDialect) -> ResponseWriter:
    """The writer of the response to a request. `tools` are echoed as they were sent."""
    offer = asked.offer
    echoed = once(tools, "echoed", lambda: _echoed(tools, offer), offer.cache_key)
    response = response_object(request, id_=new_id("resp"), created_at=int(time.time()), tools=echoed)
    return ResponseWriter(response, offer.names, request, new_id=new_id, flavour=flavour)


async def replace_at_last(store: Store, stored: StoredResponse) -> None:
    """Store the final state of a background response, and retry until the store answers: there is no other copy, and
    the final event is sent only after it is stored. Raises `StoreError` if it cannot be stored.
    """
    while True:
        try:
            await store.replace(stored)
        except StoreDownError as error:
            log.error("%s is to be stored later: %s", stored.id, error)
            await asyncio.sleep(_STORED_EVERY_S)
        else:
            return


async def _settle(events: TurnEvents) -> TurnEvents:
    """The events of an answer that is not streamed, in one batch."""
    async with aclosing(events):
        kept = [event async for batch in events for event in batch]
    yield settle_events(kept)


def _may_compile(tools: Sequence[Mapping[str, Any]], items: Items) -> bool:
    """Whether a tool may have a grammar, which takes time to compile."""
    kinds = [tool.get("type") for tool in tools]
    return "custom" in kinds or "namespace" in kinds or bring_tools(items)


# How often it is tried to store how a response in the background has ended.
_STORED_EVERY_S: Final = 1.0


def _echoed(tools: Sequence[Mapping[str, Any]], offer: ToolCatalog) -> list[Mapping[str, Any]]:
    """The tools as the response shows them: a function with all its fields, `strict` as it is enforced."""
    strict = {tool.name: bool(tool.strict) for tool in (*offer.tools, *offer.deferred)}
    echoed: list[Mapping[str, Any]] = []
    for tool in tools:
        if tool.get("type") == "function":
            name = offer.names.flat(str(tool.get("name")))
            defaults = {"description": None, "parameters": None, "strict": strict.get(name, False)}
            given = {key: value for key, value in tool.items() if key != "strict" or value is not None}
            echoed.append({**defaults, **given})
        elif tool.get("type") == "mcp":
            echoed.append(shown_mcp(tool))
        else:
            echoed.append(tool)
    return echoed


def _filter_request(
    asked: ParsedRequest, passes: PassRules, unknown: Mapping[str, Any], unread: frozenset[str]
) -> ParsedRequest:
    """A request as its model's server may get it; the context that runs notes what does not pass."""
    items, dropped = passes.items_passed(asked.conversation.items, flat=True)
    more = {name: value for name, value in unknown.items() if passes.names(name) and name not in CONSUMED}
    note_dropped(dropped | unread | (unknown.keys() - more.keys()))
    note_not_run(asked.offer)
    conversation = msgspec.structs.replace(asked.conversation, items=items)
    return msgspec.structs.replace(asked, conversation=conversation, fields={**more, **asked.fields})


def _failure(error: RequestError | UpstreamError) -> tuple[str, str]:
    """Code and message of a failed response."""
    told = error_body(error).error
    code = told.code or ""
    if isinstance(error, RequestError):
        return (code if code in ("context_length_exceeded",) else "invalid_prompt"), told.message
    if error.fault == "unmet":  # it was retried enough: for any other code clients would retry again
        return "invalid_prompt", told.message
    return ("rate_limit_exceeded" if error.status == 429 else "server_error"), told.message
