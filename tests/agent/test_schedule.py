"""When calls run: on a clock that stands still until nothing is left to do, and then goes on to the next time."""

import asyncio
import heapq
import json
import random
import selectors
from collections.abc import Sequence
from typing import Any

import pytest

from callwright import Agent, Limits, RunResult, resume, run, tool
from tests.support.scripted_agents import agent, check_history


class _Selector(selectors.DefaultSelector):
    """Waits for nobody: where it would, the time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Without the timeout that Python 3.12 sets: on this clock it passes immediately."""
        await super().shutdown_default_executor()


def timed(latencies: Sequence[float], parallel: int) -> tuple[RunResult, float]:
    """A run whose one turn makes calls of these latencies, in seconds, and how long it took."""

    @tool(repeatable=True)
    async def work(number: int) -> int:
        await asyncio.sleep(latencies[number])
        return number

    calls = [("work", {"number": number}) for number in range(len(latencies))]
    limits = Limits(calls=None, parallel=parallel, tool_timeout_s=None)

    async def main() -> tuple[RunResult, float]:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        result = await run(agent(calls, "Fine.", tools=[work], limits=limits), "Work")
        return result, loop.time() - begun

    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(main())


def in_order(latencies: Sequence[float], parallel: int) -> float:
    """How long the calls take when each begins, in their order, as soon as there is room."""
    ends = [0.0] * parallel
    for latency in latencies:
        heapq.heapreplace(ends, ends[0] + latency)
    return max(ends)


@pytest.mark.parametrize("parallel", [1, 4, 8, 50])
@pytest.mark.parametrize("seed", range(3))
def test_200_calls_take_what_the_cap_allows(parallel: int, seed: int) -> None:
    source = random.Random(seed)
    latencies = [source.choice((0.01, 0.05, 0.1, 0.4)) * source.uniform(0.5, 1.5) for _ in range(200)]
    result, took = timed(latencies, parallel)
    assert took == pytest.approx(in_order(latencies, parallel), rel=1e-6)
    assert [call.value for call in result.calls] == list(range(200))
    assert [call.duration_s for call in result.calls] == pytest.approx(latencies)
    check_history(result.to_messages())


def test_a_call_that_hangs_takes_its_time_out_and_no_more() -> None:
    @tool
    async def hang() -> None:
        await asyncio.Event().wait()

    async def main() -> tuple[RunResult, float]:
        limits = Limits(tool_timeout_s=60)
        result = await run(agent([("hang", {})], "Oh.", tools=[hang], limits=limits), "Work")
        return result, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        result, took = runner.run(main())
    assert (result.stop, result.calls[0].status, took) == ("completed", "timeout", 60)


@tool
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


@tool(approve=True)
async def ask(seconds: float) -> str:
    """Wait, if a person agrees."""
    await asyncio.sleep(seconds)
    return "agreed"


def waits_twice(nested: bool, **how: Any) -> Agent[Any]:
    """An agent that waits five seconds before it asks a person, and three seconds after it."""
    turns = [[("wait", {"seconds": 5})], [("ask", {"seconds": 3})], "Fine."]
    if not nested:
        return agent(*turns, tools=[wait, ask], **how)
    inner = agent(*turns, tools=[wait, ask], name="inner", description="Waits.")
    return agent([("inner", {"request": "Go"})], "Fine.", tools=[inner.as_tool()], **how)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("most", "stop"), [(9, "completed"), (7, "seconds")])
def test_the_seconds_of_a_run_go_on_behind_a_pause_and_those_of_the_person_are_not_counted(
    most: float, stop: str, nested: bool
) -> None:
    waiter = waits_twice(nested, limits=Limits(seconds=most))

    async def main() -> RunResult:
        waiting = await run(waiter, "Work")
        assert waiting.pending is not None
        pending = json.loads(json.dumps(waiting.pending))
        await asyncio.sleep(1000)
        return await resume(waiter, pending, {call["id"]: True for call in pending["calls"]})

    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        result = runner.run(main())
    assert result.stop == stop
    check_history(result.to_messages())
