"""Functions that block, each in a daemon thread of its own: nobody waits for one that was given up.

A thread cannot be stopped, only left alone: neither the event loop nor the end of the process waits for it. Those that
were left and still run are counted, and no new one is begun when there are too many.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

# A process has room for some hundred threads; tools that hang are called again and again.
MAX_LEFT: Final = 64
_left: set[threading.Thread] = set()


class TooManyLeftError(RuntimeError):
    """Too many calls that were given up still run."""


def threads_left() -> int:
    """How many calls that were given up still run in this process."""
    return sum(thread.is_alive() for thread in list(_left))


async def in_thread(function: Callable[[], Any], name: str) -> Any:
    """Call the function in a thread of its own, with the context variables of here. Raises what it raises."""
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
