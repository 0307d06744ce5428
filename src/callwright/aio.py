"""Streams in batches: what came together is handed on together, so that a burst costs each layer one step."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

__all__ = ["each"]

T = TypeVar("T")


async def each(batches: AsyncGenerator[Sequence[T], None]) -> AsyncGenerator[T, None]:
    """What is in the batches, one by one."""
    async with aclosing(batches):
        async for batch in batches:
            for one in batch:
                yield one
