"""What the benchmarks share."""

import time
from collections.abc import Callable

__all__ = ["best"]


def best(run: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of some runs."""
    found = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - started)
    return found
