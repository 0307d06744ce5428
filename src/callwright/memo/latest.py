"""A cache of the most recently used values, in bounded memory."""

from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Latest(Generic[K, V]):
    """The most recently stored values, by their keys, in about `most_bytes` of memory.

    There are two generations: values are stored in the young one; when that has half of the room, it becomes the old
    one, and the previous old one is evicted. So a lookup is a dict access, from any thread.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes // 2
        self.young: dict[K, V] = {}
        self.old: dict[K, V] = {}
        self._bytes = 0
        self._lock = Lock()

    def find(self, key: K) -> V | None:
        """The value of a key, wherever it is."""
        found = self.young.get(key)
        return self.old.get(key) if found is None else found

    def release(self, key: K) -> None:
        """Release the value of a key. Its bytes are counted until the generation ends."""
        with self._lock:
            self.young.pop(key, None)
            self.old.pop(key, None)

    def keep(self, key: K, value: V, size: int) -> bool:
        """Store a value of `size` bytes in the young generation, unless it would take all its room. Returns whether it
        did.
        """
        if size > self._most:
            return False
        with self._lock:
            if self._bytes + size > self._most:
                self.old, self.young, self._bytes = self.young, {}, 0
            self.young[key] = value
            self._bytes += size
        return True
