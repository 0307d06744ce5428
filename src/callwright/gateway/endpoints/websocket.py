"""The Responses API over WebSocket: one connection, one turn after the other, the latest response in memory."""

import asyncio
import itertools
import logging
import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, Final

from msgspec import Struct
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from callwright.errors import RequestError, UpstreamError
from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.access.keys import caller
from callwright.gateway.config.config import ServerConfig
from callwright.gateway.endpoints.responses import api_dialect_of, event_bytes
from callwright.gateway.http import OUR_FAULT, cancel_quietly
from callwright.gateway.request_context import RequestContext, RequestContexts, current, note
from callwright.gateway.responses.service import ConnectionCache, PreparedResponse, ResponseService
from callwright.openai_format.errors import missing
from callwright.tolerant_json.codec import encode
from callwright.wire.body import decoded
from callwright.wire.errors import ErrorObject, error_body, upstream_status
from callwright.wire.responses.event_types import (
    ResponseCompletedEvent,
    ResponseIncompleteEvent,
    ResponseStreamEvent,
)
from callwright.wire.responses.types import ResponseError

__all__ = ["ENDPOINT", "ResponsesSocket"]

log = logging.getLogger("callwright.gateway")
ENDPOINT: Final = "/v1/responses (websocket)"
_MAX_WAITING: Final = 32  # requests that wait for the one that is answered
_LONGEST_S: Final = 3_600.0
_STREAM_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_TRY_AGAIN: Final = 1013
_RESTART: Final = 1012
_LEAVING: Final = RequestError(
    "This gateway is shutting down. Open another connection, it may be another gateway that answers.",
    status=503,
    type_="server_error",
    code="shutting_down",
)
_TOO_MANY: Final = RequestError(
    f"Too many requests wait on this connection: {_MAX_WAITING} at most. Send the next one when one is answered.",
    status=429,
    type_="rate_limit_error",
    code="rate_limit_exceeded",
)


_CANNOT_STEER: Final = ResponseError("steering_not_supported", "This gateway cannot steer a response.")


class _ErrorFrame(Struct, tag_field="type", tag="error"):
    """What was wrong, and the status that it would have over HTTP."""

    status: int
    error: ErrorObject


class _SteerFailedFrame(Struct, tag_field="type", tag="response.steer.failed"):
    error: ResponseError


class ResponsesSocket:
    """Serves connections; see the module's docstring."""

    def __init__(
        self, turns: ResponseService, server: ServerConfig, admission: AdmissionControl, contexts: RequestContexts
    ) -> None:
        self._turns = turns
        self._server = server
        self._admission = admission
        self._contexts = contexts

    async def serve(self, websocket: WebSocket) -> None:
        """Answer one connection until it ends."""
        await websocket.accept()
        connection = _Connection(websocket, self._turns, self._server, self._admission, self._contexts)
        try:
            async with asyncio.timeout(_LONGEST_S):
                await connection.run()
        except TimeoutError:
            error = RequestError(
                "The connection has lasted 60 minutes, which is the limit. Open another one.",
                code="websocket_connection_limit_reached",
            )
            with suppress(RuntimeError, WebSocketDisconnect):
                await connection.refuse(error)
                await websocket.close(_TRY_AGAIN)
        except WebSocketDisconnect:
            pass


