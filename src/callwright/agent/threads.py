"""Runs each blocking function in its own daemon thread.

A thread cannot be stopped, only abandoned: neither the event loop nor the end of the process waits for it. Abandoned
threads that still run are counted, and above a limit no new one is started.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

# A process has room for a few hundred threads, and models call a tool that hangs again and again.
MAX_LEFT: Final = 64
_left: set[threading.Thread] = set()


class TooManyLeftError(RuntimeError):
    """Too many abandoned calls are still running."""


def threads_left() -> int:
    """The number of abandoned calls that still run in this process."""
    return sum(thread.is_alive() for thread in list(_left))


async def in_thread(function: Callable[[], Any], name: str) -> Any:
    """Call the function in its own thread, with the caller's context variables. Its exceptions are raised here."""
    if threads_left() >= MAX_LEFT:
        raise TooManyLeftError(f"{MAX_LEFT} calls that were given up still run")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[Any, Exception | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: Exception | None) -> None:
        if not future.done():
            future.set_result((value, error))

    def work() -> None:
        value: Any = None
        error: Exception | None = None
        try:
            value = context.run(function)
        except Exception as raised:
            error = raised
        except BaseException as raised:  # SystemExit and the like: they end the thread, not the process
            error = RuntimeError(f"the tool raised {type(raised).__name__}")
            error.__cause__ = raised
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(settle, value, error)
        _left.discard(thread)

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        value, error = await future
    except asyncio.CancelledError:
        _left.add(thread)
        if not thread.is_alive():
            _left.discard(thread)
        raise
    if error is not None:
        raise error
    return value
