"""A named conversation in a database: runs in any process can continue it, one at a time.

    session = callwright.Session("alice", "sqlite:///agent.db")
    callwright.run_sync(agent, "My name is Alice.", session=session)

`get_items`, `add_items`, `pop_item` and `clear_session` are called as in OpenAI's Agents SDK
(https://openai.github.io/openai-agents-python/ref/memory/); the items are Chat messages.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar

import msgspec
from sqlalchemy import Connection

from callwright.agent.sessions import queries
from callwright.agent.sessions.held import HeldSession
from callwright.database.makers import Maker, this_process
from callwright.database.transactions import StoreError, Transactions
from callwright.errors import ConfigError, RequestError, SessionError
from callwright.openai_format.messages import read_messages
from callwright.tolerant_json.codec import encode

P = ParamSpec("P")
T = TypeVar("T")

_MAX_BYTES: Final = 16 * 2**20
_LOOKED_EVERY_S: Final = 0.1  # whether another run has ended
_SEEN_EVERY_S: Final = 5.0
_MESSAGE: Final = msgspec.json.Decoder(dict[str, Any])


class Session:
    """The conversation `session_id` in a `store`: `sqlite:///file.db` or `postgresql://user:password@host/name`.

    A run with it begins with its messages and appends its own. Two runs cannot have it together: the second waits for
    `wait_s` seconds, then it raises `SessionError`. From `compact_threshold` tokens on the model summarizes old
    messages; the default is four fifths of the model's window, or 100,000 if that is unknown. `max_bytes` limits the
    JSON of its messages.

    Each call connects; `async with session:` holds the connections.
    """

    def __init__(
        self,
        session_id: str,
        store: str,
        *,
        compact_threshold: int | None = None,
        max_bytes: int = _MAX_BYTES,
        wait_s: float = 0.0,
    ) -> None:
        if not session_id:
            raise RequestError("A session needs a name: Session('alice', …).", param="session_id")
        if store in ("sqlite://", "sqlite:///:memory:"):
            raise ConfigError(
                "A session in memory is gone with its first connection. Name a file, sqlite:///agent.db, or give the "
                "run a history=…"
            )
        if compact_threshold is not None and compact_threshold < 1:
            raise RequestError("compact_threshold: expected at least 1.", param="compact_threshold")
        self.session_id = session_id
        self.compact_threshold = compact_threshold
        self.max_bytes = max_bytes
        self.wait_s = wait_s
        self.windows: dict[str, int | None] = {}  # of the models that were asked, by their name
        self._store = store
        self._kept: tuple[asyncio.AbstractEventLoop, Transactions] | None = None

    async def __aenter__(self) -> Self:
        database = Transactions(self._store)
        await database.open()
        self._kept = (asyncio.get_running_loop(), database)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._kept is not None
        _, database = self._kept
        self._kept = None
        await database.close()

    @asynccontextmanager
    async def _database(self) -> AsyncGenerator[Transactions, None]:
        if self._kept is not None and self._kept[0] is asyncio.get_running_loop():
            yield self._kept[1]
            return
        database = Transactions(self._store)
        await database.open()
        try:
            yield database
        finally:
            await database.close()

    # --- the messages ---

    async def get_items(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The messages, oldest first; the last `limit` of them."""
        if limit is not None and limit <= 0:
            return []
        async with self._database() as database:
            return [_MESSAGE.decode(body) for body in await database.read(queries.latest, self.session_id, limit)]

    async def add_items(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Append Chat messages. Raises `RequestError` for anything else, `SessionError` while a run has the session."""
        read_messages(items)
        bodies = [encode(item) for item in items]

        def added(connection: Connection, id_: str, run: Maker) -> None:
            queries.hold(connection, id_, run)
            queries.add(connection, id_, run, bodies, self.max_bytes)
            queries.free(connection, id_, run)

        await self._change(added)

    async def pop_item(self) -> dict[str, Any] | None:
        """Remove and return the last message, or None. Raises `SessionError` while a run has the session."""
        body = await self._change(queries.pop)
        return None if body is None else _MESSAGE.decode(body)

    async def clear_session(self) -> None:
        """Erase all messages. Raises `SessionError` while a run has the session."""
        await self._change(queries.clear)

    async def _change(self, query: Callable[[Connection, str, Maker], T]) -> T:
        async with self._database() as database:
            return await self._when_free(database, query, _new_run())

    async def _when_free(self, database: Transactions, query: Callable[[Connection, str, Maker], T], run: Maker) -> T:
        """The result of a query, run once no other run holds the session."""
        until = time.monotonic() + self.wait_s
        while True:
            try:
                return await database.write(query, self.session_id, run)
            except SessionError as error:
                if error.code != "session_busy" or time.monotonic() >= until:
                    raise
            await asyncio.sleep(_LOOKED_EVERY_S)

    # --- for a run ---

    @asynccontextmanager
    async def hold(self, pending: Sequence[Mapping[str, Any]] | None = None) -> AsyncGenerator[HeldSession, None]:
        """The session for one run, which holds it exclusively. `pending`: the messages of a run that waited and is
        resumed.
        """
        run = _new_run()
        async with self._database() as database:
            bodies, size = await self._when_free(database, queries.hold, run)
            beating = asyncio.create_task(self._beat(database, run))
            try:
                messages = [_MESSAGE.decode(body) for body in bodies]
                held = HeldSession(database, self.session_id, run, messages, size, self.max_bytes)
                await held.begin(pending)
                yield held
            finally:
                beating.cancel()
                await asyncio.shield(self._let_go(database, run))

    async def _let_go(self, database: Transactions, run: Maker) -> None:
        try:
            await database.write(queries.free, self.session_id, run)
        except StoreError:
            return  # the session expires by silence; a failed write was already reported to its caller

    async def _beat(self, database: Transactions, run: Maker) -> None:
        while True:
            await asyncio.sleep(_SEEN_EVERY_S)
            try:
                await database.write(queries.touch, self.session_id, run)
            except StoreError:
                continue


def _new_run() -> Maker:
    return msgspec.structs.replace(this_process(), id=f"run_{secrets.token_hex(16)}")
