"""Timeouts for incoming requests: a client that sends one byte a minute must not hold a place for ever (slowloris)."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from callwright.errors import RequestError
from callwright.gateway.request_context import current
from callwright.settings import bounds

_SWEPT_EVERY_S: Final = 1.0


class BodyTimeout:
    """ASGI middleware: `receive` raises `RequestError` (408) if the body is not complete after `RECEIVE_S`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """See ASGI."""
        if scope["type"] != "http":
            return self._app(scope, receive, send)
        until = asyncio.get_running_loop().time() + bounds.RECEIVE_S
        is_there = False
        exchange = getattr(receive, "__self__", None)

        async def received() -> Message:
            nonlocal is_there
            if is_there:
                return await receive()
            if not getattr(exchange, "more_body", True):  # our own server has all of it already
                message = await receive()
            else:
                try:
                    async with asyncio.timeout_at(until):
                        message = await receive()
                except TimeoutError:
                    raise _too_slow() from None
            if not message.get("more_body"):
                is_there = True
                if (context := current()) is not None:
                    context.received_s = time.monotonic()
            return message

        return self._app(scope, received, send)


class HeaderTimeout:
    """Has connections close whose request headers, or whose message over WebSocket, are not complete after `RECEIVE_S`,
    and those that are idle for too long. `connections` are of our own protocols.
    """

    def __init__(self, connections: set[Any]) -> None:
        self._connections = connections
        self._swept_s = 0.0

    def sweep(self, now_s: float) -> None:
        """Look at all connections, at most once a second."""
        if now_s - self._swept_s < _SWEPT_EVERY_S:
            return
        self._swept_s = now_s
        for one in [*self._connections]:
            one.sweep(now_s, bounds.RECEIVE_S)


def _too_slow() -> RequestError:
    return RequestError(
        f"Request timed out: its body was not here within {bounds.RECEIVE_S:g} s. Please try again.",
        code="request_timeout",
        status=408,
        headers={"connection": "close"},
    )
