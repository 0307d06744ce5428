"""HTTP/1.1 for clients: httptools reads what comes, with bounds on it before anybody has asked.

Bytes go to the parser in slices, and no more of them than a head may have before one is whole. A request that comes
behind one that is answered is not parsed before its turn. What is refused is told so in the form of the API that is
asked; then the connection ends, but not before the client had time to read it: with bytes unread the system throws the
answer away.

The server is uvicorn's: it listens, counts `connections` and `tasks`, and calls `shutdown` when it ends.
"""

import asyncio
import logging
from asyncio.transports import BaseTransport
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from callwright import bounds
from callwright.errors import RequestError
from callwright.gateway.connections import STATE, Connection
from callwright.gateway.process.protocols.exchange import Exchange
from callwright.gateway.process.protocols.refusals import (
    framing_too_large,
    head_too_large,
    no_request,
    no_room,
    written,
)
from callwright.gateway.request_context import api_of

__all__ = ["HttpProtocol"]

log = logging.getLogger("callwright.gateway")
# So much is parsed before it is looked at again: what a head that begins in the middle of it may have too much.
_SLICE_BYTES: Final = 16_384
# So much of a body waits for the application before no more is read.
_BODY_BYTES: Final = 65_536
_LINGER_S: Final = 2.0
_LINGER_BYTES: Final = 1_048_576
# Requests that a client sends ahead in one go; behind more of them the connection ends. Hardly a client sends any.
_MOST_AHEAD: Final = 16
_FORWARDED: Final = b"x-forwarded-"
_UPGRADE: Final = b"upgrade"
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}


