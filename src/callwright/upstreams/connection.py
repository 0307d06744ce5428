"""Connections to one server: requests that survive a connection which the server has closed, answers of bounded size.

Knows HTTP and nothing of what is sent. What goes wrong is raised as aiohttp has it; `TooLargeError` and
`TooSlowError` are of this module.
"""

import asyncio
import socket
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from io import BytesIO
from typing import Final, Self

import aiohttp
from msgspec import Struct

__all__ = ["AT_ONCE", "Connections", "Pieces", "Timeouts", "TooLargeError", "TooSlowError", "whole"]

# Bytes of an answer that are read before the event loop gets its turn: aiohttp hands over up to 512 KB at once, and
# what was compressed comes without any pause.
AT_ONCE: Final = 16_384
# aiohttp sends a file in pieces, so that a large body does not block the event loop.
_SMALL_BYTES: Final = 65_536
_REQUEST_TIMEOUT: Final = 408


class Timeouts(Struct, frozen=True):
    """Seconds to wait for a connection, and between two reads of a streamed answer. An answer that is not streamed may
    take twice as long as such a pause.
    """

    connect_s: float = 10.0
    idle_s: float = 300.0

    @property
    def whole_s(self) -> float:
        """Seconds to wait for an answer that is not streamed."""
        return 2 * self.idle_s


class TooLargeError(Exception):
    """An answer of more bytes than `most`."""

    def __init__(self, most: int) -> None:
        super().__init__(f"an answer of more than {most:,} bytes")
        self.most = most


class TooSlowError(Exception):
    """An answer that comes, byte by byte, and does not come to its end."""


class _Sending(Struct):
    """A request on its way. `opened`: a connection was opened for it, it did not go over one that was kept."""

    opened: bool = False


# A context variable, as aiohttp may open the socket in a task of its own.
_sending: ContextVar[_Sending | None] = ContextVar("callwright_sending", default=None)


def _opened_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    if (request := _sending.get()) is not None:
        request.opened = True
    family, kind, protocol, *_ = address
    return socket.socket(family, kind, protocol)


@cache
def _patience(connect_s: float, silent_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=connect_s, sock_read=silent_s)


class _OfLoop:
    """The connections of one event loop: those that are kept, and those that are closed behind their answer. They end
    with the loop, which closes what generators hold that were begun in it.
    """

    def __init__(self) -> None:
        self.kept: aiohttp.ClientSession | None = None
        self.fresh: aiohttp.ClientSession | None = None
        self._holder = self._held()

    async def open(self) -> None:
        """Have the loop end them."""
        await anext(self._holder)

    async def close(self) -> None:
        """Close all of them."""
        await self._holder.aclose()

    def forget(self) -> None:
        """The loop has ended without a word: nothing can be sent to close them."""
        for session in (self.kept, self.fresh):
            if session is not None:
                session.detach()

    async def _held(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            for session in (self.kept, self.fresh):
                if session is not None:
                    await session.close()


_closing: Final[set[asyncio.Task[None]]] = set()


def _close_all(by_loop: Mapping[asyncio.AbstractEventLoop, _OfLoop]) -> None:
    """Nobody has these any more: each loop that still runs closes its own. From any thread."""

    def begin(mine: _OfLoop) -> None:
        task = asyncio.get_running_loop().create_task(mine.close())
        _closing.add(task)
        task.add_done_callback(_closing.discard)

    for loop, mine in by_loop.items():
        try:
            loop.call_soon_threadsafe(begin, mine)
        except RuntimeError:  # it is closed
            mine.forget()


class Connections:
    """The connections to a server, of each event loop its own. `headers` go with every request.

    Servers close a kept connection without notice: behind an answer, when it was idle, when they restart. A request
    that got not a byte of an answer on such a connection was not processed (RFC 9112, 9.3.1), so it is sent once more,
    on a connection that is opened for it and closed behind it: others that were kept may be as dead.
    """

    def __init__(self, headers: Mapping[str, str], timeouts: Timeouts) -> None:
        # Not compressed: an answer is as large as it looks. A server that compresses all the same is read, too.
        self._headers = {"accept-encoding": "identity", **headers}
        self._timeouts = timeouts
        self._by_loop: dict[asyncio.AbstractEventLoop, _OfLoop] = {}
        # The finalizer holds what is to be closed: garbage itself, a session would complain before anybody closes it.
        weakref.finalize(self, _close_all, self._by_loop).atexit = False

    async def send(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str] | None, silent_s: float
    ) -> aiohttp.ClientResponse:
        """The response to a request, once its head has come. The server may be silent for `silent_s`."""
        mine = await self._of_this_loop()
        if mine.kept is None:
            mine.kept = self._session(keep=True)
        request = _Sending()
        token = _sending.set(request)
        try:
            response = await self._send(mine.kept, method, url, body, headers, silent_s)
            if request.opened or response.status != _REQUEST_TIMEOUT:
                return response
            response.close()  # a server says so when it closes a connection that was idle
        except aiohttp.ClientConnectionError as error:
            if request.opened or not _is_unanswered(error):
                raise
        finally:
            _sending.reset(token)
        if mine.fresh is None:
            mine.fresh = self._session(keep=False)
        return await self._send(mine.fresh, method, url, body, headers, silent_s)

    async def close(self) -> None:
        """Close all connections of this event loop."""
        mine = self._by_loop.pop(asyncio.get_running_loop(), None)
        if mine is not None:
            await mine.close()

    async def _of_this_loop(self) -> _OfLoop:
        loop = asyncio.get_running_loop()
        mine = self._by_loop.get(loop)
        if mine is None:
            for ended in [one for one in list(self._by_loop) if one.is_closed()]:
                with suppress(KeyError):  # another thread was here
                    self._by_loop.pop(ended).forget()
            mine = self._by_loop[loop] = _OfLoop()
            await mine.open()
        return mine

    def _session(self, *, keep: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(
                limit=0, ttl_dns_cache=60, socket_factory=_opened_socket, force_close=not keep
            ),
            cookie_jar=aiohttp.DummyCookieJar(),  # a server's cookies are no client's, and would be kept for ever
        )

    async def _send(
        self,
        session: aiohttp.ClientSession,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        silent_s: float,
    ) -> aiohttp.ClientResponse:
        connect_s = self._timeouts.connect_s
        try:
            # A head that comes byte by byte is never silent, so there is a bound on all of it.
            async with asyncio.timeout(connect_s + 2 * silent_s) as limit:
                return await session.request(
                    method,
                    url,
                    data=body if body is None or len(body) <= _SMALL_BYTES else BytesIO(body),
                    headers=headers,
                    allow_redirects=False,
                    timeout=_patience(connect_s, silent_s),
                )
        except TimeoutError as error:
            if limit.expired():
                raise TooSlowError from error
            raise


