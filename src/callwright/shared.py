"""Values that come with one request after the other, and keep what is made of them, so that it is made once."""

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import is_
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

__all__ = ["MadeOf", "Shared", "kept_with"]

T = TypeVar("T")


class Shared(Struct, frozen=True, dict=True):
    """A value that comes with one request after the other, and keeps what others make of it."""

    @cached_property
    def kept(self) -> dict[str, Any]:
        """What was made of it and of nothing else, by names."""
        return {}

    def once(self, name: str, make: "Callable[[Any], T]") -> T:
        """What is made of it under this name: made once. Not for what may be None."""
        found: T | None = self.kept.get(name)
        if found is None:
            found = self.kept[name] = make(self)
        return found


class MadeOf(NamedTuple):
    """What was `made` of several values: of these, and by what."""

    values: Sequence[object]
    by: object
    made: Any


def kept_with(values: Sequence[Shared], name: str, by: object, make: "Callable[[], T]") -> T:
    """What is made of these values and nothing else, kept under this name with the last one. `by` equals that of the
    last time where the same would be made; there is no JSON in it.
    """
    last = values[-1]
    # Of the same objects only: equal ones may be written in other ways, as 1 and true are.
    before: MadeOf | None = last.kept.get(name)
    if (
        before is None
        or before.by != by
        or len(before.values) != len(values) - 1
        or not all(map(is_, before.values, values))
    ):
        before = last.kept[name] = MadeOf(values[:-1], by, make())  # without the last, which would hold itself
    made: T = before.made
    return made
