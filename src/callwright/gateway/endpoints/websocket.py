"""The Responses API over WebSocket: one connection, one turn after the other, the latest response in memory.

A turn takes a place as a request does; a connection takes none, and is closed after a long silence. Frames that arrive
during a turn are queued, up to a number of frames and bytes; after that, reading pauses. A connection outlives changes
of the configuration: its key is checked again for each turn.
"""

import asyncio
import itertools
import logging
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any, Final

from msgspec import Struct
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from callwright.errors import RequestError, UpstreamError
from callwright.gateway.access.admission import AdmissionControl
from callwright.gateway.access.keys import caller
from callwright.gateway.access.middleware import Access
from callwright.gateway.config.config import ServerConfig
from callwright.gateway.connections import STATE, Connection
from callwright.gateway.endpoints.responses import api_dialect_of, event_bytes
from callwright.gateway.http import OUR_FAULT, cancel_quietly
from callwright.gateway.request_context import RequestContext, RequestContexts, client_error, current, note
from callwright.gateway.responses.service import ConnectionCache, PreparedResponse, ResponseService
from callwright.openai_format.errors import missing
from callwright.settings import bounds
from callwright.tolerant_json.codec import encode
from callwright.wire.body import decoded
from callwright.wire.errors import ErrorObject, error_body, upstream_status
from callwright.wire.responses.event_types import (
    ResponseCompletedEvent,
    ResponseIncompleteEvent,
    ResponseStreamEvent,
)
from callwright.wire.responses.types import ResponseError

log = logging.getLogger("callwright.gateway")
ENDPOINT: Final = "/v1/responses (websocket)"
_MAX_WAITING: Final = 32  # queued requests
_SOCKETS: Final = 8  # the limit for all connections together, as a multiple of the limit for one
_LONGEST_S: Final = 3_600.0
_STREAM_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_TRY_AGAIN: Final = 1013
_RESTART: Final = 1012
_REFUSED: Final = 1008
_NO_ACCESS: Final = (401, 403)
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


class _ErrorFrame(Struct, tag_field="type", tag="error", omit_defaults=True):
    """An error, with the status and headers that it would have over HTTP."""

    status: int
    error: ErrorObject
    headers: dict[str, str] = {}


class _SteerFailedFrame(Struct, tag_field="type", tag="response.steer.failed"):
    error: ResponseError


class ResponsesSocket:
    """Serves connections; see the module's docstring."""

    def __init__(
        self,
        turns: Callable[[], ResponseService],
        access: Access,
        server: ServerConfig,
        admission: AdmissionControl,
        contexts: RequestContexts,
    ) -> None:
        """`turns` returns the service of the present configuration, and `access` knows its keys."""
        self._turns = turns
        self._access = access
        self._admission = admission
        self._contexts = contexts
        self._waiting = _WaitingBytes(bounds.MAX_WAITING_BYTES, server.max_body_bytes)

    async def serve(self, websocket: WebSocket) -> None:
        """Answer one connection until it ends."""
        await websocket.accept()
        waiting = _WaitingFrames(self._waiting)
        given = self._turns, self._access, self._admission, self._contexts
        connection = _Connection(websocket, *given, waiting)
        try:
            async with asyncio.timeout(_LONGEST_S):
                ended = await connection.run()
        except TimeoutError:
            ended = RequestError(
                "The connection has lasted 60 minutes, which is the limit. Open another one.",
                code="websocket_connection_limit_reached",
            )
        except WebSocketDisconnect:
            ended = None
        finally:
            waiting.clear()
        if ended is not None:
            with suppress(RuntimeError, WebSocketDisconnect):
                await connection.refuse(ended)
                await websocket.close(_REFUSED if ended.status in _NO_ACCESS else _TRY_AGAIN)


class _WaitingBytes:
    """What waits on all connections: at most `most` bytes on one, in messages of at most `largest`."""

    def __init__(self, most: int, largest: int) -> None:
        self.most = most
        self.largest = largest
        self.of_all = 0


