"""The open connections of a process: evicts idle ones over the limit, and reports disconnects.

A connection costs a client nothing, so any number can be opened and left idle. Over the limit, the one idle longest is
closed: first those without any request yet, then those without a running request.
Knows no protocol: the opener of a connection passes the function that closes it.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from starlette.types import Receive, Scope

End: TypeAlias = Callable[[], None]
# The key of the connection in the state of an ASGI scope.
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

    def register(self, end: End) -> "Connection | None":
        """Register a connection without a request yet, which `end` closes. None if there is no place: all others have
        running requests.
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
        # After the callbacks that are ready: a task that is cancelled before its first step would clean nothing up.
        if self._watching is not None and not self._is_open:
            asyncio.get_running_loop().call_soon(self._tell, self._watching)

    def _tell(self, told: Callable[[], object]) -> None:
        if self._watching is told:
            told()


_tasks: Final[set[asyncio.Task[None]]] = set()


class WhenLeft:  # no generator: it is entered for each request
    """Calls `told` if the client disconnects inside the context. Enter it after the body of the request is read.

    Our own server reports the disconnect; under any other, it is received as an ASGI message.
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
        self._task = asyncio.ensure_future(self._wait_for_disconnect())
        _tasks.add(self._task)
        self._task.add_done_callback(_tasks.discard)

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        if self._connection is not None:
            self._connection.unwatch(self._told)
        if self._task is not None:
            self._task.cancel()
            self._task = None  # a cancelled task would hold a reference to this

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._is_over:
            self._told()
