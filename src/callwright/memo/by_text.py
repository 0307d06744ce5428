"""Bounded caches of results derived from texts that recur.

Clients send the same tools and schemas with each request. Results derived from them can be thirty times as large, and a
client may send others each time: so the latest are cached, few of the large ones, none of the largest.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar, TypeVarTuple

T = TypeVar("T")
More = TypeVarTuple("More")
# Maximum bytes of a text, and number of such texts in the cache: about 7 MB in all.
_KEPT: Final = ((4_096, 1_024), (65_536, 32), (1_048_576, 1))


def kept_by_text(make: Callable[[bytes, *More], T]) -> Callable[[bytes, *More], T]:
    """A function of a text, and of other arguments, with a cache of its latest results; exceptions are not cached.

    Results are shared, so they must not be modified.
    """
    keeping = [(most, lru_cache(maxsize=number)(make)) for most, number in _KEPT]

    def cached(text: bytes, *more: *More) -> T:
        for most, keep in keeping:
            if len(text) <= most:
                return keep(text, *more)
        return make(text, *more)

    return cached
