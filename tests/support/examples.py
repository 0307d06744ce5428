"""How much of what is sampled is tried: all of it in the nightly run, a part otherwise.

The parts are those of the profiles in `conftest.py`, in percent.
"""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

__all__ = ["examples", "share", "some"]

T = TypeVar("T")


def share(count: int) -> int:
    """Of so many, how many this run tries."""
    return max(1, count * settings().max_examples // 100)


def some(values: Sequence[T], first: int) -> Sequence[T]:
    """Of these values those that this run tries, at equal distances. With a `first` that differs from case to case, the
    cases together try all of them.
    """
    step = max(1, len(values) // share(len(values)))
    return values[first % step :: step]


def examples(count: int) -> settings:
    """The settings of a property that is tried with so many examples in the nightly run."""
    return settings(max_examples=share(count))