class HttpProtocol(asyncio.Protocol):
    """See above."""

    transport: asyncio.Transport

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
        self.pipeline: deque[Exchange] = deque()  # those that were parsed with one that is answered
        self.exchange: Exchange | None = None  # the latest that was begun
        self._app = self._behind_proxies = config.loaded_app
        if isinstance(self._app, ProxyHeadersMiddleware):  # only of use where a proxy says for whom it asks
            self._app = self._app.app
        self._parser = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # what was sent ahead is told apart here
        self._most: int = bounds.MAX_HEAD_BYTES
        self._place: Connection | None = None
        # what is read
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._read_to: Exchange | None = None  # what comes is the body of this
        self._is_in_head = True
        self._has_progressed = False
        self._since = 0  # bytes that were parsed since something came of them
        self._held = b""  # what came while a request was answered
        self._is_full_ahead = False
        self._is_bad = False
        self._is_paused = False
        # what is written
        self._usual: tuple[Sequence[Any], bytes] = ((), b"")
        self.is_full = False  # the client does not read what was written
        self.done: asyncio.Future[None] = self.loop.create_future()  # to await where there is nothing to wait for
        self.done.set_result(None)
        self._writable: asyncio.Future[None] | None = None
        # how it ends
        self._dropped = -1  # bytes that came behind a refusal; before it -1
        self._linger: asyncio.TimerHandle | None = None
        self._requests = 0
        self._waits = (-1, False, 0.0)  # for what it waits, since when it was seen to

    # --- asyncio ---

    def connection_made(self, transport: BaseTransport) -> None:
        """See asyncio."""
        self.transport = cast(asyncio.Transport, transport)
        self.server_state.connections.add(self)  # type: ignore[arg-type]  # uvicorn names its own only
        self._scope = {
            "type": "http",
            "asgi": _ASGI,
            "server": get_local_addr(self.transport),
            "client": get_remote_addr(self.transport),
            "scheme": "https" if is_ssl(self.transport) else "http",
            "root_path": self.config.root_path,
        }
        self._place = self.config.connections.opened(self.transport.close)
        if self._place is None:
            self._answer(no_room(self.config.connections.most), "")
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
        if self._linger is not None:
            self._linger.cancel()
        if self._place is not None:
            self._place.closed()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
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
            self._has_progressed = False
            self._parse(piece)
            self._since = 0 if self._has_progressed else self._since + len(piece)
            if self._since >= self._most and not self._is_over():
                self._refuse((head_too_large if self._is_in_head else framing_too_large)(self._most))
        exchange = self.exchange
        if self._place is not None and exchange is not None and not exchange.response_complete:
            self._place.busy()
            if not (exchange.more_body or self._held):  # so that it is noticed when the client goes
                self.resume_reading()

    def pause_writing(self) -> None:
        """See asyncio."""
        self.is_full = True

    def resume_writing(self) -> None:
        """See asyncio."""
        self.is_full = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def shutdown(self) -> None:
        """The server ends: so does this, behind the answer that is under way."""
        if self.exchange is None or self.exchange.response_complete:
            self.transport.close()
        else:
            self.exchange.keep_alive = False

    def sweep(self, now_s: float, limit_s: float) -> None:
        """End a connection that waits too long for a request, or for the rest of one; to be asked again and again."""
        exchange = self.exchange
        if exchange is not None and not exchange.response_complete:
            return
        has_begun = self._since > 0 or exchange is None or exchange.more_body  # an answer may come before a body
        if self._waits[:2] != (self._requests, has_begun):
            self._waits = (self._requests, has_begun, now_s)
        elif now_s - self._waits[2] > (limit_s if has_begun else self.config.timeout_keep_alive):
            self.transport.close()

    # --- httptools ---

    def on_message_begin(self) -> None:
        """See httptools."""
        self._url, self._headers, self._is_in_head, self._read_to = b"", [], True, None

    def on_url(self, url: bytes) -> None:
        """See httptools."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools: also for the trailers of a body, which are no headers of the request."""
        if self._is_in_head:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """See httptools."""
        self._is_in_head, self._has_progressed = False, True
        if len(self.pipeline) >= _MOST_AHEAD:
            self._is_full_ahead = True
        if self._is_full_ahead or self._is_bad:
            return
        if self._parser.should_upgrade() and self._says_upgrade():
            return  # the parser stops behind this head
        raw_path, query = self._url, b""
        if not raw_path.startswith(b"/") or b"?" in raw_path or b"#" in raw_path:
            try:
                parts = httptools.parse_url(raw_path)
            except httptools.HttpParserInvalidURLError:
                self._is_bad = True
                return
            raw_path, query = parts.path or b"/", parts.query or b""
        path = raw_path.decode("latin-1")
        version = self._parser.get_http_version()
        root: str = self._scope["root_path"]
        scope = {
            **self._scope,
            "http_version": version,
            "method": self._parser.get_method().decode("ascii"),
            "path": root + (unquote(path) if "%" in path else path),
            "raw_path": root.encode() + raw_path,
            "query_string": query,
            "headers": self._headers,
            "state": self.app_state.copy(),
        }
        keep_alive = version == "1.1" and self._parser.should_keep_alive()
        wants = any(name == b"expect" and value.lower() == b"100-continue" for name, value in self._headers)
        self._read_to = Exchange(self, scope, keep_alive=keep_alive, wants_continue=wants)
        if self.exchange is None or self.exchange.response_complete:
            self._begin(self._read_to)
        else:
            self.pause_reading()
            self.pipeline.append(self._read_to)

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        self._has_progressed = True
        exchange = self._read_to
        if exchange is not None and not exchange.response_complete:
            exchange.add(body)
            if exchange.held > _BODY_BYTES:
                self.pause_reading()

    def on_message_complete(self) -> None:
        """See httptools."""
        self._is_in_head, self._has_progressed = True, True
        if self._read_to is not None:
            self._read_to.end_body()

    # --- exchanges ---

    @property
    def usual_headers(self) -> bytes:
        """Lines that every answer has: uvicorn makes them anew each second."""
        given = self.server_state.default_headers
        if self._usual[0] is not given:
            self._usual = given, b"".join([b"%b: %b\r\n" % each for each in given])
        return self._usual[1]

    def writable(self) -> "asyncio.Future[None]":
        """What to wait for while it is full."""
        if self._writable is None:
            self._writable = self.loop.create_future()
        return asyncio.shield(self._writable)

    def pause_reading(self) -> None:
        """Read no more for now."""
        if not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self._is_paused:
            self._is_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    def answered(self, exchange: Exchange) -> None:
        """The next request may come, and may be here already."""
        self.server_state.total_requests += 1
        if not exchange.keep_alive:
            self._close(is_unread=exchange.more_body or self._dropped >= 0)
            return
        if self.transport.is_closing():
            return
        self.resume_reading()
        if self.pipeline:
            self._begin(self.pipeline.popleft())
        elif self._place is not None:
            self._place.idle(self.transport.close)
        if self._held and not self._is_answering():
            held, self._held = self._held, b""
            self.data_received(held)

    def _begin(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._requests += 1
        tasks = self.server_state.tasks
        is_forwarded = any(name.startswith(_FORWARDED) for name, _ in exchange.scope["headers"])
        app = self._behind_proxies if is_forwarded else self._app
        task = self.loop.create_task(exchange.run(app, lambda: tasks.discard(task)))
        tasks.add(task)

    # --- parts ---

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._wants_websocket():
                self._change_to_websocket()
            else:  # read again as if nobody had asked for that: the parser takes such a request to have no body
                version = self._parser.get_http_version()
                again = self._head(version, without=_UPGRADE) if self._says_upgrade() else b""  # which CONNECT does not
                self._parse(again + data[upgrade.args[0] :])
        except httptools.HttpParserCallbackError:
            raise  # a fault of our own
        except httptools.HttpParserError:
            self._is_bad = True
        if self._is_bad and not self._is_over():
            self._refuse(no_request())
        if self._is_full_ahead and self._dropped < 0:
            self._end_behind_answers()

    def _says_upgrade(self) -> bool:
        return any(name == _UPGRADE for name, _ in self._headers)

    def _wants_websocket(self) -> bool:
        if self.exchange is not None and not self.exchange.response_complete:
            return False  # the connection is that of its answer
        named = dict(self._headers)
        changes = [token.strip() for token in named.get(b"connection", b"").lower().split(b",")]
        return _UPGRADE in changes and named.get(_UPGRADE, b"").lower() == b"websocket"

    def _change_to_websocket(self) -> None:
        self.server_state.connections.discard(self)
        protocol = self.config.ws_protocol_class(self.config, self.server_state, self.app_state)
        protocol.connection_made(self.transport)
        protocol.data_received(self._head("1.1"))
        self.transport.set_protocol(protocol)
        self._forget()

    def _head(self, version: str, without: bytes = b"") -> bytes:
        """The head that was read, but for a header."""
        lines = [self._parser.get_method() + b" " + self._url + b" HTTP/" + version.encode()]
        lines += [name + b": " + value for name, value in self._headers if name != without]
        return b"\r\n".join([*lines, b"", b""])

    def _is_answering(self) -> bool:
        """Whether a request is here, whole, whose answer is not."""
        return self.exchange is not None and not self.exchange.more_body and not self.exchange.response_complete

    def _forget(self) -> None:
        """It ends here: what points back at it goes, so that nothing waits for the garbage collector."""
        self.exchange = self._read_to = None
        self.pipeline.clear()
        del self._parser

    def _is_over(self) -> bool:
        """Whether nothing more is parsed here: it is closed, refused, or a WebSocket."""
        return self._dropped >= 0 or self.transport.is_closing() or self.transport.get_protocol() is not self

    def _hold(self, data: bytes) -> None:
        is_between = self._read_to is self.exchange and not self._held
        if is_between and not data.strip(b"\r\n"):  # some clients end a body so; nothing waits for it
            return
        self._held += data
        self.pause_reading()

    def _refuse(self, error: RequestError) -> None:
        """Tell it, where that can still be told, and end the connection."""
        log.debug("a connection is refused: %s", error.message)
        exchange = self.exchange
        broken = None if self._is_in_head else self._read_to  # the request whose body is wrong, not its head
        if exchange is not None and not exchange.response_complete and broken is not exchange:
            if broken is not None:
                self.pipeline.remove(broken)
            self._end_behind_answers()
            return
        if broken is None or not broken.response_started:
            path = self._url.decode("latin-1")
            if broken is not None:  # the client has not sent all of its request, and will not
                broken.disconnect()
                path = broken.scope["path"]
            self._answer(error, path)
            self._close(is_unread=True)
        else:
            self.transport.close()

    def _close(self, *, is_unread: bool) -> None:
        """Behind what was written; where the client still sends, not before it had time to read that."""
        if not is_unread or self.transport.is_closing() or not self.transport.can_write_eof():
            self.transport.close()
            return
        self._dropped = 0
        self.transport.write_eof()
        self._linger = self.loop.call_later(_LINGER_S, self.transport.close)
        if self._place is not None:
            self._place.idle(self.transport.close)
        self.resume_reading()

    def _end_behind_answers(self) -> None:
        """The answer to the latest request is the last, and nothing more is read."""
        self._dropped = 0
        latest = self.pipeline[-1] if self.pipeline else self.exchange
        if latest is not None:
            latest.keep_alive = False
        self.pause_reading()

    def _answer(self, error: RequestError, path: str) -> None:
        self.transport.write(written(error, self.server_state.default_headers, api_of(path)))

    def _drop(self, data: bytes) -> None:
        if self._linger is None:  # answers are still under way
            self.pause_reading()
            return
        self._dropped += len(data)
        if self._dropped > _LINGER_BYTES:
            self.transport.close()
