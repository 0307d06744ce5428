"""WebSockets beside the requests of `bench/soak.py`: some say nothing, some say too much."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from loading import HOST

__all__ = ["flooding", "held", "last_words"]

_AT_ONCE: Final = 40  # more than wait behind a turn
_PAUSE_S: Final = 0.25  # bench/attacks has those that go as fast as they can
_FLOODS: Final = (["1"] * _AT_ONCE, ['{"type": "x"}'] * _AT_ONCE, [b"x"] * _AT_ONCE, [[""] * 500])


def _connected(port: int) -> connect:
    return connect(f"ws://{HOST}:{port}/v1/responses", compression=None, max_size=None, ping_interval=None)


@asynccontextmanager
async def held(port: int, number: int) -> AsyncIterator[list[ClientConnection]]:
    """So many that are open and silent."""
    opened = [await _connected(port) for _ in range(number)]
    try:
        yield opened
    finally:
        await asyncio.gather(*(one.close() for one in opened), return_exceptions=True)


async def last_words(connections: list[ClientConnection], patience_s: float) -> set[str]:
    """The codes of the errors that they get before they are closed; `nothing` for those that get none."""

    async def said(one: ClientConnection) -> str:
        try:
            async with asyncio.timeout(patience_s):
                return str(json.loads(await one.recv())["error"]["code"])
        except (ConnectionClosed, TimeoutError):
            return "nothing"

    return set(await asyncio.gather(*map(said, connections)))


async def flooding(port: int) -> None:
    """Send what means nothing, some frames at a time, again and again; what is answered is read and not looked at.
    Who is refused or closed comes again.
    """
    while True:
        with suppress(ConnectionClosed, InvalidHandshake, OSError, TimeoutError):
            async with _connected(port) as connection:
                reading = asyncio.create_task(_read(connection))
                try:
                    for flood in _FLOODS:
                        for frame in flood:
                            await connection.send(frame)
                        await asyncio.sleep(_PAUSE_S)
                finally:
                    reading.cancel()
        await asyncio.sleep(_PAUSE_S)


async def _read(connection: ClientConnection) -> None:
    with suppress(ConnectionClosed):
        async for _ in connection:
            pass
