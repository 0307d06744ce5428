"""Streams in batches: items that arrive together are forwarded together, so that a burst costs each layer one step."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from typing import Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class AsyncStream(Protocol[T_co]):
    """An iterator that its reader exhausts or closes: an asynchronous generator, or a wrapper of one."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...

    def aclose(self) -> Awaitable[object]: ...


async def each(batches: AsyncGenerator[Sequence[T], None]) -> AsyncGenerator[T, None]:
    """The items of the batches, one by one."""
    async with aclosing(batches):
        async for batch in batches:
            for one in batch:
                yield one
