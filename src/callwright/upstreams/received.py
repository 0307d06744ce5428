"""What comes over a connection to a server: the bytes of an answer, in bounded pieces, and why there are no more.

aiohttp reads HTTP packet by packet: a fault in one hides what is good in it, and is told to nobody who waits for a
body. Here it makes no difference how packets are cut: all that came before a fault is given, then the fault is told.

Knows HTTP and nothing of what is sent. What goes wrong is told as aiohttp has it; `NotHttpError`, `TooLargeError` and
`TooSlowError` are of this module.
"""

import asyncio
import re
import socket
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Self

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.streams import EMPTY_PAYLOAD
from msgspec import Struct

__all__ = [
    "AT_ONCE",
    "Connector",
    "NotHttpError",
    "Pieces",
    "Sending",
    "TooLargeError",
    "TooSlowError",
    "sending",
    "whole",
]

# Bytes of an answer that are read before the event loop gets its turn: aiohttp hands over up to 512 KB at once, and
# what was compressed comes without any pause.
AT_ONCE: Final = 16_384
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_BEFORE_END: Final = 2  # bytes of it that may have come before


class NotHttpError(aiohttp.ClientPayloadError):
    """A body goes on with something that is no HTTP."""


class TooLargeError(Exception):
    """An answer of more bytes than `most`."""

    def __init__(self, most: int) -> None:
        super().__init__(f"an answer of more than {most:,} bytes")
        self.most = most


class TooSlowError(Exception):
    """An answer that comes, byte by byte, and does not come to its end."""


class Sending(Struct):
    """A request on its way. `opened`: a connection was opened for it, it did not go over one that was kept. `answered`:
    a byte has come, be it of no more than a head.
    """

    opened: bool = False
    answered: bool = False


# The request that this task sends. A context variable, as aiohttp may open the socket in a task of its own.
sending: ContextVar[Sending | None] = ContextVar("callwright_sending", default=None)


def _opened_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    if (request := sending.get()) is not None:
        request.opened = True
    family, kind, protocol, *_ = address
    return socket.socket(family, kind, protocol)


class _Connection(ResponseHandler):
    """A connection whose bodies hear of every fault. It leans on what aiohttp does not promise to keep: `_payload`, the
    body of the answer that is read, and `_exception`, what is wrong with the connection.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._request: Sending | None = None
        self._before = b""  # the last bytes of a head whose end has not come

    def set_response_params(self, **how: Any) -> None:
        """Another request begins."""
        self._request = sending.get()
        self._payload, self._before = None, b""
        super().set_response_params(**how)

    def data_received(self, data: bytes) -> None:
        """See asyncio. Each head is read for itself: of a packet that is found faulty aiohttp forgets the head."""
        while self._payload is None or self._payload is EMPTY_PAYLOAD:
            if not data or self._exception is not None:
                return
            if self._request is not None:
                self._request.answered = True
            seen = self._before + data
            end = _HEAD_END.search(seen)
            at = end.end() - len(self._before) if end else len(data)
            self._before = b"" if end else seen[-_BEFORE_END:]
            head, data = data[:at], data[at:]
            super().data_received(head)
            if not data:
                return
        super().data_received(data)
        body = self._payload
        if body is not None and not body.is_eof() and (self._exception is not None or body.exception() is not None):
            if self._exception is not None and body.exception() is None:
                _break(body, NotHttpError(str(self._exception)), self._exception)
            self.force_close()
            body.feed_eof()  # who was woken by what stands before the fault waits again, and does not look for it

    def connection_lost(self, exc: BaseException | None) -> None:
        """See asyncio."""
        body = self._payload
        if body is not None and exc is not None and not body.is_eof() and body.exception() is None:
            _break(body, aiohttp.ClientPayloadError(str(exc)), exc)  # without a length it would be at its end
        if body is not None and body.exception() is not None:
            self._payload = None  # it hears of what was wrong first
        super().connection_lost(exc)


def _break(body: aiohttp.StreamReader, error: Exception, cause: BaseException) -> None:
    error.__cause__ = cause
    body.set_exception(error)


class Connector(aiohttp.TCPConnector):
    """The connections of one session. `keep`: they are kept for the next request."""

    def __init__(self, *, keep: bool) -> None:
        super().__init__(limit=0, ttl_dns_cache=60, socket_factory=_opened_socket, force_close=not keep)
        self._factory = partial(_Connection, loop=self._loop)  # type: ignore[assignment]  # a subclass


class Pieces:
    """The first `most` bytes of a body as they come. However it ends, all that came is given; `broken` says then why
    there is no more, None where that is its end.
    """

    def __init__(self, body: aiohttp.StreamReader, most: int) -> None:
        self.broken: aiohttp.ClientError | TooLargeError | None = None
        self._body = body
        self._most = most
        self._left = most

    def __aiter__(self) -> Self:
        """See the language."""
        return self

    async def __anext__(self) -> bytes:
        """See the language."""
        if self.broken is not None:
            raise StopAsyncIteration
        try:
            piece = await self._body.readany()
        except aiohttp.ClientError as error:
            self.broken = error
            self._body.set_exception(None)  # type: ignore[arg-type]  # which alone keeps it from what it has
            piece = self._body.read_nowait()
        except RuntimeError as error:  # the connection was closed from here
            self.broken = aiohttp.ClientPayloadError(str(error))
            piece = b""
        if not piece and self.broken is None:
            self.broken = self._body.exception()  # type: ignore[assignment]  # only a `ClientError` is put there
        if len(piece) > self._left:
            piece, self.broken = piece[: self._left], TooLargeError(self._most)
        self._left -= len(piece)
        if not piece:
            raise StopAsyncIteration
        return piece

    async def skip_end(self, within_s: float) -> None:
        """Wait for the end, so that the connection can be used again. Nobody needs it: it may be missing."""
        with suppress(TimeoutError, StopAsyncIteration):
            async with asyncio.timeout(within_s):
                await anext(self)


async def whole(response: aiohttp.ClientResponse, most: int, within_s: float, *, cut: bool = False) -> bytearray:
    """All of the body. `cut`: what came of it is enough, where it is more than `most` or breaks off; else that raises
    `TooLargeError`, or what aiohttp says. Raises `TooSlowError` if the end does not come in time.

    aiohttp decompresses up to 256 KB at once, as long as nobody calls `read`, which lifts that.
    """
    content = response.content
    if content.is_eof() and content.exception() is None and content.total_bytes <= AT_ONCE <= most:
        return bytearray(content.read_nowait())  # it came with its head
    body = bytearray()
    pieces = Pieces(content, most)
    try:
        async with asyncio.timeout(within_s) as limit:
            async for chunk in pieces:
                body += chunk
                if len(chunk) > AT_ONCE:
                    await asyncio.sleep(0)
        if pieces.broken is not None and not (
            cut and isinstance(pieces.broken, aiohttp.ClientPayloadError | TooLargeError)
        ):
            raise pieces.broken
    except BaseException as error:
        body.clear()  # an exception keeps its frames alive, and with them this
        if isinstance(error, TimeoutError) and limit.expired():
            raise TooSlowError from error
        raise
    return body
