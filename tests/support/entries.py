"""Work that no machine changes: how often functions are entered."""

import gc
import sys
from collections.abc import Callable
from types import FrameType

__all__ = ["entered"]


def entered(act: Callable[[], object]) -> int:
    """How often a function is entered, of Python or of C, while this acts."""
    count = 0

    def counting(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # what is collected has finalizers
    sys.setprofile(counting)
    try:
        act()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count
