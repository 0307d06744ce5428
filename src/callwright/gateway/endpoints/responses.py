"""The Responses API over HTTP: create, read, delete, cancel, compact, count."""

import time
from collections.abc import Sequence
from contextlib import aclosing
from datetime import date
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from callwright.errors import RequestError, is_unmet
from callwright.events import Usage
from callwright.gateway.config.config import ServerConfig
from callwright.gateway.endpoints.background import BackgroundResponses
from callwright.gateway.endpoints.pagination import listed_item, page
from callwright.gateway.endpoints.response_streams import asked_stream, logged_stream, stored_stream
from callwright.gateway.http import (
    PROBLEMS_HEADER,
    EventStream,
    PeekedStream,
    cancel_on_disconnect,
    json_response,
    off_loop,
    problems_told,
    read_body,
)
from callwright.gateway.request_context import note
from callwright.gateway.responses.context_management import kept_messages
from callwright.gateway.responses.service import PreparedResponse, ResponseService, new_id
from callwright.gateway.server_tools.compaction import compacted
from callwright.gateway.store.store import ENDED, Store, StoredResponse
from callwright.tolerant_json.codec import encode
from callwright.turn.deferred_tools import first_round
from callwright.turn.plan import build_generation_request, is_large
from callwright.turn.streams import each
from callwright.wire.responses.event_types import ResponseStreamEvent, numbered
from callwright.wire.responses.response import ApiDialect, response_usage
from callwright.wire.responses.server_items import server_items
from callwright.wire.responses.types import CompactedResponse, DeletedObject, InputTokens, Item
from callwright.wire.server_events import Compacted, TurnEvent
from callwright.wire.sse import DONE, comment

# Requests below this path use the Open Responses dialect, regardless of the configuration.
OPEN_RESPONSES: Final = "/openresponses/"
# A background response still unfinished after this time has failed: its gateway has ended.
_GIVEN_UP_S: Final = 3_600.0
_CHARACTERS_PER_TOKEN: Final = 4


def event_bytes(event: ResponseStreamEvent, number: int) -> bytes:
    """An event as JSON, with its number in the stream."""
    event.sequence_number = number
    return encode(event)


def api_dialect_of(path: str) -> ApiDialect:
    """The dialect of the API that is spoken on a path."""
    return "open_responses" if path.startswith(OPEN_RESPONSES) else "openai"


class _TurnWriter:
    """Writes the events of a response, numbered. The last one has its final status."""

    is_over = False

    def __init__(self, turns: ResponseService, prepared: PreparedResponse, flavour: ApiDialect) -> None:
        self._turns = turns
        self._prepared = prepared
        self._flavour = flavour
        self._number = 0

    def heartbeat(self) -> bytes:
        return self.encode_events([self._prepared.writer.heartbeat()])[0]

    def encode_events(self, events: Sequence[ResponseStreamEvent]) -> list[bytes]:
        """These events as bytes."""
        written = numbered(events, self._number)
        self._number += len(events)
        return written

    def write(self, batch: Sequence[TurnEvent]) -> list[bytes]:
        return self.encode_events(self._prepared.write(batch))

    async def end(self) -> list[bytes]:
        return self._ending(await self._turns.end(self._prepared))

    def fail(self, error: Exception) -> list[bytes]:
        return self._ending(self._turns.fail(self._prepared, error))

    def _ending(self, events: Sequence[ResponseStreamEvent]) -> list[bytes]:
        pieces = self.encode_events(events)
        if told := problems_told(self._prepared.problems):
            pieces.insert(-1, comment(f"{PROBLEMS_HEADER}: {told}"))
        return [*pieces, DONE] if self._flavour == "open_responses" else pieces


