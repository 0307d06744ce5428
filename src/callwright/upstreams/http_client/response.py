"""The answer to one request: its head, then its body in pieces, and the fault that ended it, if any.

All data before a fault is returned first, then the fault is raised, however packets were split.
"""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Protocol, Self

from callwright.upstreams.http_client.errors import (
    BrokenAnswerError,
    ClosedError,
    HttpError,
    SilentError,
    TooLargeError,
    TooSlowError,
)
from callwright.upstreams.http_client.inflate import Inflater, inflater

# Bytes of an answer that are read before the event loop gets its turn: up to 256 KB arrive together, and decompression
# never pauses.
AT_ONCE: Final = 16_384
# The connection is not read while at least this many bytes are unread.
HELD_BYTES: Final = 131_072
_UNKNOWN: Final = "application/octet-stream"
_EVENTS: Final = "text/event-stream"


class Source(Protocol):
    """The connection of an answer."""

    def abort(self) -> None:
        """Close it immediately."""
        ...

    def pause(self) -> None:
        """Pause reading."""
        ...

    def resume(self) -> None:
        """Resume reading."""
        ...


class Response:
    """See above.

    `status` and `headers` (names in lower case) are set once `wait_for_head` has returned. `most`: limit of the body in
    bytes; None: no limit. `broken`: after the last piece, the fault that ended the body; None: complete.
    """

    def __init__(
        self,
        source: Source,
        loop: asyncio.AbstractEventLoop,
        method: str,
        head_s: float,
        silent_s: float,
        *,
        wants_all: bool = False,
    ) -> None:
        """The server may be silent for `silent_s`; its head may take `head_s`.

        `wants_all`: do not wake the reader before the body is complete or exceeds the held size, unless it is a stream
        of events.
        """
        self.method = method
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.content_type = ""  # without parameters
        self.most: int | None = None
        self.broken: HttpError | None = None
        self.is_over = False
        self.has_answered = False  # a byte has arrived
        self.since = loop.time()  # time of the last progress in receiving or sending
        self._wants_all = wants_all
        self._loop = loop
        self._source = source
        self._failure: HttpError | None = None
        self.is_left = False
        self._is_paused = False
        self.pieces: list[bytes] = []
        self.held = 0
        self._given = 0
        self._encoding = ""
        self._inflater: Inflater | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._silent_s = silent_s
        self._until: float | None = self.since + head_s  # when the head, or all, must be there
        self._timer = loop.call_at(self.since + min(head_s, silent_s), self._check_time)

    # --- for who has asked ---

    async def wait_for_head(self) -> None:
        """Wait for the head; where all is wanted, for all. Raises `HttpError`."""
        while not self.is_over and (not self.status or (self._wants_all and not self._is_paused)):
            self._waiter = self._loop.create_future()
            await self._waiter
        if not self.status:
            raise self._failure or ClosedError()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        """The pieces of the body."""
        return self

    async def __anext__(self) -> bytes:
        if self.broken is not None:
            raise StopAsyncIteration
        while not self.pieces and not self.is_over and not self._encoding:
            self._waiter = self._loop.create_future()
            await self._waiter
        try:
            piece = await self._decompressed() if self._encoding else self._take_pieces()
        except HttpError as error:
            self.close()
            piece, self.broken = b"", error
        self._given += len(piece)
        if self.most is not None and self._given > self.most:
            piece = piece[: self.most - self._given]
            self.close()
            self.broken = TooLargeError(self.most)
        if not piece:
            self.broken = self.broken or self._failure
            raise StopAsyncIteration
        return piece

    def at_once(self, most: int) -> bytes | None:
        """The body, if all of it is there, no more than `most` bytes and not compressed."""
        is_plain = self.is_over and self._failure is None and not self._encoding
        return self._take_pieces() if is_plain and self.held <= most else None

    def leave(self, within_s: float) -> None:
        """Discard the rest. If it ends in time, the connection can be reused."""
        self.is_left = True
        self.pieces.clear()
        if not self.is_over:
            if self._is_paused:
                self._resume()
            self._timer.cancel()
            self._timer = self._loop.call_later(within_s, self._end_here)

    def close(self) -> None:
        """Nothing more of it is wanted: a connection on which it has not come to its end is closed."""
        if not (self.is_left or self.is_over):
            self._fail(ClosedError())

    # --- for the connection ---

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """The head is there."""
        self.status, self.headers = status, headers
        self.content_type = headers.get("content-type", _UNKNOWN).partition(";")[0].strip().lower()
        self._encoding = headers.get("content-encoding", "").strip().lower().replace("identity", "")
        if self.content_type == _EVENTS:
            self._wants_all = False
        self._until = self.since + self._silent_s if self._wants_all else None

    def pause(self) -> None:
        """More is held than is wanted: the connection is not read on before it is taken."""
        if not self._is_paused:
            self._is_paused = True
            self._source.pause()

    def wake(self) -> None:
        """Wake the waiting reader, if any."""
        waiter = self._waiter
        if waiter is not None and not waiter.done() and (not self._wants_all or self.is_over or self._is_paused):
            waiter.set_result(None)

    def end(self, failure: HttpError | None) -> None:
        """End the answer."""
        self._failure, self.is_over = failure, True
        self._timer.cancel()
        if self._is_paused:
            self._resume()  # the next answer uses the same connection

    # --- parts ---

    def _take_pieces(self) -> bytes:
        pieces = self.pieces
        if not pieces:
            return b""
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.pieces, self.held = [], 0
        if self._is_paused:
            self._resume()
        return piece

    async def _decompressed(self) -> bytes:
        """The next piece. Raises `HttpError`."""
        if self._inflater is None:
            self._inflater = inflater(self._encoding)
        piece, is_last = b"", False
        while not (piece or is_last):
            while not (self.pieces or self.is_over or self._inflater.holds):
                self._waiter = self._loop.create_future()
                await self._waiter
            piece = self._inflater.next(b"" if self._inflater.holds else self._take_pieces())
            is_last = self.is_over and not self.pieces and not self._inflater.holds
        if not piece and self._failure is None:
            self._inflater.finish()
        return piece

    def _resume(self) -> None:
        self._is_paused = False
        self.since = self._loop.time()
        self._source.resume()

    def _end_here(self) -> None:
        if not self.is_over:
            self._fail(ClosedError())

    def _fail(self, error: HttpError) -> None:
        self.end(error)
        self._source.abort()
        self.wake()

    def _check_time(self) -> None:
        """The timer has come. It is not set anew with each byte, so it may be early."""
        now = self._loop.time()
        waiter = self._waiter
        waits = not self.status or (waiter is not None and not waiter.done() and not self._is_paused)
        due = self.since + self._silent_s
        if waits and now >= due:
            self._fail(SilentError())
        elif self._until is not None and now >= self._until:
            self._fail(TooSlowError())
        else:
            later = due if now < due else now + self._silent_s
            self._timer = self._loop.call_at(
                later if self._until is None else min(later, self._until), self._check_time
            )


async def whole(response: Response, most: int, within_s: float, *, cut: bool = False) -> bytes | bytearray:
    """The whole body.

    `cut`: return a part if the body is larger than `most` or breaks off; otherwise that raises `HttpError`. Raises
    `TooSlowError` if it does not end in time.
    """
    if (there := response.at_once(most)) is not None:
        return there
    body = bytearray()
    response.most = most
    try:
        async with asyncio.timeout(within_s) as limit:
            async for piece in response:
                body += piece
                if len(piece) > AT_ONCE:
                    await asyncio.sleep(0)
        if response.broken is not None and not (cut and isinstance(response.broken, BrokenAnswerError | TooLargeError)):
            raise response.broken
    except BaseException as error:
        body.clear()  # an exception references its frames, and they this
        if isinstance(error, TimeoutError) and limit.expired():
            raise TooSlowError from error
        raise
    return body
