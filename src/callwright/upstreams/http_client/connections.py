"""A connection pool for each event loop.

Servers close an idle connection without notice: after an answer, after a while, when they restart. A request that got
not a byte of an answer on such a connection was not processed (RFC 9112, 9.3.1), so it is sent once more, on a new one:
other pooled ones may be as dead.
"""

import asyncio
import socket
import ssl
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import cache
from typing import Final

import aiohappyeyeballs
from msgspec import Struct

from callwright.upstreams.http_client.errors import (
    ClosedError,
    ConnectTimeoutError,
    DisconnectedError,
    NoConnectionError,
)
from callwright.upstreams.http_client.protocol import HttpConnection
from callwright.upstreams.http_client.response import Response
from callwright.upstreams.http_client.target import Origin, Target, target_of

# A connection that was idle for this long is closed: servers do the same, without notice.
_KEPT_S: Final = 15.0
# Between attempts at the addresses of one name (RFC 8305, 5).
_NEXT_ADDRESS_S: Final = 0.25
_REQUEST_TIMEOUT: Final = 408
_STEPS: Final = 100  # of the event loop, for connections to end


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


class _OfLoop:
    """The connections of one event loop. They end with it: it closes what generators hold that were begun in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: set[HttpConnection] = set()
        self._free: dict[Origin, list[HttpConnection]] = {}  # those that were used last at the end
        self._sweep: asyncio.TimerHandle | None = None
        self._holder = self._hold()
        self._is_closed = False

    async def begin(self) -> None:
        """Have the loop end them."""
        await anext(self._holder)

    async def close(self) -> None:
        """Close all of them."""
        await self._holder.aclose()

    def maybe_kept(self, origin: Origin) -> HttpConnection | None:
        """An open pooled connection, or None."""
        free = self._free.get(origin)
        while free:
            connection = free.pop()
            if connection.is_open:
                return connection
        return None

    async def open(self, origin: Origin, within_s: float, *, keep: bool) -> HttpConnection:
        """A new one. Raises `NoConnectionError`, `ConnectTimeoutError`."""

        def free(connection: HttpConnection) -> None:
            if not keep:
                connection.abort()
                return
            connection.since = self._loop.time()
            self._free.setdefault(origin, []).append(connection)
            if self._sweep is None:
                self._sweep = self._loop.call_later(_KEPT_S, self._close_old)

        connection = HttpConnection(self._loop, free, self._open.discard)
        self._open.add(connection)
        try:
            async with asyncio.timeout(within_s):
                await self._connect(connection, origin)
            if self._is_closed:  # meanwhile
                connection.abort()
                raise ClosedError
        except BaseException as error:
            self._open.discard(connection)
            if isinstance(error, TimeoutError):
                raise ConnectTimeoutError from error
            if isinstance(error, OSError):
                raise NoConnectionError(origin.host, origin.port, error) from error
            raise
        return connection

    async def _connect(self, connection: HttpConnection, origin: Origin) -> None:
        found = await self._loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS_S)
        if origin.is_secure:
            secure, host = _secure(), origin.host
            await self._loop.create_connection(lambda: connection, sock=sock, ssl=secure, server_hostname=host)
        else:
            await self._loop.create_connection(lambda: connection, sock=sock)

    def _close_old(self) -> None:
        self._sweep = None
        oldest = self._loop.time() - _KEPT_S
        for free in self._free.values():
            while free and (free[0].since <= oldest or not free[0].is_open):
                free.pop(0).abort()
        if kept := [free[0].since for free in self._free.values() if free]:
            self._sweep = self._loop.call_at(min(kept) + _KEPT_S, self._close_old)

    async def _hold(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._is_closed = True
            if self._sweep is not None:
                self._sweep.cancel()
            for connection in list(self._open):
                connection.abort()
            for _ in range(_STEPS):  # until each has heard of it
                if not self._open:
                    break
                await asyncio.sleep(0)


_closing: Final[set[asyncio.Task[None]]] = set()


def _close_all(by_loop: Mapping[asyncio.AbstractEventLoop, _OfLoop]) -> None:
    """Each loop that still runs closes its own pool. From any thread."""

    def begin(mine: _OfLoop) -> None:
        task = asyncio.get_running_loop().create_task(mine.close())
        _closing.add(task)
        task.add_done_callback(_closing.discard)

    for loop, mine in by_loop.items():
        with suppress(RuntimeError):  # it is closed
            loop.call_soon_threadsafe(begin, mine)


class Connections:
    """Connections to servers. `headers` go with every request. `keep`: a connection is used for more than one."""

    def __init__(self, headers: Mapping[str, str], timeouts: Timeouts, *, keep: bool = True) -> None:
        # Not compressed: an answer is as large as it looks. A server that compresses all the same is read, too.
        self._headers = {"accept-encoding": "identity", "user-agent": "callwright", **_lower_names(headers)}
        self._timeouts = timeouts
        self._keep = keep
        self._by_loop: dict[asyncio.AbstractEventLoop, _OfLoop] = {}
        # The finalizer references the connections to close: a garbage-collected connection would warn.
        weakref.finalize(self, _close_all, self._by_loop).atexit = False

    async def send(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        silent_s: float,
        *,
        wants_all: bool = False,
    ) -> Response:
        """The response to a request, after its head has arrived; see `Response` for `wants_all`.

        The server may be silent for `silent_s`. Raises `HttpError`; `ValueError` for an invalid header.
        """
        loop = asyncio.get_running_loop()
        mine = self._by_loop.get(loop) or await self._of_this_loop(loop)
        target = target_of(url)
        given = {**self._headers, **_lower_names(headers)} if headers else self._headers
        head = _head(method, target, given, body)
        kept = mine.maybe_kept(target.origin)
        if kept is not None:
            try:
                response = await self._ask(loop, kept, method, head, body, silent_s, wants_all=wants_all)
                if response.status != _REQUEST_TIMEOUT:
                    return response
                response.close()  # a server sends this when it closes an idle connection
            except DisconnectedError:
                pass
        fresh = await mine.open(target.origin, self._timeouts.connect_s, keep=self._keep)
        return await self._ask(loop, fresh, method, head, body, silent_s, wants_all=wants_all)

    async def close(self) -> None:
        """Close all connections of this event loop."""
        mine = self._by_loop.pop(asyncio.get_running_loop(), None)
        if mine is not None:
            await mine.close()

    async def _ask(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: HttpConnection,
        method: str,
        head: bytes,
        body: bytes | None,
        silent_s: float,
        *,
        wants_all: bool,
    ) -> Response:
        # A head that trickles in byte by byte never times out as silent, so the total time is limited.
        head_s = self._timeouts.connect_s + 2 * silent_s
        response = Response(connection, loop, method, head_s, silent_s, wants_all=wants_all)
        try:
            await connection.ask(head, body or b"", response)
            await response.wait_for_head()
        except BaseException:
            response.close()
            raise
        return response

    async def _of_this_loop(self, loop: asyncio.AbstractEventLoop) -> _OfLoop:
        for ended in [one for one in list(self._by_loop) if one.is_closed()]:
            self._by_loop.pop(ended, None)  # another thread may have been here
        mine = self._by_loop[loop] = _OfLoop(loop)
        await mine.begin()
        return mine


@cache
def _secure() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _head(method: str, target: Target, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """The head of a request. Raises `ValueError` for a header that would be more than one."""
    ours = {"host": target.host}  # those who ask may know better, but not how long a body is
    if target.authorization is not None:
        ours["authorization"] = target.authorization
    headers = {**ours, **headers}
    if body is not None:
        headers["content-length"] = str(len(body))
    lines = "".join(map("%s: %s\r\n".__mod__, headers.items()))
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
        raise ValueError("a header with a line break in it")
    return f"{method} {target.asked} HTTP/1.1\r\n{lines}\r\n".encode()
