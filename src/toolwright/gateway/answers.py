"""ASGI answers: JSON, OpenAI's errors, event streams that notice when their client leaves."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolwright.errors import RequestError, UpstreamError
from toolwright.jsontext import encode
from toolwright.wire.errors import error_body, upstream_status
from toolwright.wire.sse import HEADERS

__all__ = ["ClientLeft", "EventStream", "error_response", "json_response", "read_body", "unless_left"]

T = TypeVar("T")
# A body over the limit is read on, up to so many times the limit: a client that still writes reads no refusal.
_DRAINED = 8


class ClientLeft(Exception):  # noqa: N818  # nobody's error
    """The client has closed the connection."""


def json_response(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(encode(body), status, headers, media_type="application/json")


def error_response(error: RequestError | UpstreamError) -> Response:
    """OpenAI's error with its status."""
    if isinstance(error, RequestError):
        return json_response(error_body(error), error.status)
    headers = {"retry-after": error.retry_after_s} if error.retry_after_s else {}
    if error.fault == "unmet":  # the model was asked again already
        headers["x-should-retry"] = "false"
    return json_response(error_body(error), upstream_status(error), headers)


async def read_body(request: Request, limit: int) -> bytes:
    """The request's body. Raises `RequestError` (413) when it is larger than `limit` bytes."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size <= limit:
            pieces.append(piece)
        elif size > limit * _DRAINED:
            break
    if size > limit:
        raise RequestError(
            f"Request body too large: expected at most {limit} bytes, got {size} or more. Send less in one request, or "
            "raise max_body_bytes in the gateway's configuration.",
            code="request_too_large",
            status=413,
        )
    return b"".join(pieces)


async def unless_left(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do `work` while the client is there. Raises `ClientLeft`, with the work cancelled, when it goes."""
    task = asyncio.ensure_future(work)
    left = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientLeft
    finally:
        for other in (task, left):
            other.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await other


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Sends the events of a generator, each in a write of its own, and a heartbeat when there was none for a while.

    When the client leaves, the generator is closed.
    """

    def __init__(self, events: AsyncGenerator[bytes, None], heartbeat: Callable[[], bytes], heartbeat_s: float) -> None:
        super().__init__(status_code=200, headers=HEADERS)
        del self.headers["content-length"]
        self._events = events
        self._heartbeat = heartbeat
        self._heartbeat_s = heartbeat_s
        self._sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        beat = asyncio.ensure_future(self._beat(send))
        try:
            with suppress(ClientLeft):
                await unless_left(receive, self._pump(send))
        finally:
            beat.cancel()
            with suppress(asyncio.CancelledError):
                await beat
            await self._events.aclose()

    async def _pump(self, send: Send) -> None:
        async for event in self._events:
            self._sent += 1
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _beat(self, send: Send) -> None:
        while True:
            sent = self._sent
            await asyncio.sleep(self._heartbeat_s)
            if sent == self._sent:
                await send({"type": "http.response.body", "body": self._heartbeat(), "more_body": True})
