"""What revisions of the configuration share, and who uses a revision.

A part is a model's server or the rest of a model (see `model_parts`), an MCP server, the search engine or the hooks,
with its connections. Two revisions that configure it equally have the same one. `Uses` counts the requests of a
revision, so that it is closed after the last.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Struct


class Closable(Protocol):
    """Something with connections."""

    async def close(self) -> None:
        """Close them."""
        ...


T = TypeVar("T", bound=Closable)


class _Part(Struct):
    value: Closable
    holders: int = 0


# The parts of all revisions that are open, by their configuration.
Parts: TypeAlias = dict[bytes, _Part]


class RevisionParts:
    """The parts of one revision. `all_` are shared with the others: only `hold` and `close` change them, and neither
    may overlap with `get`.
    """

    def __init__(self, all_: Parts) -> None:
        self._all = all_
        self._own: Parts = {}
        self._is_held = False

    def get(self, kind: str, config: object, build: Callable[[], T]) -> T:
        """The part of this configuration: that of another revision, or a new one."""
        key = msgspec.msgpack.encode((kind, config))
        part = self._own[key] = self._all.get(key) or _Part(build())
        return part.value  # type: ignore[return-value]  # the kind is part of the key

    def hold(self) -> set[int]:
        """Prevent others from closing them until `close`. Returns the `id` of each that no other revision has."""
        self._is_held = True
        for key, part in self._own.items():
            part.holders += 1
            self._all[key] = part
        return {id(part.value) for part in self._own.values() if part.holders == 1}

    async def close(self) -> None:
        """Close those that no other revision has."""
        if not self._is_held:
            return
        self._is_held = False
        for key, part in self._own.items():
            part.holders -= 1
            if part.holders == 0:
                del self._all[key]
                await part.value.close()


class Uses:
    """Counts what runs by a revision: requests, turns over WebSocket and background responses. `is_replaced` is set
    when another revision takes its place, `is_over` after the last use.
    """

    def __init__(self) -> None:
        self._number = 0
        self.is_replaced = asyncio.Event()
        self.is_over = asyncio.Event()

    def __enter__(self) -> None:
        self._number += 1

    def __exit__(self, *_: object) -> None:
        self._number -= 1
        if not self._number and self.is_replaced.is_set():
            self.is_over.set()

    def replace(self) -> None:
        """Nothing new begins."""
        self.is_replaced.set()
        if not self._number:
            self.is_over.set()
