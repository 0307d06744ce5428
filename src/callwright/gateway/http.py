"""ASGI answers: JSON, OpenAI's errors, event streams that notice when their client leaves."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Generic, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from callwright.errors import RequestError, UpstreamError
from callwright.events import Problem
from callwright.gateway.body_budget import LARGE, BodyRoom, body_room
from callwright.gateway.connections import WhenLeft
from callwright.gateway.request_context import SEND_ON, RequestContext, client_error, current
from callwright.openai_format.tool_names import ToolNames
from callwright.settings import bounds
from callwright.tolerant_json.codec import encode
from callwright.turn.observe import FLOWING
from callwright.wire.anthropic.errors import anthropic_error, anthropic_status
from callwright.wire.errors import error_body, upstream_status
from callwright.wire.sse import HEADERS, packed

__all__ = [
    "DROPPED_HEADER",
    "FALLBACK_HEADER",
    "LARGE",
    "OUR_FAULT",
    "PROBLEMS_HEADER",
    "AsWritten",
    "ClientDisconnected",
    "EventStream",
    "PeekedStream",
    "StreamWriter",
    "cancel_on_disconnect",
    "cancel_quietly",
    "error_response",
    "in_client_names",
    "json_response",
    "off_loop",
    "problems_told",
    "read_body",
    "store_unavailable",
    "told_failure",
]

log = logging.getLogger("callwright.gateway")
T = TypeVar("T")
B = TypeVar("B", bound=Sequence[Any])
T_contra = TypeVar("T_contra", contravariant=True)
# Names the problems of an answer, and whether they were repaired or retried.
PROBLEMS_HEADER = "x-callwright-problems"
# Names the unknown fields of a request, which were not forwarded.
DROPPED_HEADER = "x-callwright-dropped-fields"
# In an answer: which other model answers, and why. In a request: `none`, no other may.
FALLBACK_HEADER = "x-callwright-fallback"
OUR_FAULT = RequestError(
    "The gateway has failed; its log says how.", status=500, type_="server_error", code="internal_error"
)
_RETRY_S = 5
# The most batches of a turn that are noted together.
_MANY = 256


def store_unavailable() -> RequestError:
    """The 503 error for a store of responses that does not answer."""
    return RequestError(
        "The store of responses does not answer now. Please try again later; a request with 'store': false that "
        "continues from nothing needs no store.",
        status=503,
        type_="server_error",
        code="store_unavailable",
        headers={"retry-after": str(_RETRY_S)},
    )


# A refused body is drained, up to this multiple of the limit: a client that still writes reads no refusal.
_DRAINED = 8


class ClientDisconnected(Exception):  # noqa: N818  # not an error
    """The client has closed the connection."""


def json_response(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return _JsonResponse(encode(body), status, headers)


class _JsonResponse(Response):
    """With the headers that it has anyway, which are not looked for among those that are given."""

    media_type = "application/json"

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        self.raw_headers = [(b"content-length", b"%d" % len(self.body)), (b"content-type", b"application/json")]
        for name, value in headers.items() if headers else ():
            self.raw_headers.append((name.lower().encode("latin-1"), value.encode("latin-1")))


def error_response(error: RequestError | UpstreamError) -> Response:
    """The error with its status, in the form of the API that the client of the context that runs speaks."""
    if isinstance(error, RequestError):
        headers = error.headers
    else:
        headers = {"retry-after": error.retry_after_s} if error.retry_after_s else {}
        if error.fault == "unmet":  # the model was asked again already
            headers["x-should-retry"] = "false"
    context = current()
    if context is not None and context.api == "anthropic":
        return json_response(anthropic_error(client_error(error), context.id), anthropic_status(error), headers)
    status = error.status if isinstance(error, RequestError) else upstream_status(error)
    return json_response(error_body(client_error(error)), status, headers)


async def read_body(request: Request, limit: int) -> bytes:
    """The request's body. Raises `RequestError`: 413 if it is larger than `limit` bytes, 429 if the bodies being
    read leave no room for it, 408 if it is not complete in time.
    """
    context = current()
    exchange = getattr(request.receive, "__self__", None)
    pieces: list[bytes] = []
    size = 0
    room: BodyRoom | None = None
    full: RequestError | None = None
    is_whole = False
    while not is_whole:
        if getattr(exchange, "more_body", True):
            message = await _received_in_time(request, context)
        else:  # our own server has all of it already
            message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        is_whole = not message.get("more_body")
        if is_whole and context is not None:
            context.received_s = time.monotonic()
        piece = message.get("body", b"")
        size += len(piece)
        if size <= limit and full is None:
            pieces.append(piece)
            if size >= LARGE and (room := body_room()) is not None:
                full = room.maybe_full(size)
        elif size > limit * _DRAINED:
            break
        if size > limit or full is not None:
            pieces.clear()
            if room is not None:
                room.clear()
    if size > limit:
        raise RequestError(
            f"Request body too large: expected at most {limit} bytes, got {size} or more. Send less in one request, or "
            "raise max_body_bytes in the gateway's configuration.",
            code="request_too_large",
            status=413,
        )
    if full is not None:
        raise full
    body = b"".join(pieces)
    if context is not None and context.keeps_body:
        context.body = body
    return body


async def _received_in_time(request: Request, context: RequestContext | None) -> Message:
    """The next part of a body. A client that sends one byte a minute must not hold a place for ever (slowloris)."""
    spent_s = 0.0 if context is None else time.monotonic() - context.begun_s
    try:
        async with asyncio.timeout(bounds.RECEIVE_S - spent_s):
            return await request.receive()
    except TimeoutError:
        raise RequestError(
            f"Request timed out: its body was not here within {bounds.RECEIVE_S:g} s. Please try again.",
            code="request_timeout",
            status=408,
            headers={"connection": "close"},
        ) from None


async def off_loop(read: Callable[[], T], *, slow: bool) -> T:
    """Read a request; in a thread if `slow`: it is large, or a grammar must be compiled."""
    return await asyncio.to_thread(read) if slow else read()


def problems_told(problems: Iterable[Problem]) -> str:
    """Kinds of problems in a header: `argument_coerced=2, json_repaired=1`."""
    kinds = [problem.kind for problem in problems]
    return ", ".join(f"{kind}={number}" for kind, number in sorted(Counter(kinds).items())) if kinds else ""


async def cancel_on_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do `work` while the client is there. Raises `ClientDisconnected`, with the work cancelled, when it goes."""
    task = asyncio.current_task()
    assert task is not None
    is_gone = False

    def cancel() -> None:
        nonlocal is_gone
        is_gone = True
        task.cancel()

    with WhenLeft(request.scope, request.receive, cancel):
        try:
            return await work
        except asyncio.CancelledError:
            if is_gone and task.uncancel() == 0:
                raise ClientDisconnected from None
            raise


