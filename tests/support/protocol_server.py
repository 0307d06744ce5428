"""The protocol for HTTP before an application that does what the path says, in the event loop of who asks it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from http.client import HTTPResponse
from io import BytesIO
from typing import Any, Final, cast

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from callwright.gateway.config.config import Config
from callwright.gateway.connections import Connections, WhenLeft
from callwright.gateway.process.protocols.http import HttpProtocol
from callwright.gateway.process.serving import ProtocolSettings
from tests.support.byte_server import TURNS, seen, turns
from tests.support.connection_server import Reader, Writer
from tests.support.servers import HOST

__all__ = ["PIECES", "Answer", "Door", "answers", "begun", "opened"]

PIECES: Final = (b"one", b"two", b"three")
Answer = tuple[int, Any]  # a status, and the body, read as JSON if it is that


class Door:
    """An application and how it is reached. `gate`: opens what waits; `told`: what `receive` said there; `made`: the
    protocols.
    """

    def __init__(self, most: int) -> None:
        self.state = Starlette().state
        self.state.connections = Connections(most)
        self.server_state = ServerState()
        self.gate = asyncio.Event()
        self.told: list[str] = []
        self.made: list[HttpProtocol] = []
        self.port = 0
        app = cast(Starlette, self)
        self._settings = ProtocolSettings(app, Config(), log_config=None)
        self._settings.load()

    def connected(self) -> HttpProtocol:
        self.made.append(HttpProtocol(self._settings, self.server_state, {}))
        return self.made[-1]

    def is_empty(self) -> bool:
        """Whether nothing is left of any connection."""
        state = self.server_state
        return not (state.connections or state.tasks or len(self.state.connections))

    async def connect(self) -> tuple[Reader, Writer]:
        return await asyncio.open_connection(HOST, self.port)

    async def says(self, *sent: bytes) -> bytes:
        """All that comes until it closes the connection. The pieces are sent one after another."""
        reader, writer = await self.connect()
        try:
            for piece in sent:
                writer.write(piece)
                await turns(TURNS)
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(body: bytes, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
            length = (b"content-length", str(len(body)).encode())
            await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
            await send({"type": "http.response.body", "body": body})

        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        match scope["path"]:
            case "/early":
                await answer(b'"early"', 401)
            case "/none":
                await send({"type": "http.response.start", "status": 204})
                await send({"type": "http.response.body"})
            case "/stream":
                await send({"type": "http.response.start", "status": 200})
                for piece in PIECES:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body"})
            case "/gate":
                await body_of(receive)
                await self.gate.wait()
                await answer(b'"gate"')
            case "/much":
                await send({"type": "http.response.start", "status": 200})
                with WhenLeft(scope, receive, self.gate.set):
                    while not self.gate.is_set():
                        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
                        await turns(1)
                await send({"type": "http.response.body"})
            case "/left":
                await body_of(receive)
                self.told.append((await receive())["type"])
            case "/fails":
                raise ValueError
            case "/fails later":
                await send({"type": "http.response.start", "status": 200})
                await send({"type": "http.response.body", "body": b"one", "more_body": True})
                raise ValueError
            case "/cancelled":
                raise asyncio.CancelledError
            case "/silent":
                pass
            case "/long":
                await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
                await send({"type": "http.response.body", "body": b"hi"})
            case "/short":
                await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
                await send({"type": "http.response.body", "body": b"hi"})
            case "/split":
                await answer(b"hi", 200, (b"x", b"a\r\nb: c"))
            case _:
                body = await body_of(receive)
                told = {"method": scope["method"], "path": scope["path"], "body": body.decode("latin-1")}
                told["trailer"] = any(name == b"trailer-of-a-body" for name, _ in scope["headers"])
                await answer(json.dumps(told).encode())


async def body_of(receive: Receive) -> bytes:
    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message["more_body"]:
            break
    return body


@asynccontextmanager
async def opened(most: int = 50) -> AsyncGenerator[Door, None]:
    """Such a door. Behind it nothing is left of what came through."""
    door = Door(most)
    server = await asyncio.get_running_loop().create_server(door.connected, HOST, 0)
    door.port = server.sockets[0].getsockname()[1]
    try:
        yield door
    finally:
        server.close()
    await seen(door.is_empty)


async def begun(door: Door, sent: bytes) -> tuple[Reader, Writer]:
    """A connection on which this was sent, and a request is under way."""
    reader, writer = await door.connect()
    writer.write(sent)
    await seen(lambda: door.server_state.tasks)
    await turns(TURNS)
    return reader, writer


class _Read:
    """Answers one after another, as the standard library reads them."""

    def __init__(self, came: bytes) -> None:
        self.left = BytesIO(came)
        self.left.close = lambda: None  # type: ignore[method-assign]  # an answer is over, the next one comes

    def makefile(self, *_: object) -> BytesIO:
        return self.left


def answers(came: bytes, method: Callable[[int], str] = lambda _: "GET") -> list[Answer]:
    """The answers in what came. `method`: of the request with a number."""
    read = _Read(came)
    told: list[Answer] = []
    while read.left.tell() < len(came):
        response = HTTPResponse(cast(Any, read), method=method(len(told)))
        response.begin()
        body = response.read()
        is_json = body[:1] in (b"{", b'"')
        told.append((response.status, json.loads(body) if is_json else body))
    return told
