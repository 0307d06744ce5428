"""An open database, used in transactions: plain functions of SQL, each given the connection that runs it.

A transaction that has begun is completed even if its caller is cancelled. Knows nothing of the queries.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from callwright.database.connections import Connections
from callwright.database.engine import Database
from callwright.database.migrate import migrate
from callwright.errors import CallwrightError, ConfigError

P = ParamSpec("P")
T = TypeVar("T")


class StoreError(CallwrightError):
    """The store failed: its database failed, or the response to continue from is gone."""


class StoreDownError(StoreError):
    """The database does not answer."""


class Transactions:
    """The transactions of one process, and one event loop, with a database.

    `read` and `write` raise `StoreError` when the database fails.
    """

    def __init__(self, url: str, told: Callable[..., None] | None = None) -> None:
        """`told(operation, seconds, failed=…)` is called after each transaction."""
        self._url = url
        self._told = told
        self._database: Database | None = None
        self._connections: Connections | None = None
        self._running: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Connect, and bring the tables up to date. Raises `ConfigError` for what cannot be used."""
        database = Database.parse(self._url)
        connections = database.connections()
        async with AsyncExitStack() as when_it_fails:
            when_it_fails.push_async_callback(connections.close)
            try:
                await connections.run(migrate)
            except (ConfigError, SQLAlchemyError, OSError, ValueError) as error:
                database.refuse(error)
            when_it_fails.pop_all()
        self._database, self._connections = database, connections

    @property
    def in_memory(self) -> bool:
        """Whether no other process has this database."""
        return self._database is not None and self._database.in_memory

    async def close(self) -> None:
        """Finish active transactions and disconnect."""
        if self._running:
            await asyncio.wait(self._running)
        if self._connections is not None:
            await self._connections.close()
        self._connections = None

    async def read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **options: P.kwargs) -> T:
        """The result of a query that writes nothing."""
        return await self._run(query.__name__, lambda connection: query(connection, *args, **options), reads=True)

    async def write(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **options: P.kwargs) -> T:
        """The result of a query, once its writes are committed."""
        return await self._run(query.__name__, lambda connection: query(connection, *args, **options), reads=False)

    async def _run(self, operation: str, query: Callable[[Connection], T], *, reads: bool) -> T:
        """One transaction, in a task that no caller cancels: that would cost a connection, and in memory all data."""
        assert self._connections is not None, "the store is not open"
        assert self._database is not None
        begun = time.monotonic()
        task = asyncio.ensure_future(self._connections.run(query, reads=reads))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        if (told := self._told) is not None:
            task.add_done_callback(lambda task: told(operation, time.monotonic() - begun, failed=_has_failed(task)))
        try:
            return await asyncio.shield(task)
        except SQLAlchemyError as error:
            kind = StoreDownError if _is_down(error) else StoreError
            raise kind(f"The store failed: {self._database.describe_error(error)}.") from error


def _is_down(error: SQLAlchemyError) -> bool:
    """Whether a database does not answer, as against one that answers that something is wrong."""
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    return lost or isinstance(error, OperationalError | PoolTimeoutError)


def _has_failed(task: asyncio.Task[Any]) -> bool:
    return task.cancelled() or task.exception() is not None
