"""HTTP over either of uvicorn's parsers: what is the same for both.

Bytes go to the parser in slices, and no more of them than a head may have before one is whole. A request that comes
behind one that is answered is not parsed before its turn. What is refused is told so in the form of the API that is
asked; then the connection ends, but not before the client had time to read it: with bytes unread the system throws the
answer away.
"""

import asyncio
import logging
from asyncio.transports import BaseTransport
from typing import Any, Final

from uvicorn.protocols.http.flow_control import FlowControl

from callwright.errors import RequestError
from callwright.gateway.connections import STATE, Connection
from callwright.gateway.process.protocols.refusals import (
    framing_too_large,
    head_too_large,
    no_request,
    no_room,
    written,
)
from callwright.gateway.request_context import api_of

__all__ = ["BoundedHttp"]

log = logging.getLogger("callwright.gateway")
# So much is parsed before it is looked at again: what a head that begins in the middle of it may have too much.
_SLICE_BYTES: Final = 16_384
_LINGER_S: Final = 2.0
_LINGER_BYTES: Final = 1_048_576


class BoundedHttp(asyncio.Protocol):
    """Stands before a protocol of uvicorn."""

    config: Any  # ProtocolSettings
    transport: asyncio.Transport
    flow: FlowControl
    loop: asyncio.AbstractEventLoop
    cycle: Any
    app_state: dict[str, Any]
    server_state: Any

    def connection_made(self, transport: BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._most = self.config.bounds.max_head_bytes
        self._since = 0  # bytes that were parsed since something came of them
        self._held = b""  # what came while a request was answered
        self._dropped = -1  # bytes that came behind a refusal; before it -1
        self._linger: asyncio.TimerHandle | None = None
        self._place: Connection | None = self.config.connections.opened(self.transport.close)
        if self._place is None:
            self._answer(no_room(self.config.connections.most), "")
            self.transport.close()
            return
        self.app_state = {**self.app_state, STATE: self._place}

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        super().connection_lost(exc)
        if self._linger is not None:
            self._linger.cancel()
        if self._place is not None:
            self._place.closed()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._dropped >= 0:
            self._drop(data)
            return
        at = 0
        while at < len(data) and not self._is_over():
            if self._is_answering():
                self._hold(data[at:])
                return
            end = at + min(_SLICE_BYTES, self._most - self._since)
            piece = data if at == 0 and end >= len(data) else data[at:end]
            at = end
            self._parse(piece)
            self._since = 0 if self._has_progressed() else self._since + len(piece)
            if self._since >= self._most and not self._is_over():
                self._refuse((head_too_large if self._is_in_head() else framing_too_large)(self._most))
        if self._place is not None and self.cycle is not None and not self.cycle.response_complete:
            self._place.busy()
            if not (self.cycle.more_body or self._held):  # so that it is noticed when the client goes
                self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """See uvicorn: the next request may come, and may be here already."""
        super().on_response_complete()  # type: ignore[misc]  # uvicorn's
        if self.transport.is_closing():
            return
        if self._place is not None and self.cycle.response_complete:
            self._place.idle(self.transport.close)
        if self._held and not self._is_answering():
            held, self._held = self._held, b""
            self.data_received(held)

    def send_400_response(self, msg: str) -> None:
        """See uvicorn: what came is no HTTP."""
        self._refuse(no_request())

    # --- what the parsers tell ---

    def _parse(self, data: bytes) -> None:
        """Give it to uvicorn's parser."""
        super().data_received(data)

    def _has_progressed(self) -> bool:
        """Whether a head has come to its end, or a piece of a body has come, in what was parsed last."""
        raise NotImplementedError

    def _is_in_head(self) -> bool:
        """Whether what comes next belongs to a head."""
        raise NotImplementedError

    def _path(self) -> str:
        """The path of the head that has begun, as far as it has come."""
        raise NotImplementedError

    # --- parts ---

    def _is_answering(self) -> bool:
        """Whether a request is here, whole, whose answer is not."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def _is_over(self) -> bool:
        """Whether nothing more is parsed here: it is closed, refused, or a WebSocket."""
        return self._dropped >= 0 or self.transport.is_closing() or self.transport.get_protocol() is not self

    def _hold(self, data: bytes) -> None:
        if not self._held and not data.strip(b"\r\n"):  # some clients end a body so; nothing waits for it
            return
        self._held += data
        self.flow.pause_reading()

    def _refuse(self, error: RequestError) -> None:
        """Tell it, where that can still be told, and end the connection."""
        if self._dropped >= 0:
            return
        log.debug("a connection is refused: %s", error.message)
        cycle, in_head = self.cycle, self._is_in_head()
        self._dropped = 0
        if in_head and cycle is not None and not cycle.response_complete:
            self._end_behind_answers()
            return
        if in_head or not cycle.response_started:
            if not in_head:  # the client has not sent all of its request, and will not
                cycle.disconnected = True
                cycle.message_event.set()
            self._answer(error, self._path() if in_head else cycle.scope["path"])
            if self.transport.can_write_eof():
                self.transport.write_eof()
                self._linger = self.loop.call_later(_LINGER_S, self.transport.close)
                self.flow.resume_reading()
                return
        self.transport.close()

    def _end_behind_answers(self) -> None:
        """The answer to the latest request is the last, and nothing more is read."""
        self._dropped = 0
        self.cycle.keep_alive = False
        self.flow.pause_reading()

    def _answer(self, error: RequestError, path: str) -> None:
        self.transport.write(written(error, self.server_state.default_headers, api_of(path)))

    def _drop(self, data: bytes) -> None:
        if self._linger is None:  # answers are still under way
            self.flow.pause_reading()
            return
        self._dropped += len(data)
        if self._dropped > _LINGER_BYTES:
            self.transport.close()
