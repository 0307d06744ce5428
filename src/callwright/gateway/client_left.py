"""Notices that the client of a request has gone, while something else is done for it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from starlette.types import Receive, Scope

from callwright.gateway.access.connections import STATE, Connection

__all__ = ["when_left"]

_tasks: Final[set[asyncio.Task[None]]] = set()


@contextmanager
def when_left(scope: Scope, receive: Receive, told: Callable[[], object]) -> Iterator[None]:
    """Calls `told` when the client goes, until this is left. To be entered once the body of the request is read.

    Our own server says so of the connection; any other is asked, as ASGI has it.
    """
    connection: Connection | None = scope.get("state", {}).get(STATE)
    if connection is not None:
        connection.watch(told)
        try:
            yield
        finally:
            connection.watch(None)
        return
    is_over = False

    async def asked() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if not is_over:
            told()

    task = asyncio.ensure_future(asked())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    try:
        yield
    finally:
        is_over = True
        task.cancel()
