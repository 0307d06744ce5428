"""The connections that a process has open, which one ends where one more would be too many, and who is told of the end.

A connection costs a client nothing, so any number can be opened and left silent. For one more, others end first: those
on which nothing was ever asked, then those on which nothing is under way, each time the one that has waited longest.
Knows no protocol: who opens a connection says how it ends.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from starlette.types import Receive, Scope

End: TypeAlias = Callable[[], None]
# Where an ASGI scope's state holds the connection.
STATE: Final = "callwright_connection"


class Connections:
    """At most `most` connections."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._number = 0
        # In the order in which they began to wait.
        self._unasked: dict[Connection, End] = {}
        self._idle: dict[Connection, End] = {}

    def __len__(self) -> int:
        return self._number

    def opened(self, end: End) -> "Connection | None":
        """One more, on which nothing was asked yet, and which `end` closes. None where there is no place: on every
        other one something is under way.
        """
        if self._number >= self.most and not self._end_one():
            return None
        self._number += 1
        connection = Connection(self)
        self._unasked[connection] = end
        return connection

    def _end_one(self) -> bool:
        for waiting in (self._unasked, self._idle):
            if waiting:
                connection, end = next(iter(waiting.items()))
                connection.closed()
                end()
                return True
        return False


class Connection:
    """A connection that counts until it is `closed`."""

    __slots__ = ("_is_open", "_of", "_watching")

    def __init__(self, of: Connections) -> None:
        self._of = of
        self._is_open = True
        self._watching: Callable[[], object] | None = None

    def watch(self, told: Callable[[], object]) -> None:
        """Call this when it ends, or if it has already."""
        self._watching = told
        self._tell_end()

    def unwatch(self, told: Callable[[], object]) -> None:
        """Do not call this any more. The next request may be watching by now: an answer is sent before it is left."""
        if self._watching is told:
            self._watching = None

    def busy(self) -> None:
        """Something is under way on it."""
        self._of._unasked.pop(self, None)
        self._of._idle.pop(self, None)

    def idle(self, end: End) -> None:
        """Nothing is under way on it any more; `end` closes it."""
        self.busy()
        if self._is_open:
            self._of._idle[self] = end

    def closed(self) -> None:
        """It takes no place any more."""
        self.busy()
        if self._is_open:
            self._is_open = False
            self._of._number -= 1
            self._tell_end()

    def _tell_end(self) -> None:
        # Behind what is ready to run: a task that is cancelled before its first step would clean nothing up.
        if self._watching is not None and not self._is_open:
            asyncio.get_running_loop().call_soon(self._tell, self._watching)

    def _tell(self, told: Callable[[], object]) -> None:
        if self._watching is told:
            told()


_tasks: Final[set[asyncio.Task[None]]] = set()


class WhenLeft:  # no generator: it is entered for each request
    """Calls `told` when the client goes, until this is left. To be entered once the body of the request is read.

    Our own server says so of the connection; any other is asked, as ASGI has it.
    """

    __slots__ = ("_connection", "_is_over", "_receive", "_task", "_told")

    def __init__(self, scope: Scope, receive: Receive, told: Callable[[], object]) -> None:
        state = scope.get("state")
        self._connection: Connection | None = None if state is None else state.get(STATE)
        self._receive = receive
        self._told = told
        self._is_over = False
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        if self._connection is not None:
            self._connection.watch(self._told)
            return
        self._task = asyncio.ensure_future(self._asked())
        _tasks.add(self._task)
        self._task.add_done_callback(_tasks.discard)

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        if self._connection is not None:
            self._connection.unwatch(self._told)
        if self._task is not None:
            self._task.cancel()
            self._task = None  # which holds this, where it was cancelled

    async def _asked(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._is_over:
            self._told()
