"""The concurrency limit of a model: a number of requests run at once, the others queue.

It also counts the tokens for the API key that asks, and ends generations when the gateway shuts down.
"""

import asyncio
import copy
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from typing import TypeAlias, TypeVar

import msgspec

from callwright.errors import RequestError, UpstreamError
from callwright.events import Usage
from callwright.gateway.access.admission import AdmissionControl, busy, stopped
from callwright.gateway.access.keys import caller
from callwright.turn.model import Model, ModeSelector
from callwright.upstreams.base import Deltas, GenerationRequest, HandedAnswers, Upstream

__all__ = ["ConcurrencyLimit", "LimitedModeSelector"]

T = TypeVar("T")
Batches: TypeAlias = AsyncGenerator[Sequence[T], None]


class ConcurrencyLimit:
    """An upstream that limits another one: `most` requests at once (None: any number), the others wait for `queue_s`
    seconds at most.
    """

    def __init__(self, upstream: Upstream, admission: AdmissionControl, most: int | None, queue_s: float) -> None:
        self._upstream = upstream
        self._admission = admission
        self._most = most
        self._free = asyncio.Semaphore(most) if most is not None else None
        self._queue_s = queue_s

    @property
    def name(self) -> str:
        """See `Upstream`."""
        return self._upstream.name

    async def open(self) -> None:
        """See `Upstream`."""
        await self._upstream.open()

    def stream(self, generation: GenerationRequest) -> Deltas:
        """See `Upstream`. Raises `RequestError` (429) after too long in the queue."""
        return self._in_place(generation, self._upstream.stream(generation))

    def hand_on(self, generation: GenerationRequest, path: str) -> HandedAnswers:
        """See `Upstream`, and `stream`."""
        return self._in_place(generation, self._upstream.hand_on(generation, path))

    async def _in_place(self, generation: GenerationRequest, batches: Batches[T]) -> Batches[T]:
        """These batches, once there is a place for what makes them."""
        waiting = self._admission.waiting
        async with self._place(generation), aclosing(batches) as deltas:
            while True:
                if self._admission.is_over:
                    raise stopped(self.name)
                task = asyncio.current_task()  # not always the same task: another one may fetch the first event
                assert task is not None
                waiting.add(task)
                try:
                    batch = await anext(deltas, None)
                except asyncio.CancelledError:
                    # Cancelled by `AdmissionControl.end`, not by somebody else: found out as asyncio.timeout does.
                    if self._admission.is_over and task.uncancel() == 0:
                        raise stopped(self.name) from None
                    raise
                finally:
                    waiting.discard(task)
                if batch is None:
                    return
                for delta in batch:
                    if type(delta) is Usage:
                        assert isinstance(delta, Usage)  # mypy does not see it of a type variable
                        caller().spend(delta.prompt_tokens + delta.completion_tokens)
                yield batch

    def window(self, model: str) -> int | None:
        """See `Upstream`."""
        return self._upstream.window(model)

    async def models(self) -> list[str]:
        """See `Upstream`."""
        return await self._upstream.models()

    async def close(self) -> None:
        """See `Upstream`."""
        await self._upstream.close()

    def over(self, upstream: Upstream) -> "ConcurrencyLimit":
        """The same limit, with the same places, for another upstream of the server (mode `auto`)."""
        limit = copy.copy(self)
        limit._upstream = upstream
        return limit

    def _place(self, generation: GenerationRequest) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._free is None else self._waited(self._free, generation)

    @asynccontextmanager
    async def _waited(self, free: asyncio.Semaphore, generation: GenerationRequest) -> AsyncIterator[None]:
        begun_s = time.monotonic()
        try:
            async with asyncio.timeout(self._queue_s):
                await free.acquire()
        except TimeoutError:
            taken = f"The model '{generation.model}' answers {self._most} requests already, which is its limit."
            raise busy(f"{taken} Please try again.") from None
        finally:
            if generation.timings is not None:
                generation.timings.queued_s = time.monotonic() - begun_s
        try:
            yield
        finally:
            free.release()


class LimitedModeSelector:
    """A mode selector around another one: the upstream that it chooses is put under the limit."""

    def __init__(self, mode_selector: ModeSelector, limit: ConcurrencyLimit) -> None:
        self._inner = mode_selector
        self._limit = limit

    def start(self) -> None:
        """See `ModeSelector`."""
        self._inner.start()

    async def choose(self, model: Model) -> Model:
        """See `ModeSelector`."""
        chosen = await self._inner.choose(model)
        return chosen if chosen is model else self._limited(chosen)

    async def instead(self, model: Model, error: RequestError | UpstreamError) -> Model | None:
        """See `ModeSelector`."""
        chosen = await self._inner.instead(model, error)
        return None if chosen is None else self._limited(chosen)

    async def close(self) -> None:
        """See `ModeSelector`."""
        await self._inner.close()

    def _limited(self, model: Model) -> Model:
        return msgspec.structs.replace(model, upstream=self._limit.over(model.upstream))
