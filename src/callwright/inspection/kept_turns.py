"""The last turns, in bounded memory: a row for each, and the contents of the latest.

Contents are stored in the turn's own form and formatted only for a viewer, so recording costs next to nothing. Turns
are identified by ids of the process. Not thread-safe: everything runs on the event loop.
"""

import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, assert_never

from msgspec import Struct

from callwright.conversation import Call, CallOutput, Item, Message, Part, Reasoning, TextPart
from callwright.inspection.summary import TurnSummary, end_row, summary_of
from callwright.memo.prefixes import fold
from callwright.turn.observe import Ended, Observation
from callwright.turn.records import RecordedAttempt, timed_attempts

# Approximate memory of a streamed piece besides its characters: the delta, its time and its events.
_DELTA_BYTES: Final = 320
# Active turns share the memory limit, from this number on: an endless answer must not use all of it. Pieces of few
# characters take this multiple of their counted size; no answer takes more than `_MOST_KEPT`.
_SHARES: Final = 6
_MEMORY: Final = 10
_MOST_KEPT: Final = 1_048_576
# If the limit is reached and at least `_BUSY` turns are active, the contents of successful turns are stored only once
# every `_EVERY_S` seconds: otherwise the buffer would cover the last moment only, and eviction costs each request.
_BUSY: Final = 6
_EVERY_S: Final = 0.05
_WELL: Final = ("right", "text")
# A request is held as its body, as items of a conversation, and as the resulting messages or prompt.
_COPIES: Final = 4
# Bytes of an item besides its characters, in each of these; and of a turn besides its items.
_ITEM_BYTES: Final = 64
_ROW_BYTES: Final = 4_096


class KeptTurn(Struct):
    """A turn, active or ended.

    `seen` and `body`: the contents, or None if not stored. `size` is their approximate size in bytes. `attempts` has
    the times of the requests to the model if only these are stored. `message`: the error with which the request was
    refused before there was a turn.
    """

    row: TurnSummary
    seen: Observation | None = None
    body: bytes | str | None = None
    size: int = 0
    attempts: list[RecordedAttempt] = []
    message: str | None = None

    def let_go(self) -> None:
        """Discard the contents."""
        self.seen = self.body = self.message = None
        self.row.has_contents, self.row.asked, self.row.called = False, "", []


class Listener:
    """Gets the rows that are new or changed, the latest state of each."""

    def __init__(self) -> None:
        self._rows: dict[str, TurnSummary] = {}
        self._has_some = asyncio.Event()

    def tell(self, row: TurnSummary) -> None:
        """A row is new, or has changed."""
        self._rows[row.id] = row
        self._has_some.set()

    async def rows(self) -> list[TurnSummary]:
        """Those since the last time; waits for the first."""
        await self._has_some.wait()
        self._has_some.clear()
        rows, self._rows = list(self._rows.values()), {}
        return rows


