"""One command at a time works on an output. The lock goes with the process that holds it, however that ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from callwright.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]


@contextmanager
def hold_lock(path: Path, what: str) -> Iterator[None]:
    """Hold the lock of this file while the block runs. Raises `ConfigError` if another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None and not _is_ours(descriptor, path):
            raise ConfigError(f"Another command is at work on {what}. Wait for it, or name another output.")
        yield
    finally:
        os.close(descriptor)


def _is_ours(descriptor: int, path: Path) -> bool:
    """Whether this process holds the lock of the file now at the path: a finished process removes it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_ino == path.stat().st_ino
    except OSError:
        return False
