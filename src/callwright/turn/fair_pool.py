"""Threads for work that may take seconds, shared fairly by the clients that ask for it.

One client has one of them at most, however much it asks for; of the others comes next who has waited longest. Knows
nothing of keys: whoever serves several clients says for which one a task runs.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, TypeVar

__all__ = ["CLIENT", "SLOW", "FairPool"]

T = TypeVar("T")
CLIENT: Final[ContextVar[str]] = ContextVar("callwright_slow_client", default="")


class FairPool:
    """So many threads, which begin with the first use."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, "slow")
        self._free = threads
        self._lock = threading.Lock()
        self._served: set[str] = set()
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}

    async def run(self, work: Callable[[], T]) -> T:
        """Do this in a thread, for the `CLIENT` of this task. What nobody waits for any more is not begun."""
        client, result = CLIENT.get(), Future[T]()
        asked = result, partial(copy_context().run, work)
        with self._lock:
            self._waiting.setdefault(client, deque()).append(asked)
        self._begin()
        try:
            return await asyncio.wrap_future(result)
        except asyncio.CancelledError:
            with self._lock:
                queue = self._waiting.get(client, deque())
                if asked in queue:
                    queue.remove(asked)  # it may hold much
                    if not queue:
                        del self._waiting[client]
            raise

    def _begin(self) -> None:
        """Begin what may begin."""
        with self._lock:
            for client in [one for one in self._waiting if one not in self._served][: self._free]:
                queue = self._waiting.pop(client)
                result, work = queue.popleft()
                if queue:
                    self._waiting[client] = queue  # behind the others
                self._served.add(client)
                self._free -= 1
                self._threads.submit(self._work, client, result, work)

    def _work(self, client: str, result: Future[Any], work: Callable[[], Any]) -> None:
        try:
            if result.set_running_or_notify_cancel():
                result.set_result(work())
        except BaseException as error:
            result.set_exception(error)
        finally:
            with self._lock:
                self._served.discard(client)
                self._free += 1
            self._begin()


# What chat templates of strangers take: each prompt up to 5 s in a process of its own.
SLOW: Final = FairPool(2)
