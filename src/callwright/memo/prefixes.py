"""Memory of sequences that arrive again and grow at their end: messages, items of a conversation, tools.

An agent's request repeats the request before and adds to it. Equal objects are shared (`intern`), so two sequences have
a common beginning if the objects there are the same ones, which takes one comparison in C. A result of a beginning is
computed once (`fold`, `once`). Sequences, their objects and all results share one bound of memory: those that were not
used for the longest time are released first. Nothing here is changed after it was stored.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import is_
from sys import getsizeof
from typing import Any, Final, TypeVar

from msgspec import Struct

from callwright.memo.latest import Latest

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
MAX_BYTES: Final = 134_217_728
# How many shorter sequences are looked up: a request adds one item or some, seldom more.
_LOOKS: Final = 64
_MANY: Final = 8  # new values, from which on the beginning without the last value is stored, too
# Estimates of memory in bytes: of a sequence and its results, of each of its objects, of a shared object.
_SEQUENCE_BYTES: Final = 2_048
_PLACE_BYTES: Final = 64
_OBJECT_BYTES: Final = 1_024
_COPIES: Final = 4  # of a text: in the object, in prompts, in messages, as JSON
_TEXT_BYTES: Final = getsizeof("")


class Shared(Struct, frozen=True, dict=True, weakref=True):
    """A value that arrives with one request after the other, with results that depend on it alone."""

    @cached_property
    def _results(self) -> dict[str, Any]:
        return {}

    @cached_property
    def weight(self) -> int:
        """The bytes of its texts."""
        return _weight_of(self)

    def once(self, name: str, make: Callable[[Any], T]) -> T:
        """The result of `make` for this value, computed once under this name. A result of None is not stored."""
        found: T | None = self._results.get(name)
        if found is None:
            found = self._results[name] = make(self)
        return found


class Same(tuple[object, ...]):
    """Objects that are compared by identity: `1` and `true` are equal in Python, and not the same JSON."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and _is_same(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


class SharedList(list[Any]):
    """A JSON array of shared objects. It is not changed."""

    __slots__ = ()


class _Sequence:
    """Values, the results of them by name, each with its parameters, and the beginning that was known before."""

    __slots__ = ("beginning", "results", "size", "values", "weight")
    values: Sequence[Any]
    weight: int

    def __init__(self, values: Sequence[Any], beginning: "_Sequence | None") -> None:
        self.values = values
        self.weight = 0 if beginning is None else beginning.weight
        if type(values) is not SharedList:  # those are counted with their JSON
            new = values if beginning is None else values[len(beginning.values) :]
            self.weight += sum([value.weight if isinstance(value, Shared) else _weight_of(value) for value in new])
        self.beginning = None if beginning is None else _key_of(beginning.values)
        self.results: dict[object, tuple[object, Any]] = {}
        self.size = _SEQUENCE_BYTES + _PLACE_BYTES * len(values) + _COPIES * self.weight


_MEMORY: Final[Latest[Any, Any]] = Latest(MAX_BYTES)


def fold(
    values: Sequence[Any], begin: T, step: Callable[[T, Sequence[Any], int], T], by: object = None, name: str = ""
) -> T:
    """The result of `step(result, values, start)`, which adds the values from number `start` on to the result of those
    before, `begin` at first. It changes neither, and depends on nothing but these and `by`.

    The result is stored under `name`, or `step` itself, and computed again if `by` differs; callers do not change it.
    A step that is not the same object each time, such as a closure, needs a name.
    Nothing is stored of a plain list, which may change or hold secrets, and no result that `swells`: it takes more
    memory than its values let expect.
    """
    if not values or type(values) is list:
        return step(begin, values, 0)
    key = name or step
    # Looked up here and in `once`, not in a function: a request folds some twenty times.
    known = _MEMORY.young.get((len(values), id(values[-1])))
    if known is None or not (known.values is values or all(map(is_, known.values, values))):
        known = _sequence(values)
    found = known.results.get(key)
    made: T = found[1] if found is not None and found[0] == by else _fold(known, key, begin, step, by)
    return made


