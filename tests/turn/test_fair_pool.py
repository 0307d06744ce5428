"""Work that takes seconds: no client waits for all the work of another client."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from callwright.turn.fair_pool import CLIENT, FairPool
from tests.support.waiting import PATIENCE_S


class Asked:
    """Work of clients, in the order in which it began; each waits until the test opens its gate."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._gates: dict[str, threading.Event] = {}
        self._begins: dict[str, threading.Event] = {}

    def work(self, name: str) -> Callable[[], str]:
        self._gates[name], self._begins[name] = threading.Event(), threading.Event()

        def does() -> str:
            self.begun.append(name)
            self._begins[name].set()
            assert self._gates[name].wait(PATIENCE_S)
            return name

        return does

    async def begins(self, name: str) -> None:
        assert await asyncio.to_thread(self._begins[name].wait, PATIENCE_S)

    def let(self, *names: str) -> None:
        for name in names:
            self._gates[name].set()


def asks(pool: FairPool, client: str, work: Callable[[], Any]) -> asyncio.Task[Any]:
    async def run() -> Any:
        CLIENT.set(client)
        return await pool.run(work)

    return asyncio.get_running_loop().create_task(run())


def runs(test: Callable[[FairPool, Asked], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test(FairPool(2), Asked()))


def test_a_client_has_one_thread_however_much_it_asks_for() -> None:
    async def check(pool: FairPool, asked: Asked) -> None:
        many = [asks(pool, "a", asked.work(f"a{number}")) for number in range(20)]
        await asked.begins("a0")
        other = asks(pool, "b", asked.work("b"))
        asked.let("b")
        assert await other == "b"
        assert asked.begun == ["a0", "b"]
        asked.let(*(f"a{number}" for number in range(20)))
        assert await asyncio.gather(*many) == asked.begun[:1] + asked.begun[2:] == [f"a{n}" for n in range(20)]

    runs(check)


def test_who_has_waited_longest_comes_next() -> None:
    async def check(pool: FairPool, asked: Asked) -> None:
        first = [asks(pool, name[0], asked.work(name)) for name in ("a0", "b0")]
        for name in ("a0", "b0"):
            await asked.begins(name)
        rest = [asks(pool, name[0], asked.work(name)) for name in ("a1", "a2", "c0", "d0", "c1")]
        for name in ("b0", "c0", "d0", "a0", "c1", "a1", "a2"):
            await asked.begins(name)
            asked.let(name)
        await asyncio.gather(*first, *rest)
        assert asked.begun[2:4] == ["c0", "d0"]

    runs(check)


def test_what_nobody_waits_for_is_not_begun_and_what_has_begun_keeps_its_place() -> None:
    async def check(pool: FairPool, asked: Asked) -> None:
        first, second, third = [asks(pool, "a", asked.work(name)) for name in ("a0", "a1", "a2")]
        await asked.begins("a0")
        for gone in (first, second):
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
        asked.let("a2")
        other = asks(pool, "b", asked.work("b"))
        asked.let("b")
        await other
        assert asked.begun == ["a0", "b"]
        asked.let("a0")
        assert await third == "a2"
        assert asked.begun == ["a0", "b", "a2"]

    runs(check)


def test_an_error_is_that_of_who_asked_and_the_next_goes_on() -> None:
    def fails() -> None:
        raise ValueError("so")

    async def check(pool: FairPool, asked: Asked) -> None:
        with pytest.raises(ValueError, match="so"):
            await asks(pool, "a", fails)
        asked_again = asks(pool, "a", asked.work("a"))
        asked.let("a")
        assert await asked_again == "a"

    runs(check)
