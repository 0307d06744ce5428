"""JSON values that are shared by all who read them, and keep what is made of them alone."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class KnownObject(dict[str, Any]):
    """An object that is shared: nobody changes it. `levels`: how deeply it is nested, itself included. `kept`: what
    its readers have made of it alone, by their names.
    """

    __slots__ = ("__weakref__", "kept", "levels")

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.levels = levels_of(fields)
        self.kept: dict[Any, Any] = {}


class KnownList(list[Any]):
    """The same for an array, whoever keeps it. `before` is a known array of which this is the continuation."""

    __slots__ = ("before", "kept")

    def __init__(self, items: list[Any], before: "KnownList | None" = None) -> None:
        super().__init__(items)
        self.kept: dict[Any, Any] = {}
        self.before = before


def made_once(given: Any, name: str, make: Callable[[Any], T]) -> T:
    """What this reader makes of a value, which depends on nothing else."""
    if type(given) is not KnownObject and type(given) is not KnownList:
        return make(given)
    found: T | None = given.kept.get(name)
    if found is None:
        found = given.kept[name] = make(given)
    return found


def made_with(given: Any, name: str, mark: object, make: Callable[[], T]) -> T:
    """What this reader makes of a value and of something else, which is the same where it has the same `mark`. What was
    made last is kept.
    """
    if type(given) is not KnownObject and type(given) is not KnownList:
        return make()
    found: tuple[object, T] | None = given.kept.get(name)
    if found is None or found[0] is not mark:
        found = given.kept[name] = mark, make()
    return found[1]


def made_along(given: Sequence[Any], begin: T, more: Callable[[T, Sequence[Any], int], T]) -> T:
    """What this reader makes of the values of an array, one after the other, and of nothing else.

    `more(made, values, start)` goes on from what was made of all before number `start`, which it does not change:
    where an array continues a known one, only what is new is read.
    """
    made, start = known_along(given, more, begin)
    if start == len(given):
        return made
    made = more(made, given, start)
    keep_along(given, more, made)
    return made


def known_along(given: Sequence[Any], by: object, begin: T) -> tuple[T, int]:
    """What was made along an array already by this reader, and of how many of its values; of none, `begin`."""
    if type(given) is KnownList:
        if by in given.kept:
            return given.kept[by], len(given)
        before = given.before
        if before is not None and by in before.kept:
            return before.kept[by], len(before)
    return begin, 0


def keep_along(given: Sequence[Any], by: object, made: object) -> None:
    """Keep what was made of all values of an array, where it is a known one."""
    if type(given) is KnownList:
        given.kept[by] = made


def levels_of(value: object) -> int:
    """How deeply a value is nested, itself included: 0 for what is no object or array."""
    levels, row = 0, [value]
    while row := [item for item in row if type(item) is dict or type(item) is list]:
        levels += 1
        row = [inner for item in row for inner in (item.values() if type(item) is dict else item)]
    return levels
