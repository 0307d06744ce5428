"""One connection to a server: requests one after the other, each with its answer.

httptools parses the bytes; this module adds the end of an answer, any data after it, and whether the connection can be
reused.
"""

import asyncio
from asyncio.transports import BaseTransport
from collections.abc import Callable
from typing import Final, cast

import httptools

from callwright.upstreams.http_client.errors import (
    BrokenAnswerError,
    BrokenFramingError,
    ClosedError,
    DisconnectedError,
    HttpError,
    NotHttpError,
)
from callwright.upstreams.http_client.response import HELD_BYTES, Response

# Limit of a head in bytes, and of the framing between two pieces of a body.
_MAX_HEAD_BYTES: Final = 65_536
# A body is written in slices: a large one must not block other tasks, and is dropped if the server stops reading.
_SLICE_BYTES: Final = 65_536
_FIRST_FINAL: Final = 200  # smaller ones are interim responses
_NO_BODY: Final = (204, 304)
_OTHER_PROTOCOLS: Final = (b"R", b"I")  # RTSP and ICE, which httptools accepts


class HttpConnection(asyncio.Protocol):
    """See above. `free` is called when it can be used again, `lost` when it has ended."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        free: Callable[["HttpConnection"], None],
        lost: Callable[["HttpConnection"], None],
    ) -> None:
        self.since = 0.0  # the time from which on it is free
        self._loop = loop
        self._free = free
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._response: Response | None = None
        self._parser = httptools.HttpResponseParser(self)
        # What servers do and no client of theirs has ever minded.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._headers: dict[str, str] = {}
        self._in_head = True
        self._unread = 0  # bytes since the last piece of a body, or in this head
        self._is_interim = False
        self._ends_with_connection = False
        self._is_kept = False
        self._is_sent = True
        self._is_odd = False  # unexpected data has arrived
        self._writable: asyncio.Future[None] | None = None
        self._is_full = False

    # --- for who asks ---

    @property
    def is_open(self) -> bool:
        """Whether it can be asked."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, head: bytes, body: bytes, response: Response) -> None:
        """Send a request, to be answered by this response. Stops sending if the answer begins earlier."""
        transport = self._transport
        if transport is None:
            response.end(DisconnectedError())
            return
        self._response = response
        self._in_head, self._unread = True, 0
        if len(body) <= _SLICE_BYTES:
            transport.write(head + body)
            return
        self._is_sent = False
        transport.write(head)
        view = memoryview(body)
        for at in range(0, len(body), _SLICE_BYTES):
            while self._is_full and not (response.is_over or response.status):
                self._writable = self._loop.create_future()
                await self._writable
            if response.is_over or response.status:
                return
            transport.write(view[at : at + _SLICE_BYTES])
            response.since = self._loop.time()
            await asyncio.sleep(0)
        self._is_sent = True

    def abort(self) -> None:
        """Close it immediately, and abort a pending answer."""
        response, self._response = self._response, None
        if self._transport is not None:
            self._transport.abort()
        if response is not None and not response.is_over:
            response.end(ClosedError())
            response.wake()

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # --- asyncio ---

    def connection_made(self, transport: BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._transport = None
        response, self._response = self._response, None
        if response is not None:
            is_end = self._ends_with_connection and not self._in_head and exc is None
            response.end(None if is_end else BrokenAnswerError() if response.has_answered else DisconnectedError())
            response.wake()
        self._wake_writer()
        self._lost(self)

    def eof_received(self) -> None:
        """See asyncio, which would send the rest of a request first."""
        if self._transport is not None:
            self._transport.abort()

    def pause_writing(self) -> None:
        """See asyncio."""
        self._is_full = True

    def resume_writing(self) -> None:
        """See asyncio."""
        self._is_full = False
        self._wake_writer()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        response = self._response
        if response is None:
            self.abort()
            return
        is_first = not response.has_answered
        response.has_answered, response.since = True, self._loop.time()
        if is_first and data[:1] in _OTHER_PROTOCOLS:
            self._break("its status line does not begin with HTTP/1")
            response.wake()
            return
        try:
            if self._unread + len(data) < _MAX_HEAD_BYTES:
                self._unread += len(data)
                self._parser.feed_data(data)
            else:
                self._feed_in_slices(data)
        except httptools.HttpParserCallbackError:
            raise  # a fault of our own
        except httptools.HttpParserError as error:
            self._break(str(error))
        except httptools.HttpParserUpgrade:
            self._break("it changes to another protocol")
        if self._is_odd:
            self.abort()
        response.wake()
        if not self._is_sent:
            self._wake_writer()

    # --- httptools ---

    def on_message_begin(self) -> None:
        """See httptools."""
        if self._response is None:
            self._is_odd = True
        self._headers = {}
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools: also for the trailers of a body, which are ignored."""
        if self._in_head:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """See httptools."""
        status, headers = self._parser.get_status_code(), self._headers
        self._is_interim = status < _FIRST_FINAL
        if self._is_interim or self._response is None:
            return
        self._in_head, self._unread = False, 0
        coding = headers.get("transfer-encoding")
        self._ends_with_connection = status not in _NO_BODY and (
            "content-length" not in headers
            if coding is None
            else coding.rpartition(",")[2].strip().lower() != "chunked"
        )
        self._is_kept = not self._ends_with_connection and self._parser.should_keep_alive()
        self._response.head(status, headers)

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        self._unread = 0
        response = self._response
        if response is not None and not response.is_left:
            response.pieces.append(body)
            response.held += len(body)
            if response.held > HELD_BYTES:
                response.pause()

    def on_message_complete(self) -> None:
        """See httptools."""
        response = self._response
        if self._is_interim or response is None:
            return
        self._response = None
        response.end(None)
        if self._is_kept and self._is_sent and self.is_open:
            self._free(self)
        else:  # drops unsent data: a server that does not read it would block the connection
            self.abort()

    # --- parts ---

    def _feed_in_slices(self, data: bytes) -> None:
        """Parse input that is larger than the limit, in slices, to check the limit."""
        at = 0
        while at < len(data):
            end = min(len(data), at + _MAX_HEAD_BYTES - self._unread)
            self._unread += end - at
            self._parser.feed_data(data[at:end])
            if self._unread >= _MAX_HEAD_BYTES:
                self._break(f"more than {_MAX_HEAD_BYTES:,} bytes in which nothing is said")
                return
            at = end

    def _break(self, why: str) -> None:
        """Fail: the input is not HTTP."""
        response = self._response
        if response is not None:
            failure: HttpError = BrokenFramingError() if response.status else NotHttpError(why)
            response.end(failure)
        self.abort()

    def _wake_writer(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
