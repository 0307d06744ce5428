"""JSON objects that come again and again: decoded once, and with them is kept what their readers make of them.

An agent's request repeats all messages of the one before. What came in the same bytes is the same object. The latest
are kept, in bounded memory, for all requests of a process; who sends what another has sent learns nothing by it.
"""

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final, TypeVar

from msgspec import Raw

from callwright.tolerant_json.codec import decode

__all__ = ["KnownList", "KnownObject", "KnownObjects", "levels_of", "made_once"]

T = TypeVar("T")
_LONGEST: Final = 65_536  # bytes of a text that is kept
# What an object takes in memory: itself and what is made of it, for each bracket, for each comma, for each byte.
_OBJECT_BYTES: Final = 1_536
_BRACKET_BYTES: Final = 200
_COMMA_BYTES: Final = 64
_COPIES: Final = 4


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


class KnownObjects:
    """The latest objects, in about so many bytes of memory.

    There are two generations: what is used comes into the young one; when that has half of the room, it becomes the old
    one, and what was old is let go. So to find an object is to look into a dict, whichever thread asks.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes // 2
        self._young: dict[bytes, KnownObject] = {}
        self._old: dict[bytes, KnownObject] = {}
        self._bytes = 0
        self._lock = Lock()

    def read(self, texts: Iterable[Raw]) -> list[Any]:
        """The values of these texts; those that are objects are known from now on. Raises `NotJsonError`."""
        young = self._young
        values: list[Any] = []
        for text in map(bytes, texts):
            known = young.get(text)
            values.append(self._found(text) if known is None else known)
        return values

    def _found(self, text: bytes) -> Any:
        known = self._old.get(text)
        if known is None:
            value = decode(text)
            if type(value) is not dict or len(text) > _LONGEST:
                return value
            known = KnownObject(value)
        size = _size(text)
        with self._lock:
            if self._bytes + size > self._most:
                self._old, self._young, self._bytes = self._young, {}, 0
            self._young[text] = known
            self._bytes += size
        return known


def _size(text: bytes) -> int:
    brackets = text.count(b"{") + text.count(b"[")
    return _OBJECT_BYTES + _COPIES * len(text) + _BRACKET_BYTES * brackets + _COMMA_BYTES * text.count(b",")


def levels_of(value: object) -> int:
    """How deeply a value is nested, itself included: 0 for what is no object or array."""
    levels, row = 0, [value]
    while row := [item for item in row if type(item) is dict or type(item) is list]:
        levels += 1
        row = [inner for item in row for inner in (item.values() if type(item) is dict else item)]
    return levels
