"""What the loop adds to the time of tools: 200 calls of mixed latencies in one turn, against the ideal schedule.

    python bench/schedule.py [--calls 200] [--seed 7]

The ideal is what the cap allows: each call begins in its order, as soon as there is room, as nobody knows how long it
will take. `bound` is what no schedule can beat, not even one that knows: all latencies by the cap, or the longest of
them. Both kinds of tools wait only (`asyncio.sleep`, `time.sleep`), each sync one in a thread of its own; the model is
scripted and answers at once. Printed are seconds and the ratio, the best of three runs each; the exit status is 1 when
one is above 1.1.
"""

import argparse
import asyncio
import heapq
import random
import sys
import time
from collections.abc import Sequence

import callwright
from callwright.turn.model import Model
from callwright.upstreams.base import Delta, FinishDelta, ToolCallDelta
from callwright.upstreams.simulated.scripted import ScriptedUpstream


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    source = random.Random(given.seed)
    latencies = [source.choice((0.01, 0.05, 0.1, 0.4)) * source.uniform(0.5, 1.5) for _ in range(given.calls)]
    print(f"{'tools':6} {'cap':>4} {'bound s':>8} {'ideal s':>8} {'run s':>8} {'run / ideal':>12}")
    worst = 0.0
    for kind in ("async", "sync"):
        for parallel in (4, 8, 16):
            bound = max(sum(latencies) / parallel, max(latencies))
            ideal = in_order(latencies, parallel)
            took = min(run(kind, latencies, parallel) for _ in range(3))
            worst = max(worst, took / ideal)
            print(f"{kind:6} {parallel:4} {bound:8.2f} {ideal:8.2f} {took:8.2f} {took / ideal:12.3f}")
    return 1 if worst > 1.1 else 0


def run(kind: str, latencies: Sequence[float], parallel: int) -> float:
    """How long a run takes whose model makes all calls at once."""

    async def wait(number: int) -> int:
        await asyncio.sleep(latencies[number])
        return number

    def block(number: int) -> int:
        time.sleep(latencies[number])
        return number

    tool = callwright.tool(wait if kind == "async" else block, name="work")
    calls: list[Delta | Exception] = [
        ToolCallDelta(number, None, "work", f'{{"number": {number}}}') for number in range(len(latencies))
    ]
    upstream = ScriptedUpstream([[*calls, FinishDelta("stop")], "Done."])
    limits = callwright.Limits(calls=None, parallel=parallel)
    agent = callwright.Agent(model=Model("scripted", upstream, "scripted"), tools=[tool], limits=limits)
    begun = time.perf_counter()
    result = callwright.run_sync(agent, "Work")
    took = time.perf_counter() - begun
    assert [call.value for call in result.calls] == list(range(len(latencies)))
    return took


def in_order(latencies: Sequence[float], parallel: int) -> float:
    """How long the calls take when each begins, in their order, as soon as there is room."""
    ends = [0.0] * parallel
    for latency in latencies:
        heapq.heapreplace(ends, ends[0] + latency)
    return max(ends)


if __name__ == "__main__":
    sys.exit(main())
