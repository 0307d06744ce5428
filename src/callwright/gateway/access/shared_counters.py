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
        self.numbers: Numbers = array("d", bytes(size * _NUMBER_BYTES))
        self._shared: int | None = None

    @classmethod
    def shared(cls, path: Path, size: int) -> Self:
        """The numbers in a file, which is created if need be. POSIX only."""
        counters = cls(0)
        if size == 0:
            return counters
        counters._shared = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(counters._shared, size * _NUMBER_BYTES)
        counters.numbers = memoryview(mmap.mmap(counters._shared, size * _NUMBER_BYTES)).cast("d")
        return counters

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