class ResponsesEndpoint:
    """Answers requests of the Responses API."""

    def __init__(
        self, turns: ResponseService, store: Store | None, server: ServerConfig, background: BackgroundResponses
    ) -> None:
        self._turns = turns
        self._store = store
        self._server = server
        self._background = background

    async def create(self, request: Request) -> Response:
        """A response: streamed, whole, or in the background."""
        body = await read_body(request, self._server.max_body_bytes)
        flavour = api_dialect_of(request.url.path)
        prepared = await self._turns.prepare(body, flavour=flavour)
        note(prepared.id, prepared.request.conversation_id, prepared.request.previous_response_id)
        if prepared.request.background:
            stored, log = await self._background.begin(self._turns, prepared)
            if prepared.request.stream:
                return logged_stream(prepared.id, log, -1, flavour)
            return json_response({**stored.body, "output": []})
        if prepared.request.stream:
            return await self._streamed(prepared, request, flavour)
        answer = await cancel_on_disconnect(request, self._turns.whole(prepared))
        told = problems_told(prepared.problems)
        return json_response(answer, headers={PROBLEMS_HEADER: told} if told else None)

    async def show(self, request: Request) -> Response:
        """A stored response, whole or as a stream."""
        after = asked_stream(request.query_params)
        stored = await self._stored(request)
        if after is not None:
            flavour = api_dialect_of(request.url.path)
            if (log := self._background.logs.get(stored.id)) is not None:
                return logged_stream(stored.id, log, after, flavour)
            return stored_stream(stored, partial(self._read, stored.id), after, flavour)
        return json_response({**stored.body, "output": list(stored.output)})

    async def delete(self, request: Request) -> Response:
        """Delete a response. Responses that continue from it retain their context."""
        stored = await self._stored(request)
        assert self._store is not None
        await self._background.forget(stored.id)
        await self._store.delete(stored.id)
        return json_response(DeletedObject(id=stored.id, object="response"))

    async def input_items(self, request: Request) -> Response:
        """The items with which a response was asked for."""
        stored = await self._stored(request)
        return json_response(page(stored.input, request.query_params))

    async def cancel(self, request: Request) -> Response:
        """End a response that is made in the background."""
        stored = await self._stored(request)
        if not stored.body.get("background"):
            raise RequestError("Only responses created with background set to true can be cancelled.")
        await self._background.cancel(stored.id)
        stored = await self._stored(request)
        if stored.body["status"] not in ENDED:  # another gateway makes it, which will see this, or has died
            await self._background.set_status(stored, "cancelled")
            stored = await self._stored(request)
        return json_response({**stored.body, "output": list(stored.output)})

    async def input_tokens(self, request: Request) -> Response:
        """About how many tokens a request has: a quarter of the characters that go to the model."""
        prepared = await self._turns.prepare(await read_body(request, self._server.max_body_bytes))
        asked = prepared.asked
        today = date.today().isoformat()

        def count_characters() -> int:
            conversation = first_round(prepared.model, asked.conversation)
            generation = build_generation_request(prepared.model, conversation, asked.fields, today)
            if generation.prompt is not None:
                return len(generation.prompt.text)
            return len(encode([generation.messages, generation.tools]).decode())

        size = await off_loop(count_characters, slow=is_large(asked.conversation))
        return json_response(InputTokens(input_tokens=max(1, size // _CHARACTERS_PER_TOKEN)))

    async def compact(self, request: Request) -> Response:
        """A conversation made short: the latest messages of the user, and a summary of all of it."""
        prepared = await self._turns.prepare(await read_body(request, self._server.max_body_bytes))
        return json_response(await cancel_on_disconnect(request, self._compacted(prepared)))

    # --- parts ---

    async def _streamed(self, prepared: PreparedResponse, request: Request, flavour: ApiDialect) -> Response:
        events, followed = self._turns.ask(prepared, streamed=True)
        peeked = PeekedStream(events)
        # As an HTTP status this would make Codex ask for all of it again.
        await peeked.begin(request, is_unmet)
        writer = _TurnWriter(self._turns, prepared, flavour)
        begin = writer.encode_events(prepared.writer.begin())
        return EventStream(peeked, writer, begin=begin, followed=followed)

    async def _compacted(self, prepared: PreparedResponse) -> CompactedResponse:
        output: list[Item] = []
        usage: Usage | None = None
        async with aclosing(each(compacted(prepared.model, prepared.asked, date.today().isoformat()))) as events:
            async for event in events:
                if isinstance(event, Compacted):
                    kept = kept_messages([*prepared.history, *prepared.new])
                    made = server_items(event, prepared.asked.offer.names, new_id)
                    output = [*map(listed_item, kept), *msgspec.to_builtins(made)]
                elif isinstance(event, Usage):
                    usage = event
        return CompactedResponse(
            id=new_id("resp"), created_at=int(time.time()), output=output, usage=response_usage(usage or Usage())
        )

    async def _stored(self, request: Request) -> StoredResponse:
        id_ = request.path_params["id"]
        stored = await self._read(id_)
        if stored is None:
            raise RequestError(f"Response with id '{id_}' not found.", status=404)
        return stored

    async def _read(self, id_: str) -> StoredResponse | None:
        """The current state of a response; None if it does not exist."""
        stored = await self._store.get(id_) if self._store is not None else None
        if stored is None:
            return None
        if stored.body["status"] not in ENDED and time.time() - stored.created_at > _GIVEN_UP_S:
            error = {"code": "server_error", "message": "The gateway that made this response is gone."}
            return msgspec.structs.replace(stored, body={**stored.body, "status": "failed", "error": error})
        return stored
