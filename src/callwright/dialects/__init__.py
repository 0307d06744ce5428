"""The formats in which model families call tools, one file each; see `callwright.dialects.base`."""

import sys
from types import ModuleType


class _Dialects(ModuleType):
    """`callwright.dialects` is this package and, in the library, the function that lists the names of all dialects: so
    the package can be called.
    """

    def __call__(self) -> tuple[str, ...]:
        """The names of all dialects, sorted."""
        from callwright.dialects.base import dialect_names

        return dialect_names()


sys.modules[__name__].__class__ = _Dialects
