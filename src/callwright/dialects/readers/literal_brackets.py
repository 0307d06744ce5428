"""Brackets in notations that look like program code: those that are open, and the JSON that is written for them."""

import re
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from callwright.events import ArgumentsDelta, Event, Problem, ProblemKind

__all__ = ["CLOSERS", "Brackets", "Level", "closes_more"]

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


class Brackets:
    """Writes the arguments of one call as JSON, from its opening bracket to the closing one, and names what is wrong.

    `levels` are the brackets that are open. `sound`: so far nothing leaves open what was meant; `lost`: nothing of what
    follows the call is certain either.
    """

    def __init__(self, emit: Callable[[Event], object], make: Callable[[str], ArgumentsDelta], call: int) -> None:
        self.levels: list[Level] = []
        self.sound = True
        self.lost = False
        self._emit = emit
        self._make = make
        self.call = call
        self._log: list[str] = []  # the values as they were written
        self._closed: Level | None = None  # the last bracket that was closed
        self._repeats: Level | None = None  # a member of it is being read again, which is logged only

    @property
    def silent(self) -> bool:
        """Whether nothing that is read is written: a member comes again."""
        return self._repeats is not None

    def made(self, json: str) -> ArgumentsDelta:
        """The event that writes a piece of a value, which is noted."""
        self._log.append(json)
        return self._make(json)

    def put(self, json: str, lead: str = "") -> None:
        """Write JSON. `lead` is what stands before a value: a comma, a key."""
        self._log.append(json)
        if self._repeats is None:
            self._emit(self._make(lead + json))

    def tell(self, kind: ProblemKind, detail: str, text: str = "", *, doubt: bool = True) -> None:
        """Report a problem. `doubt`: nobody knows what was meant."""
        self._emit(Problem(kind, detail, call=self.call, text=text))
        self.sound = self.sound and not doubt

    def open(self, level: Level, lead: str = "") -> None:
        """Begin a container."""
        self.put("{" if level.kind == "object" else "[", lead)
        self.levels.append(level)

    def close(self) -> None:
        """End the innermost bracket. The last one stays open when it is not certain what was meant."""
        self._closed = level = self.levels.pop()
        if self.levels or self.sound:
            self.put("}" if level.kind == "object" else "]")
        if self.levels:
            self.end_member(self.levels[-1])

    def supply(self, count: int) -> None:
        """End so many brackets whose closers are missing."""
        if count:
            # Of several members some may have been meant to stand further out.
            inner = [*self.levels[1:], *([self._closed] if self._closed else ())]
            doubt = any(len(level.given) > 1 for level in inner)
            self.tell("markup_repaired", "a closing bracket is missing", doubt=doubt)
        for _ in range(count):
            self.close()

    def begin_member(self, level: Level, key: str) -> None:
        """A value of this key comes."""
        level.key, level.begin = key, len(self._log)
        if key in level.given and self._repeats is None:
            self._repeats = level

    def end_member(self, level: Level) -> None:
        """A value of this level is written."""
        level.begun, level.parted = True, False
        if level.key is None:
            return
        span = (level.begin, len(self._log))
        if self._repeats is not level:
            level.given.setdefault(level.key, span)
        else:
            self.end_repeated()
        level.key = None

    def leave_member(self, level: Level) -> None:
        """The member that is being read is none."""
        level.key = None
        if self._repeats is level:
            self._repeats = None

    def end_repeated(self) -> None:
        """Report the member that is being read again, if one is."""
        level = self._repeats
        if level is None:
            return
        assert level.key is not None  # it is being read
        first = "".join(self._log[slice(*level.given[level.key])])
        again = "".join(self._log[level.begin :])
        if first == again:
            self.tell("argument_dropped", f"{level.key!r} was given twice", again, doubt=False)
        else:
            self.tell("argument_repeated", f"{level.key!r} was given twice", again)
        self._repeats = None
