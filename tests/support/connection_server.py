"""A model server made of bytes: what it does on a connection is said connection by connection, request by request."""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from tests.support.servers import HOST, JSON
from tests.support.waiting import PATIENCE_S

__all__ = ["Answering", "ConnectionServer", "Reader", "Writer", "http_answer", "read_request", "reset"]

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
# Given the number of the connection and of the request on it, both from 0; answers whether the connection stays open.
Answering: TypeAlias = Callable[[int, int, Writer], Awaitable[bool]]
_SAYS_SO: Final = {"choices": [{"index": 0, "message": {"content": "Hi"}, "text": "Hi", "finish_reason": "stop"}]}


def http_answer(body: Any = _SAYS_SO, status: int = 200, *more: str) -> bytes:
    """A response with a length; a body that is no bytes is sent as JSON. `more`: lines of its head."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = (f"HTTP/1.1 {status} OK", f"content-type: {JSON}", f"content-length: {len(data)}", *more)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class ConnectionServer:
    """Runs in a thread of its own. `asked`: the connection and the number of each request, in order; `heads`: their
    heads, in lower case.
    """

    def __init__(self, answering: Answering) -> None:
        self.asked: list[tuple[int, int]] = []
        self.heads: list[bytes] = []
        self._answering = answering
        self._connections = 0
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._ready = threading.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="connection server")
        self._thread.start()
        assert self._ready.wait(PATIENCE_S), "the server did not start"
        self.url = f"http://{HOST}:{self.port}/v1"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the server did not stop"

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _connected(self, reader: Reader, writer: Writer) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        connection, self._connections = self._connections, self._connections + 1
        number = 0
        try:
            while head := await read_request(reader):
                self.heads.append(head)
                self.asked.append((connection, number))
                if not await self._answering(connection, number, writer):
                    break
                number += 1
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has left, or the test is over
        finally:
            self._running.discard(task)
            writer.close()


def reset(writer: Writer) -> None:
    """End a connection with a reset, behind what was written."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def read_request(reader: Reader) -> bytes:
    """Read a request to its end; answers its head in lower case, nothing where there is no more."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
    except asyncio.IncompleteReadError:
        return b""
    length = next((line for line in head.split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    await reader.readexactly(int(length.partition(b":")[2]))
    return head
