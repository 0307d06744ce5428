"""Brackets in notations that look like program code: those that are open, and what ends a call around them."""

import re
from typing import Final, Literal

import msgspec

__all__ = ["CLOSERS", "Ends", "Level", "closes_more"]

CLOSERS: Final = frozenset("}])")
_BRACKETS = re.compile(r"[()\[\]{}]").findall


def closes_more(text: str) -> bool:
    """Whether a text has closing brackets that nothing in it has opened, so that it may have ended before them."""
    depth = 0
    for bracket in _BRACKETS(text):
        depth += 1 if bracket in "([{" else -1
        if depth < 0:
            return True
    return False


class Ends(msgspec.Struct, frozen=True):
    """The literals that end a call: those that close it, that begin another, and stop tokens."""

    closes: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.closes, *self.begins, *self.stops)


class Level(msgspec.Struct):
    """An open bracket: its closer, the JSON container that it stands for, and what was written in it.

    `parted`: a value may come. `given` are the members, by their place in the log of what was written; the one that is
    being written is `key`, from `begin` on.
    """

    closer: str
    kind: Literal["object", "array"]
    separator: str = ":"
    begun: bool = False
    parted: bool = True
    given: dict[str, tuple[int, int]] = {}
    key: str | None = None
    begin: int = 0
