"""What runs a transaction, and the way of SQLite: in a thread of its own.

A transaction of SQLite has many short steps. Each of them in another thread costs more than SQLite does, so a whole
transaction is one errand of the thread.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

T = TypeVar("T")
# The execution option of a transaction that writes nothing.
READING: Final = "callwright_reading"


class Connections(Protocol):
    """Connections to one database. Errors are SQLAlchemy's."""

    async def run(self, query: Callable[[Connection], T], *, reads: bool = False) -> T:
        """The result of a query, in a transaction. `reads`: it writes nothing."""
        ...

    async def close(self) -> None:
        """Disconnect. No query may be running."""
        ...


class ThreadConnections:
    """See `Connections`. One thread, so one transaction at a time, in the order in which they were wanted."""

    def __init__(self, engine: Engine, patience_s: float, left: Callable[[Engine], None]) -> None:
        """A transaction waits for its turn for `patience_s` seconds; then it fails with SQLAlchemy's `TimeoutError`.
        `left` gets the engine when it is disconnected and not needed any more.
        """
        self._engine = engine
        self._patience_s = patience_s
        self._turn = asyncio.Lock()
        self._left = left
        self._reading = engine.execution_options(**{READING: True})
        self._thread = ThreadPoolExecutor(1, "callwright-database")

    async def run(self, query: Callable[[Connection], T], *, reads: bool = False) -> T:

        def transaction() -> T:
            with (self._reading if reads else self._engine).begin() as connection:
                return query(connection)

        try:
            async with asyncio.timeout(self._patience_s):
                await self._turn.acquire()
        except TimeoutError as error:
            raise PoolTimeoutError(f"no turn within {self._patience_s:g} s: those before take too long") from error
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, transaction)
        finally:
            self._turn.release()

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.dispose)
        self._thread.shutdown()
        self._left(self._engine)
