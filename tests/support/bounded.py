"""Constants of `callwright.settings.bounds` that are smaller for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from callwright.settings import bounds

__all__ = ["bounded"]


@contextmanager
def bounded(**constants: float) -> Iterator[None]:
    """Within it these constants have other values, in this process."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in constants.items():
            patched.setattr(bounds, name, value)
        yield
