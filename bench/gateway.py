"""What the gateway costs beside a bare pass-through, nginx, SMG and LiteLLM's proxy: CPU and time for requests and
streams.

    python bench/gateway.py [--wire chat] [--rounds 3] [--seconds 3] [--tools 5] [--calls 0] [--smg PYTHON]
                            [--litellm PYTHON] [--transports PYTHON]

One run starts a fake model server that costs next to nothing (`fake_model.py`), then one gateway at a time
(`gateways.py`). Every request offers some tools, and may come behind earlier calls, as those of agents do; every
answer is a call. `--transports` adds the pass-through on other servers and clients. `--wire` is the API that the
client speaks: chat, responses or messages; who cannot translate it to the model server's Chat Completions is left
out. Columns: CPU of the gateway's processes for one request (32 connections) and for one chunk that the model server
sends, of 16 streams of 100 chunks at once, as fast as they go (`burst`) and with 10 ms between chunks (`paced`), as
µs and as multiples of `bare`; requests per second with 1, 32 and 128 connections; ms to the first chunk of a paced
stream that is alone, and how much of that is behind the model server's own first chunk; ms between two chunks of 16
paced streams (the 90th percentile); MB of memory; seconds to the first good answer. CPU ratios hold on a busy
machine, the rest does not.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, get_args

import fake_model
from fake_model import CHUNKS, Wire, asked
from gateways import Gateway, gateways
from load import load, posted, until_it_answers
from loading import HOST, cpu_s, free_port, memory_mb, run, started

STREAMS: Final = 16
PACE_MS: Final = 10
CONNECTIONS: Final = (1, 32, 128)


class Asks(NamedTuple):
    """The requests of one run, as they go over the wire."""

    whole: bytes
    burst: bytes
    paced: bytes

    @classmethod
    def of(cls, wire: Wire, tools: int, calls: int) -> "Asks":
        """In the API of the client."""
        burst = asked(wire, tools, calls, stream=True)
        paced = asked(wire, tools, calls, stream=True, pace_ms=PACE_MS)
        return cls(*(posted(wire, body) for body in (asked(wire, tools, calls, stream=False), burst, paced)))


# --- measuring ---


class Measured(NamedTuple):
    """One gateway in one round."""

    request_us: float
    burst_us: float
    paced_us: float
    rates: tuple[float, ...]
    first_ms: float
    gap_ms: float
    memory_mb: float
    start_s: float


def _measured(gateway: Gateway, asks: Asks, seconds: float) -> Measured:
    port = free_port()
    began = time.perf_counter()
    with started(gateway.command(port), port, gateway.environment) as (process, _):
        until_it_answers(port, asks.whole)
        start_s = time.perf_counter() - began
        pid = process.pid
        run(load(port, asks.whole, 4, 1.0))  # warm
        run(load(port, asks.burst, 2, 0.5))
        rates = []
        request_us = 0.0
        for connections in CONNECTIONS:
            before = cpu_s(pid)
            came = run(load(port, asks.whole, connections, seconds))
            rates.append(came.answers / came.seconds)
            if connections == 32:
                request_us = (cpu_s(pid) - before) / came.answers * 1e6
        chunk_us: list[float] = []
        for request in (asks.burst, asks.paced):
            before = cpu_s(pid)
            came = run(load(port, request, STREAMS, seconds))
            chunk_us.append((cpu_s(pid) - before) / (came.answers * CHUNKS) * 1e6)
        burst_us, paced_us = chunk_us
        alone = run(load(port, asks.paced, 1, seconds))
        held_mb = memory_mb(pid)
        return Measured(request_us, burst_us, paced_us, tuple(rates), alone.first_ms, came.gap_ms, held_mb, start_s)


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--wire", choices=get_args(Wire), default="chat", help="the API that the client speaks")
    options.add_argument("--rounds", type=int, default=3, help="each gateway in turn, so often; the median counts")
    options.add_argument("--seconds", type=float, default=3.0, help="of each load")
    options.add_argument("--tools", type=int, default=5, help="that each request offers")
    options.add_argument("--calls", type=int, default=0, help="that each request has in its history, with outputs")
    options.add_argument("--smg", metavar="PYTHON", help="of an environment with smg")
    options.add_argument("--litellm", metavar="PYTHON", help="of an environment with litellm[proxy]")
    options.add_argument(
        "--transports", metavar="PYTHON", help="of an environment with aiohttp, granian, pyreqwest, starlette, uvicorn"
    )
    given = options.parse_args()
    asks = Asks.of(given.wire, given.tools, given.calls)
    size = len(json.dumps(asked(given.wire, given.tools, given.calls, stream=False)))
    port = free_port()
    with TemporaryDirectory() as folder, started([sys.executable, fake_model.__file__, "--port", str(port)], port):
        upstream = f"http://{HOST}:{port}/v1"
        found = gateways(Path(folder), upstream, given.smg, given.litellm, given.transports)
        side_by_side = {name: one for name, one in found.items() if given.wire in one.wires}
        own = posted("chat", asked("chat", given.tools, given.calls, stream=True, pace_ms=PACE_MS))
        server_ms = run(load(port, own, 1, given.seconds)).first_ms
        rounds: dict[str, list[Measured]] = {name: [] for name in side_by_side}
        for _ in range(given.rounds):
            for name, gateway in side_by_side.items():
                rounds[name].append(_measured(gateway, asks, given.seconds))
    print(f"{given.wire}, {given.tools} tools, {given.calls} calls before, {size:,} bytes a request")
    _print({name: _median(found) for name, found in rounds.items()}, server_ms)


def _median(found: list[Measured]) -> Measured:
    rates = tuple(median(each.rates[number] for each in found) for number in range(len(CONNECTIONS)))
    middle = {name: median(getattr(each, name) for each in found) for name in Measured._fields if name != "rates"}
    return Measured(rates=rates, **middle)


def _print(found: Mapping[str, Measured], server_ms: float) -> None:
    heads = [*("request µs", "x bare", "burst µs", "x bare", "paced µs", "x bare")]
    heads += [*(f"{count} conn/s" for count in CONNECTIONS), "first ms", "behind ms", "gap ms", "MB", "start s"]
    print(f"{'':18}" + "".join(f"{head:>11}" for head in heads))
    bare = found["bare"]
    for name, one in found.items():
        cells = [f"{one.request_us:.0f}", f"{one.request_us / bare.request_us:.1f}"]
        cells += [f"{one.burst_us:.1f}", f"{one.burst_us / bare.burst_us:.1f}"]
        cells += [f"{one.paced_us:.1f}", f"{one.paced_us / bare.paced_us:.1f}"]
        cells += [f"{rate:,.0f}" for rate in one.rates]
        cells += [f"{one.first_ms:.1f}", f"{one.first_ms - server_ms:.1f}", f"{one.gap_ms:.1f}"]
        cells += [f"{one.memory_mb:.0f}", f"{one.start_s:.1f}"]
        print(f"{name:18}" + "".join(f"{cell:>11}" for cell in cells))


if __name__ == "__main__":
    main()
