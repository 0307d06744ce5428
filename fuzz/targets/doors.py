"""Bytes of HTTP heads, bodies in chunks and WebSocket frames, cut anywhere: answered or refused, and nothing left."""

import asyncio
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.server import ServerState

from callwright.gateway.config.config import Config
from callwright.gateway.connections import Connections
from callwright.gateway.process.protocols.http import HttpProtocol
from callwright.gateway.process.serving import ProtocolSettings
from tests.support.bounded import bounded
from tests.support.choices import Choices

__all__ = ["run"]

MOST = 600

LINES = (
    *("host: a", "connection: close", "connection: keep-alive", "content-length: 5", "content-length: 0"),
    *(
        "transfer-encoding: chunked",
        "expect: 100-continue",
        "x: y",
        "x:",
        ": y",
        "x y",
        "\tx",
        "a" * 300,
        "x: " + "b" * 700,
    ),
    *("content-length: 99999999999999999999", "content-length: -1", "transfer-encoding: identity", "x: \x00", "x: é"),
    *("upgrade: h2c", "connection: upgrade"),
)
STARTS = (
    *("GET / HTTP/1.1", "POST / HTTP/1.1", "GET /ws HTTP/1.1", "GET / HTTP/1.0", "GET / HTTP/9.9", "PRI * HTTP/2.0"),
    *("OPTIONS * HTTP/1.1", "GET /" + "a" * 700 + " HTTP/1.1", "GET", "", "POST /%ff?a=%zz HTTP/1.1"),
)
CHUNKS = (
    "2\r\n{}\r\n",
    "0\r\n",
    "0\r\n\r\n",
    "5;x=y\r\nabcde\r\n",
    "g\r\n",
    "x: y\r\n",
    "1;" + "a" * 700,
    "ffffffffffffffff\r\n",
)
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
)


class _Transport(asyncio.Transport):
    """Takes what is written, and hands out no more than is read."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1), "sockname": ("192.0.2.2", 2)})
        self.written = b""
        self.protocol: Any = None
        self._closing = False
        self._reading = True

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self._closing = True

    abort = close

    def is_closing(self) -> bool:
        return self._closing

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        pass

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol


async def _echo(request: Request) -> Response:
    return Response(await request.body())


async def _socket(websocket: WebSocket) -> None:
    await websocket.accept()
    try:
        while True:
            await websocket.send_text(str(len(await websocket.receive_text())))
    except (WebSocketDisconnect, KeyError):
        pass


@cache
def _settings() -> ProtocolSettings:
    app = Starlette(routes=[Route("/", _echo, methods=["GET", "POST"]), WebSocketRoute("/ws", _socket)])
    app.state.connections = Connections(10)
    settings = ProtocolSettings(app, Config(), log_config=None, lifespan="off")
    settings.load()
    return settings


def run(draw: Choices) -> None:
    """See the module."""
    data = _websocket(draw) if draw.once_in(2) else b"".join(_message(draw) for _ in range(1 + draw.number(3)))
    cuts = sorted(draw.number(0xFFFF) % (len(data) + 1) for _ in range(draw.number(6)))
    pieces = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    asyncio.run(_spoken(pieces))


async def _spoken(pieces: list[bytes]) -> None:
    failed: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failed.append(context))
    settings, state, transport = _settings(), ServerState(), _Transport()
    with bounded(MAX_HEAD_BYTES=MOST):
        connection = HttpProtocol(settings, state, {}, loop)
    transport.protocol = connection
    connection.connection_made(transport)
    assert len(settings.connections) == 1
    for piece in pieces:
        if transport.is_closing():
            break
        for _ in range(50):
            if transport.is_reading():
                break
            await asyncio.sleep(0)
        before = transport.get_protocol()
        before.data_received(piece)
        await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)
    transport.close()
    transport.get_protocol().connection_lost(None)
    for task in [*state.tasks]:
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    assert not failed, failed
    assert len(settings.connections) == 0
    assert transport.written.startswith(b"HTTP/1.1 ") or not transport.written
    assert b"500 Internal" not in transport.written


def _message(draw: Choices) -> bytes:
    hosts = [] if draw.once_in(8) else ["host: a"]
    lines = [draw.one(STARTS), *hosts, *(draw.one(LINES) for _ in range(draw.number(6)))]
    end = draw.one(("\r\n\r\n", "\r\n\r\n", "\n\n", "\r\n", ""))
    text = "\r\n".join(lines) + end + "".join(draw.one(CHUNKS) for _ in range(draw.number(4)))
    return text.encode() + (draw.bytes(12) if draw.once_in(4) else b"")


def _websocket(draw: Choices) -> bytes:
    return UPGRADE + b"".join(_frame(draw) for _ in range(draw.number(12)))


def _frame(draw: Choices) -> bytes:
    first = draw.one((0x81, 0x82, 0x01, 0x00, 0x80, 0x88, 0x89, 0x8A, 0xC1, 0x83, 0xFF))
    payload = draw.one((b"", b"{}", b"a" * 125, b"\xff\xfe", b"\x03\xe8", b"a" * 300))
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    if draw.once_in(8):
        length = draw.one((b"\x7f", b"\xff" + b"\xff" * 8, b"\xfe\x00\x01", b"\x05"))
    return bytes([first]) + length + (bytes(4) if draw.once_in(2) else b"mask") + payload
