"""The concurrency limit of a model: a number of generations run concurrently, the others queue.

It also counts the tokens for the API key that asks, and lets generations end when the gateway shuts down.
"""

import asyncio
import time
from typing import Self

from msgspec import Struct

from callwright.gateway.access.admission import AdmissionControl, busy, stopped
from callwright.gateway.access.keys import caller
from callwright.turn.place import Place
from callwright.upstreams.base import GenerationRequest


class LimitCounts(Struct, eq=False):
    """Counts of a model that outlive a change of its configuration: the free places of each limit, the longest answer,
    and the most tokens by which a prompt exceeded its estimate.
    """

    free: dict[int, asyncio.Semaphore] = {}
    largest_output: int = 0
    excess: int = 0


class ConcurrencyLimit:
    """Lets `most` generations run concurrently (None: any number); others wait for `queue_s` seconds at most. `name`
    is that of the server. Limits with the same `counts` and `most` count together.
    """

    def __init__(
        self,
        name: str,
        admission: AdmissionControl,
        most: int | None,
        queue_s: float,
        counts: LimitCounts | None = None,
    ) -> None:
        self.name = name
        self.admission = admission
        self.counts = counts or LimitCounts()
        self.free = None if most is None else self.counts.free.setdefault(most, asyncio.Semaphore(most))
        self._most = most
        self._queue_s = queue_s

    async def check(self) -> None:
        """See `Limit`: a queue is no reason."""

    def place(self, generation: GenerationRequest) -> Place:
        """A place. To enter it raises `RequestError` (429) after too long in the queue."""
        return CountedPlace(self, generation)

    async def wait(self, free: asyncio.Semaphore, generation: GenerationRequest) -> None:
        """Wait for a free place. Raises `RequestError` (429)."""
        begun_s = time.monotonic()
        try:
            async with asyncio.timeout(self._queue_s):
                await free.acquire()
        except TimeoutError:
            raise busy(f"The model is at its limit of requests at once ({self._most}). Please try again.") from None
        finally:
            if generation.timings is not None:
                generation.timings.queued_s = time.monotonic() - begun_s


class CountedPlace(Place):
    """A place that counts, and ends with the gateway."""

    def __init__(self, limit: ConcurrencyLimit, generation: GenerationRequest) -> None:
        self._limit = limit
        self._generation = generation

    async def __aenter__(self) -> Self:
        limit = self._limit
        if limit.free is not None:
            await limit.wait(limit.free, self._generation)
        limit.admission.generations.add(self.stop)
        if limit.admission.is_over:
            self.stop()
        return self

    async def __aexit__(self, *_: object) -> None:
        limit = self._limit
        limit.admission.generations.discard(self.stop)
        if limit.free is not None:
            limit.free.release()
        if self.usage is not None:
            caller().spend(self.usage.total_tokens)

    def stop(self) -> None:
        """End the generation: the gateway shuts down."""
        self.end(stopped(self._limit.name))