async def in_client_names(events: AsyncGenerator[T, None], names: ToolNames) -> AsyncGenerator[T, None]:
    """The events of a turn. An error of the model server has the client's names of tools in its message."""
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except UpstreamError as error:
        error.message = names.in_words(error.message)
        raise


class PeekedStream(Generic[T]):
    """Events whose first is awaited before the response starts: an earlier failure is a plain error response."""

    def __init__(self, events: AsyncGenerator[T, None]) -> None:
        self.rest = events  # after the first one, the consumer reads the generator directly
        self._first: asyncio.Future[T | None] | None = asyncio.ensure_future(anext(events, None))

    async def begin(self, request: Request, bears: Callable[[BaseException | None], bool] = lambda _: False) -> None:
        """Wait for the first event until a heartbeat is due. Raises its error, or `ClientDisconnected`; an error
        that the answer `bears` is raised by `first` instead.
        """
        first = self._first
        assert first is not None, "it has begun already"
        try:
            await cancel_on_disconnect(request, asyncio.wait({first}, timeout=bounds.HEARTBEAT_S))
            if first.done() and not bears(first.exception()):
                first.result()
        except BaseException:
            await self.aclose()
            raise

    async def first(self) -> T | None:
        """The first event; None if there are no events."""
        first = self._first
        assert first is not None, "it was taken already"
        try:
            return await first
        finally:
            if not first.done():
                await cancel_quietly(first)
            self._first = None

    async def aclose(self) -> None:
        """Nothing more of it is wanted."""
        if self._first is not None:
            await cancel_quietly(self._first)
        await self.rest.aclose()


async def cancel_quietly(task: "asyncio.Future[Any]") -> None:
    """Cancel a task and discard its result."""
    if task.done():
        if not task.cancelled():
            task.exception()  # marks it as retrieved
        return
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task


class StreamWriter(Protocol[T_contra]):
    """Writes a stream, batch by batch, as the events of an API."""

    @property
    def write(self) -> Callable[[T_contra], Sequence[bytes]]:
        """Makes the events for a batch."""
        ...

    @property
    def heartbeat(self) -> Callable[[], bytes]:
        """Makes an event without news."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether no more batches are wanted."""
        ...

    async def end(self) -> Sequence[bytes]:
        """The final events. An error here is a failure, too."""
        ...

    def fail(self, error: Exception) -> Sequence[bytes]:
        """The final events of a failed stream. Raises the error if no event can report it."""
        ...


class AsWritten:
    """For batches that are written already. `heartbeat` makes an event without news."""

    is_over = False

    def __init__(self, heartbeat: Callable[[], bytes]) -> None:
        self.heartbeat = heartbeat

    def write(self, batch: Sequence[bytes]) -> Sequence[bytes]:
        return batch

    async def end(self) -> Sequence[bytes]:
        return ()

    def fail(self, error: Exception) -> Sequence[bytes]:
        raise error


def told_failure(error: Exception) -> RequestError | UpstreamError:
    """The error for the client whose stream has failed; the failure is logged."""
    if isinstance(error, RequestError | UpstreamError):
        log.debug("stream failed: %.500r", str(error))
        return client_error(error)
    log.error("stream failed", exc_info=error)
    return OUR_FAULT


