"""Several answers to one chat request (`n`): concurrent turns, whose events are sent as they arrive.

So it works with every server and every feature of a turn: calls are repaired and retried in each choice separately.
Servers have the prompt in their prefix cache when the second turn asks.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeAlias, final

from msgspec import Struct

from callwright.events import Event, Problem, Usage
from callwright.gateway.http import cancel_quietly
from callwright.turn.model import Events
from callwright.wire.chat.response import ChatChunks

# The number of batches queued for a slow client before the turns wait, too.
_WAITING: Final = 16


@final
class ChoiceGoesOn(Struct, frozen=True):
    """The events after it in its batch belong to this choice."""

    index: int


ChoiceEvents: TypeAlias = AsyncGenerator[Sequence[Event | Usage | ChoiceGoesOn], None]


def fields_of_choice(fields: Mapping[str, Any], index: int) -> dict[str, Any]:
    """The fields of a request for one of its choices. With one seed for all they would be alike."""
    seed = fields.get("seed")
    return {**fields, "seed": seed + index} if type(seed) is int and index else dict(fields)


def usage_of_choices(counted: Sequence[Usage]) -> Usage | None:
    """The usage of all choices: the prompt once, and all outputs."""
    if not counted:
        return None
    prompt = max(counted, key=lambda usage: usage.prompt_tokens)
    return Usage(
        prompt_tokens=prompt.prompt_tokens,
        completion_tokens=sum(usage.completion_tokens for usage in counted),
        cached_tokens=prompt.cached_tokens,
        reasoning_tokens=sum(usage.reasoning_tokens for usage in counted),
    )


async def side_by_side(turns: Sequence[Events]) -> ChoiceEvents:
    """The events of several turns, then their total usage. The first failure ends all of them."""
    waiting: asyncio.Queue[tuple[int, Sequence[Event | Usage] | Exception | None]] = asyncio.Queue(_WAITING)

    async def read(index: int, turn: Events) -> None:
        try:
            async with aclosing(turn):
                async for batch in turn:
                    await waiting.put((index, batch))
        except Exception as error:
            await waiting.put((index, error))
        else:
            await waiting.put((index, None))

    tasks = [asyncio.create_task(read(index, turn)) for index, turn in enumerate(turns)]
    counted: list[Usage] = []
    try:
        running = len(tasks)
        while running:
            index, batch = await waiting.get()
            if isinstance(batch, Exception):
                raise batch
            if batch is None:
                running -= 1
                continue
            counted += [event for event in batch if isinstance(event, Usage)]
            yield [ChoiceGoesOn(index), *(event for event in batch if not isinstance(event, Usage))]
    finally:
        for task in tasks:
            await cancel_quietly(task)
    if (usage := usage_of_choices(counted)) is not None:
        yield [usage]


class ChoiceChunks:
    """Writes the events of several turns as chunks, each with the index of its choice."""

    def __init__(self, choices: Sequence[ChatChunks]) -> None:
        self.counted: Usage | None = None
        self._choices = choices
        self._now = choices[0]

    def heartbeat(self) -> bytes:
        return self._now.heartbeat()

    def write(self, batch: Sequence[Event | Usage | ChoiceGoesOn]) -> list[bytes]:
        written: list[bytes] = []
        for event in batch:
            if type(event) is ChoiceGoesOn:
                self._now = self._choices[event.index]
            elif type(event) is Usage:
                self.counted = event
            else:
                written += self._now.write([event])
        return written

    @property
    def problems(self) -> list[Problem]:
        return [problem for choice in self._choices for problem in choice.problems]

    def usage(self, usage: Usage | None, cost: int | None) -> bytes:
        return self._choices[0].usage(usage, cost)
