"""A server that does to its client what a script says, in the client's own event loop: so many turns of the loop are
time enough for the other side to do all that it can, on a machine of any speed.
"""

import asyncio
import gc
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypeAlias

import pytest

from callwright.upstreams.http_client.connections import Connections, Timeouts
from callwright.upstreams.http_client.errors import HttpError
from callwright.upstreams.http_client.response import whole
from tests.support.connection_server import Reader, Writer, read_request, reset
from tests.support.servers import HOST
from tests.support.waiting import PATIENCE_S

__all__ = [
    "HI",
    "LARGE",
    "MANY_TURNS",
    "OK",
    "SHORT_S",
    "TURNS",
    "ByteServer",
    "Loop",
    "Steps",
    "asked",
    "connections",
    "each_loop",
    "in_pieces",
    "number_open",
    "run",
    "seen",
    "served",
    "turns",
    "with_lines",
]

Loop: TypeAlias = Literal["asyncio", "uvloop"]
# What a server does when it is asked: sends these bytes, lets the loop turn so many times, or what the word says
# (`ByteServer.play`). Behind the last step it waits for the next request. "at once", as the first: does not wait for
# the first request; "unread": does not read its body.
Steps: TypeAlias = Sequence[bytes | int | str]

SHORT_S: Final = 0.2
TURNS: Final = 20  # enough for a packet to be sent and read
MANY_TURNS: Final = 2_000  # enough for all that fits into the buffers of a connection
LARGE: Final = b"x" * 30_000_000  # more than fits
OK: Final = b"HTTP/1.1 200 OK\r\n"
HI: Final = OK + b"content-length: 2\r\n\r\nhi"
_CHUNK: Final = 65_536

each_loop: Final = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


def run(loop: Loop, tried: Callable[[], Awaitable[None]]) -> None:
    """Run it in a loop of a kind, in which nobody may complain; what stays open is a warning."""
    factory = pytest.importorskip("uvloop").new_event_loop if loop == "uvloop" else None
    told: list[Mapping[str, Any]] = []

    async def within_bounds() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with asyncio.timeout(PATIENCE_S):
            await tried()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(within_bounds())
    gc.collect()
    # A server is told of clients that leave in the middle of a handshake.
    assert not [one for one in told if "incoming connection" not in one["message"]]


class ByteServer:
    """Plays its steps. `heads`: of the requests; `connections`: how many there were; `ended`: those that are over."""

    def __init__(self, steps: Steps) -> None:
        self.heads: list[bytes] = []
        self.connections = 0
        self.ended = 0
        self.url = ""
        self.running: set[asyncio.Task[None]] = set()
        self._is_asked_first = steps[:1] != ["at once"]
        self._reads = steps[:1] != ["unread"]
        self._steps = [step for step in steps if step not in ("at once", "unread")]

    def connected(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        self.running.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        try:
            if not self._is_asked_first:
                await self.play(reader, writer)
            while head := await (read_request(reader) if self._reads else reader.readuntil(b"\r\n\r\n")):
                self.heads.append(head)
                await self.play(reader, writer)
        except (ConnectionError, EOFError, RuntimeError):
            pass  # the client, or a step, has ended it, which is a RuntimeError in uvloop
        finally:
            self.ended += 1
            writer.transport.abort()

    async def play(self, reader: Reader, writer: Writer) -> None:
        for step in self._steps:
            match step:
                case bytes():
                    writer.write(step)
                    await writer.drain()
                case int():
                    await turns(step)
                case "read all":
                    await reader.readexactly(len(LARGE))
                case "stay":
                    await asyncio.Event().wait()
                case "half":
                    writer.write_eof()
                case "close":
                    writer.close()
                    await writer.wait_closed()
                    raise ConnectionError
                case "reset":
                    reset(writer)
                    raise ConnectionError
                case "bytes":
                    while True:
                        writer.write(b"x")
                        await writer.drain()
                        await asyncio.sleep(SHORT_S / 20)
                case "chunks":
                    while True:
                        writer.write(b"%x\r\n%b\r\n" % (_CHUNK, LARGE[:_CHUNK]))
                        await writer.drain()
                        await turns(1)
                case _:
                    raise AssertionError(step)


@asynccontextmanager
async def served(
    steps: Steps, *, host: str = HOST, name: str = "", secure: ssl.SSLContext | None = None
) -> AsyncGenerator[ByteServer, None]:
    """Such a server; `name`: of its host in its URL."""
    plays = ByteServer(steps)
    server = await asyncio.start_server(plays.connected, host, 0, ssl=secure)
    port = server.sockets[0].getsockname()[1]
    plays.url = f"http{'s' if secure else ''}://{name or host}:{port}/"
    try:
        yield plays
    finally:
        server.close()
        for task in plays.running:
            task.cancel()
        ends = await asyncio.gather(*plays.running, return_exceptions=True)
        assert [end for end in ends if not isinstance(end, asyncio.CancelledError | None)] == []
        await turns(TURNS)


@asynccontextmanager
async def connections(connect_s: float = PATIENCE_S, *, keep: bool = True) -> AsyncGenerator[Connections, None]:
    """Those of a client."""
    these = Connections({}, Timeouts(connect_s, PATIENCE_S), keep=keep)
    try:
        yield these
    finally:
        await these.close()


async def asked(
    these: Connections, url: str, body: bytes | None = None, silent_s: float = PATIENCE_S, *, wants_all: bool = False
) -> object:
    """The status and the body of what a server answers, or the type of the error."""
    method = "GET" if body is None else "POST"
    try:
        async with await these.send(method, url, body, None, silent_s, wants_all=wants_all) as response:
            return response.status, bytes(await whole(response, len(LARGE), PATIENCE_S))
    except HttpError as error:
        return type(error)


def number_open(these: Connections) -> int:
    return sum(len(mine._open) for mine in these._by_loop.values())


async def turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def seen(condition: Callable[[], object]) -> None:
    """Wait until it is so: `run` has the bound."""
    while not condition():
        await asyncio.sleep(0)


def in_pieces(sent: bytes, size: int) -> Steps:
    """These bytes in packets of a size; 0 for one packet."""
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)] if size else [sent]
    return [step for piece in pieces for step in (piece, 5)]


def with_lines(*lines: bytes, of: bytes = HI) -> bytes:
    """An answer with more lines in its head."""
    return of.replace(b"\r\n\r\n", b"".join(b"\r\n" + line for line in lines) + b"\r\n\r\n", 1)
