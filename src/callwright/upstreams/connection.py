"""Connections to one server: requests that survive a connection which the server has closed.

Knows HTTP and nothing of what is sent. What goes wrong is raised as aiohttp has it, or as `received` has.
"""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import cache
from io import BytesIO
from typing import Final

import aiohttp
from msgspec import Struct

from callwright.upstreams.received import Connector, Sending, TooSlowError, sending

__all__ = ["Connections", "Timeouts"]

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
        request = Sending()
        try:
            response = await self._send(mine.kept, request, method, url, body, headers, silent_s)
            if request.opened or response.status != _REQUEST_TIMEOUT:
                return response
            response.close()  # a server says so when it closes a connection that was idle
        except aiohttp.ClientConnectionError as error:
            if request.opened or isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError):
                raise
        if mine.fresh is None:
            mine.fresh = self._session(keep=False)
        return await self._send(mine.fresh, Sending(), method, url, body, headers, silent_s)

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
            connector=Connector(keep=keep),
            cookie_jar=aiohttp.DummyCookieJar(),  # a server's cookies are no client's, and would be kept for ever
        )

    async def _send(
        self,
        session: aiohttp.ClientSession,
        request: Sending,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        silent_s: float,
    ) -> aiohttp.ClientResponse:
        """Raises `ClientPayloadError` where the connection ended in the head, `ClientConnectionError` before it."""
        connect_s = self._timeouts.connect_s
        token = sending.set(request)
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
        except aiohttp.ClientConnectionError as error:
            if request.answered and not isinstance(error, aiohttp.ClientConnectorError):
                # Its words are the head as far as it came, which is told nowhere.
                raise aiohttp.ClientPayloadError("it ended in its head") from None
            raise
        finally:
            sending.reset(token)
