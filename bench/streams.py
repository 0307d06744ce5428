"""Thousands of streams at once, as a chat has them: how much later than from the model server their chunks come.

    python bench/streams.py [--streams 5000] [--every-ms 500] [--mode native] [--workers 1] [--tools 5]

Streams of 100 chunks are opened one after the other, over two fifths of the time that one lasts; when all are open,
they are watched for as long. That is done twice: with the fake model server asked directly, and through the gateway.
`gap` is the time between two chunks of a stream, of which the model server wants to send one each `--every-ms`;
`silent` are streams of which none came. `cores` is the CPU that the gateway took, `at 10,000` what as many streams take
at that cost; `MB` is what it holds with all streams open, `kB each` what each stream added. Client and model server
take CPU too: where all cores are busy, gaps are theirs.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, cast

import fake_model
from fake_model import CHUNKS, asked
from gateways import MODES, callwright
from load import posted, until_it_answers
from loading import HOST, cpu_s, free_port, memory_mb, run, started

OPENING: Final = 0.4  # of the time that a stream lasts
WATCHED: Final = 0.4


class Seen(NamedTuple):
    """What came of some streams while all were open."""

    chunks_s: float
    p50_ms: float
    p99_ms: float
    first_ms: float  # the median
    silent: int  # streams of which no chunk came
    cores: float
    before_mb: float
    held_mb: float


class _Stream(asyncio.Protocol):
    """One client; all share the lists."""

    def __init__(self, request: bytes, firsts: list[float], gaps: list[float]) -> None:
        self._request, self._firsts, self._gaps = request, firsts, gaps
        self._began = self._last = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._began = time.perf_counter()
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if b"data:" in data:
            now = time.perf_counter()
            if self._last:
                self._gaps.append(now - self._last)
            else:
                self._firsts.append(now - self._began)
            self._last = now


async def _seen(port: int, pid: int, streams: int, every_ms: int, tools: int) -> Seen:
    request = posted("chat", asked("chat", tools, 0, stream=True, pace_ms=every_ms))
    lasts_s = CHUNKS * every_ms / 1000
    firsts, gaps = list[float](), list[float]()
    loop = asyncio.get_running_loop()
    before_mb = memory_mb(pid)
    opened = []
    began = loop.time()
    for number in range(streams):
        connection = await loop.create_connection(lambda: _Stream(request, firsts, gaps), HOST, port)
        opened.append(connection[0])
        await asyncio.sleep(began + OPENING * lasts_s * (number + 1) / streams - loop.time())
    gaps.clear()
    watched, cpu = loop.time(), cpu_s(pid)
    await asyncio.sleep(WATCHED * lasts_s)
    took_s, cores = loop.time() - watched, (cpu_s(pid) - cpu) / (loop.time() - watched)
    found = quantiles(gaps, n=100)
    seen = Seen(
        chunks_s=len(gaps) / took_s,
        p50_ms=found[49] * 1000,
        p99_ms=found[98] * 1000,
        first_ms=sorted(firsts)[len(firsts) // 2] * 1000,
        silent=streams - len(firsts),
        cores=cores,
        before_mb=before_mb,
        held_mb=memory_mb(pid),
    )
    for transport in opened:
        transport.abort()
    return seen


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--streams", type=int, default=5_000)
    options.add_argument("--every-ms", type=int, default=500, help="between two chunks of a stream")
    options.add_argument("--mode", choices=MODES, default="native")
    options.add_argument("--workers", type=int, default=1, help="processes of the gateway")
    options.add_argument("--tools", type=int, default=5, help="that each request offers")
    given = options.parse_args()
    asks = (given.streams, given.every_ms, given.tools)
    port = free_port()
    model = [sys.executable, fake_model.__file__, "--port", str(port)]
    with TemporaryDirectory() as folder, started(model, port) as (server, _):
        direct = run(_seen(port, server.pid, *asks))
        gateway = callwright(Path(folder), f"http://{HOST}:{port}/v1", given.mode, "--workers", str(given.workers))
        ours = free_port()
        with started(gateway.command(ours), ours) as (process, _):
            until_it_answers(ours, posted("chat", asked("chat", given.tools, 0, stream=True)))
            through = run(_seen(ours, process.pid, *asks))
    workers = "" if given.workers == 1 else f", {given.workers} workers"
    print(f"{given.streams:,} streams, a chunk every {given.every_ms} ms; {os.cpu_count()} cores")
    heads = ("chunks/s", "gap p50", "gap p99", "first ms", "silent", "cores", "at 10,000", "MB", "kB each")
    print(f"{'':26}" + "".join(f"{head:>10}" for head in heads))
    for name, seen in (("the model server", direct), (f"callwright {given.mode}{workers}", through)):
        at_most = seen.cores / seen.chunks_s * 10_000 * 1000 / given.every_ms
        each_kb = (seen.held_mb - seen.before_mb) * 1000 / given.streams
        cells = [f"{seen.chunks_s:,.0f}", f"{seen.p50_ms:.0f}", f"{seen.p99_ms:.0f}", f"{seen.first_ms:.1f}"]
        cells += [f"{seen.silent}", f"{seen.cores:.2f}", f"{at_most:.2f}", f"{seen.held_mb:.0f}", f"{each_kb:.0f}"]
        print(f"{name:26}" + "".join(f"{cell:>10}" for cell in cells))


if __name__ == "__main__":
    main()
