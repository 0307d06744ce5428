"""The way to a model's server: so many at once, counted for who asks, and ended when the gateway ends."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from toolwright.events import Usage
from toolwright.gateway.callers import caller
from toolwright.gateway.traffic import Traffic, busy
from toolwright.upstreams.base import Delta, Generation, Upstream

__all__ = ["Lane"]


class Lane:
    """An upstream before which requests wait for their turn: `most` at once, the others for `queue_s` at most."""

    def __init__(self, upstream: Upstream, traffic: Traffic, most: int | None, queue_s: float) -> None:
        self._upstream = upstream
        self._traffic = traffic
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

    async def stream(self, generation: Generation) -> AsyncGenerator[Delta, None]:
        """See `Upstream`. Raises `RequestError` (429) when its turn does not come."""
        async with self._place(generation.model), aclosing(self._upstream.stream(generation)) as deltas:
            while (delta := await self._traffic.next(deltas, self.name)) is not None:
                if isinstance(delta, Usage):
                    caller().spend(delta.prompt_tokens + delta.completion_tokens)
                yield delta

    async def models(self) -> list[str]:
        """See `Upstream`."""
        return await self._upstream.models()

    async def close(self) -> None:
        """See `Upstream`."""
        await self._upstream.close()

    @asynccontextmanager
    async def _place(self, model: str) -> AsyncIterator[None]:
        if self._free is None:
            yield
            return
        try:
            async with asyncio.timeout(self._queue_s):
                await self._free.acquire()
        except TimeoutError:
            raise busy(
                f"The model '{model}' answers {self._most} requests already, which is its limit. Please try again."
            ) from None
        try:
            yield
        finally:
            self._free.release()
