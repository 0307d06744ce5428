"""The last turns, in bounded memory: a row for each, and of the latest also what was said.

What was said is kept as the turn has it, and put into words only for who looks at it: keeping costs next to nothing.
Turns are known by ids of the process. Not thread-safe: everything runs on the event loop.
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
from callwright.inspection.summary import TurnSummary, ended, summary_of
from callwright.memo.prefixes import fold
from callwright.turn.observe import Ended, Observation
from callwright.turn.records import RecordedAttempt, timed_attempts

# What a piece that a server has sent takes in memory beside its characters, as the delta, its time and its events.
_DELTA_BYTES: Final = 320
# Turns that are under way share what may be kept, from so many on: an answer without end may not take it all. Pieces of
# few characters take so many times what is counted of them; no answer has more than that.
_SHARES: Final = 6
_MEMORY: Final = 10
_MOST_KEPT: Final = 1_048_576
# Where the room is full, and so many turns are under way or more, what was said in turns that went well is kept of one
# in so many seconds: else the room would hold the last moment only, and to turn it over costs each request.
_BUSY: Final = 6
_EVERY_S: Final = 0.05
_WELL: Final = ("right", "text")
# A request is held as its body, as items of a conversation, and as the messages or the prompt that were made of it.
_COPIES: Final = 4
# What an item takes beside its characters, in each of these; and a turn beside its items.
_ITEM_BYTES: Final = 64
_ROW_BYTES: Final = 4_096


class KeptTurn(Struct):
    """A turn that is under way or over. `seen` and `body` are None where nothing of what was said is kept. `size` is
    what they take, about, in bytes. `attempts` say when the model was asked, where only that is kept. `message`: with
    which words it was refused before there was a turn.
    """

    row: TurnSummary
    seen: Observation | None = None
    body: bytes | str | None = None
    size: int = 0
    attempts: list[RecordedAttempt] = []
    message: str | None = None

    def let_go(self) -> None:
        """Keep nothing of what was said."""
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
    """At most `most_turns` rows, with at most `most_bytes` of what was said; 0 keeps none of that. `name` tells the ids
    of several processes apart.
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
        self._heavy: OrderedDict[str, KeptTurn] = OrderedDict()  # of those that are over: what was said is kept
        self._bytes = 0
        self._count = 0
        self._running = 0
        self._kept_s = 0.0  # when the last turn ended of which what was said is kept
        self._listeners: set[Listener] = set()

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def size(self) -> int:
        """What the kept contents take, about, in bytes."""
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
        """The turn of this id, if it is still kept."""
        return self._turns.get(id_)

    def rows(self) -> list[TurnSummary]:
        """All rows, the oldest first."""
        return [kept.row for kept in self._turns.values()]

    def listen(self) -> Listener:
        """A listener, which is told from now on."""
        listener = Listener()
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Nobody listens there any more."""
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
        ended(kept.row, seen)
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
        """Whether the room is full and turns end so fast that what was said in this one is not kept."""
        return self._running >= _BUSY and row.outcome in _WELL and (seen.ended_s or 0.0) - self._kept_s < _EVERY_S

    def _weigh(self, kept: KeptTurn, size: int) -> None:
        """Count what a turn takes, and make room for it."""
        kept.size = size
        self._heavy[kept.row.id] = kept
        self._bytes += size
        if size > self._most_bytes:  # that has no room without the others either
            self._forget(kept)
        while self._bytes > self._most_bytes:
            self._forget(next(iter(self._heavy.values())))

    def _forget(self, kept: KeptTurn) -> None:
        """Let go of what was said."""
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
    """What a turn takes in memory, about."""
    came = 0
    for asked in seen.asked:
        if asked.raw is not None:
            came += max(0, seen.keeps - asked.raw.room) + _DELTA_BYTES * len(asked.raw.deltas)
    # What a response continues from, and what tools of an MCP server have said, stands in no body.
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
