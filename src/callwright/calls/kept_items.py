"""Items of a turn that clients do not send back: found by the turn's first call, restored before it in later requests.

A model that was trained to see its reasoning between the calls of a task needs it in the prompt; a client of an API
without a field for it drops it. This module finds the histories that lack reasoning, and restores it. It knows nothing
of the storage, its retention and its owners.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from callwright.calls.history import as_readable
from callwright.conversation import Call, CallOutput, Item, Message, Reasoning, TextPart
from callwright.memo.prefixes import fold
from callwright.tolerant_json.codec import UNDECODABLE, encode

_KEY_BYTES: Final = 20
_OF_TASK: Final = "task:"
_EXACT: Final = 2**53  # up to here integers are exact in clients that read all numbers as floats
# A key of a turn's first call -> the index of the item that begins the turn. Each call has two keys.
Gaps: TypeAlias = dict[str, int]


class _KeptReasoning(Struct, tag="reasoning"):
    text: str


class _KeptCall(Struct, tag="call"):
    id: str
    name: str
    arguments: str


class _KeptOutput(Struct, tag="output"):
    call_id: str
    text: str


_KEPT: Final = msgspec.json.Decoder(list[_KeptReasoning | _KeptCall | _KeptOutput])


def call_keys(call: Call, task: str) -> tuple[str, str] | None:
    """Digests of a function call's id, name and arguments, as a history has them, alone and with the task it was
    called for (`task_of`); None for a call without an id, or with unreadable arguments.

    The second is for ids that may be reused: some servers count calls, and restart in each conversation.
    Arguments count as values: clients write them again with other blanks, in another order, `1` for `1.0`.
    """
    words = call.once("sorted", _sorted_call)
    return (_digest(words), _OF_TASK + _digest(words + task.encode())) if words else None


def _sorted_call(call: Call) -> bytes:
    """Its id, name and arguments as JSON of which equal values are written alike; nothing for one without a key."""
    read = as_readable(call)
    if not isinstance(read, Call) or not read.id:
        return b""
    try:
        return _sorted([read.id, read.name, _VALUES.decode(read.arguments)])
    except UNDECODABLE:
        return b""


def comes_once(key: str) -> bool:
    """Whether a key is of one call in all: not if its id may come again."""
    return not key.startswith(_OF_TASK)


def task_of(items: Sequence[Item]) -> str:
    """A digest of the last words of a user among these items."""
    return fold(items, "", _last_task) or _NO_TASK


def _last_task(before: str, items: Sequence[Item], start: int) -> str:
    said = (item.text for item in reversed(items[start:]) if isinstance(item, Message) and item.role == "user")
    words = next(said, None)
    return before if words is None else _digest(encode(words))


def _digest(told: bytes) -> str:
    return hashlib.blake2b(told, digest_size=_KEY_BYTES).hexdigest()


_NO_TASK: Final = _digest(encode(""))


def _sorted(value: object) -> bytes:
    """JSON of which equal values are written alike."""
    try:
        return msgspec.json.encode(value, order="sorted")
    except UnicodeEncodeError:  # a lone surrogate
        return encode(value)


def _whole_if_it_is(number: str) -> float | int:
    """A number that is written with a point or an exponent."""
    value = float(number)
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


_VALUES: Final = msgspec.json.Decoder(float_hook=_whole_if_it_is)


class _Searched(Struct, frozen=True):
    """Items searched for gaps. `asked` is the index of the user's last message, `task` its digest if it was needed;
    `first` the index of the first call of the turn that may continue, and whether that has reasoning.
    """

    gaps: Gaps = {}
    asked: int | None = None
    task: str | None = None
    first: int | None = None
    has_reasoning: bool = False


def find_gaps(items: Sequence[Item], *, everywhere: bool) -> Gaps:
    """The turns with calls and without any reasoning: those after the user's last message, or `everywhere`.

    If two turns begin with the same call, only the later one is included.
    """
    more = _gaps_everywhere if everywhere else _gaps_of_task
    found = fold(items, _Searched(), more)
    if found.first is None or found.has_reasoning:
        return found.gaps
    return {**found.gaps, **_gap(items, found.first, found.task or _task(items, found.asked))}


def _gaps_of_task(before: _Searched, items: Sequence[Item], start: int) -> _Searched:
    for number in range(len(items) - 1, start - 1, -1):
        if _is_user(items[number]):
            before, start = _Searched(asked=number), number + 1
            break
    return _gaps_everywhere(before, items, start)


def _gaps_everywhere(before: _Searched, items: Sequence[Item], start: int) -> _Searched:
    gaps = {**before.gaps}
    asked, task, first, has_reasoning = before.asked, before.task, before.first, before.has_reasoning
    for number, item in enumerate(items[start:], start):
        if type(item) is Call:
            first = number if first is None else first
        elif type(item) is Reasoning:
            has_reasoning = True
        elif type(item) is CallOutput or item.role != "assistant":
            if first is not None and not has_reasoning:
                task = task or _task(items, asked)
                gaps |= _gap(items, first, task)
            first, has_reasoning = None, False
            if _is_user(item):
                asked, task = number, None
    return _Searched(gaps, asked, task, first, has_reasoning)


def _gap(items: Sequence[Item], first: int, task: str) -> Gaps:
    """The turn without reasoning whose first call is there."""
    call, before = items[first], items[first - 1] if first else None
    assert isinstance(call, Call)
    place = first - 1 if isinstance(before, Message) and before.role == "assistant" else first
    return dict.fromkeys(call_keys(call, task) or (), place)


def _task(items: Sequence[Item], asked: int | None) -> str:
    return task_of(() if asked is None else (items[asked],))


def _is_user(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user"


def put_back(items: Sequence[Item], gaps: Gaps, kept: Mapping[str, Sequence[Item]]) -> tuple[Item, ...]:
    """The items, with the items stored under each key inserted at its gap."""
    places = {gaps[key]: some for key, some in kept.items() if key in gaps}
    return tuple(one for number, item in enumerate(items) for one in (*places.get(number, ()), item))


def encode_items(items: Sequence[Item]) -> bytes:
    """Items serialized to bytes, for storage. Outputs are stored as text."""
    return encode([_encoded(item) for item in items])


def _encoded(item: Item) -> _KeptReasoning | _KeptCall | _KeptOutput:
    match item:
        case Reasoning(text):
            return _KeptReasoning(text)
        case Call():
            return _KeptCall(item.id, item.name, item.arguments)
        case CallOutput():
            return _KeptOutput(item.call_id, item.text)
        case Message():
            raise AssertionError("clients send messages back")


def decode_items(kept: bytes) -> tuple[Item, ...]:
    """The items that were encoded."""
    items: list[Item] = []
    for one in _KEPT.decode(kept):
        match one:
            case _KeptReasoning(text=text):
                items.append(Reasoning(text))
            case _KeptCall():
                items.append(Call(one.name, one.arguments, id=one.id))
            case _KeptOutput():
                items.append(CallOutput(one.call_id, (TextPart(one.text),)))
    return tuple(items)
