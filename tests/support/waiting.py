"""Waiting for what can be seen, on a machine of any speed."""

import time
from collections.abc import Callable
from typing import Final

__all__ = ["PATIENCE_S", "until"]

# Nothing that works takes so long, however busy the machine is: who waits to its end has found a fault.
PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.005


def until(condition: Callable[[], object]) -> None:
    """Look until it is so. In between the core is left to what is waited for."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(_PAUSE_S)
