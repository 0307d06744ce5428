"""What a model's server can do to the gateway: answers that are small and stand for much, have no end, or never come.

The server runs in a process of its own (`python -m bench.attacks.ups PORT`). What it does is the name of the model.
"""

import asyncio
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Final

from loading import HOST, chunk, free_port, memory_mb, sse

from .attack import Attack, Cost, Target

__all__ = ["ATTACKS"]

_ROOT: Final = Path(__file__).resolve().parents[2]
_LARGE_MB: Final = 600
_PIECE: Final = b"x" * 1_000_000
_GZIP: Final = 31
_PAUSE_S: Final = 0.02  # between two small requests of another client
_STREAMS: Final = 200
_CLIENTS: Final = 20
_ROUNDS: Final = 40
_SLOW_S: Final = 4.0
_END: Final = b"0\r\n\r\n"
_STREAM_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
_ANSWER: Final = b"".join(sse(chunk({"content": "Fine."}), chunk({}, "stop"), "[DONE]"))


# --- the server ---


@cache
def _packed(begin: bytes) -> bytes:
    """So many MB behind some JSON, compressed."""
    packing = zlib.compressobj(9, wbits=_GZIP)
    return packing.compress(begin) + b"".join(packing.compress(_PIECE) for _ in range(_LARGE_MB)) + packing.flush()


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _whole(body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


async def _written(play: str) -> AsyncIterator[bytes]:
    """What the server writes for a model's name."""
    match play:
        case "bomb":
            yield _whole(_packed(b'{"choices":[{"message":{"content":"'), "content-encoding: gzip\r\n")
        case "models":
            yield _whole(_packed(b'{"data":[{"id":"'), "content-encoding: gzip\r\n")
        case "endless":
            yield _STREAM_HEAD + b"\r\n"
            event = _framed(sse(chunk({"content": "and so on "}))[0]) * 50
            while True:
                yield event
        case "line":
            yield _STREAM_HEAD + b"\r\n" + _framed(b"data: ")
            while True:
                yield _framed(b"x" * 65_536)
        case "slow":
            yield _STREAM_HEAD + b"\r\n"
            while True:
                yield _framed(b"x")
                await asyncio.sleep(1)
        case "said":
            yield _STREAM_HEAD + b"connection: close\r\n\r\n" + _framed(_ANSWER) + _END
        case _:
            yield _STREAM_HEAD + b"\r\n" + _framed(_ANSWER) + _END


async def _connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    answered = 0
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            play = json.loads(body)["model"] if body else "models"
            if play == "closes" and answered:  # without a word, when the next request is there: the worst moment
                return
            async for piece in _written(play):
                writer.write(piece)
                await writer.drain()
            answered += 1
            if play in ("hurries", "said"):
                return
    except (ConnectionError, asyncio.IncompleteReadError):
        pass  # the gateway has left
    finally:
        writer.close()


async def _serve(port: int) -> None:
    for begin in (b'{"choices":[{"message":{"content":"', b'{"data":[{"id":"'):
        _packed(begin)
    async with await asyncio.start_server(_connected, HOST, port, backlog=1_024) as server:
        await server.serve_forever()


def _upstream() -> tuple[int, Callable[[], None]]:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "bench.attacks.ups", str(port)], cwd=_ROOT)
    for _ in range(1_500):
        try:
            socket.create_connection((HOST, port)).close()
            break
        except ConnectionRefusedError:
            time.sleep(_PAUSE_S)

    def end() -> None:
        server.kill()
        server.wait()

    return port, end


# --- the attacks ---


class _Other:
    """Another client: a small request again and again. `stall_ms`: the longest wait; `failed`: those that failed."""

    def __init__(self, target: Target) -> None:
        self.stall_ms, self.failed, self.peak_mb = 0.0, 0, 0.0
        self._target = target
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "_Other":
        self.before_mb = self.peak_mb = memory_mb(self._target.pid)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._over.wait(_PAUSE_S):
            began = time.perf_counter()
            if _asked(self._target.port, "GET", "/healthz", None)[0] != "200":
                self.failed += 1
            self.stall_ms = max(self.stall_ms, 1_000 * (time.perf_counter() - began))
            self.peak_mb = max(self.peak_mb, memory_mb(self._target.pid))


