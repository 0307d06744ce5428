"""JSON objects that come again and again: decoded once, and with them is kept what their readers make of them.

An agent's request repeats all messages of the one before. What came in the same bytes is the same object. The latest
are kept, in bounded memory, for all requests of a process; who sends what another has sent learns nothing by it.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Raw

from callwright.memo.json_values import KnownObject
from callwright.memo.latest import Latest
from callwright.tolerant_json.codec import decode

_LONGEST: Final = 65_536  # bytes of a text that is kept
# What takes memory: an object that is kept; what is made of each bracket, of each comma, of each byte.
_OBJECT_BYTES: Final = 1_536
_BRACKET_BYTES: Final = 200
_COMMA_BYTES: Final = 64
_COPIES: Final = 4
_WIDEST: Final = re.compile(rb"[\xf0-\xff]").search  # in UTF-8, of characters beyond the first 65,536


class KnownObjects:
    """The latest objects, in about so many bytes of memory."""

    def __init__(self, most_bytes: int) -> None:
        self._latest: Latest[bytes, KnownObject] = Latest(most_bytes)

    def read(self, texts: Iterable[Raw]) -> list[Any]:
        """The values of these texts; those that are objects are known from now on. Raises `NotJsonError`."""
        young = self._latest.young
        values: list[Any] = []
        for text in map(bytes, texts):
            known = young.get(text)
            values.append(self._found(text) if known is None else known)
        return values

    def _found(self, text: bytes) -> Any:
        known = self._latest.old.get(text)
        if known is None:
            value = decode(text)
            if type(value) is not dict or len(text) > _LONGEST:
                return value
            known = KnownObject(value)
        self._latest.keep(text, known, _OBJECT_BYTES + memory_of(text))
        return known


def memory_of(text: bytes) -> int:
    """What the value of a text and all that is made of it may take, in bytes."""
    brackets = text.count(b"{") + text.count(b"[")
    size = _COPIES * _char_bytes(text) * len(text)
    return size + _BRACKET_BYTES * brackets + _COMMA_BYTES * text.count(b",")


def _char_bytes(text: bytes) -> int:
    """How many bytes a character of a decoded text may take: as many as the one that takes most. What may be a control
    token is broken by such a character, where it is shown to a model.
    """
    if b"\\u" in text or _WIDEST(text):
        return 4
    return 1 if text.isascii() and b"<" not in text else 2