class _Connection:
    def __init__(
        self,
        websocket: WebSocket,
        turns: ResponseService,
        server: ServerConfig,
        admission: AdmissionControl,
        contexts: RequestContexts,
    ) -> None:
        self._websocket = websocket
        self._turns = turns
        self._server = server
        self._admission = admission
        self._contexts = contexts
        self._answering = asyncio.Lock()
        self._memory = ConnectionCache()
        self._flavour = api_dialect_of(websocket.url.path, server)
        self._waiting: asyncio.Queue[str] = asyncio.Queue(_MAX_WAITING)

    async def run(self) -> None:
        """Read frames while the turns that they ask for are answered, one after the other; when the gateway ends, the
        connection does behind the turn that is answered.
        """
        tasks = [asyncio.ensure_future(work) for work in (self._read(), self._work(), self._leave())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                await cancel_quietly(task)

    async def _leave(self) -> None:
        """When the gateway ends: say so, and close."""
        await self._admission.drained.wait()
        async with self._answering:
            await self.refuse(_LEAVING)
            await self._websocket.close(_RESTART)

    async def refuse(self, error: RequestError | UpstreamError, stream_id: str | None = None) -> None:
        """Send an error frame. The connection stays open."""
        status = error.status if isinstance(error, RequestError) else upstream_status(error)
        told = error_body(error).error
        if self._flavour == "open_responses":  # whose errors always have a code
            told.code = told.code or told.type
        await self._send(encode(_ErrorFrame(status=status, error=told)), stream_id)

    async def _read(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                await self.refuse(RequestError("Expected a text frame with one JSON object, got a binary one."))
            else:
                try:
                    self._waiting.put_nowait(text)
                except asyncio.QueueFull:
                    await self.refuse(_TOO_MANY)

    async def _work(self) -> None:
        while True:
            text = await self._waiting.get()
            async with self._answering:
                await self._take(text)

    async def _take(self, text: str) -> None:
        scope = self._websocket.scope
        with self._contexts.open("WEBSOCKET", scope["path"], dict(scope["headers"])) as context:
            context.endpoint = ENDPOINT
            context.caller = caller().name
            if context.keeps_body:
                context.body = text
            context.status = await self._answered(text, context)
            context.is_whole = True

    async def _answered(self, text: str, context: RequestContext) -> int:
        """Answer a frame, or refuse it. The status that it would have over HTTP."""
        stream_id: str | None = None
        error: RequestError | UpstreamError
        try:
            given = decoded(text, self._turns.limits)
            if not isinstance(given, dict):
                raise RequestError("Expected a JSON object, got another value.", code="invalid_type")
            stream_id = _stream_id(given)
            await self._answer(given, text, stream_id)
            return 200
        except (RequestError, UpstreamError) as refused:
            log.debug("websocket request refused: %.500r", str(refused))
            error = refused
        except (WebSocketDisconnect, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("websocket request failed")
            error = OUR_FAULT
        context.failed(error)
        await self.refuse(error, stream_id)
        return error.status if isinstance(error, RequestError) else upstream_status(error)

    async def _answer(self, given: dict[str, Any], text: str, stream_id: str | None) -> None:
        kind = given.get("type")
        if kind == "response.steer":
            await self._send(encode(_SteerFailedFrame(error=_CANNOT_STEER)), stream_id)
            return
        if kind is None:
            raise missing("type")
        if kind != "response.create":
            raise RequestError(
                f"Invalid value: '{kind}'. Supported values are: 'response.create'.", param="type", code="invalid_value"
            )
        caller().begin()
        parent = given.get("previous_response_id")
        completed = False
        try:
            # What a stream would be asked for means nothing here, and every answer is one.
            prepared = await self._turns.prepare(
                text, self._memory, flavour=self._flavour, type=None, stream=None, stream_options=None, background=None
            )
            note(prepared.id, prepared.request.conversation_id)
            if given.get("generate") is False:
                for number, event in enumerate(self._turns.warm_up(prepared, self._memory)):
                    await self._send(event_bytes(event, number), stream_id)
                completed = True
            else:
                completed = await self._stream(prepared, stream_id)
        finally:
            if isinstance(parent, str) and not completed:
                self._memory.evict(parent)

    async def _stream(self, prepared: PreparedResponse, stream_id: str | None) -> bool:
        """Send the events of a turn. Whether it came to its end."""
        numbers = itertools.count()
        last: ResponseStreamEvent | None = None
        events = self._turns.streamed(prepared, self._turns.ask(prepared, streamed=True), self._memory)
        async with aclosing(events), aclosing(self._with_heartbeats(events, prepared)) as beating:
            async for event in beating:
                last = event
                await self._send(event_bytes(event, next(numbers)), stream_id)
        return isinstance(last, ResponseCompletedEvent | ResponseIncompleteEvent)

    async def _with_heartbeats(
        self, batches: AsyncGenerator[list[ResponseStreamEvent], None], prepared: PreparedResponse
    ) -> AsyncGenerator[ResponseStreamEvent, None]:
        """The events, and one without news whenever there was none for a while."""
        while True:
            coming = asyncio.ensure_future(anext(batches, None))
            try:
                while not (await asyncio.wait({coming}, timeout=self._server.heartbeat_s))[0]:
                    yield prepared.writer.heartbeat()
                batch = coming.result()
            finally:
                await cancel_quietly(coming)
            if batch is None:
                return
            for event in batch:
                yield event

    async def _send(self, frame: bytes, stream_id: str | None) -> None:
        """Send a JSON object, with the stream that it belongs to where the client has named one."""
        if stream_id is not None:
            frame = b'%b,"stream_id":%b}' % (frame.removesuffix(b"}"), encode(stream_id))
        if self._websocket.application_state is WebSocketState.CONNECTED:
            if (context := current()) is not None and context.first_s is None:
                context.first_s = time.monotonic()
            try:
                async with asyncio.timeout(self._server.stall_s):
                    await self._websocket.send_text(frame.decode())
            except TimeoutError:
                log.info("a websocket client reads nothing: it is given up")
                raise WebSocketDisconnect from None


def _stream_id(given: dict[str, Any]) -> str | None:
    """What a client calls the stream that it asks for."""
    named = given.get("stream_id")
    if named is None:
        return None
    if not isinstance(named, str) or not _STREAM_ID.fullmatch(named):
        raise RequestError(
            "Invalid 'stream_id': expected 1 to 256 of the characters A-Z, a-z, 0-9, '_', '.' and '-'.",
            param="stream_id",
            code="invalid_stream_id",
        )
    return named
