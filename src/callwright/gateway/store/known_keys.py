"""What this process knows of keys in the store, so that the store is not asked turn after turn."""

import math
from collections.abc import Iterable
from typing import Final

# Each takes some 200 bytes. A history of 1,000 turns has two keys for each.
_MOST: Final = 32_768
_LEFT_OF_FULL: Final = 0.75  # so that not every turn has to make room


class KnownKeys:
    """A bounded set of keys, each of an owner and a model. Evicts the oldest."""

    def __init__(self) -> None:
        self._added: dict[tuple[str, str, str], float] = {}

    def among(self, owner: str, model: str, keys: Iterable[str], since: float = -math.inf) -> set[str]:
        """Those of the keys that were added since a time."""
        added = self._added
        there = [key for key in keys if (owner, model, key) in added]
        return {key for key in there if added[owner, model, key] > since}

    def remove(self, owner: str, model: str, keys: Iterable[str]) -> None:
        """Take keys out."""
        for key in keys:
            self._added.pop((owner, model, key), None)

    def add(self, owner: str, model: str, keys: Iterable[str], now: float = 0.0) -> None:
        """Add keys, or add them anew."""
        for key in keys:
            known = owner, model, key
            self._added.pop(known, None)
            self._added[known] = now
        if len(self._added) > _MOST:
            left = list(self._added.items())[-int(_MOST * _LEFT_OF_FULL) :]
            self._added = dict(left)