class Followed(Protocol[B]):
    """A turn that is noted on its way to the client. `take` returns the batch to send in its place; batches that are
    put into `flowing` are sent unchanged.
    """

    flowing: list[B]

    def take(self, batch: B) -> B:
        """Take the batches in `flowing`, and this one."""
        ...

    async def end(self) -> None:
        """The turn is over."""
        ...


class EventStream(Response, Generic[B]):
    """Sends the events that `writer` makes from each batch, after those that `begin` it, and a heartbeat after a while
    without any. A turn that is `followed` gets the batches first.

    When the client leaves, or reads nothing for `STALL_S`, the batches are closed.
    """

    def __init__(
        self,
        batches: AsyncGenerator[B, None] | PeekedStream[B],
        writer: StreamWriter[B],
        begin: Sequence[bytes] = (),
        followed: Followed[B] | None = None,
    ) -> None:
        super().__init__(status_code=200, headers=HEADERS)
        del self.headers["content-length"]
        self._batches = batches
        self._writer = writer
        self._begin = begin
        self._followed = followed
        self._sent = 0
        self._is_sending = False  # an event is being sent; takes long if the client reads slowly
        self._awaited: asyncio.Future[None] | None = None  # done when that event is sent
        self._beats: asyncio.Future[None] | None = None  # done when the current heartbeat is sent
        self._beating: asyncio.Task[bool] | None = None
        self._is_over = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        # A separate task, so that each wake-up resumes only the frames it needs.
        pump = asyncio.ensure_future(self._pump(send, scope.get(SEND_ON, send)))
        self._look_later(pump, send)
        try:
            with WhenLeft(scope, receive, pump.cancel):
                await asyncio.wait({pump})
            if not pump.cancelled():
                pump.result()
        finally:
            self._is_over = True
            self._timer.cancel()
            beating = self._beating
            if beating is not None:
                if beating.done() and not beating.cancelled() and (fault := beating.exception()) is not None:
                    log.error("stream failed", exc_info=fault)
                await cancel_quietly(beating)
            await cancel_quietly(pump)
            await self._batches.aclose()

    def _look_later(self, pump: "asyncio.Future[None]", send: Send) -> None:
        """Look in a while whether anything was sent until then: a timer, for most streams need no heartbeat."""
        self._timer = asyncio.get_running_loop().call_later(bounds.HEARTBEAT_S, self._look, pump, send, self._sent)

    def _look(self, pump: "asyncio.Future[None]", send: Send, sent: int) -> None:
        if sent != self._sent:
            self._look_later(pump, send)
            return

        def over(beating: "asyncio.Task[bool]") -> None:
            if beating.cancelled() or beating.exception() is not None or not beating.result():
                pump.cancel()
            elif not self._is_over:
                self._look_later(pump, send)

        self._beating = asyncio.ensure_future(self._beat(send))
        self._beating.add_done_callback(over)

    async def _pump(self, send: Send, later: Send) -> None:
        writer, batches, followed = self._writer, self._batches, self._followed
        first, rest = (batches.first, batches.rest) if isinstance(batches, PeekedStream) else (None, batches)
        written = self._begin
        send_on = send
        is_last = False
        while True:
            if written:
                if self._beats is not None:
                    await self._beats
                self._sent += 1
                self._is_sending = True
                for piece in packed(written) if len(written) > 1 or not all(written) else written:
                    await send_on({"type": "http.response.body", "body": piece, "more_body": True})
                    send_on = later
                self._is_sending = False
                if self._awaited is not None:
                    _tell(self._awaited)
                    self._awaited = None
            if is_last:
                break
            try:
                if first is not None:
                    batch, first = await first(), None
                else:
                    batch = None if writer.is_over else await anext(rest, None)
                if batch is not None:
                    if followed is not None:
                        if len(followed.flowing) < _MANY and FLOWING.issuperset(map(type, batch)):
                            followed.flowing.append(batch)
                        else:
                            batch = followed.take(batch)
                    written = writer.write(batch)
                    continue
                is_last = True
                written = await self._end()
            except Exception as error:
                is_last = True
                written = writer.fail(error)
        if self._beats is not None:
            await self._beats
        self._sent += 1
        self._is_sending = True
        await send({"type": "http.response.body", "body": b""})

    async def _end(self) -> Sequence[bytes]:
        """The batches are over; answers the last events."""
        if self._writer.is_over:  # the turn is stopped early
            await self._batches.aclose()
        elif self._followed is not None:
            await self._followed.end()
        return await self._writer.end()

    async def _beat(self, send: Send) -> bool:
        """Send a heartbeat, or wait for the event being sent. Returns whether the client still reads."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(bounds.STALL_S):
                if self._is_sending:
                    self._awaited = loop.create_future()
                    await self._awaited
                else:
                    self._beats = loop.create_future()
                    await send({"type": "http.response.body", "body": self._writer.heartbeat(), "more_body": True})
        except TimeoutError:
            log.info("a client has read nothing of its stream for %g s: it is given up", bounds.STALL_S)
            return False
        finally:
            if self._beats is not None:
                _tell(self._beats)
                self._beats = None
        return True


def _tell(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():  # who waited may be gone
        waiter.set_result(None)
