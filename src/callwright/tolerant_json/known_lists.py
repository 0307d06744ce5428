"""JSON arrays of objects that come again and go on: an agent sends all messages of the request before, and some more.

What a text has in common with the latest ones is not decoded again, and what was made of it is still there. An earlier
array is found by a few of its bytes at a place that depends on how long it is.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from callwright.memo.json_values import KnownList
from callwright.memo.latest import Latest
from callwright.tolerant_json.known_objects import memory_of

_STEP: Final = 512  # bytes between places where an earlier array may be known
_MARK: Final = 64  # bytes of it that are looked at there
_LOOKS: Final = 96
_ALIKE: Final = 4  # arrays that may be known by one mark: some begin alike
# What an array takes in memory beside its text and its objects: itself and what its readers keep, for each item.
_LIST_BYTES: Final = 2_048
_ITEM_BYTES: Final = 256
_BLANKS: Final = b" \t\n\r"
_Mark = tuple[int, bytes]


class _Known(NamedTuple):
    """An array as it was: its text up to the end of its last object."""

    stem: bytes
    values: KnownList


class KnownPart(NamedTuple):
    """What is known of an array: the values that it begins with, and the `rest`, an array of its own; None where there
    is no more.
    """

    values: KnownList | None
    rest: bytes | None


class KnownLists:
    """The latest arrays, in about so many bytes of memory. Those that continue one another have objects in common,
    which are counted once: each continues one that is young.
    """

    def __init__(self, most_bytes: int) -> None:
        self._latest: Latest[_Mark, tuple[_Known, ...]] = Latest(most_bytes)

    def find(self, text: bytes) -> KnownPart:
        """What is known of an array of objects, of which this is the text: good JSON, without blanks around it."""
        young, old = self._latest.young, self._latest.old
        for mark in _marks(text):
            alike = young.get(mark, ())
            some = [known for known in (*alike, *old.get(mark, ())) if text.startswith(known.stem)]
            if some:
                known = max(some, key=_length)
                if not (alike and alike[0] is known):
                    self._keep(mark, known, b"" if any(one is known for one in alike) else known.stem)
                rest = text[len(known.stem) :].lstrip(_BLANKS)
                return KnownPart(known.values, b"[" + rest[1:] if rest.startswith(b",") else None)
        return KnownPart(None, text)

    def keep(self, text: bytes, part: KnownPart, more: list[Any]) -> KnownList:
        """All values of an array: what was found of it, and the decoded rest. It is known from now on."""
        values = KnownList([*(part.values or ()), *more], part.values)
        if part.values is not None:
            part.values.before = None  # its readers have read it: of a long conversation no more than two are held
        stem = text[:-1].rstrip(_BLANKS)
        if stem.endswith(b"}"):
            mark = next(_marks(stem)) if len(stem) >= _STEP else (0, text)
            self._keep(mark, _Known(stem, values), part.rest or text)
        return values

    def _keep(self, mark: _Mark, known: _Known, own: bytes) -> None:
        """Keep an array, of whose text only the objects of this part are its own."""
        others = [one for one in self._latest.young.get(mark, ()) if one.stem != known.stem]
        size = _LIST_BYTES + len(known.stem) + _ITEM_BYTES * len(known.values) + memory_of(own)
        self._latest.keep(mark, (known, *others[: _ALIKE - 1]), size)


def _marks(text: bytes) -> Iterator[_Mark]:
    """Where an array that this one begins with may be known, the longest first; a short one as a whole."""
    if len(text) < _STEP:
        yield 0, text
    last = len(text) // _STEP * _STEP
    for place in range(last, max(0, last - _LOOKS * _STEP), -_STEP):
        yield place, text[place - _MARK : place]


def _length(known: _Known) -> int:
    return len(known.stem)
