"""How much of what is sampled is tried: all of it in a run of everything, a part otherwise.

The parts are those of the profiles in `conftest.py`, in percent.
"""

from hypothesis import settings

__all__ = ["examples", "share"]


def share(count: int) -> int:
    """Of so many, how many this run tries."""
    return max(1, count * settings().max_examples // 100)


def examples(count: int) -> settings:
    """The settings of a property that is tried with so many examples in `scripts/test --all`."""
    return settings(max_examples=share(count))