class _WaitingFrames:
    """The queued frames of a connection. The reader waits for room first."""

    def __init__(self, waiting: _WaitingBytes) -> None:
        self._all = waiting
        self._frames: deque[str | bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    async def room(self) -> None:
        """Wait until another frame may be read. Returns immediately if the queue is empty."""
        while self._frames and (
            self._bytes + self._all.largest > self._all.most or self._all.of_all > self._all.most * _SOCKETS
        ):
            self._changed.clear()
            await self._changed.wait()

    def put(self, text: str) -> bool:
        """Add a frame. False where too many wait."""
        if len(self._frames) >= _MAX_WAITING:
            return False
        frame = text if text.isascii() else text.encode()  # else one odd character makes it four times as large
        self._frames.append(frame)
        self._count(len(frame))
        return True

    async def get(self) -> str | bytes:
        """The next frame, once there is one."""
        while not self._frames:
            self._changed.clear()
            await self._changed.wait()
        frame = self._frames.popleft()
        self._count(-len(frame))
        return frame

    def clear(self) -> None:
        """Discard the queue."""
        self._frames.clear()
        self._count(-self._bytes)

    def _count(self, number: int) -> None:
        self._bytes += number
        self._all.of_all += number
        self._changed.set()


class _Connection:
    def __init__(
        self,
        websocket: WebSocket,
        turns: Callable[[], ResponseService],
        access: Access,
        admission: AdmissionControl,
        contexts: RequestContexts,
        waiting: _WaitingFrames,
    ) -> None:
        self._websocket = websocket
        self._turns = turns
        self._access = access
        self._admission = admission
        self._contexts = contexts
        self._answering = asyncio.Lock()
        self._memory = ConnectionCache()
        self._flavour = api_dialect_of(websocket.url.path)
        self._waiting = waiting
        self._place: Connection | None = websocket.scope.get("state", {}).get(STATE)
        self._unwanted = asyncio.Event()  # set where others need its place

    async def run(self) -> RequestError | None:
        """Read frames and answer their turns, one after the other. When the gateway shuts down, the connection is
        closed after the current turn. Returns the reason if the gateway closes the connection, else None.
        """
        working = asyncio.ensure_future(self._work())
        others = [asyncio.ensure_future(work) for work in (self._read(), self._leave())]
        tasks = [working, *others]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            for task in tasks:
                await cancel_quietly(task)

    async def _leave(self) -> None:
        """When the gateway shuts down, send an error and close."""
        await self._admission.drained.wait()
        async with self._answering:
            await self.refuse(_LEAVING)
            await self._websocket.close(_RESTART)

    async def refuse(self, error: RequestError | UpstreamError, stream_id: str | None = None) -> None:
        """Send an error frame. The connection stays open."""
        status = error.status if isinstance(error, RequestError) else upstream_status(error)
        told = error_body(client_error(error)).error
        if self._flavour == "open_responses":  # whose errors always have a code
            told.code = told.code or told.type
        headers = {} if isinstance(error, UpstreamError) else error.headers
        retry = {name: value for name, value in headers.items() if name == "retry-after"}
        await self._send(encode(_ErrorFrame(status=status, error=told, headers=retry)), stream_id)

    async def _read(self) -> None:
        while True:
            await self._waiting.room()
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                await self.refuse(RequestError("Expected a text frame with one JSON object, got a binary one."))
            elif not self._waiting.put(text):
                await self.refuse(_TOO_MANY)
            await asyncio.sleep(0)  # buffered frames must not block other tasks

    async def _work(self) -> RequestError | None:
        """Answer frames until the key is not valid any more, the connection is idle for too long, or its place is
        needed. Returns the reason.
        """
        while (frame := await self._next()) is not None:
            async with self._answering:
                if (no_access := await self._take(frame)) is not None:
                    return no_access
        if self._unwanted.is_set():
            return RequestError(
                "Too many connections are open, and nothing was under way on this one. Open another one with the next "
                "request.",
                status=429,
                type_="rate_limit_error",
                code="rate_limit_exceeded",
            )
        return RequestError(
            f"Nothing was asked on this connection for {bounds.IDLE_S:g} s, which is the limit. Open another one "
            "with the next request.",
            status=408,
            code="websocket_idle_limit_reached",
        )

    async def _next(self) -> str | bytes | None:
        """The next frame; None if none arrives in time."""
        if self._place is not None:
            self._place.idle(self._unwanted.set)
        coming = asyncio.ensure_future(self._waiting.get())
        unwanted = asyncio.ensure_future(self._unwanted.wait())
        try:
            await asyncio.wait((coming, unwanted), timeout=bounds.IDLE_S, return_when=asyncio.FIRST_COMPLETED)
            return coming.result() if coming.done() else None
        finally:
            if self._place is not None:
                self._place.busy()
            await cancel_quietly(coming)
            await cancel_quietly(unwanted)

    async def _take(self, text: str | bytes) -> RequestError | None:
        """Answer a frame, by the present configuration. Returns the error if the key may not ask any more."""
        scope = self._websocket.scope
        with self._contexts.open("WEBSOCKET", scope["path"], dict(scope["headers"])) as context:
            context.endpoint = ENDPOINT
            try:
                self._access.who_asks(scope)
            except RequestError as error:
                context.failed(error)
                context.status, context.is_whole = error.status, True
                return error
            if context.keeps_body:
                context.body = text
            turns = self._turns()
            with turns.uses:
                context.status = await self._answered(turns, text, context)
            context.is_whole = True
            return None

    async def _answered(self, turns: ResponseService, text: str | bytes, context: RequestContext) -> int:
        """Answer a frame, or refuse it. The status that it would have over HTTP."""
        stream_id: str | None = None
        error: RequestError | UpstreamError
        try:
            given = decoded(text, turns.bounds)
            if not isinstance(given, dict):
                raise RequestError("Expected a JSON object, got another value.", code="invalid_type")
            stream_id = _stream_id(given)
            with self._admission.under_way():
                await self._answer(turns, given, text, stream_id)
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

    async def _answer(
        self, turns: ResponseService, given: dict[str, Any], text: str | bytes, stream_id: str | None
    ) -> None:
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
        caller().check_expiry()  # the connection may have been opened before
        await caller().begin()
        parent = given.get("previous_response_id")
        completed = False
        try:
            # Every answer is streamed here, so the stream options have no meaning.
            prepared = await turns.prepare(
                text, self._memory, flavour=self._flavour, type=None, stream=None, stream_options=None, background=None
            )
            note(prepared.id, prepared.request.conversation_id, prepared.request.previous_response_id)
            if given.get("generate") is False:
                for number, event in enumerate(turns.warm_up(prepared, self._memory)):
                    await self._send(event_bytes(event, number), stream_id)
                completed = True
            else:
                await prepared.check_budgets()
                completed = await self._stream(turns, prepared, stream_id)
        finally:
            if isinstance(parent, str) and not completed:
                self._memory.evict(parent)

    async def _stream(self, turns: ResponseService, prepared: PreparedResponse, stream_id: str | None) -> bool:
        """Send the events of a turn. Returns whether it completed."""
        numbers = itertools.count()
        last: ResponseStreamEvent | None = None
        events = turns.streamed(prepared, *turns.ask(prepared, streamed=True), self._memory)
        async with aclosing(events), aclosing(self._with_heartbeats(events, prepared)) as beating:
            async for event in beating:
                last = event
                await self._send(event_bytes(event, next(numbers)), stream_id)
        return isinstance(last, ResponseCompletedEvent | ResponseIncompleteEvent)

    async def _with_heartbeats(
        self, batches: AsyncGenerator[list[ResponseStreamEvent], None], prepared: PreparedResponse
    ) -> AsyncGenerator[ResponseStreamEvent, None]:
        """The events, with a heartbeat event after each pause of `bounds.HEARTBEAT_S` seconds."""
        while True:
            coming = asyncio.ensure_future(anext(batches, None))
            try:
                while not (await asyncio.wait({coming}, timeout=bounds.HEARTBEAT_S))[0]:
                    yield prepared.writer.heartbeat()
                batch = coming.result()
            finally:
                await cancel_quietly(coming)
            if batch is None:
                return
            for event in batch:
                yield event

    async def _send(self, frame: bytes, stream_id: str | None) -> None:
        """Send a JSON object, with its stream id if the client has given one."""
        if stream_id is not None:
            frame = b'%b,"stream_id":%b}' % (frame.removesuffix(b"}"), encode(stream_id))
        if self._websocket.application_state is WebSocketState.CONNECTED:
            if (context := current()) is not None and context.first_s is None:
                context.first_s = time.monotonic()
            try:
                async with asyncio.timeout(bounds.STALL_S):
                    await self._websocket.send_text(frame.decode())
            except TimeoutError:
                log.info("a websocket client reads nothing: it is given up")
                raise WebSocketDisconnect from None


def _stream_id(given: dict[str, Any]) -> str | None:
    """The id that the client gives the requested stream, or None."""
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
