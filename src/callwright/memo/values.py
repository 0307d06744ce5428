"""Values that come with one request after the other, and keep what is made of them, so that it is made once."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import is_
from sys import getsizeof
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar
from weakref import ref

from msgspec import Struct

T = TypeVar("T")
_LOOKS: Final = 64  # how many values an earlier row may have been shorter
# What a row takes in memory: itself, and each of its values, in it and in what is made of them.
_ROW_BYTES: Final = 512
_VALUE_BYTES: Final = 128
_COPIES: Final = 3  # of what the values say, which may be held by the row alone
_TEXT_BYTES: Final = getsizeof("")
_HELD: Final = "rows"
_WEIGHT: Final = "weight"


class Shared(Struct, frozen=True, dict=True, weakref=True):
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
        # without the last, which would hold itself
        before = last.kept[name] = MadeOf(values[:-1], by, make())
        others = sum(map(_weight_once, before.values)) + weight_of(by)
        if len(values) > 1 or others > _ROW_BYTES:
            _HOLDS.count(last, name, len(values), others)
    made: T = before.made
    return made


class _Row(NamedTuple):
    """What was `made` of a row of values, one after the other: of these, and of who holds it. `begun`: of how many of
    them it was known before. `weight`: that of the values.
    """

    values: Sequence[object]
    by: object
    made: Any
    begun: int
    weight: int


class _Holds:
    """How much memory is taken, about, by what values hold that is not of them alone: what came first is let go where
    it is more.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self.bytes = 0
        self._held: deque[tuple[ref[Any], str, int]] = deque()
        self._lock = Lock()

    def count(self, value: Any, name: str, number: int, weight: int) -> None:
        """Count what this value keeps under this name: so many others, which say so much."""
        size = _ROW_BYTES + _VALUE_BYTES * number + _COPIES * weight
        with self._lock:
            self._held.append((ref(value), name, size))
            self.bytes += size
            while self.bytes > self._most:
                holder, name, size = self._held.popleft()
                self.bytes -= size
                if (first := holder()) is not None:
                    first.kept.pop(name, None)


_HOLDS: Final = _Holds(67_108_864)


def _hold(value: Any, key: object, row: _Row) -> None:
    """Have this value hold a row."""
    held: dict[object, _Row] = value.kept.setdefault(_HELD, {})
    # Its readers make rows of the same values: what these say is held once.
    known = 0
    for one in tuple(held.values()):
        # The shorter of two rows is often the end of the longer.
        if one.weight > known and all(map(is_, reversed(one.values), reversed(row.values))):
            known = one.weight
            if known >= row.weight:
                break
    held[key] = row
    _HOLDS.count(value, _HELD, len(row.values), max(0, row.weight - known) + weight_of(row.by))


def kept_along(
    values: Sequence[Any], by: object, begin: T, more: Callable[[T, Sequence[Any], int], T], name: str = ""
) -> T:
    """What is made of these values, one after the other, and of nothing else; kept with the last one, under a `name` or
    under `more` itself. Values are `Shared`, or keep something in the same way.

    `more(made, values, start)` goes on from what was made of all before number `start`, which it does not change:
    where a row continues one that is known, only what is new is looked at. `by`: as `kept_with` has it. What is made
    does not hold the last value, and nothing that is large but what is kept with one value.
    """
    if not values:
        return more(begin, values, 0)
    key: object = name or more
    held = values[-1].kept.get(_HELD)
    last: _Row | None = held.get(key) if held else None
    # As `_longest` has it: most rows are known, and are asked for often.
    if (
        last is not None
        and len(last.values) == len(values) - 1
        and last.by == by
        and all(map(is_, last.values, values))
    ):
        found: T = last.made
        return found
    known = _longest(values, key, by)
    start = 0 if known is None else len(known.values) + 1
    made = more(begin if known is None else known.made, values, start)
    weight = (0 if known is None else known.weight) + sum(map(_weight_once, values[start:]))
    if known is not None and known.begun:  # what that one went on from: of a long row no more than two are held
        values[known.begun - 1].kept.get(_HELD, {}).pop(key, None)
    _hold(values[-1], key, _Row(values[:-1], by, made, start, weight))
    return made


def _longest(values: Sequence[Any], key: object, by: object) -> _Row | None:
    """The longest row that these values begin with, and go on from."""
    for number in range(len(values) - 1, max(0, len(values) - _LOOKS), -1):
        held = values[number - 1].kept.get(_HELD)
        row: _Row | None = held.get(key) if held else None
        if row is not None and len(row.values) == number - 1 and row.by == by and all(map(is_, row.values, values)):
            return row
    return None


def _weight_once(value: Any) -> int:
    weight: int | None = value.kept.get(_WEIGHT)
    if weight is None:
        weight = value.kept[_WEIGHT] = weight_of(value)
    return weight


def weight_of(value: object) -> int:
    """The bytes of the texts in a value, however they stand in it: one wide character makes all of its text wide."""
    weight, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            weight += getsizeof(one) - _TEXT_BYTES
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple | frozenset):
            waiting += one
        elif isinstance(one, Struct):
            waiting += [getattr(one, name) for name in one.__struct_fields__]
    return weight
