"""Attacks on the doors: heads that never end, sockets that say nothing, frames that nobody has asked for."""

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from typing import Final

from loading import HOST

from .attack import Attack, Cost, Target
from .watch import SHA256

__all__ = ["ATTACKS"]

_PATIENCE_S: Final = 30.0
_FLOOD_S: Final = 4.0  # how long an attack without end goes on
_WATCHED_S: Final = 2.0  # how long the others are watched while sockets are open
_PACE_S: Final = 0.005  # between requests that are to take places, not the processor
_MB: Final = 1_000_000
# Nobody waits for long, and memory stays where it is. What a busy machine of two cores adds is in it.
_HOLDS: Final = Cost(400, 40, 0, "")


def _cost(answered: str) -> Cost:
    """Nothing of its own: what others notice is measured beside the attack."""
    return Cost(0, 0, 0, answered)


def _open(target: Target) -> socket.socket:
    return socket.create_connection((HOST, target.port), timeout=_PATIENCE_S)


def _status(came: bytes) -> str:
    found = re.findall(rb"HTTP/1\.1 (\d+)", came)
    return ", ".join(dict.fromkeys(status.decode() for status in found)) or "nothing"


def _sent(target: Target, pieces: Iterator[bytes] | list[bytes]) -> Cost:
    """Send it all on one connection, and read what comes until that is closed."""
    size, began = 0, time.perf_counter()
    with closing(_open(target)) as client:
        came = b""
        try:
            for piece in pieces:
                client.sendall(piece)
                size += len(piece)
        except OSError:
            pass
        with suppress(OSError):
            client.settimeout(_PATIENCE_S)
            while len(came) < _MB and (piece := client.recv(65_536)):
                came += piece
    return _cost(f"{_status(came)} after {size / _MB:.1f} MB, {time.perf_counter() - began:.1f} s")


# --- heads ---

_LINE: Final = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"


def _one_header(target: Target) -> Cost:
    return _sent(target, [_LINE, b"x: ", *[b"a" * _MB] * 100, b"\r\n\r\n"])


def _many_headers(target: Target) -> Cost:
    return _sent(target, [_LINE, *[b"a: b\r\n" * 10_000] * 100, b"\r\n"])


def _trailers(target: Target) -> Cost:
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    )
    return _sent(target, [head, b"x: ", *[b"a" * _MB] * 50, b"\r\n\r\n"])


def _ahead(target: Target) -> Cost:
    """Requests that are sent ahead; no answer is read."""
    request = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n"
    size, until = 0, time.perf_counter() + _FLOOD_S
    with closing(_open(target)) as client:
        client.settimeout(0.5)
        with suppress(OSError):
            while time.perf_counter() < until:
                client.sendall(request * 5_000)
                size += 5_000
    return _cost(f"took {size:,} requests")


# --- connections ---


def _silent(number: int, said: bytes, target: Target) -> Cost:
    """Connections that say no more than this."""
    with ExitStack() as stack:
        opened = 0
        with suppress(OSError):
            for _ in range(number):
                client = stack.enter_context(closing(_open(target)))
                client.sendall(said)
                opened += 1
        time.sleep(_WATCHED_S)
    return _cost(f"opened {opened:,}")


def _handshake(target: Target, key: str = "", more: str = "") -> socket.socket:
    """A WebSocket. Raises `OSError` where there is none to be had."""
    client = _open(target)
    headers = f"authorization: Bearer {key}\r\n" if key else ""
    client.sendall(
        f"GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n{headers}{more}"
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n".encode()
    )
    came = b""
    while b"\r\n\r\n" not in came:
        piece = client.recv(65_536)
        if not piece:
            break
        came += piece
    if not came.startswith(b"HTTP/1.1 101"):
        client.close()
        raise ConnectionRefusedError(_status(came))
    return client


