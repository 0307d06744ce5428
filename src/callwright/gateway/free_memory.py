"""Memory that a storm of requests has left behind goes back to the system.

What Python frees, glibc keeps between the pieces that are still used; it gives it back where it is told to. Elsewhere
allocators do as they like.
"""

import asyncio
import ctypes
from collections.abc import Callable
from typing import Final

_EVERY_S: Final = 2.0
# So many requests at once are a storm, and it is over when so small a part of them is left.
_STORM: Final = 64
_LEFT: Final = 0.25


def give_back() -> bool:
    """Have the allocator give back what is free; False where it cannot be told to."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    trim(0)  # other threads run meanwhile
    return True


async def give_back_behind_storms(running: Callable[[], int]) -> None:
    """Give memory back each time when a storm is over, for ever; `running` says how many requests are under way."""
    peak = 0
    while True:
        now = running()
        peak = max(peak, now)
        if peak >= _STORM and now <= peak * _LEFT:
            peak = now
            if not await asyncio.to_thread(give_back):
                return
        await asyncio.sleep(_EVERY_S)
