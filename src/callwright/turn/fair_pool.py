"""A thread pool for work that may take seconds, shared fairly by the clients.

One client has one thread at most, however much it asks for; the client that has waited longest is the next. The pool
knows no API keys: a server of several clients sets `CLIENT` for each request.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, TypeVar

T = TypeVar("T")
CLIENT: Final[ContextVar[str]] = ContextVar("callwright_slow_client", default="")


class FairPool:
    """A pool of this number of threads, which start with the first use."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, "slow")
        self._free = threads
        self._lock = threading.Lock()
        self._served: set[str] = set()
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread, for the `CLIENT` of this task. Cancelled work that has not started is dropped."""
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
                    queue.remove(asked)  # it may hold a large conversation
                    if not queue:
                        del self._waiting[client]
            raise

    def _begin(self) -> None:
        """Start all work that has a thread."""
        with self._lock:
            for client in [one for one in self._waiting if one not in self._served][: self._free]:
                queue = self._waiting.pop(client)
                result, work = queue.popleft()
                if queue:
                    self._waiting[client] = queue  # the last in order now
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


# For prompts by a model's own chat template, each of which may take 5 s in another process.
SLOW: Final = FairPool(2)
