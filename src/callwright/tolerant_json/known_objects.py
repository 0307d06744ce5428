"""JSON objects that come again and again: decoded once, and with them is kept what their readers make of them.

An agent's request repeats all messages of the one before. What came in the same bytes is the same object. The latest
are kept, in bounded memory, for all requests of a process; who sends what another has sent learns nothing by it.
"""

from collections.abc import Iterable
from threading import Lock
from typing import Any, Final

from msgspec import Raw

from callwright.known_values import KnownObject
from callwright.tolerant_json.codec import decode

__all__ = ["KnownObjects"]

_LONGEST: Final = 65_536  # bytes of a text that is kept
# What an object takes in memory: itself and what is made of it, for each bracket, for each comma, for each byte.
_OBJECT_BYTES: Final = 1_536
_BRACKET_BYTES: Final = 200
_COMMA_BYTES: Final = 64
_COPIES: Final = 4


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
