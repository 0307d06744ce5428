"""Return free memory to the system after peaks of requests.

glibc holds memory that Python has freed, in gaps between blocks in use, until `malloc_trim` is called. Other allocators
are left alone.
"""

import asyncio
import ctypes
from collections.abc import Callable
from typing import Final

_EVERY_S: Final = 2.0
# The number of concurrent requests that is a peak, and the fraction of it at which the peak is over.
_STORM: Final = 64
_LEFT: Final = 0.25


def give_back() -> bool:
    """Have the allocator return free memory to the system; False if it has no such function."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    trim(0)  # other threads run meanwhile
    return True


async def give_back_behind_storms(running: Callable[[], int]) -> None:
    """Return free memory after each peak, until cancelled; `running` returns the number of active requests."""
    peak = 0
    while True:
        now = running()
        peak = max(peak, now)
        if peak >= _STORM and now <= peak * _LEFT:
            peak = now
            if not await asyncio.to_thread(give_back):
                return
        await asyncio.sleep(_EVERY_S)
