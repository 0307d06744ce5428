"""Streams in batches: items that arrive together are forwarded together, so that a burst costs each layer one step."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

T = TypeVar("T")


async def each(batches: AsyncGenerator[Sequence[T], None]) -> AsyncGenerator[T, None]:
    """The items of the batches, one by one."""
    async with aclosing(batches):
        async for batch in batches:
            for one in batch:
                yield one
