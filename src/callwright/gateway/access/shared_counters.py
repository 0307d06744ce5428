"""Counters of one process, or of all that serve one port, in a memory-mapped file. Independent of their meaning."""

import mmap
import os
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, Self

_NUMBER_BYTES = 8


class Numbers(Protocol):
    """The counters, by index."""

    def __getitem__(self, place: int, /) -> float: ...
    def __setitem__(self, place: int, number: float, /) -> None: ...


class SharedCounters:
    """`size` numbers, 0 at first."""

    def __init__(self, size: int) -> None:
        self._own = array("d", bytes(size * _NUMBER_BYTES))
        self.numbers: Numbers = self._own
        self._size = size
        self._shared: int | None = None

    @classmethod
    def shared(cls, path: Path, size: int) -> Self:
        """The numbers in a file, which is created if need be. POSIX only."""
        counters = cls(0)
        counters._shared = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        counters.grow(size)
        return counters

    def grow(self, size: int) -> None:
        """Have at least `size` numbers. Existing ones are not moved."""
        more = size - self._size
        if more <= 0:
            return
        if self._shared is None:
            self._own.extend([0.0] * more)
        else:
            with self.locked():
                if os.fstat(self._shared).st_size < size * _NUMBER_BYTES:  # another process may have made it larger
                    os.ftruncate(self._shared, size * _NUMBER_BYTES)
            self.numbers = memoryview(mmap.mmap(self._shared, size * _NUMBER_BYTES)).cast("d")
        self._size = size

    @contextmanager
    def locked(self) -> Iterator[Numbers]:
        """The numbers, under a lock between processes. The lock of a process that is killed is released."""
        if self._shared is None:
            yield self.numbers
            return
        import fcntl

        fcntl.lockf(self._shared, fcntl.LOCK_EX)
        try:
            yield self.numbers
        finally:
            fcntl.lockf(self._shared, fcntl.LOCK_UN)
