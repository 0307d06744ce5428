"""What everything is measured against: a server that hands requests and answers on as they are, and reads neither.

    python bench/pass_through.py --upstream http://127.0.0.1:8000/v1 --port 8642 [--server granian] [--client pyreqwest]

With Starlette and aiohttp on uvicorn it is the `bare` of the tables. Other servers and clients show what these two
cost. `httptools` is the least that Python takes: HTTP's parser in C and what must stand around it, without any of what
a gateway needs on the way (bounds, timeouts, connections that break), so nobody should serve with it.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from fake_model import PATHS
from loading import HOST, run

__all__ = ["Client", "Server"]

Server: TypeAlias = Literal["uvicorn", "granian", "httptools"]
Client: TypeAlias = Literal["aiohttp", "pyreqwest", "httptools"]
# The type of an answer, and its pieces as they come.
Answer: TypeAlias = tuple[str, AsyncIterator[bytes]]
Ask: TypeAlias = Callable[[bytes], Any]
EVENTS: Final = "text/event-stream"


# --- clients: each answers a function that asks the model server ---


def aiohttp_client(url: str) -> Ask:
    """The client that is measured against."""
    import aiohttp

    sessions: list[aiohttp.ClientSession] = []

    async def ask(body: bytes) -> Answer:
        if not sessions:
            sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        answer = await sessions[0].post(url, data=body, headers={"content-type": "application/json"})
        return answer.content_type, answer.content.iter_any()

    return ask


def pyreqwest_client(url: str) -> Ask:
    """Rust's client, in threads of its own."""
    from pyreqwest.client import ClientBuilder

    client = ClientBuilder().build()

    async def ask(body: bytes) -> Answer:
        request = client.post(url).body_bytes(body).header("content-type", "application/json").build_streamed()
        answer = await request.__aenter__()

        async def pieces() -> AsyncIterator[bytes]:
            while (piece := await answer.body_reader.read_chunk()) is not None:
                yield bytes(piece)
            await request.__aexit__(None, None, None)

        return answer.headers["content-type"], pieces()

    return ask


def httptools_client(url: str) -> Ask:
    """The least: connections that are never closed, and a parser."""
    import httptools

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def send(self, request: bytes) -> None:
            self.parser = httptools.HttpResponseParser(self)
            self.kind, self.pieces, self.is_over = "", list[bytes](), False
            self.woken: asyncio.Future[None] | None = None
            self.transport.write(request)

        def data_received(self, data: bytes) -> None:
            self.parser.feed_data(data)
            if self.woken is not None and not self.woken.done():
                self.woken.set_result(None)

        def on_header(self, name: bytes, value: bytes) -> None:
            if name.lower() == b"content-type":
                self.kind = value.decode()

        def on_body(self, piece: bytes) -> None:
            self.pieces.append(piece)

        def on_message_complete(self) -> None:
            self.is_over = True

        async def more(self) -> None:
            self.woken = asyncio.get_running_loop().create_future()
            await self.woken

    parts = urlsplit(url)
    head = f"POST {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-type: application/json\r\n".encode()
    free: list[Connection] = []

    async def ask(body: bytes) -> Answer:
        if free:
            connection = free.pop()
        else:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(Connection, parts.hostname or HOST, parts.port or 80)
        connection.send(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
        await connection.more()

        async def pieces() -> AsyncIterator[bytes]:
            while True:
                if connection.pieces:
                    piece, connection.pieces = b"".join(connection.pieces), []
                    yield piece
                elif connection.is_over:
                    break
                else:
                    await connection.more()
            free.append(connection)

        return connection.kind, pieces()

    return ask


# --- servers ---


def application(ask: Ask) -> Any:
    """The pass-through as an application."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    async def hand_on(request: Request) -> Response:
        kind, pieces = await ask(await request.body())
        if kind != EVENTS:
            return Response(b"".join([piece async for piece in pieces]), media_type="application/json")
        return StreamingResponse(pieces, media_type=EVENTS)

    return Starlette(routes=[Route(path, hand_on, methods=["POST"]) for path in PATHS.values()])


def serve_uvicorn(ask: Ask, port: int) -> None:
    """The server that is measured against."""
    import uvicorn

    uvicorn.run(application(ask), host=HOST, port=port, log_level="error", access_log=False)


def serve_granian(ask: Ask, port: int) -> None:
    """Rust's server, with the event loop in one of its threads."""
    from granian.constants import Interfaces
    from granian.server.embed import Server as Granian

    server = Granian(application(ask), address=HOST, port=port, interface=Interfaces.ASGI, log_enabled=False)
    run(server.serve())


def serve_httptools(ask: Ask, port: int) -> None:
    """The least: no application, a task for each request."""
    import httptools

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            self.parser = httptools.HttpRequestParser(self)
            self.pieces: list[bytes] = []

        def data_received(self, data: bytes) -> None:
            self.parser.feed_data(data)

        def on_body(self, piece: bytes) -> None:
            self.pieces.append(piece)

        def on_message_complete(self) -> None:
            body, self.pieces = b"".join(self.pieces), []
            self.answering = asyncio.get_running_loop().create_task(self.answer(body))

        async def answer(self, body: bytes) -> None:
            kind, pieces = await ask(body)
            head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n" % kind.encode()
            if kind != EVENTS:
                whole = b"".join([piece async for piece in pieces])
                self.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(whole), whole))
                return
            self.transport.write(head + b"transfer-encoding: chunked\r\n\r\n")
            async for piece in pieces:
                self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.transport.write(b"0\r\n\r\n")

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Connection, HOST, port)
        await server.serve_forever()

    run(serve())


CLIENTS: Final[dict[Client, Callable[[str], Ask]]] = {
    "aiohttp": aiohttp_client,
    "pyreqwest": pyreqwest_client,
    "httptools": httptools_client,
}
SERVERS: Final[dict[Server, Callable[[Ask, int], None]]] = {
    "uvicorn": serve_uvicorn,
    "granian": serve_granian,
    "httptools": serve_httptools,
}


def main() -> None:
    """Serve at a port."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--upstream", required=True)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--server", choices=get_args(Server), default="uvicorn")
    options.add_argument("--client", choices=get_args(Client), default="aiohttp")
    given = options.parse_args()
    SERVERS[given.server](CLIENTS[given.client](f"{given.upstream}/chat/completions"), given.port)


if __name__ == "__main__":
    main()
