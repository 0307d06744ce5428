"""The nesting of tags in a value: whether they fit in it, or show that the value ended before them."""

from collections.abc import Callable
from enum import Enum

from callwright.reading.tagged.literals import Tag, TagKind


class Fit(Enum):
    """The scope of a closer: something opened in the value, the value itself, or the element around the value; or it
    can be read in two ways.
    """

    INSIDE = "inside"
    OWN = "own"
    OUTER = "outer"
    UNKNOWN = "unknown"


class Nesting:
    """The open elements of a value, from an opening in it. `own` closes values; if they are `named`, so does any other
    closer.

    If something unclosed precedes a closer of a value that has no opening of its own, it is ambiguous: the value's
    closer may be missing before the opening, or the value shows something that was broken off.
    """

    def __init__(self, own: str, *, named: bool = False) -> None:
        self._own = own
        self._named = named
        self._open: list[tuple[str, int]] = []  # its closer, and the position of the first opening in it
        self._count: dict[str, int] = {}
        self._supplied = False  # a closer was missing before an outer one
        self._never: list[int] = []

    def is_open(self, *closers: str) -> bool:
        """Whether something is open, that one of these closes if there are any."""
        return any(self._count.get(closer) for closer in closers) if closers else bool(self._open)

    @property
    def never_closed(self) -> list[int]:
        """The positions of the first openings in values without a closer: none of them fits in its value."""
        return [*self._never, *(first for closer, first in self._open if self._named or closer == self._own)]

    def opens(self, closer: str, place: int = -1) -> None:
        """Take an opening that `closer` closes, at a place."""
        if self._open and self._open[-1][1] < 0:
            self._open[-1] = (self._open[-1][0], place)
        self._open.append((closer, -1))
        self._count[closer] = self._count.get(closer, 0) + 1

    def closes(self, closer: str) -> Fit:
        """Take a closer."""
        if self._open and self._open[-1][0] == closer:
            self._pop()
            return Fit.INSIDE
        if closer == self._own:
            return Fit.UNKNOWN if self._open or self._supplied else Fit.OWN
        if not self._count.get(closer):
            return Fit.OUTER
        self._supplied = True
        while (inner := self._open[-1])[0] != closer:
            if self._named or inner[0] == self._own:
                self._never.append(inner[1])
            self._pop()
        self._pop()
        return Fit.INSIDE

    def _pop(self) -> None:
        closer, _ = self._open.pop()
        self._count[closer] -= 1


class Shown:
    """The markup shown inside a value, from an opening in it or a stop token onwards. `is_foreign`: whether a tool
    lacks a parameter; `outermost`: the closer of an answer's calls.
    """

    def __init__(self, nesting: Nesting, is_foreign: Callable[[str, str], bool], outermost: str) -> None:
        self.nesting = nesting
        self.has_foreign = False  # a tool has parameters of another
        self._is_foreign = is_foreign
        self._outermost = outermost
        self._call = ""  # the tool last passed
        self._is_answer = False  # an answer is shown, whose own opening the prompt writes

    def open(self, tag: Tag, place: int = -1) -> None:
        """Take an opening, at a place."""
        if tag.kind is TagKind.CALL:
            self._call = tag.key
        elif tag.kind is TagKind.VALUE and self._call:
            self.has_foreign = self.has_foreign or self._is_foreign(self._call, tag.key)
        self._is_answer = self._is_answer or not self.nesting.is_open()
        self.nesting.opens(tag.closer, place)

    def stop(self, closer: str) -> None:
        """Take a stop token, which ends a call as its `closer` does."""
        if self.nesting.is_open(closer):
            self.nesting.closes(closer)

    def close(self, tag: Tag, *, is_outer: bool) -> Fit:
        """Take a closer, which may be that of the element around the value (`is_outer`)."""
        fit = self.nesting.closes(tag.closer)
        if fit is not Fit.OUTER:
            return fit
        if self._is_answer and tag.closer == self._outermost and not self.nesting.is_open():
            self._is_answer = False
            return Fit.INSIDE
        return Fit.OUTER if is_outer else Fit.INSIDE
