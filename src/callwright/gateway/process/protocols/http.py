"""HTTP/1.1 for clients: a connection and its requests, one after another.

A refusal has the error format of the requested API. The connection is closed only after the client had time to read it:
closing a socket with unread bytes makes the system discard the response.

The server is uvicorn's: it listens, counts `connections` and `tasks`, and calls `shutdown` when it stops.
"""

import asyncio
import logging
from asyncio.transports import BaseTransport
from typing import Any, Final, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from callwright.errors import RequestError
from callwright.gateway.connections import STATE, Connection
from callwright.gateway.process.protocols.exchange import Exchange
from callwright.gateway.process.protocols.heads import Named
from callwright.gateway.process.protocols.reading import RequestReader
from callwright.gateway.process.protocols.refusals import no_room, write_refusal
from callwright.gateway.request_context import api_of
from callwright.settings import bounds

log = logging.getLogger("callwright.gateway")
_LINGER_S: Final = 2.0
_LINGER_BYTES: Final = 1_048_576
_FORWARDED: Final = (b"x-forwarded-for", b"x-forwarded-proto")
_CONTINUE: Final = b"100-continue"
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}


class HttpProtocol(asyncio.Protocol):
    """See above. A pipelined request is not read before the current one is answered."""

    transport: asyncio.Transport
    flow: FlowControl

    def __init__(
        self,
        config: Any,  # ProtocolSettings
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """As uvicorn makes it."""
        if not config.loaded:
            config.load()
        self.config = config
        self.server_state = server_state
        self.app_state = app_state
        self.loop = _loop or asyncio.get_running_loop()
        self.exchange: Exchange | None = None  # the latest that was begun
        self._app = self._behind_proxies = config.loaded_app
        if isinstance(self._app, ProxyHeadersMiddleware):  # only needed for requests with forwarding headers
            self._app = self._app.app
        self._reader = RequestReader(self._begin, self._change_to_websocket, bounds.MAX_HEAD_BYTES)
        self._place: Connection | None = None
        self._held = b""  # bytes received while a request was answered
        self._done: asyncio.Future[None] = self.loop.create_future()
        self._done.set_result(None)
        self._requests = 0
        self._waits = (-1, False, 0.0)  # number of requests, whether one has begun, and since when

    # --- asyncio ---

    def connection_made(self, transport: BaseTransport) -> None:
        """See asyncio."""
        self.transport = cast(asyncio.Transport, transport)
        self.flow = FlowControl(self.transport)
        self.server_state.connections.add(self)  # type: ignore[arg-type]  # uvicorn names its own only
        self._scope = {
            "type": "http",
            "asgi": _ASGI,
            "server": get_local_addr(self.transport),
            "client": get_remote_addr(self.transport),
            "scheme": "https" if is_ssl(self.transport) else "http",
            "root_path": "",
        }
        self._place = self.config.connections.register(self.transport.close)
        if self._place is None:
            self._tell(no_room(self.config.connections.most), "")
            self.transport.close()
            return
        self.app_state = {**self.app_state, STATE: self._place}

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self.server_state.connections.discard(self)
        if self.exchange is not None:
            self.exchange.disconnect()
        self._forget()
        self.resume_writing()
        if self._place is not None:
            self._place.closed()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        at = 0
        try:
            while at < len(data) and not self._is_over():
                if self._is_answering():
                    self._hold(data[at:])
                    break
                at = self._reader.read(data, at)
        except RequestError as error:
            self._refuse(error)
        exchange = self.exchange
        if self._place is not None and exchange is not None and not exchange.response_complete:
            self._place.busy()
            if not (exchange.more_body or self._held):  # so that it is noticed when the client goes
                self.flow.resume_reading()

    def pause_writing(self) -> None:
        """See asyncio."""
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        """See asyncio."""
        self.flow.resume_writing()

    def shutdown(self) -> None:
        """The server stops: close the connection after the current response."""
        if self.exchange is None or self.exchange.response_complete:
            self.transport.close()
        else:
            self.exchange.keep_alive = False

    def sweep(self, now_s: float, limit_s: float) -> None:
        """End a connection that waits too long for a request, or for the rest of one; to be asked again and again."""
        exchange = self.exchange
        if exchange is not None and not exchange.response_complete:
            return
        has_begun = exchange is None or exchange.more_body or self._reader.since > 0  # an answer may come before a body
        if self._waits[:2] != (self._requests, has_begun):
            self._waits = (self._requests, has_begun, now_s)
        elif now_s - self._waits[2] > (limit_s if has_begun else self.config.timeout_keep_alive):
            self.transport.close()

    # --- requests ---

    def _begin(self, asked: dict[str, Any], named: Named, keep_alive: bool) -> Exchange:
        waits = b"expect" in named and named[b"expect"][-1].lower() == _CONTINUE and asked["http_version"] == "1.1"
        exchange = self.exchange = Exchange(
            self.transport,
            self.flow,
            self.server_state.default_headers,
            {**self._scope, **asked, "state": self.app_state.copy()},
            self._answered,
            self._done,
            keep_alive=keep_alive,
            wants_continue=waits,
        )
        self._requests += 1
        tasks = self.server_state.tasks
        app = self._app if named.keys().isdisjoint(_FORWARDED) else self._behind_proxies
        task = self.loop.create_task(exchange.run(app, lambda: tasks.discard(task)))
        tasks.add(task)
        return exchange

    def _change_to_websocket(self, head: bytes) -> None:
        self.server_state.connections.discard(self)
        protocol = self.config.ws_protocol_class(self.config, self.server_state, self.app_state)
        protocol.connection_made(self.transport)
        protocol.data_received(head)
        self.transport.set_protocol(protocol)
        self._forget()

    def _answered(self, exchange: Exchange) -> None:
        """The next request may come, and may be here already."""
        self.server_state.total_requests += 1
        if not exchange.keep_alive:
            self._close(is_unread=exchange.more_body or bool(self._held))
            return
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._place is not None:
            self._place.idle(self.transport.close)
        if self._held:
            held, self._held = self._held, b""
            self.data_received(held)

    # --- parts ---

    def _is_answering(self) -> bool:
        """Whether a request is here, whole, whose answer is not."""
        return self.exchange is not None and not self.exchange.more_body and not self.exchange.response_complete

    def _is_over(self) -> bool:
        """Whether nothing more is read here: it is closed, refused, or a WebSocket."""
        return self.transport.is_closing() or self.transport.get_protocol() is not self

    def _hold(self, data: bytes) -> None:
        if self._held or data.strip(b"\r\n"):  # some clients end a body so; nothing waits for it
            self._held += data
            self.flow.pause_reading()

    def _forget(self) -> None:
        """It ends here: what points back at it goes, so that nothing waits for the garbage collector."""
        self.exchange = None
        self._reader.forget()

    def _refuse(self, error: RequestError) -> None:
        """Send the error if no response has started, and close the connection."""
        log.debug("a connection is refused: %s", error.message)
        exchange, path = self.exchange, self._reader.target
        if exchange is not None and exchange.more_body:  # the body is malformed and stays incomplete
            if exchange.response_started:
                self.transport.close()
                return
            exchange.disconnect()
            path = exchange.scope["path"]
        self._tell(error, path)
        self._close(is_unread=True)

    def _tell(self, error: RequestError, path: str) -> None:
        self.transport.write(write_refusal(error, self.server_state.default_headers, api_of(path)))

    def _close(self, *, is_unread: bool) -> None:
        """Close after the pending output; if the client still sends, only after it had time to read that."""
        if not is_unread or self.transport.is_closing() or not self.transport.can_write_eof():
            self.transport.close()
            return
        self.transport.set_protocol(_Lingering(self, self.loop.call_later(_LINGER_S, self.transport.close)))
        self.transport.write_eof()
        if self._place is not None:
            self._place.idle(self.transport.close)
        self.flow.resume_reading()


class _Lingering(asyncio.Protocol):
    """The protocol of a closing connection whose client may still send."""

    def __init__(self, of: HttpProtocol, end: asyncio.TimerHandle) -> None:
        self._of = of
        self._end = end
        self._dropped = 0

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._dropped += len(data)
        if self._dropped > _LINGER_BYTES:
            self._of.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._end.cancel()
        self._of.connection_lost(exc)
