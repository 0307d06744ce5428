"""Runs a compiled expression over a text that arrives in pieces, and always knows what may still become a match.

All threads of the program advance together, the preferred one first, so every character costs a bounded number of
steps whatever the expression is. What a set of threads does with a kind of character is worked out once and kept.
The match is the one that Python's `re.search` finds: the leftmost, and of those the one the expression prefers.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from callwright.response_template.pattern import Op, Pattern

__all__ = ["MAX_DELIMITER", "Match", "Matcher", "Search", "last_end"]

# So much is kept of what was worked out; beyond it, it is worked out again.
_MAX_KEPT: Final = 5_000

# A delimiter is at most so long; what goes on for longer is none.
MAX_DELIMITER: Final = 1_000
_UNSET: Final = -1
Slots: TypeAlias = tuple[int, ...]


class Match(NamedTuple):
    """Where it begins and ends, in characters from where the search began, and what the named groups are."""

    start: int
    end: int
    groups: Mapping[str, tuple[int, int]]


class _Thread(NamedTuple):
    """Waits at a step; the slots of `saves` are set to the place where it waits."""

    pc: int
    saves: tuple[int, ...] = ()


class _State(msgspec.Struct, eq=False):
    """Threads side by side. `idle`: none of them has read anything. `closed`: no further one begins."""

    threads: tuple[_Thread, ...]
    closed: bool
    idle: bool
    steps: dict[int, "_Step"] = {}


class _Origin(NamedTuple):
    """The thread that another one comes from (-1 = none), and its slots that are set to where it was."""

    thread: int
    saves: tuple[int, ...] = ()


class _Step(NamedTuple):
    """What one character does: where each thread comes from, and the match, if there is one, with the slots that are
    set to where it ends.
    """

    state: _State
    origins: tuple[_Origin, ...]
    match: tuple[_Origin, tuple[int, ...]] | None


class Matcher:
    """An expression made ready, shared by all its searches. `first` finds where a match may begin."""

    def __init__(self, pattern: Pattern) -> None:
        program = pattern.program
        self.names = program.names
        self.size = 2 + 2 * len(program.names)
        self._ops: tuple[Op, ...] = program.ops
        self._atoms = [re.compile(atom, re.DOTALL).match for atom in program.atoms]
        self._masks: dict[str, int] = {}
        self._states: dict[tuple[tuple[_Thread, ...], bool], _State] = {}
        self._kept = 0
        threads, _, _ = self._closure([(_Thread(0), _Origin(-1))], start=False)
        self._idle = tuple(threads)
        chars = {program.atoms[self._ops[thread.pc].x] for thread in threads if self._ops[thread.pc].kind == "char"}
        self.first: Callable[[str, int], re.Match[str] | None] = re.compile("|".join(sorted(chars)) or "(?!)").search
        self.first_atoms = frozenset(chars)
        self.may_be_empty = any(self._ops[thread.pc].kind == "match" for thread in threads)

    def begin(self, *, start: bool) -> _Step:
        """The threads before the first character; `start`: which is that of the whole text."""
        return self._made([(_Thread(0), _Origin(-1))], start=start, closed=False)

    def step(self, state: _State, char: str) -> _Step:
        """What a character does to a state."""
        mask = self._masks.get(char)
        if mask is None:
            if len(self._masks) >= _MAX_KEPT:
                self._masks.clear()
            mask = self._masks[char] = sum(bool(atom(char)) << bit for bit, atom in enumerate(self._atoms))
        found = state.steps.get(mask)
        if found is None:
            if self._kept >= _MAX_KEPT:
                self._forget()
            self._kept += 1
            seeds = [
                (_Thread(thread.pc + 1), _Origin(number, thread.saves))
                for number, thread in enumerate(state.threads)
                if self._ops[thread.pc].kind == "char" and mask >> self._ops[thread.pc].x & 1
            ]
            if not state.closed:
                seeds.append((_Thread(0), _Origin(-1)))
            found = state.steps[mask] = self._made(seeds, start=False, closed=state.closed)
        return found

    def at_end(self, state: _State) -> tuple[_Origin, tuple[int, ...]] | None:
        """The match that a state is where the text ends."""
        seeds = [
            (_Thread(thread.pc + 1, thread.saves), _Origin(number))
            for number, thread in enumerate(state.threads)
            if self._ops[thread.pc].kind == "end"
        ]
        _, _, match = self._closure(seeds, start=False, end=True)
        return match

    def state(self, threads: tuple[_Thread, ...], *, closed: bool) -> _State:
        """The state of these threads."""
        found = self._states.get((threads, closed))
        if found is None:
            found = self._states[threads, closed] = _State(threads, closed, not closed and threads == self._idle, {})
        return found

    def _forget(self) -> None:
        for state in self._states.values():
            state.steps.clear()
        self._states.clear()
        self._kept = 0

    def _made(self, seeds: list[tuple[_Thread, _Origin]], *, start: bool, closed: bool) -> _Step:
        threads, origins, match = self._closure(seeds, start=start)
        if match is not None:
            del threads[-1], origins[-1]
            closed = True
        return _Step(self.state(tuple(threads), closed=closed), tuple(origins), match)

    def _closure(
        self, seeds: list[tuple[_Thread, _Origin]], *, start: bool, end: bool = False
    ) -> tuple[list[_Thread], list[_Origin], tuple[_Origin, tuple[int, ...]] | None]:
        """The threads that read or end, in order of preference, up to the first that is a match."""
        threads: list[_Thread] = []
        origins: list[_Origin] = []
        seen: set[int] = set()
        stack = seeds[::-1]
        while stack:
            thread, origin = stack.pop()
            pc, saves = thread
            if pc in seen:
                continue
            seen.add(pc)
            kind, x, y = self._ops[pc]
            if kind == "split":
                stack.append((_Thread(y, saves), origin))
                stack.append((_Thread(x, saves), origin))
            elif kind == "save":
                stack.append((_Thread(pc + 1, (*saves, x)), origin))
            elif kind == "start" and not start:
                continue
            elif kind == "start" or (kind == "end" and end):
                stack.append((_Thread(pc + 1, saves), origin))
            else:
                threads.append(thread)
                origins.append(origin)
                if kind == "match":
                    return threads, origins, (origin, saves)
        return threads, origins, None


class Search:
    """Looks for the first match. `at` counts the characters that were read.

    `over`: nothing that follows can change `match`. A thread that has read `limit` characters is given up.
    """

    __slots__ = ("_fresh", "_matcher", "_slots", "_state", "at", "limit", "match", "over")

    def __init__(self, matcher: Matcher, *, start: bool, limit: int) -> None:
        self._matcher = matcher
        self._fresh: Slots = (_UNSET,) * matcher.size
        self.at = 0
        self.limit = limit
        self.match: Match | None = None
        self.over = False
        self._slots: list[Slots] = [self._fresh]  # of the threads, and behind them those of a new one
        self._state = _State((), closed=True, idle=False)
        self._enter(matcher.begin(start=start), 0)

    @property
    def hold(self) -> int:
        """Where, in characters from the begin, the first thing stands that may be a match, or become one."""
        held = self.match.start if self.match else self.at
        if self.over or not self._state.threads:
            return held
        start = self._slots[0][0]
        return min(held, self.at if start == _UNSET else start)

    def feed(self, text: str, at: int, end: int, until: int | None = None) -> None:
        """Read `text` from `at` to `end`. A match that begins behind `until` is of no interest."""
        matcher = self._matcher
        while at < end and not self.over:
            state = self._state
            if state.idle:
                hit = matcher.first(text, at)
                skipped = (hit.start() if hit and hit.start() < end else end) - at
                self.at += skipped
                at += skipped
                if at == end or (until is not None and self.at > until):
                    return
            elif until is not None and self.hold > until:
                return
            elif (begun := self._slots[0][0]) != _UNSET and self.at - begun >= self.limit:
                self._give_up(begun)
                continue
            step = matcher.step(state, text[at])
            at += 1
            self.at += 1
            self._enter(step, self.at - 1)

    def finish(self) -> None:
        """The text is over."""
        if self.over:
            return
        found = self._matcher.at_end(self._state)
        if found is not None:
            self._matched(found, self.at)
        self.over = True

    def _enter(self, step: _Step, before: int) -> None:
        """Go on with what a character has done that stood at the place `before`."""
        if step.match is not None:
            self._matched(step.match, before)
        old = self._slots
        self._slots = [self._of(origin, before) if origin.saves else old[origin.thread] for origin in step.origins] + [
            self._fresh
        ]
        self._state = step.state
        self.over = not step.state.threads and step.state.closed

    def _of(self, origin: _Origin, at: int) -> Slots:
        return _saved(self._slots[origin.thread], origin.saves, at)

    def _matched(self, match: tuple[_Origin, tuple[int, ...]], before: int) -> None:
        origin, saves = match
        found = _saved(self._of(origin, before), saves, self.at)
        groups = {
            name: (found[2 + 2 * number], found[3 + 2 * number])
            for number, name in enumerate(self._matcher.names)
            if found[3 + 2 * number] != _UNSET
        }
        self.match = Match(found[0], found[1], groups)

    def _give_up(self, begun: int) -> None:
        """Drop the threads that began there: they have read too much."""
        kept = [n for n, _ in enumerate(self._state.threads) if self._slots[n][0] != begun]
        threads = tuple(self._state.threads[n] for n in kept)
        self._slots = [*(self._slots[n] for n in kept), self._fresh]
        self._state = self._matcher.state(threads, closed=self._state.closed)
        self.over = not threads and self._state.closed


def _saved(slots: Slots, saves: tuple[int, ...], at: int) -> Slots:
    """The slots with some of them set to a place."""
    made = list(slots)
    for slot in saves:
        made[slot] = at
    return tuple(made)


def last_end(matcher: Matcher, text: str) -> int:
    """Where the last match in a text ends, 0 when there is none."""
    at = end = 0
    while at < len(text):
        search = Search(matcher, start=not at, limit=MAX_DELIMITER)
        search.feed(text, at, len(text))
        search.finish()
        if search.match is None:
            break
        end = at + search.match.end
        at += max(search.match.end, 1)
    return end
