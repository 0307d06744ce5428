"""What the benchmarks that load servers share: processes, what they cost, and a model server that is made of bytes."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

__all__ = ["HOST", "BytesServer", "chunk", "cpu_s", "free_port", "memory_mb", "run", "sse", "started"]

T = TypeVar("T")

HOST = "127.0.0.1"
_TICK = os.sysconf("SC_CLK_TCK")


# --- a model server ---


def sse(*events: Any) -> list[bytes]:
    """Server-sent events: objects as JSON, strings as they are."""
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return [f"data: {text}\n\n".encode() for text in texts]


def chunk(delta: Any, finish: str | None = None) -> dict[str, Any]:
    """A chunk of a chat answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [choice]}


class BytesServer(asyncio.Protocol):
    """Splits what comes into requests; `answer` gets each as its bytes, in a task of its own."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop has classes of its own
        self._data = b""

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            length = re.search(rb"(?i)content-length: (\d+)", self._data[:end])
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._data) < size:
                return
            request, self._data = self._data[:size], self._data[size:]
            self.start(self.answer(request))

    def start(self, answering: Coroutine[Any, Any, None]) -> None:
        """Begin to answer."""
        asyncio.get_running_loop().create_task(answering)

    async def answer(self, request: bytes) -> None:
        """Write the answer to one request."""
        raise NotImplementedError


# --- processes ---


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, on uvloop where that is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with suppress(ImportError):
        factory = import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


def _family(pid: int) -> list[int]:
    """A process and all that it started."""
    found = [pid]
    for parent in found:
        children = Path(f"/proc/{parent}/task/{parent}/children")
        if children.exists():
            found += map(int, children.read_text().split())
    return found


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and all that it started; where the kernel says it to the nanosecond, of their threads
    that run now.
    """
    return sum(map(_cpu_s, _family(pid)))


def _cpu_s(pid: int) -> float:
    try:
        told = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
        if told:
            return sum(int(times.split()[0]) for times in told) / 1e9
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory_mb(pid: int) -> float:
    """MB that a process and all that it started hold."""
    total = 0
    for each in _family(pid):
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{each}/status").read_text())
        total += int(found[1]) if found else 0
    return total / 1000


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(
    command: list[str], port: int, environment: Mapping[str, str] = {}, output: Path = Path(os.devnull)
) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """A server that listens: its process and the seconds that it took. It is killed in the end, with all of its own.
    What it says goes to `output`.
    """
    began = time.perf_counter()
    with output.open("wb") as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=said, env={**os.environ, **environment}, start_new_session=True
        )
    try:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((HOST, port)) == 0:
                    break
            if process.poll() is not None or time.perf_counter() - began > 120:
                raise SystemExit(f"did not start: {' '.join(command)}")
            time.sleep(0.02)
        yield process, time.perf_counter() - began
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
