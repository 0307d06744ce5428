"""The counters of each key: a row for each name, which stays in its place when the keys change.

A row holds the rate limits of a key, then the places that each worker has taken for it. The rows follow the counters
of an outage of the store. A row is never given to another key: its requests may still run.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, TypeAlias

from callwright.gateway.access.rate_limits import Bucket, Outage
from callwright.gateway.access.shared_counters import SharedCounters

# The kinds of places: running requests, open connections.
Kind: TypeAlias = Literal["requests", "connections"]
KINDS: Final[tuple[Kind, ...]] = ("requests", "connections")
LIMITS: Final = 2 * Bucket.PLACES  # requests and tokens per minute
_FIRST: Final = Outage.PLACES


class KeyCounters:
    """The counters of the keys with these `names`, of all `workers`; in the file at `path`, if they share one."""

    def __init__(self, names: Iterable[str] = (), workers: int = 1, path: Path | None = None) -> None:
        self.workers = workers
        self.counters = SharedCounters(_FIRST) if path is None else SharedCounters.shared(path, _FIRST)
        self._width = LIMITS + len(KINDS) * workers
        self._rows: dict[str, int] = {}
        self.add(names)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that have a row, in the order of the rows."""
        return tuple(self._rows)

    def add(self, names: Iterable[str]) -> None:
        """Give each of these names a row, unless it has one."""
        for name in names:
            self._rows.setdefault(name, len(self._rows))
        self.counters.grow(_FIRST + len(self._rows) * self._width)

    def limits(self, name: str) -> int:
        """The index of the first counter of a key's rate limits."""
        return _FIRST + self._rows[name] * self._width

    def places(self, name: str, kind: Kind) -> range:
        """The indexes of the places of a key, one for each worker."""
        first = self.limits(name) + LIMITS + KINDS.index(kind)
        return range(first, first + len(KINDS) * self.workers, len(KINDS))
