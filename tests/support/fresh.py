"""Empties the caches of this process, as if it were just started."""

import functools
import gc
from typing import Any, TypeAlias

from callwright.memo.latest import Latest

__all__ = ["caches", "forget"]

Caches: TypeAlias = "list[functools._lru_cache_wrapper[Any] | Latest[Any, Any]]"


def caches() -> Caches:
    """Every cache of the package that has a bound. A cache without a bound holds declarations, no requests."""
    gc.unfreeze()  # frozen objects are not listed
    return [one for one in gc.get_objects() if isinstance(one, Latest) or _is_bounded(one)]


def _is_bounded(one: object) -> bool:
    return (
        isinstance(one, functools._lru_cache_wrapper)
        and str(one.__module__).startswith("callwright.")
        and one.cache_parameters()["maxsize"] is not None
    )


def forget(found: Caches) -> None:
    """Empty them."""
    for one in found:
        if isinstance(one, Latest):
            one.young, one.old = {}, {}
        else:
            one.cache_clear()
