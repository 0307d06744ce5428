"""The place of a generation on its model's server: how it gets one, and how other code ends the generation."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol, Self, TypeVar

from callwright.errors import RequestError, UpstreamError
from callwright.events import Usage
from callwright.upstreams.base import GenerationRequest

T = TypeVar("T")


class Place:
    """A place, to be entered before the request. The reader of the answer sets `task` to the task that waits for the
    server, and to None after each piece, adds to `deltas`, and sets `usage` to the tokens that the server has counted.
    `failure`: the generation was ended, and fails with this.
    """

    task: asyncio.Task[object] | None = None
    failure: UpstreamError | None = None
    deltas = 0
    usage: Usage | None = None

    async def __aenter__(self) -> Self:
        """Wait for the place. Raises `RequestError` if the queue is too long."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give it back, and count `usage`."""

    def end(self, failure: UpstreamError) -> None:
        """End the generation: the task that waits for it gets this error, now or when it waits again."""
        self.failure = failure
        if self.task is not None:
            self.task.cancel()

    def failed_with(self, error: RequestError | UpstreamError | asyncio.CancelledError) -> RequestError | UpstreamError:
        """The failure of the generation. Raises a cancellation that was not by `end`."""
        if not isinstance(error, asyncio.CancelledError):
            return error
        failure, self.failure = self.failure, None  # whose frames hold this
        if failure is None or self.task is None or self.task.uncancel():  # found out as asyncio.timeout does
            raise error
        return failure


class Limit(Protocol):
    """Gives places to generations."""

    async def check(self) -> None:
        """Raises `RequestError` if no generation may begin now, before anything is promised to the client."""
        ...

    def place(self, generation: GenerationRequest) -> Place:
        """A place for this, to be entered."""
        ...


async def placed(
    limit: Limit | None, generation: GenerationRequest, batches: AsyncGenerator[Sequence[T], None]
) -> AsyncGenerator[Sequence[T], None]:
    """The batches from a server, as soon as there is a place for the generation."""
    place = Place() if limit is None else limit.place(generation)
    try:
        async with place, aclosing(batches):
            while place.failure is None:
                place.task = asyncio.current_task()
                batch = await anext(batches, None)
                place.task = None
                if batch is None:
                    return
                place.deltas += len(batch)
                for one in batch:
                    if isinstance(one, Usage):
                        place.usage = one
                yield batch
            raise place.failure
    except asyncio.CancelledError as error:
        raise place.failed_with(error) from None