def _asked(port: int, method: str, path: str, body: object, read_s: float = 60.0) -> tuple[str, bytes]:
    """The status and the body; a body that takes longer is left."""
    connection = http.client.HTTPConnection(HOST, port, timeout=read_s)
    try:
        headers = {"content-type": "application/json"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        return str(response.status), response.read()
    except TimeoutError:
        return f"left after {read_s:g} s", b""
    except OSError as error:
        return type(error).__name__, b""
    finally:
        connection.close()


def _answer(port: int, model: str, read_s: float = 60.0, *, stream: bool = False) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
    status, read = _asked(port, "POST", "/v1/chat/completions", body, read_s)
    return f"{status}, error event" if status == "200" and b'"error"' in read else status


def _listed(port: int) -> str:
    return _asked(port, "GET", "/v1/models", None)[0]


def _all_at_once(target: Target, requests: Sequence[Callable[[], str]], right: str | None = None) -> Cost:
    """Requests beside another client's. `right`: what they all must be answered, else they count as failed."""
    with _Other(target) as other, ThreadPoolExecutor(len(requests)) as clients:
        answers = Counter(future.result() for future in [clients.submit(each) for each in requests])
    wrong = answers.total() - answers[right] if right else 0
    told = ", ".join(f"{number} times {answer}" for answer, number in answers.items())
    return Cost(round(other.stall_ms), round(other.peak_mb - other.before_mb), other.failed + wrong, told)


def _four(model: str, target: Target) -> Cost:
    return _all_at_once(target, [partial(_answer, target.port, model)] * 4, "502")


def _models(target: Target) -> Cost:
    return _all_at_once(target, [partial(_listed, target.port)] * 4, "502")


def _slow(target: Target) -> Cost:
    return _all_at_once(target, [partial(_answer, target.port, "slow", _SLOW_S, stream=True)] * _STREAMS)


def _closing(model: str, target: Target) -> Cost:
    def rounds() -> str:
        answers = {_answer(target.port, model, stream=at % 2 == 0) for at in range(_ROUNDS)}
        return "200" if answers == {"200"} else ", ".join(sorted(answers))

    return _all_at_once(target, [rounds] * _CLIENTS, "200")


# Each of four answers may grow to 64 MB before it is given up. The first requests of a process load what they need.
_ANSWERS: Final = Cost(1_500, 400, 0, "")
_SMALL: Final = Cost(1_500, 120, 0, "")
ATTACKS: Final = [
    Attack(
        "gzip bomb",
        f"four answers of {_LARGE_MB} MB, as JSON of half a megabyte in gzip",
        partial(_four, "bomb"),
        _ANSWERS,
        upstream=_upstream,
    ),
    Attack("bomb of models", f"four lists of models of {_LARGE_MB} MB, in gzip", _models, _ANSWERS, upstream=_upstream),
    Attack(
        "endless stream",
        "four streams without end, asked for whole",
        partial(_four, "endless"),
        _ANSWERS,
        upstream=_upstream,
    ),
    Attack("endless line", "four streams that are one line", partial(_four, "line"), _SMALL, upstream=_upstream),
    Attack(
        "closed connections",
        f"{_CLIENTS} clients, {_ROUNDS} requests each; the server closes a kept connection when the next one comes",
        partial(_closing, "closes"),
        _SMALL,
        upstream=_upstream,
    ),
    Attack(
        "closed at once",
        "the same; it closes behind each answer",
        partial(_closing, "hurries"),
        _SMALL,
        upstream=_upstream,
    ),
    Attack("said to close", "the same; and says so", partial(_closing, "said"), _SMALL, upstream=_upstream),
    Attack("a byte a second", f"{_STREAMS} streams that come so slowly", _slow, _SMALL, upstream=_upstream),
]

if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
