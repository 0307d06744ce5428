"""Values that come with one request after the other, and keep what is made of them, so that it is made once."""

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import is_
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct

__all__ = ["MadeOf", "Shared", "kept_along", "kept_with"]

T = TypeVar("T")
_LOOKS: Final = 64  # how many values an earlier row may have been shorter


class Shared(Struct, frozen=True, dict=True):
    """A value that comes with one request after the other, and keeps what others make of it."""

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """What was made of it and of nothing else, by names or by what made it."""
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


class _MadeAlong(NamedTuple):
    """What was `made` of a row of values, these and who holds it. `begun`: of how many of them it was known before."""

    values: Sequence[object]
    by: object
    made: Any
    begun: int


def kept_along(
    values: Sequence[Any], by: object, begin: T, more: Callable[[T, Sequence[Any], int], T], name: str = ""
) -> T:
    """What is made of these values, one after the other, and of nothing else; kept with the last one, under a `name` or
    under `more` itself. Values are `Shared`, or keep something in the same way.

    `more(made, values, start)` goes on from what was made of all before number `start`, which it does not change:
    where a row continues one that is known, only what is new is looked at. `by`: as `kept_with` has it. The last value
    is not part of what is made.
    """
    if not values:
        return more(begin, values, 0)
    key: object = name or more
    last: _MadeAlong | None = values[-1].kept.get(key)
    # As `_is_of` has it: most rows are known, and are asked for often.
    if (
        last is not None
        and len(last.values) == len(values) - 1
        and last.by == by
        and all(map(is_, last.values, values))
    ):
        found: T = last.made
        return found
    known, start = None, 0
    for number in range(len(values) - 1, max(0, len(values) - _LOOKS), -1):
        before: _MadeAlong | None = values[number - 1].kept.get(key)
        if before is not None and _is_of(before, values, number, by):
            known, start = before, number
            break
    made = more(begin if known is None else known.made, values, start)
    if known is not None and known.begun:  # what that one went on from: of a long row no more than two are held
        values[known.begun - 1].kept.pop(key, None)
    values[-1].kept[key] = _MadeAlong(values[:-1], by, made, start)
    return made


def _is_of(known: _MadeAlong, values: Sequence[Any], number: int, by: object) -> bool:
    """Whether it was made of the first of these values, so many."""
    return len(known.values) == number - 1 and known.by == by and all(map(is_, known.values, values))
