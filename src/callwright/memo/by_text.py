"""What is made of a text that comes again and again: made once, kept within bounds.

Clients send the same tools and schemas with each request. What is made of them can be thirty times as large as they
are, and a client may send others each time: so the latest are kept, few of the large ones, none of the largest.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar, TypeVarTuple

T = TypeVar("T")
More = TypeVarTuple("More")
# How many texts of at most so many bytes are kept: about 7 MB of them all.
_KEPT: Final = ((4_096, 1_024), (65_536, 32), (1_048_576, 1))


def kept_by_text(make: Callable[[bytes, *More], T]) -> Callable[[bytes, *More], T]:
    """A function of a text, and of other things that tell results apart, whose latest results are kept; what it raises
    is not. Results are shared: nobody changes them.
    """
    keeping = [(most, lru_cache(maxsize=number)(make)) for most, number in _KEPT]

    def made(text: bytes, *more: *More) -> T:
        for most, keep in keeping:
            if len(text) <= most:
                return keep(text, *more)
        return make(text, *more)

    return made
