"""A model server that behaves as it is told, well or badly: the one behind `bench/soak.py`.

A request names its play, its wave and its number in the words of the conversation, `soak/PLAY/WAVE/NUMBER/`. Every play
waits at the gate of its wave, so that all of a wave are under way at once. `SCRIPTS` is the whole mix. Beside the
model's endpoints it serves `GET /board` (what is under way), `POST /gate/WAVE` (opens it) and `POST /hangup` (closes
the connections that are kept for the next request).

    python bench/faulty.py --port 9000 --idle 4        (`--idle`: the time-out of the gateway before it, in seconds)
"""

import argparse
import asyncio
import json
import random
import re
import socket
import struct
from collections import defaultdict
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple, TypeAlias, assert_never

from loading import HOST, BytesServer, chunk, sse

__all__ = ["GOOD", "SCRIPTS", "arguments_of", "text_of", "word_of"]

# Bytes are sent as they are. `head` begins a stream of events, `some` is the first quarter of an answer, `rest` the
# others, `paced` the others with pauses, `end` closes the stream as HTTP has it; `pause` is a silence that the gateway
# bears, `late` one that is longer than its time-out, `stall` lasts until it goes. `line` and `flood` never end: one
# event without a line end, and good events. Behind `last` the connection is closed when the next request comes.
Step: TypeAlias = (
    bytes
    | Literal["head", "some", "gate", "rest", "paced", "end", "pause", "late", "stall"]
    | Literal["reset", "close", "last", "line", "flood"]
)
_GARBAGE: Final = random.Random(8).randbytes(3_000)


