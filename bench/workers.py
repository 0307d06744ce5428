"""How the throughput of the gateway grows with its processes: whole answers, and streams as fast as they go.

    python bench/workers.py [--workers 1,2] [--mode native] [--rounds 3] [--seconds 3] [--tools 5] [--calls 0]

The fake model server answers at once, and 64 clients ask again when they are answered. Client and model server run on
the same machine: with as many workers as cores they take from what they measure. So beside what came in a second stand
the cores that the gateway had, and what came for each of them (`a core`), which says what a machine with more cores
would do. `chunks` are those of the model server.
"""

import argparse
import os
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import fake_model
from fake_model import CHUNKS, asked
from gateways import MODES, Gateway, callwright
from load import load, posted, until_it_answers
from loading import HOST, cpu_s, free_port, run, started

CONNECTIONS: Final = 64


class Rate(NamedTuple):
    """What came in a second, and the cores that it took."""

    each_s: float
    cores: float


def _rate(port: int, pid: int, request: bytes, seconds: float) -> Rate:
    run(load(port, request, CONNECTIONS, 0.5))  # warm
    before = cpu_s(pid)
    came = run(load(port, request, CONNECTIONS, seconds))
    return Rate(came.answers / came.seconds, (cpu_s(pid) - before) / came.seconds)


def _rates(gateway: Gateway, requests: tuple[bytes, bytes], seconds: float) -> list[Rate]:
    port = free_port()
    with started(gateway.command(port), port) as (process, _):
        until_it_answers(port, requests[0])
        return [_rate(port, process.pid, request, seconds) for request in requests]


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--workers", default="1,2", help="with commas")
    options.add_argument("--mode", choices=MODES, default="native")
    options.add_argument("--rounds", type=int, default=3, help="each number of workers in turn; the median counts")
    options.add_argument("--seconds", type=float, default=3.0, help="of each load")
    options.add_argument("--tools", type=int, default=5, help="that each request offers")
    options.add_argument("--calls", type=int, default=0, help="that each request has in its history, with outputs")
    given = options.parse_args()
    whole, stream = (posted("chat", asked("chat", given.tools, given.calls, stream=each)) for each in (False, True))
    counts = [int(count) for count in given.workers.split(",")]
    found: dict[int, list[list[Rate]]] = {count: [] for count in counts}
    port = free_port()
    model = [sys.executable, fake_model.__file__, "--port", str(port)]
    with TemporaryDirectory() as folder, started(model, port):
        for _ in range(given.rounds):
            for count in counts:
                more = ("--workers", str(count))
                gateway = callwright(Path(folder), f"http://{HOST}:{port}/v1", given.mode, *more)
                found[count].append(_rates(gateway, (whole, stream), given.seconds))
    print(f"callwright {given.mode}, {given.tools} tools, {given.calls} calls before; {os.cpu_count()} cores")
    heads = ("requests/s", "cores", "a core", "chunks/s", "cores", "a core")
    print(f"{'workers':10}" + "".join(f"{head:>12}" for head in heads))
    for count, rounds in found.items():
        cells = list[str]()
        for kind, times in ((0, 1), (1, CHUNKS)):
            each_s = median(one[kind].each_s for one in rounds) * times
            cores = median(one[kind].cores for one in rounds)
            cells += [f"{each_s:,.0f}", f"{cores:.2f}", f"{each_s / cores:,.0f}"]
        print(f"{count:<10}" + "".join(f"{cell:>12}" for cell in cells))


if __name__ == "__main__":
    main()
