"""`POST /v1/chat/completions`: one request, one turn, nothing kept."""

import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import date
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from callwright.bounds import Bounds
from callwright.collector import collect
from callwright.errors import RequestError, UpstreamError
from callwright.events import Event, Markup, Problem, Usage
from callwright.gateway.config.config import ServerConfig
from callwright.gateway.http import (
    LARGE,
    OUR_FAULT,
    PROBLEMS_HEADER,
    EventStream,
    PeekedStream,
    cancel_on_disconnect,
    json_response,
    off_loop,
    problems_told,
    read_body,
)
from callwright.gateway.request_context import note_dropped
from callwright.tolerant_json.codec import encode
from callwright.turn.model import Model
from callwright.turn.run import Events, run_turn
from callwright.wire.body import decoded
from callwright.wire.chat.request import ChatRequest, read_request
from callwright.wire.chat.response import ChatChunks, completion
from callwright.wire.errors import error_body
from callwright.wire.pass_rules import PassRules
from callwright.wire.sse import DONE, comment, data

__all__ = ["ChatEndpoint"]

log = logging.getLogger("callwright.gateway")


class ChatEndpoint:
    """Answers chat requests."""

    def __init__(self, find_model: Callable[[str], Model], server: ServerConfig, bounds: Bounds) -> None:
        self._find_model = find_model
        self._server = server
        self._bounds = bounds

    async def create(self, request: Request) -> Response:
        """A completion, streamed or whole."""
        body = await read_body(request, self._server.max_body_bytes)
        slow = len(body) > LARGE or b"custom" in body
        mend = self._server.history == "mend"
        chat = await off_loop(lambda: read_request(decoded(body, self._bounds), mend=mend), slow=slow)
        model = self._find_model(chat.model)
        chat = _passed(chat, model.passes)
        today = date.today().isoformat()
        events = run_turn(model, chat.conversation, chat.fields, today=today, streamed=chat.stream)
        if not chat.stream:
            return await cancel_on_disconnect(request.receive, self._whole(chat, events))
        chunks = self._chunks(chat)
        peeked = PeekedStream(events)
        await peeked.begin(request.receive, self._server.heartbeat_s)
        stream = _stream(chunks, peeked)
        return EventStream(stream, chunks.heartbeat, self._server.heartbeat_s, self._server.stall_s)

    async def _whole(self, chat: ChatRequest, events: Events) -> Response:
        kept: list[Event] = []
        usage: Usage | None = None
        async with aclosing(events):
            async for batch in events:
                for event in batch:
                    if isinstance(event, Usage):
                        usage = event
                    else:
                        kept.append(event)
        turn = collect(kept)
        answer = completion(
            turn,
            usage,
            legacy=chat.legacy,
            reasoning=self._server.reasoning,
            **self._identity(chat),
        )
        told = problems_told(turn.problems)
        return json_response(answer, headers={PROBLEMS_HEADER: told} if told else None)

    def _chunks(self, chat: ChatRequest) -> ChatChunks:
        return ChatChunks(
            include_usage=chat.include_usage,
            legacy=chat.legacy,
            reasoning=self._server.reasoning,
            **self._identity(chat),
        )

    def _identity(self, chat: ChatRequest) -> Mapping[str, Any]:
        return {
            "id_": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": chat.model,
            "call_id": _call_id,
        }


def _passed(chat: ChatRequest, passes: PassRules) -> ChatRequest:
    """A request as its model's server may get it; the context that runs notes what does not pass."""
    fields, dropped = passes.fields_passed(chat.fields)
    items, inside = passes.items_passed(chat.conversation.items)
    note_dropped(dropped | inside)
    return msgspec.structs.replace(
        chat, conversation=msgspec.structs.replace(chat.conversation, items=items), fields=fields
    )


async def _stream(
    chunks: ChatChunks, events: PeekedStream[Sequence[Event | Usage]]
) -> AsyncGenerator[list[bytes], None]:
    """The chunks of a turn. A failure becomes an event, behind the token counts: clients stop to read there.

    What was wrong with the turn comes as a comment before the end: the headers are gone by then.
    """
    usage: Usage | None = None
    problems: list[Problem] = []
    failure = b""
    try:
        async with aclosing(events):
            batch = await events.first()
            while batch is not None:
                written: list[bytes] = []
                for event in batch:
                    if isinstance(event, Usage):
                        usage = event
                        continue
                    if isinstance(event, Problem):
                        problems.append(event)
                    elif not isinstance(event, Markup):
                        written.append(chunks.event(event))
                yield written
                batch = await anext(events.rest, None)
    except (RequestError, UpstreamError) as error:
        log.debug("stream failed: %.500r", str(error))
        failure = data(encode(error_body(error)))
    except Exception:
        log.exception("stream failed")
        failure = data(encode(error_body(OUR_FAULT)))
    told = comment(f"{PROBLEMS_HEADER}: {problems_told(problems)}") if problems else b""
    if usage is None and not failure:
        usage = Usage()  # clients that asked for the counts wait for them; a server that counts nothing leaves zeros
    yield [chunks.usage(usage), failure, told, DONE]


def _call_id() -> str:
    return f"call_{secrets.token_hex(12)}"
