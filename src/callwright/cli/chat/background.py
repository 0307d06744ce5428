"""An event loop in its own thread, so that the main thread can wait for a line or for Ctrl-C."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from queue import SimpleQueue
from typing import Any, Final, Self, TypeVar

T = TypeVar("T")

_CLOSING_S: Final = 10.0


class Background:
    """The loop, as a context manager. At its end it exits the entered contexts, in reverse order."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="callwright chat", daemon=True)
        self._entered = AsyncExitStack()
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(KeyboardInterrupt):
            self.call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """Enter a context manager, which is exited at the end."""
        return self.call(self._entered.enter_async_context(context))

    def call(self, work: Coroutine[Any, Any, T], on_interrupt: asyncio.Event | None = None) -> T:
        """Wait for a coroutine, and run the questions it asks in the meantime. Ctrl-C sets the event, if given, or
        cancels; the second one always cancels.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        future.add_done_callback(lambda _: self._asked.put(None))
        try:
            return self._wait(future)
        except KeyboardInterrupt:
            if on_interrupt is None:
                future.cancel()
                raise
            self._loop.call_soon_threadsafe(on_interrupt.set)
            try:
                return self._wait(future)
            except KeyboardInterrupt:
                future.cancel()
                raise

    def _wait(self, future: Future[T]) -> T:
        while not future.done():
            if (question := self._asked.get()) is not None:  # None: the future is done
                question()
        return future.result()

    async def ask(self, question: Callable[[], T]) -> T | None:
        """Called in the loop: run a function in the waiting thread, which can ask a person. Returns its result, or None
        after Ctrl-C.
        """
        answer: Future[T | None] = Future()

        def run_question() -> None:
            if not answer.set_running_or_notify_cancel():  # the asking task was cancelled
                return
            try:
                answer.set_result(question())
            except KeyboardInterrupt:
                answer.set_result(None)
                raise
            except Exception as error:
                answer.set_exception(error)

        self._asked.put(run_question)
        return await asyncio.wrap_future(answer)

    async def _end(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        try:
            await self._entered.aclose()
        finally:
            for task in rest:
                task.cancel()
            if rest:
                await asyncio.wait(rest, timeout=_CLOSING_S)
            await self._loop.shutdown_asyncgens()