def _status(status: str, kind: str, body: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nretry-after: 1\r\ncontent-length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def _framed(data: bytes) -> bytes:
    """A chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _error(message: str) -> str:
    return json.dumps({"error": {"message": message, "type": "server_error"}})


_PAGE: Final = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
_NOT_UTF8: Final = b'data: {"choices":[{"index":0,"delta":{"content":"\xc3\x28\xff"},"text":"\xff"}]}\n\n'
SCRIPTS: Final[Mapping[str, tuple[Step, ...]]] = {
    "text": ("head", "some", "gate", "rest", "end"),
    "call": ("head", "some", "gate", "rest", "end"),
    "slow": ("head", "some", "gate", "paced", "end"),
    "quiet": ("head", "some", "gate", "pause", "rest", "end"),
    "long": ("head", "some", "gate", "rest", "end"),
    "closes behind it": ("head", "some", "gate", "rest", "end", "close"),
    "closes when asked again": ("head", "some", "gate", "rest", "end", "last"),
    "stall": ("head", "some", "gate", "stall"),
    "headers, then nothing": ("gate", "head", "stall"),
    "silent": ("gate", "stall"),
    "late": ("gate", "late", "head", "some", "rest", "end"),
    "reset": ("head", "some", "gate", "reset"),
    "closed without end": ("head", "some", "gate", "close"),
    "half an event": ("head", "some", "gate", _framed(b'data: {"id": "x", "choices": [{"ind'), "end"),
    "garbage": ("head", "some", "gate", _framed(_GARBAGE), "end"),
    "no HTTP": ("gate", _GARBAGE, "close"),
    "invalid UTF-8": ("head", "some", "gate", _framed(_NOT_UTF8), "rest", "end"),
    "invalid JSON": ("head", "some", "gate", _framed(b'data: {"choices": [}\n\n'), "rest", "end"),
    "HTML page": ("gate", _status("502 Bad Gateway", "text/html", _PAGE)),
    "status 500": ("gate", _status("500 Internal Server Error", "application/json", _error("It broke."))),
    "status 429": ("gate", _status("429 Too Many Requests", "application/json", _error("Too many."))),
    "status 503": ("gate", _status("503 Service Unavailable", "application/json", _error("Loading."))),
    "endless line": ("head", "some", "gate", "line"),
    "flood": ("head", "flood"),
}
# Those whose answers are whole; all others have to end in an error.
GOOD: Final = ("text", "call", "slow", "quiet", "long", "closes behind it", "closes when asked again")
_PIECES: Final = 12
_LONG: Final = 30  # times a text
_PACE_S: Final = 0.15
_NAMED: Final = re.compile(rb"soak/([^/]+)/(\d+)/(\d+)/")


def word_of(play: str, wave: int, number: int) -> str:
    """How a request says what is to be played for it."""
    return f"soak/{play}/{wave}/{number}/"


def text_of(play: str, number: int) -> str:
    """The text of a good answer, which is that of no other request."""
    text = "".join(f"Line {line} of answer {number}: so it goes, and it goes on. " for line in range(40))
    return text * _LONG if play == "long" else text


def arguments_of(number: int) -> dict[str, Any]:
    """The arguments of a call, which are those of no other request."""
    return {"number": number, "text": text_of("call", number)}


def _cut(text: str) -> list[str]:
    size = -(-len(text) // _PIECES)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _events(mode: str, play: str, number: int) -> list[bytes]:
    """The events of a good answer: native calls, calls in the text of a chat answer, or of a raw completion."""
    if play != "call":
        pieces = _cut(text_of(play, number))
    elif mode == "native":
        head = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": "note", "arguments": ""}}
        more = [{"index": 0, "function": {"arguments": piece}} for piece in _cut(json.dumps(arguments_of(number)))]
        return sse(*(chunk({"tool_calls": [call]}) for call in (head, *more)), chunk({}, "tool_calls"), "[DONE]")
    else:
        call = json.dumps({"name": "note", "arguments": arguments_of(number)})
        pieces = _cut(f"<tool_call>\n{call}\n</tool_call>")
    if mode == "raw":
        return sse(*(_completion(piece) for piece in pieces), _completion("", "stop"), "[DONE]")
    return sse(*(chunk({"content": piece}) for piece in pieces), chunk({}, "stop"), "[DONE]")


def _completion(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "text": text, "finish_reason": finish}]}


class _Asked(NamedTuple):
    """What a request wants to be played. `mode` is `native`, `prompt` or `raw`, by what the gateway sent; a whole
    answer may take twice as long.
    """

    play: str
    wave: int
    number: int
    mode: str
    stream: bool


def _asked(request: bytes) -> _Asked:
    found = _NAMED.search(request)
    assert found is not None, request
    mode = "raw" if b"/chat/" not in request[:60] else "native" if b'"tools"' in request else "prompt"
    stream = re.search(rb'"stream": ?true', request) is not None
    return _Asked(found[1].decode(), int(found[2]), int(found[3]), mode, stream)


class Board:
    """What is known of all requests together. `idle_s` is the time-out of the gateway."""

    def __init__(self, idle_s: float) -> None:
        self.idle_s = idle_s
        self.gates: dict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self.arrived: dict[int, set[int]] = defaultdict(set)  # the numbers of a wave
        self.connections: set[FaultyServer] = set()
        self.flooded = 0  # bytes

    def shown(self) -> dict[str, Any]:
        """For `GET /board`; `playing` are the plays that have not come to their end."""
        return {
            "arrived": {wave: len(numbers) for wave, numbers in self.arrived.items()},
            "playing": sorted(connection.play for connection in self.connections if connection.play),
            "flooded": self.flooded,
        }


class FaultyServer(BytesServer):
    """One connection of the gateway, or of whoever asks what is under way."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._writable = asyncio.Event()
        self._writable.set()
        self.playing: asyncio.Task[None] | None = None
        self.play = ""  # while one is played
        self._is_last = False  # no other request is answered on this connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._board.connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        """See `asyncio.Protocol`: whatever is played ends."""
        self._board.connections.discard(self)
        if self.playing is not None:
            self.playing.cancel()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._writable.set()

    def start(self, answering: Coroutine[Any, Any, None]) -> None:
        """See `BytesServer`: one request at a time, as the gateway asks."""
        self.playing = asyncio.get_running_loop().create_task(answering)

    async def answer(self, request: bytes) -> None:
        """See `BytesServer`."""
        if self._is_last:
            self.transport.close()
            return
        method, path, _ = request.split(b" ", 2)
        if method == b"POST" and b"completions" in path:
            with suppress(ConnectionError):
                await self._play(_asked(request))
        else:
            self._control(path.decode())
        self.playing, self.play = None, ""

    def _control(self, path: str) -> None:
        what, _, wave = path.strip("/").partition("/")
        body: Any = {}
        if what == "board":
            body = self._board.shown()
        elif what == "gate":
            self._board.gates[int(wave)].set()
        elif what == "hangup":
            for kept in [one for one in self._board.connections if one.playing is None]:
                kept.transport.close()
        else:
            body = {"object": "list", "data": [{"id": "fake", "object": "model"}]}
        self.transport.write(_status("200 OK", "application/json", json.dumps(body)))
        self.transport.close()

    async def _play(self, asked: _Asked) -> None:
        self._board.arrived[asked.wave].add(asked.number)
        self.play, self._has_begun = asked.play, False
        events = _events(asked.mode, asked.play, asked.number)
        some = len(events) // 4
        for step in SCRIPTS[asked.play]:
            match step:
                case bytes():
                    await self._write(step)
                case "head":
                    self._has_begun = True
                    kind = b"content-type: text/event-stream\r\ntransfer-encoding: chunked"
                    await self._write(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n\r\n")
                case "some":
                    await self._send(events[:some])
                case "rest":
                    await self._send(events[some:])
                case "paced":
                    await self._send(events[some:], _PACE_S)
                case "end":
                    await self._write(b"0\r\n\r\n")
                case "gate":
                    await self._passed(self._board.gates[asked.wave])
                case "pause":
                    await asyncio.sleep(self._board.idle_s / 2)
                case "late":
                    await asyncio.sleep(self._board.idle_s * (1 if asked.stream else 2) + 1)
                case "stall":
                    await asyncio.Event().wait()
                case "reset":
                    linger = struct.pack("ii", 1, 0)
                    self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    self.transport.abort()
                case "close":
                    self.transport.close()
                case "last":
                    self._is_last = True
                case "line":
                    await self._write(_framed(b"data: "))
                    while True:
                        await self._write(_framed(b"x" * 65_536))
                case "flood":
                    await self._flood(asked.mode)
                case _:
                    assert_never(step)

    async def _passed(self, gate: asyncio.Event) -> None:
        """Wait at a gate; comments keep a stream alive that has begun, as model servers and proxies send them."""
        while not gate.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(gate.wait(), self._board.idle_s / 4)
            if self._has_begun and not gate.is_set():
                await self._write(_framed(b": wait\n\n"))

    async def _flood(self, mode: str) -> None:
        text = "and so on " * 100
        piece = _framed(sse(_completion(text) if mode == "raw" else chunk({"content": text}))[0])
        while True:
            await self._write(piece)
            self._board.flooded += len(piece)

    async def _send(self, events: list[bytes], pause_s: float = 0.0) -> None:
        for event in events:
            await self._write(_framed(event))
            await asyncio.sleep(pause_s)

    async def _write(self, data: bytes) -> None:
        self.transport.write(data)
        await asyncio.sleep(0)  # so that an end of the connection is noticed
        await self._writable.wait()


async def serve(port: int, idle_s: float) -> None:
    """Serve until the process ends."""
    board = Board(idle_s)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: FaultyServer(board), HOST, port, backlog=4_096)
    await server.serve_forever()


def main() -> None:
    """Serve on a port."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--idle", type=float, required=True, metavar="SECONDS")
    given = options.parse_args()
    asyncio.run(serve(given.port, given.idle))


if __name__ == "__main__":
    main()
