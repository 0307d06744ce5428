"""Brackets in notations that look like program code: those that are open, and the JSON that is written for them."""

import re
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from callwright.events import ArgumentsDelta, Event, Problem, ProblemKind

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


class Level(msgspec.Struct):
    """An open bracket: its closer, the JSON container that is written for it, the characters that may follow a key,
    and the number of values written in it. `parted`: a value may be next.
    """

    closer: str
    kind: Literal["object", "array"]
    separator: str = ":"
    values: int = 0
    parted: bool = True

    def end_value(self) -> None:
        """A value is written."""
        self.values, self.parted = self.values + 1, False


class Brackets:
    """Writes the arguments of one call as JSON, from its opening bracket to the closing one, and reports problems.

    `levels` are the open brackets. `sound`: the meaning is certain so far; `lost`: nothing after the call is certain
    either.
    """

    def __init__(self, emit: Callable[[Event], object], make: Callable[[str], ArgumentsDelta], call: int) -> None:
        self.levels: list[Level] = []
        self.sound = True
        self.lost = False
        self.make = make
        self.call = call
        self._emit = emit
        self._closed: Level | None = None  # the last bracket that was closed

    def put(self, json: str) -> None:
        """Write JSON."""
        self._emit(self.make(json))

    def tell(self, kind: ProblemKind, detail: str, text: str = "", *, doubt: bool = True) -> None:
        """Report a problem. `doubt`: the meaning is uncertain."""
        self._emit(Problem(kind, detail, call=self.call, text=text))
        self.sound = self.sound and not doubt

    def open(self, level: Level, lead: str = "") -> None:
        """Begin a container, after the text that leads to it: a comma, a key."""
        self.put(lead + ("{" if level.kind == "object" else "["))
        self.levels.append(level)

    def close(self) -> None:
        """End the innermost bracket. The last one stays open if the meaning is uncertain."""
        self._closed = level = self.levels.pop()
        if self.levels or self.sound:
            self.put("}" if level.kind == "object" else "]")
        if self.levels:
            self.levels[-1].end_value()

    def supply(self, count: int) -> None:
        """Close `count` brackets whose closers are missing."""
        if count:
            # Some of several members may have belonged to an outer bracket.
            inner = [*self.levels[1:], *([self._closed] if self._closed else ())]
            doubt = any(level.kind == "object" and level.values > 1 for level in inner)
            self.tell("markup_repaired", "a closing bracket is missing", doubt=doubt)
        for _ in range(count):
            self.close()
