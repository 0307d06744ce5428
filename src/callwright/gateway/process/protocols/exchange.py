"""A request over HTTP and its answer, as an ASGI application sees them.

A head with a length waits for its body, so that both are one write. If the client does not read, `send` waits.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from starlette.types import ASGIApp, Message, Scope
from uvicorn.protocols.http.flow_control import FlowControl

from callwright.gateway.http import OUR_FAULT
from callwright.gateway.process.protocols.refusals import write_refusal
from callwright.gateway.request_context import api_of

log = logging.getLogger("callwright.gateway")
_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_WITHOUT_BODY: Final = (204, 304)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
# The bytes of a body buffered for the application before reading pauses.
_BODY_BYTES: Final = 65_536
_DISCONNECT: Final = {"type": "http.disconnect"}


class Exchange:
    """See above. `flow`: the flow control of the transport; `headers`: of every answer; `answered`: called after it;
    `done`: a finished future. `keep_alive`: the connection stays open. `wants_continue`: the client waits for
    `100 Continue` before it sends the body.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        flow: FlowControl,
        headers: Iterable[tuple[bytes, bytes]],
        scope: Scope,
        answered: Callable[["Exchange"], None],
        done: Awaitable[None],
        *,
        keep_alive: bool,
        wants_continue: bool,
    ) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.more_body = True
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self._transport = transport
        self._flow = flow
        self._headers = headers
        self._answered = answered
        self._done = done
        self._held = 0  # bytes of the body not yet received by the application
        self._wants_continue = wants_continue
        self._body: list[bytes] = []
        self._is_told = False  # whether the application knows the end of the body
        self._waiter: asyncio.Future[None] | None = None
        self._head = b""  # which waits for its body
        self._has_length = False
        self._is_chunked = False
        self._left = 0  # bytes of the answer's body that are due
        self._has_body = scope["method"] != "HEAD"

    # --- the connection ---

    def add(self, piece: bytes) -> None:
        """A piece of the body has come."""
        if self.response_complete:
            return
        self._body.append(piece)
        self._held += len(piece)
        if self._held > _BODY_BYTES:
            self._flow.pause_reading()
        self._wake()

    def end_body(self) -> None:
        """The body is here, all of it."""
        self.more_body = False
        self._wake()

    def disconnect(self) -> None:
        """The client is gone."""
        self.disconnected, self._wants_continue = not self.response_complete, False
        self._wake()

    def _wake(self) -> None:
        """Wake the waiting `receive`."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def run(self, app: ASGIApp, over: Callable[[], object]) -> None:
        """Have the application answer it; then call `over`."""
        try:
            await app(self.scope, self.receive, self.send)
            if not self.response_complete and not self.disconnected:
                self._fail("an answer was not completed")
        except asyncio.CancelledError:  # or something of it was
            self._fail("an answer was cancelled")
            raise
        except Exception:
            self._fail("an answer has failed", exc_info=True)
        finally:
            over()

    # --- ASGI ---

    async def receive(self) -> Message:
        """See ASGI."""
        if self._wants_continue:
            self._wants_continue = False
            if not self._transport.is_closing():
                self._transport.write(_CONTINUE)
        while not (self.disconnected or self.response_complete):
            if self._body or not (self.more_body or self._is_told):
                body, self._body, self._held = self._body, [], 0
                self._is_told = not self.more_body
                return {
                    "type": "http.request",
                    "body": body[0] if len(body) == 1 else b"".join(body),
                    "more_body": self.more_body,
                }
            if not self._transport.is_closing():
                self._flow.resume_reading()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return _DISCONNECT

    def send(self, message: Message) -> Awaitable[None]:
        """See ASGI. Unless writing is paused, the message is written immediately, and the result is already done."""
        if self._flow.write_paused and not self.disconnected:
            return self._sent_later(message)
        self._send(message)
        return self._done

    async def _sent_later(self, message: Message) -> None:
        while self._flow.write_paused and not self.disconnected:
            await self._flow.drain()
        self._send(message)

    def _send(self, message: Message) -> None:
        if self.disconnected:
            return
        if message["type"] == "http.response.body" and self.response_started and not self.response_complete:
            self._write(message.get("body", b""), is_last=not message.get("more_body", False))
        elif message["type"] == "http.response.start" and not self.response_started:
            self._start(message["status"], message.get("headers", ()))
        else:
            raise RuntimeError(f"unexpected message of an answer: {message['type']}")

    # --- parts ---

    def _start(self, status: int, headers: Any) -> None:
        length: int | None = None
        says_close = False
        lines = [_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
        for name, value in (*self._headers, *headers):
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                length = int(value)
            elif name == b"connection":
                says_close = b"close" in value.lower()
        # A client that got no `100 Continue` may or may not send its body.
        if not self.keep_alive or says_close or (self._wants_continue and self.more_body):
            self.keep_alive = False
            if not says_close:
                lines.append(b"connection: close\r\n")
        self._has_body = self._has_body and status not in _WITHOUT_BODY
        self._has_length = length is not None or not self._has_body
        self._is_chunked = not self._has_length and self.scope["http_version"] == "1.1"  # else its end is the length
        self._left = (length or 0) if self._has_body else 0
        if self._is_chunked:
            lines.append(b"transfer-encoding: chunked\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
            raise RuntimeError("a header with a line break in it")
        self.response_started, self._wants_continue = True, False
        if self._has_length:
            self._head = head + b"\r\n"
        else:
            self._transport.write(head + b"\r\n")

    def _write(self, body: bytes, *, is_last: bool) -> None:
        transport = self._transport
        if self._is_chunked:
            if body:
                end = b"\r\n0\r\n\r\n" if is_last else b"\r\n"
                transport.write(b"%x\r\n%b%b" % (len(body), body, end))
            elif is_last:
                transport.write(b"0\r\n\r\n")
        else:
            if not self._has_body:
                body = b""
            self._left -= len(body)
            if self._has_length and (self._left < 0 or (is_last and self._left)):
                raise RuntimeError("an answer has another length than its head says")
            transport.write(self._head + body)
            self._head = b""
        if is_last:
            self.response_complete = True
            self._wake()
            self._answered(self)

    def _fail(self, what: str, *, exc_info: bool = False) -> None:
        log.error("%s", what, exc_info=exc_info)
        transport = self._transport
        if self.disconnected or self.response_complete:
            return
        if not self.response_started or self._head:
            transport.write(write_refusal(OUR_FAULT, (), api_of(self.scope["path"])))
        transport.close()
