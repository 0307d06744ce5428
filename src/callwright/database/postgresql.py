"""Connections to PostgreSQL, on the event loop. A separate module, as its imports are slow to load."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import create_async_engine

T = TypeVar("T")
_CONNECT_TIMEOUT_S = 10
# A transaction takes milliseconds, and PostgreSQL takes 100 connections, from all gateways together.
_CONNECTIONS = 8


class AsyncConnections:
    """See `Connections`."""

    def __init__(self, url: URL) -> None:
        """Raises `ImportError` if the driver is not installed."""
        timeout = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_TIMEOUT_S}
        self._engine = create_async_engine(
            url.set(drivername="postgresql+psycopg"),
            # Independent of the server's default: the queries lock rows that must not change.
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,  # the server may have been restarted
            pool_size=_CONNECTIONS,
            max_overflow=0,
            connect_args=timeout,
            hide_parameters=True,
        )

    async def run(self, query: Callable[[Connection], T], *, reads: bool = False) -> T:
        """See `Connections`. Nothing is gained by knowing that one only reads."""
        async with self._engine.begin() as connection:
            return await connection.run_sync(query)

    async def close(self) -> None:
        await self._engine.dispose()