def _silent_sockets(number: int, key: str, target: Target) -> Cost:
    refused = "none refused"
    with ExitStack() as stack:
        opened = 0
        try:
            for _ in range(number):
                stack.enter_context(closing(_handshake(target, key)))
                opened += 1
        except OSError as error:
            refused = f"then {error}"
        time.sleep(_WATCHED_S)
    return _cost(f"opened {opened:,}, {refused}")


# --- places ---

_KEY: Final = "cw-attacker"
_PLACES: Final = 600
_KEYS: Final = f"""
[server]
max_requests = {_PLACES}
[store]
url = "none"
[[keys]]
name = "watcher"
sha256 = "{SHA256}"
[[keys]]
name = "attacker"
sha256 = "3b54c4ba5f5d630b3d899eb54c03f794135c0945abb788e26d34d5dfb36da0dd"
"""
_CONFIG: Final = '[[models]]\nname = "m"\nupstream = "{upstream}"\nmode = "native"\n'


def _places(target: Target) -> Cost:
    """One key asks for more answers than there are places; none of them ends."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {_KEY}\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(_open(target))) for _ in range(_PLACES + 100)]
        for client in clients:
            client.sendall(request)
            time.sleep(_PACE_S)
        time.sleep(_WATCHED_S)
        refused = 0
        for client in clients:
            client.setblocking(False)
            with suppress(BlockingIOError):
                refused += b" 429 " in client.recv(1_000)
    return _cost(f"{refused:,} of {len(clients):,} got 429")


# --- frames ---


def _frame(payload: bytes, opcode: int = 1, *, final: bool = True, packed: bool = False) -> bytes:
    """A frame of a client; its mask is nothing but zeros."""
    first = (0x80 if final else 0) | (0x40 if packed else 0) | opcode
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 65_536:
        length = b"\xfe" + size.to_bytes(2, "big")
    else:
        length = b"\xff" + size.to_bytes(8, "big")
    return bytes([first]) + length + bytes(4) + payload


_TURN: Final = _frame(json.dumps({"type": "response.create", "model": "m", "input": "hi"}).encode())


def _behind_a_turn(sockets: int, frame_mb: int, target: Target) -> Cost:
    """So many sockets, each with 32 frames behind a turn that is not answered."""
    frame = _frame(b'{"type": "x", "x": "' + b"a" * (frame_mb * _MB - 30) + b'"}')
    taken = [0] * sockets

    def flood(number: int) -> None:
        with closing(_handshake(target)) as client:
            client.sendall(_TURN)
            client.settimeout(_FLOOD_S / 2)  # then it is not read any more
            for _ in range(32):
                sent = 0
                while sent < len(frame):
                    sent += (now := client.send(memoryview(frame)[sent : sent + 262_144]))
                    taken[number] += now
            time.sleep(_WATCHED_S)

    def tried(number: int) -> None:
        with suppress(OSError):
            flood(number)

    threads = [threading.Thread(target=tried, args=(number,)) for number in range(sockets)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _cost(f"took {sum(taken) / _MB:,.0f} of {sockets * 32 * frame_mb:,} MB")


def _flood(frames: bytes, target: Target, before: bytes = b"", *, reads: bool = False) -> Cost:
    """Frames without end, for some seconds."""
    size, until, ended = 0, time.perf_counter() + _FLOOD_S, "to its end"
    with closing(_handshake(target)) as client:
        client.settimeout(0.5)
        try:
            client.sendall(before)
            while time.perf_counter() < until:
                with suppress(TimeoutError):
                    size += client.send(frames)
                if reads:
                    with suppress(BlockingIOError):
                        client.recv(_MB, socket.MSG_DONTWAIT)
        except OSError:
            ended = "until it was closed"
    return _cost(f"took {size / _MB:.1f} MB {ended}")


def _fragments(target: Target) -> Cost:
    return _flood(_frame(b"", 0, final=False) * 10_000, target, _frame(b"x", 1, final=False))


def _pings(target: Target) -> Cost:
    return _flood(_frame(b"x" * 100, 9) * 1_000, target)


def _tiny(target: Target) -> Cost:
    return _flood(_frame(b"1") * 10_000, target, reads=True)


def _deflated(target: Target) -> Cost:
    """Messages of 16 MB in 16 kB each."""
    import zlib

    packing = zlib.compressobj(9, wbits=-15)
    payload = packing.compress(b" " * 16 * _MB) + packing.flush(zlib.Z_SYNC_FLUSH)
    frame = _frame(payload.removesuffix(b"\x00\x00\xff\xff"), packed=True)
    offer = "sec-websocket-extensions: permessage-deflate; client_no_context_takeover\r\n"
    size, until, ended = 0, time.perf_counter() + _FLOOD_S, "to its end"
    with closing(_handshake(target, more=offer)) as client:
        client.settimeout(0.5)
        try:
            client.sendall(_TURN)
            while time.perf_counter() < until:
                with suppress(TimeoutError):
                    client.sendall(frame)
                    size += 1
        except OSError:
            ended = "until it was closed"
    return _cost(f"took {size} messages {ended}")


# --- a model's server that never answers ---


def _mute() -> tuple[int, Callable[[], None]]:
    """Takes requests and says nothing."""
    ready, over = threading.Event(), asyncio.Event()
    known: list[tuple[int, asyncio.AbstractEventLoop]] = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.read(65_536):
                pass
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(silent, HOST, 0, backlog=4_096)
        known.append((server.sockets[0].getsockname()[1], asyncio.get_running_loop()))
        ready.set()
        await over.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    ((port, loop),) = known

    def end() -> None:
        loop.call_soon_threadsafe(over.set)
        thread.join()

    return port, end


def _of(run: Callable[..., Cost], *given: object) -> Callable[[Target], Cost]:
    return lambda target: run(*given, target)


# Two and twenty sockets may each hold what they may wait with; of all together eight times as much, and a message each.
_TWO: Final = Cost(800, 250, 0, "")
_TWENTY: Final = Cost(1_200, 600, 0, "")

# To begin hundreds of turns takes its time, for whom ever.
_PLACES_TAKEN: Final = Cost(3_000, 150, 0, "")

ATTACKS: Final = [
    Attack("one large header", "a header of 100 MB", _one_header, _HOLDS),
    Attack("a million headers", "six bytes each", _many_headers, _HOLDS),
    Attack("a large trailer", "50 MB behind a body in chunks", _trailers, _HOLDS),
    Attack("requests sent ahead", "without end; no answer is read", _ahead, _HOLDS),
    Attack("silent connections", "4,096", _of(_silent, 4_096, b""), Cost(400, 100, 0, "")),
    Attack("more of them", "8,000, more than files may be open", _of(_silent, 8_000, b""), Cost(600, 100, 0, "")),
    Attack("half heads", "4,096 requests that go no further", _of(_silent, 4_096, _LINE), Cost(400, 100, 0, "")),
    Attack("silent WebSockets", "2,200", _of(_silent_sockets, 2_200, ""), Cost(400, 300, 0, "")),
    Attack(
        "silent WebSockets of a key",
        "2,200, while another key has something to ask",
        _of(_silent_sockets, 2_200, _KEY),
        Cost(400, 100, 0, ""),
        _KEYS + _CONFIG,
        _mute,
    ),
    Attack(
        "all places for a key",
        "700 requests that do not end, for 600 places",
        _places,
        _PLACES_TAKEN,
        _KEYS + _CONFIG,
        _mute,
    ),
    Attack("two WebSockets", "32 frames of 16 MB behind a turn", _of(_behind_a_turn, 2, 16), _TWO, "", _mute),
    Attack("twenty WebSockets", "32 frames of 3 MB behind a turn", _of(_behind_a_turn, 20, 3), _TWENTY, "", _mute),
    Attack("empty fragments", "one message, without end", _fragments, _HOLDS),
    Attack("pings", "without end; no pong is read", _pings, _HOLDS),
    Attack("tiny messages", "of one byte, without end", _tiny, _HOLDS),
    Attack("small messages for large", "16 MB in 16 kB, compressed", _deflated, _HOLDS, "", _mute),
]
