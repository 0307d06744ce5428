"""The events of background responses, buffered for clients that connect later or reconnect.

Each process buffers the events of its own responses, during the response and after its end, up to a total size. Beyond
that it evicts finished responses first, oldest first, then the oldest events of running ones.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from callwright.errors import RequestError


def not_kept(id_: str, after: int, first: int | None) -> RequestError:
    """The error for requested events that were evicted or never existed here. `first`: the first buffered event."""
    known = "none of its events" if first is None else f"its events from {first} on"
    return RequestError(
        f"Invalid 'starting_after': this gateway has {known}, and {after + 1} was to be the first. Leave out "
        f"'starting_after' to stream response '{id_}' from its start, or 'stream' to get it as one object.",
        param="starting_after",
        code="events_not_kept",
    )


class EventLog:
    """The events of one response, each with its number: 0, 1, and so on. `first`: the first one in the buffer."""

    def __init__(self, id_: str, logs: "EventLogs") -> None:
        self.id = id_
        self.first = 0
        self.ended = False
        self.is_let_go = False  # removed from the logs
        self.size = 0
        self._events: list[bytes] = []
        self._logs = logs
        self._changed = asyncio.Event()

    @property
    def next(self) -> int:
        """The number of the next event."""
        return self.first + len(self._events)

    def add(self, events: Sequence[bytes]) -> None:
        """More events."""
        self._events += events
        size = sum(map(len, events))
        self.size += size
        self._wake()
        self._logs.added(self, size)

    def end(self) -> None:
        """There are no more."""
        self.ended = True
        self._wake()
        self._logs.has_ended(self)

    def drop_oldest(self, size: int) -> int:
        """Evict the oldest events, at least `size` bytes, but never the newest one. Returns the bytes evicted."""
        number = gone = 0
        while gone < size and number < len(self._events) - 1:
            gone += len(self._events[number])
            number += 1
        del self._events[:number]
        self.first += number
        self.size -= gone
        return gone

    async def read(self, after: int) -> AsyncGenerator[list[bytes], None]:
        """The events after this number, in batches, until the response has ended.

        Stops early if the reader is so slow that its next event was evicted.
        """
        coming = after + 1
        while coming >= self.first:
            changed = self._changed
            if coming < self.next:
                batch = self._events[coming - self.first :]
                coming += len(batch)
                yield batch
            elif self.ended:
                return
            else:
                await changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class EventLogs:
    """The logs of a process, by the ids of their responses. `most`: bytes of all of them together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._logs: dict[str, EventLog] = {}
        self._ended: dict[str, None] = {}  # ids, in the order of their ends
        self._size = 0  # of all of them

    def begin(self, id_: str) -> EventLog:
        """The log of a response that begins."""
        self._logs[id_] = log = EventLog(id_, self)
        return log

    def get(self, id_: str) -> EventLog | None:
        """The log of a response; None if it was evicted or never existed here."""
        return self._logs.get(id_)

    def forget(self, id_: str) -> None:
        """The response is gone."""
        self._ended.pop(id_, None)
        if (log := self._logs.pop(id_, None)) is not None:
            self._size -= log.size
            log.is_let_go = True

    def has_ended(self, log: EventLog) -> None:
        """The response of a log has ended."""
        if not log.is_let_go:
            self._ended[log.id] = None

    def added(self, to: EventLog, size: int) -> None:
        """Count `size` bytes added to a log, and evict if over the limit."""
        if to.is_let_go:
            return
        self._size += size
        while self._size > self._most and self._ended:
            self.forget(next(iter(self._ended)))
        if self._size > self._most:
            self._size -= to.drop_oldest(self._size - self._most)