def _fold(known: _Sequence, key: object, begin: T, step: Callable[[T, Sequence[Any], int], T], by: object) -> T:
    """The result for a known sequence, from that of its beginning, and store both."""
    found = known.results.get(key)
    if found is not None and found[0] == by:
        made: T = found[1]
        return made
    made, start = begin, 0
    before: _Sequence | None = _MEMORY.find(known.beginning) if known.beginning else None
    if before is not None and _begins(known.values, before.values):
        made, start = _fold(before, key, begin, step, by), len(before.values)
    made = step(made, known.values, start)
    _store(known, key, by, made)
    return made


def once(values: Sequence[Any], name: str, make: Callable[[], T], by: object = None, *, size: int = 0) -> T:
    """The result of `make`, which depends on nothing but these values and `by`: computed once under this name. `size`
    is its bytes, if it takes more memory than its values let expect.
    """
    if not values or type(values) is list:
        return make()
    known = _MEMORY.young.get((len(values), id(values[-1])))
    if known is None or not (known.values is values or all(map(is_, known.values, values))):
        known = _sequence(values)
    found = known.results.get(name)
    if found is not None and found[0] == by:
        made: T = found[1]
        return made
    made = make()
    _store(known, name, by, made, size)
    return made


def _store(known: _Sequence, key: object, by: object, made: object, size: int = 0) -> None:
    if getattr(made, "swells", False):
        return
    more = (_COPIES * _weight_of(by) if by is not None else 0) + size
    if not more or _MEMORY.keep(_key_of(known.values), known, more):
        known.results[key] = by, made


def intern(value: T, key: Hashable = None, size: int = 0) -> T:
    """The shared object that equals this one: the same for the same `key`, the value itself by default."""
    key = value if key is None else key
    found: T | None = _MEMORY.young.get(key)
    if found is None:
        found = _MEMORY.old.get(key)
        if found is None:
            found = value
        _MEMORY.keep(key, found, _OBJECT_BYTES + _COPIES * size)
    return found


def intern_all(keys: Iterable[K], make: Callable[[K], T], size: Callable[[K], int]) -> list[T]:
    """The shared object of each key, the result of `make`; `size` estimates the bytes of the object and of all
    results.
    """
    young = _MEMORY.young
    values: list[T] = []
    for key in keys:
        value: T | None = young.get(key)
        if value is None:
            value = _MEMORY.old.get(key)
            if value is None:
                value = make(key)
            _MEMORY.keep(key, value, _OBJECT_BYTES + size(key))
            young = _MEMORY.young
        values.append(value)
    return values


def _sequence(values: Sequence[Any]) -> _Sequence:
    """The known sequence of these values, new ones included."""
    key = _key_of(values)
    known: _Sequence | None = _MEMORY.find(key)
    if known is None or not all(map(is_, known.values, values)):  # of the same length, as their keys are the same
        before = _beginning(values)
        if before is not None and before.beginning is not None:  # of a long conversation two sequences are enough
            _MEMORY.release(before.beginning)
        if type(values) is SharedList and len(values) - (0 if before is None else len(before.values)) > _MANY:
            # Clients mark the last message for the server's prompt cache, and take the mark away in the next request.
            before = _Sequence(SharedList(values[:-1]), before)
            _MEMORY.keep(_key_of(before.values), before, before.size)
        known = _Sequence(values, before)
    _MEMORY.keep(key, known, known.size)
    return known


def _beginning(values: Sequence[Any]) -> _Sequence | None:
    """The longest known sequence that these values continue."""
    for number in range(len(values) - 1, max(0, len(values) - _LOOKS), -1):
        known: _Sequence | None = _MEMORY.find((number, id(values[number - 1])))
        if known is not None and _begins(values, known.values):
            return known
    return None


def _key_of(values: Sequence[Any]) -> tuple[int, int]:
    return len(values), id(values[-1])


def _is_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _begins(values: Sequence[Any], beginning: Sequence[Any]) -> bool:
    return len(beginning) < len(values) and all(map(is_, beginning, values))


def _weight_of(value: object) -> int:
    """The bytes of all texts in a value. One wide character makes all of its text wide."""
    weight, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            weight += getsizeof(one) - _TEXT_BYTES
        elif isinstance(one, Shared) and one is not value:
            weight += one.weight
        elif isinstance(one, Same):  # of objects that are stored elsewhere
            continue
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple | frozenset):
            waiting += one
        elif isinstance(one, Struct):
            waiting += [getattr(one, name) for name in one.__struct_fields__]
    return weight
