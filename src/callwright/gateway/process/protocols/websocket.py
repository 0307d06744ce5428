"""WebSocket over uvicorn and the library websockets, with limits on buffered bytes and on the cost of frames.

Reading pauses while the application awaits no message, and while the client does not read its messages. Received bytes
go to the parser in slices, one per iteration of the event loop, so that a thousand tiny frames block no other task. The
fragments of a message and the rate of pings are limited.
"""

import logging
from asyncio.transports import BaseTransport
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.exceptions import SecurityError
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request

from callwright.gateway.connections import STATE, Connection
from callwright.gateway.process.protocols.refusals import no_websocket, too_large, write_refusal

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent


log = logging.getLogger("callwright.gateway")
# The sizes of slices: for frames of two bytes, or the next piece of a large one.
_SLICE_BYTES: Final = 4_096
_LARGE_SLICE_BYTES: Final = 16_384
_MOST_PIECES: Final = 4_096  # of one message: 4 kB each at the largest size
_MOST_CONTROLS: Final = 100  # pings and pongs in a second
_CLOSING_S: Final = 2.0  # that a client may take to answer a close
_LINE_BYTES: Final = 8_192  # of a header, as the library bounds it


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """Adds the limits to uvicorn's protocol."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.close_timeout = _CLOSING_S
        self._unparsed = bytearray()
        self._is_due = False  # whether the next slice is
        self._is_stopped = False  # whether the transport reads
        self._is_wanted = False  # whether the application waits for a message
        self._can_write = True
        self._controls = 0
        self._controls_since = 0.0
        self._begun_s: float | None = None  # since when a message is not whole
        self._place: Connection | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._place = self.app_state.get(STATE)
        if self._place is not None:
            self._place.busy()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unparsed.clear()
        if self._place is not None:
            self._place.closed()

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        if not self._is_due:
            self._parse()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`: who does not read is not read, else pings grow what waits to be written."""
        super().pause_writing()
        self._can_write = False
        self._heed()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._can_write = True
        self._heed()

    async def receive(self) -> "ASGIReceiveEvent":
        """See ASGI: reads for as long as a message is waited for."""
        if self.queue.empty():
            self._is_wanted = True
            self._heed()
        try:
            return await self.queue.get()
        finally:
            self._is_wanted = False

    async def send(self, message: Any) -> None:
        """See ASGI."""
        if self.close_sent and message["type"] == "websocket.send":  # the client was wrong, and is gone
            raise ClientDisconnected
        await super().send(message)
        if self.close_sent:  # the answer to the close is waited for
            self._heed()

    def sweep(self, now_s: float, limit_s: float) -> None:
        """Close a connection whose message is not whole after `limit_s`; to be asked again and again."""
        if not self._has_begun():
            self._begun_s = None
        elif self._begun_s is None:
            self._begun_s = now_s
        elif now_s - self._begun_s > limit_s:
            self._fail(CloseCode.POLICY_VIOLATION, f"the message was not here within {limit_s:g} s")

    # --- uvicorn's steps ---

    def handle_connect(self, event: Request) -> None:
        """See uvicorn, which refuses in plain text: here, a handshake that is refused is not begun. It also passes the
        names of headers on as the client spells them; ASGI wants them in lower case, and so are they compared.
        """
        event.headers = Headers([(name.lower(), value) for name, value in event.headers.raw_items()])
        if self.conn.accept(event).status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            super().handle_connect(event)

    def handle_cont(self, event: Frame) -> None:
        """See uvicorn."""
        if len(self.frames) >= _MOST_PIECES:
            self._fail(CloseCode.MESSAGE_TOO_BIG, f"a message has at most {_MOST_PIECES} frames")
        elif not self.close_sent:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """See uvicorn, which logs invalid UTF-8 as its own error, and fails if a close arrives with it."""
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "a text message is not UTF-8")
                return
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """See uvicorn."""
        if self._bears_control():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """See uvicorn."""
        if self._bears_control():
            super().handle_pong(event)

    def keepalive_timeout(self) -> None:
        """See uvicorn: a pong that was not read may be here."""
        if self._is_stopped and self.ping_timeout is not None and not self.transport.is_closing():
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
        else:
            super().keepalive_timeout()

    # --- parts ---

    def _parse(self) -> None:
        """Parse a slice; the next one is due when others had their turn."""
        self._is_due = False
        if self.transport.is_closing():
            self._unparsed.clear()
            return
        if self._is_held():
            self._heed()
            return
        if self.handshake_initiated:
            is_large = len(self.conn.reader.buffer) >= _SLICE_BYTES
            size = _LARGE_SLICE_BYTES if is_large else _SLICE_BYTES
        else:
            size = len(self._unparsed)  # the head, which was bounded before
        piece = bytes(self._unparsed[:size])
        del self._unparsed[:size]
        super().data_received(piece)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self._refuse_head(self.conn.handshake_exc)
        self._heed()

    def _is_held(self) -> bool:
        """Whether reading is paused: no message is awaited, and no reply to a close."""
        return not self._can_write or (self.handshake_initiated and not self._is_wanted and not self.close_sent)

    def _heed(self) -> None:
        """Pause or resume the transport, and parse the buffered bytes if resumed."""
        if self.transport.is_closing():
            return
        held = self._is_held()
        if self._unparsed and not held and not self._is_due:
            self._is_due = True
            self.loop.call_soon(self._parse)
        stop = held or bool(self._unparsed) or not (self.queue.empty() or self.close_sent)
        self.read_paused = stop
        self._is_stopped = stop
        if stop is self.transport.is_reading():
            (self.transport.pause_reading if stop else self.transport.resume_reading)()

    def _has_begun(self) -> bool:
        return bool(self.frames or self.conn.reader.buffer) and not self._is_stopped

    def _bears_control(self) -> bool:
        """Counts a frame that is no message. Whether it is not too much."""
        now_s = self.loop.time()
        if now_s - self._controls_since > 1:
            self._controls, self._controls_since = 0, now_s
        self._controls += 1
        if self._controls > _MOST_CONTROLS:
            self._fail(CloseCode.POLICY_VIOLATION, f"expected at most {_MOST_CONTROLS} pings a second")
        return self._controls <= _MOST_CONTROLS

    def _fail(self, code: CloseCode, why: str) -> None:
        if self.close_sent or self.transport.is_closing():
            return
        log.debug("a websocket is closed: %s", why)
        self.frames = []
        self._unparsed.clear()
        self.conn.fail(code, why)
        self.handle_parser_exception()

    def _refuse_head(self, failure: Exception) -> None:
        """The library has bounds of its own, on each header and on their number."""
        is_large = isinstance(failure.__cause__, (SecurityError, RuntimeError))
        error = too_large(_LINE_BYTES, is_head=True) if is_large else no_websocket(str(failure))
        self.transport.write(write_refusal(error, self.default_headers))
        self.transport.close()