class Pieces:
    """The bytes of a body as they come. Raises `aiohttp.ClientError` where the connection breaks.

    aiohttp then forgets what has come and was not read yet, and says so only once; here that comes before the error.
    """

    def __init__(self, body: aiohttp.StreamReader) -> None:
        self._body = body
        self._broken: aiohttp.ClientError | None = None

    def __aiter__(self) -> Self:
        """See the language."""
        return self

    async def __anext__(self) -> bytes:
        """See the language."""
        if self._broken is not None:
            raise self._broken
        try:
            piece = await self._body.readany()
        except aiohttp.ClientError as error:
            self._broken = error
            self._body.set_exception(None)  # type: ignore[arg-type]  # which alone keeps it from what it has
            piece = self._body.read_nowait()
            if not piece:
                raise
        except RuntimeError as error:  # where what came was no HTTP
            raise aiohttp.ClientPayloadError(str(error)) from error
        if not piece:
            raise StopAsyncIteration
        return piece

    async def skip_end(self, within_s: float) -> None:
        """Wait for the end, so that the connection can be used again. Nobody needs it: it may be missing."""
        with suppress(TimeoutError, aiohttp.ClientError, StopAsyncIteration):
            async with asyncio.timeout(within_s):
                await anext(self)


async def whole(response: aiohttp.ClientResponse, most: int, within_s: float, *, cut: bool = False) -> bytearray:
    """All of the body. `cut`: what is more than `most` is left out, else it raises `TooLargeError`. Raises
    `TooSlowError` if the end does not come in time.

    aiohttp decompresses up to 256 KB at once, as long as nobody calls `read`, which lifts that.
    """
    if response.content.is_eof() and response.content.total_bytes <= AT_ONCE <= most:  # it came with its head
        return bytearray(response.content.read_nowait())
    body = bytearray()
    try:
        async with asyncio.timeout(within_s) as limit:
            async for chunk in Pieces(response.content):
                if len(body) + len(chunk) > most:
                    response.close()
                    raise TooLargeError(most)
                body += chunk
                if len(chunk) > AT_ONCE:
                    await asyncio.sleep(0)
    except BaseException as error:
        if cut and isinstance(error, TooLargeError):
            return body
        body.clear()  # an exception keeps its frames alive, and with them this
        if isinstance(error, TimeoutError) and limit.expired():
            raise TooSlowError from error
        raise
    return body


def _is_unanswered(error: Exception) -> bool:
    """Whether the connection ended before a byte of the answer had come."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError):
        return False
    # The message of an answer that had begun is its head, as far as it came.
    return not isinstance(error, aiohttp.ServerDisconnectedError) or isinstance(error.message, str)
