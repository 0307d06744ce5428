"""This process as if it had answered nothing yet: what is kept from one request to the next is let go."""

import functools
import gc

from callwright.latest import Latest

__all__ = ["forget"]


def forget() -> None:
    """Empty every cache of the package that has a bound. One without holds what is declared, not what was asked."""
    for one in gc.get_objects():
        if isinstance(one, Latest):
            one.young, one.old = {}, {}
        elif (
            isinstance(one, functools._lru_cache_wrapper)
            and str(one.__module__).startswith("callwright.")
            and one.cache_parameters()["maxsize"] is not None
        ):
            one.cache_clear()
