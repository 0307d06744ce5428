"""Runs each case in each way, several in parallel, and judges the answers; cases with a result are skipped.

If the server is overloaded, fewer requests run in parallel, and each refused one is retried later. A server that fails
every time ends the run.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from callwright.errors import RequestError, UpstreamError
from callwright.eval.ask import Answered, Asker
from callwright.eval.case import Case
from callwright.eval.play import Play
from callwright.eval.results import Result, Results

Told: TypeAlias = Callable[[Result], None]
_OVERLOADED: Final = (429, 503, 529)
_ASKED_AGAIN: Final = 6
_PAUSE_S: Final = 0.25
# This number of consecutive failures is no accident.
_MOST_FAILED: Final = 12


def missing(
    cases: Sequence[Case], ways: Mapping[str, Asker], results: Results, together: Collection[str] = ()
) -> list[tuple[str, Case]]:
    """Return the cases without a result that a way can ask, each with the way. `together`: ways that read the same
    answers; if one of them lacks a result, all of them are asked.
    """
    found: list[tuple[str, Case]] = []
    for case in _mixed(cases):
        body = case.request()
        asked = [way for way, asker in ways.items() if not asker.lacks(body)]
        lacking = {way for way in asked if (way, case.id, case.digest) not in results.done}
        if lacking & set(together):
            lacking |= set(together)
        found += [(way, case) for way in asked if way in lacking]
    return found


async def run(
    cases: Sequence[Case],
    ways: Mapping[str, Asker],
    results: Results,
    *,
    at_once: int = 4,
    timeout_s: float = 600.0,
    told: Told = lambda _: None,
    together: Collection[str] = (),
) -> None:
    """Run the cases without a result, at most `at_once` in parallel, each for at most `timeout_s` seconds. Calls `told`
    with each result; `together` as for `missing`. Raises `UpstreamError` if the server fails every time.
    """
    room = _Room(at_once)
    waiting = iter(missing(cases, ways, results, together))
    failed = 0

    async def work() -> None:
        nonlocal failed
        for way, case in waiting:
            async with room.place():
                result, answers = await _patiently(case, way, ways[way], room, timeout_s)
            results.add(result, [answer.record for answer in answers if answer.record is not None])
            told(result)
            failed = failed + 1 if result.error else 0
            if failed >= _MOST_FAILED:
                raise UpstreamError(
                    f"{failed} cases in a row have failed, the last one with: {result.error}",
                    fault="unreachable",
                    upstream=way,
                )

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())
    except ExceptionGroup as errors:  # Python before 3.11.4 wraps again whatever `except*` raises (gh-103590)
        failures, others = errors.split(UpstreamError)
        if failures is None or others is not None:
            raise
        raise failures.exceptions[0] from None


async def played(case: Case, way: str, asker: Asker) -> tuple[Result, list[Answered]]:
    """Play a case to its end. Raises `UpstreamError` and `RequestError`."""
    play = Play(case)
    answers: list[Answered] = []
    while not play.is_over:
        answer = await asker.ask(play.request(), f"{way} {case.id}")
        answers.append(answer)
        play.take(answer.turn, asked_again=answer.asked_again)
    usages = [answer.usage for answer in answers if answer.usage is not None]
    result = Result(
        way=way,
        case=case.id,
        digest=case.digest,
        group=case.group,
        verdict=play.verdict(),
        requests=sum(answer.requests for answer in answers),
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        first_s=None if answers[0].first_s is None else round(answers[0].first_s, 6),
        seconds=round(sum(answer.seconds for answer in answers), 6),
    )
    return result, answers


async def _patiently(
    case: Case, way: str, asker: Asker, room: "_Room", timeout_s: float
) -> tuple[Result, list[Answered]]:
    """Play a case; retry while the server is overloaded. Other failures are results."""
    tries = 0
    while True:
        try:
            async with asyncio.timeout(timeout_s):
                finished = await played(case, way, asker)
        except TimeoutError:
            return Result(way, case.id, case.digest, case.group, error=f"It took more than {timeout_s:g} s."), []
        except (UpstreamError, RequestError) as error:
            tries += 1
            if error.status not in _OVERLOADED or tries == _ASKED_AGAIN:
                return Result(way, case.id, case.digest, case.group, error=str(error)), []
            await room.shrink(tries)
        else:
            room.grow()
            return finished


def _mixed(cases: Sequence[Case]) -> list[Case]:
    """The first case of each group, then the second of each, so that the start of a run covers all groups."""
    numbers: dict[str, int] = {}
    placed: list[tuple[int, int, Case]] = []
    for place, case in enumerate(cases):
        numbers[case.group] = number = numbers.get(case.group, 0) + 1
        placed.append((number, place, case))
    return [case for _, _, case in sorted(placed, key=lambda one: one[:2])]


class _Room:
    """The number of cases played in parallel: halved after a refusal, raised by one after that number of answers."""

    def __init__(self, most: int) -> None:
        self._most = self._limit = most
        self._busy = 0
        self._well = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None, None]:
        """Wait for a place, and hold it for the duration of the context."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._busy < self._limit)
            self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            async with self._changed:
                self._changed.notify_all()

    async def shrink(self, tries: int) -> None:
        """Halve the limit because the server is overloaded, and pause, longer with each try."""
        self._limit, self._well = max(1, self._limit // 2), 0
        await asyncio.sleep(_PAUSE_S * 2**tries)

    def grow(self) -> None:
        """Count an answer of the server."""
        self._well += 1
        if self._well >= self._limit < self._most:
            self._limit, self._well = self._limit + 1, 0