class KeptTurns:
    """At most `most_turns` rows, with at most `most_bytes` of contents; 0: no contents.

    `name` distinguishes the ids of several processes.
    """

    def __init__(
        self, most_turns: int, most_bytes: int, name: str = "1", told: Callable[[TurnSummary], None] | None = None
    ) -> None:
        """`told` is called with the row of each turn that is over."""
        self._most_turns = most_turns
        self._most_bytes = most_bytes
        self._name = name
        self._told = told
        self._turns: OrderedDict[str, KeptTurn] = OrderedDict()
        self._heavy: OrderedDict[str, KeptTurn] = OrderedDict()  # ended turns with contents
        self._bytes = 0
        self._count = 0
        self._running = 0
        self._kept_s = 0.0  # when the last turn with stored contents ended
        self._listeners: set[Listener] = set()

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def size(self) -> int:
        """Approximate size of the contents, in bytes."""
        return self._bytes

    def begin(self, seen: Observation, body: bytes | str | None) -> tuple[KeptTurn, Ended]:
        """A turn begins. Answers its entry, whose row may be added to, and what to call when it has ended."""
        kept = KeptTurn(summary_of(seen, self._next_id(), time.time(), has_contents=self._most_bytes > 0))
        if self._most_bytes:
            self._running += 1
            share = self._most_bytes // (_MEMORY * max(_SHARES, self._running))
            seen.keeps = max(seen.keeps, min(_MOST_KEPT, share))
            kept.seen, kept.body = seen, body
        self._add(kept)
        return kept, partial(self._end, kept, seen)

    def note(self, row: TurnSummary, body: bytes | str | None, message: str | None) -> None:
        """A request that was refused before there was a turn, with these words; its id is given here."""
        row.id = self._next_id()
        kept = KeptTurn(row)
        if self._most_bytes:
            kept.body, kept.message = body, message
            row.has_contents = True
        self._add(kept)
        if self._most_bytes:
            self._weigh(kept, len(body or b"") + len(message or "") + _ROW_BYTES)

    def get(self, id_: str) -> KeptTurn | None:
        """The turn of this id, unless it was evicted."""
        return self._turns.get(id_)

    def rows(self) -> list[TurnSummary]:
        """All rows, the oldest first."""
        return [kept.row for kept in self._turns.values()]

    def listen(self) -> Listener:
        """A new listener, for all changes from now on."""
        listener = Listener()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        self._listeners.discard(listener)

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._name}-{self._count}"

    def _add(self, kept: KeptTurn) -> None:
        self._turns[kept.row.id] = kept
        if len(self._turns) > self._most_turns:
            _, oldest = self._turns.popitem(last=False)
            if self._is_uncounted(oldest):
                oldest.let_go()
        if self._listeners:
            self._tell(kept.row)

    def _end(self, kept: KeptTurn, seen: Observation) -> None:
        end_row(kept.row, seen)
        if self._most_bytes:
            self._running -= 1
        if kept.seen is None:
            kept.attempts = timed_attempts(seen)
        if kept.seen is not None and kept.row.id in self._turns:
            size = _size(seen, kept.body)
            if self._bytes + size > self._most_bytes and self._is_passed_over(kept.row, seen):
                self._let_go(kept)
            else:
                self._kept_s = seen.ended_s or 0.0
                self._weigh(kept, size)
        if self._listeners:
            self._tell(kept.row)
        if self._told is not None:
            self._told(kept.row)

    def _is_passed_over(self, row: TurnSummary, seen: Observation) -> bool:
        """Whether to skip the contents of this turn: the limit is reached, and turns end too fast."""
        return self._running >= _BUSY and row.outcome in _WELL and (seen.ended_s or 0.0) - self._kept_s < _EVERY_S

    def _weigh(self, kept: KeptTurn, size: int) -> None:
        """Add the size of a turn, and evict others to make room."""
        kept.size = size
        self._heavy[kept.row.id] = kept
        self._bytes += size
        if size > self._most_bytes:  # too large even without the others
            self._forget(kept)
        while self._bytes > self._most_bytes:
            self._forget(next(iter(self._heavy.values())))

    def _forget(self, kept: KeptTurn) -> None:
        """Discard the contents, and notify listeners."""
        if self._is_uncounted(kept):
            self._let_go(kept)
            self._tell(kept.row)

    def _is_uncounted(self, kept: KeptTurn) -> bool:
        """Count a turn no more; whether it was counted."""
        if self._heavy.pop(kept.row.id, None) is None:
            return False
        self._bytes -= kept.size
        return True

    def _let_go(self, kept: KeptTurn) -> None:
        if kept.seen is not None:
            kept.attempts = timed_attempts(kept.seen)
        kept.let_go()

    def _tell(self, row: TurnSummary) -> None:
        for listener in self._listeners:
            listener.tell(row)


def _size(seen: Observation, body: bytes | str | None) -> int:
    """Approximate memory that a turn takes, in bytes."""
    came = 0
    for asked in seen.asked:
        if asked.raw is not None:
            came += max(0, seen.keeps - asked.raw.room) + _DELTA_BYTES * len(asked.raw.deltas)
    # Earlier items that a response continues from, and results of MCP tools, are in no body.
    said = max(len(body or b""), fold(seen.conversation.items, 0, _size_of))
    return came + _COPIES * said * max(1, len(seen.asked)) + _ROW_BYTES


def _size_of(before: int, items: Sequence[Item], start: int) -> int:
    return before + sum(map(_item_size, items[start:]))


def _item_size(item: Item) -> int:
    match item:
        case Message(parts=parts) | CallOutput(parts=parts):
            return _ITEM_BYTES + sum(map(_part_size, parts))
        case Reasoning(text):
            return _ITEM_BYTES + sys.getsizeof(text)
        case Call():
            return _ITEM_BYTES + sys.getsizeof(item.arguments)
        case _:
            assert_never(item)


def _part_size(part: Part) -> int:
    return sys.getsizeof(part.text) if isinstance(part, TextPart) else _value_size(part.value)


def _value_size(value: object) -> int:
    """The texts in a JSON value: the bytes of an image are one of them."""
    size, waiting = 0, [value]
    while waiting:
        match waiting.pop():
            case str(text):
                size += sys.getsizeof(text)
            case Mapping() as inner:
                waiting += inner.values()
            case list(inner):
                waiting += inner
    return size
