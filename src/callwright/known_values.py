"""JSON values that are shared by all who read them, and keep what is made of them alone."""

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["KnownList", "KnownObject", "levels_of", "made_once"]

T = TypeVar("T")


class KnownObject(dict[str, Any]):
    """An object that is shared: nobody changes it. `levels`: how deeply it is nested, itself included. `made`: what
    its readers have made of it alone, by their names.
    """

    __slots__ = ("levels", "made")

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.levels = levels_of(fields)
        self.made: dict[str, Any] = {}


class KnownList(list[Any]):
    """The same for an array, whoever keeps it."""

    __slots__ = ("made",)

    def __init__(self, items: list[Any]) -> None:
        super().__init__(items)
        self.made: dict[str, Any] = {}


def made_once(given: Any, name: str, make: Callable[[Any], T]) -> T:
    """What this reader makes of a value, which depends on nothing else."""
    if type(given) is not KnownObject and type(given) is not KnownList:
        return make(given)
    found: T | None = given.made.get(name)
    if found is None:
        found = given.made[name] = make(given)
    return found


def levels_of(value: object) -> int:
    """How deeply a value is nested, itself included: 0 for what is no object or array."""
    levels, row = 0, [value]
    while row := [item for item in row if type(item) is dict or type(item) is list]:
        levels += 1
        row = [inner for item in row for inner in (item.values() if type(item) is dict else item)]
    return levels
