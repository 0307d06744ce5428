"""Finds regular expressions whose time grows with a high power of the text: several repeats in a row that may all match
the same characters, so that a failing match tries each way to divide these among them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from re import _constants, _parser
from typing import Any, Final, NamedTuple

# A model may write any of them without end.
_CHARACTERS: Final = " \n\taA0_é\"'`\\<>{}[]()-=,:.|*/"
_MANY: Final = 20
_MOST: Final = 100
_LONG: Final = 1_000
_REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_CATEGORIES: Final[Mapping[Any, Callable[[str], bool]]] = {
    _constants.CATEGORY_SPACE: str.isspace,
    _constants.CATEGORY_DIGIT: str.isdigit,
    _constants.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    _constants.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    _constants.CATEGORY_NOT_DIGIT: lambda char: not char.isdigit(),
    _constants.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}


class _Run(NamedTuple):
    """How many repeats of a part of a pattern can share a run of one character: all of it (None if it matches something
    else, too), at its beginning, at its end, anywhere. `moves`: whether all of it can match a character.
    """

    through: int | None
    begin: int
    end: int
    inside: int
    moves: bool

    def then(self, other: "_Run") -> "_Run":
        """This part and the next one together."""
        return _Run(
            None if self.through is None or other.through is None else self.through + other.through,
            self.begin if self.through is None else max(self.begin, self.through + other.begin),
            other.end if other.through is None else max(other.end, self.end + other.through),
            max(self.inside, other.inside, self.end + other.begin),
            self.moves or other.moves,
        )


_NOTHING: Final = _Run(0, 0, 0, 0, moves=False)
_OTHER: Final = _Run(None, 0, 0, 0, moves=False)


def repeats_in_a_row(pattern: str, flags: int = 0) -> tuple[int, str]:
    """The most repeats in a row that may match the same character, and the character."""
    parsed = _parser.parse(pattern, flags)
    return max((_sequence(parsed, char, flags | parsed.state.flags).inside, char) for char in _CHARACTERS)


def begins_with_repeat(pattern: str, flags: int = 0) -> bool:
    """Whether a search may begin at each character of a run, and read the run to its end each time."""
    return _begins(_parser.parse(pattern, flags))


def _begins(items: Iterable[Any]) -> bool:
    for kind, value in items:
        if kind in (*_REPEATS, _constants.POSSESSIVE_REPEAT):
            least, most, inner = value
            if most > _LONG or _begins(inner):
                return True
            if least:
                return False
        elif kind is _constants.BRANCH:
            return any(_begins(way) for way in value[1])
        elif kind is _constants.SUBPATTERN:
            return _begins(value[3])
        elif kind is _constants.ATOMIC_GROUP:
            return _begins(value)
        elif not (kind is _constants.ASSERT and value[0] > 0):
            return False
    return False


def _sequence(items: Iterable[Any], char: str, flags: int) -> _Run:
    run = _NOTHING
    for kind, value in items:
        run = run.then(_item(kind, value, char, flags))
    return run


def _item(kind: Any, value: Any, char: str, flags: int) -> _Run:
    if kind is _constants.BRANCH:
        return _any_of([_sequence(way, char, flags) for way in value[1]])
    if kind is _constants.SUBPATTERN:
        _, added, removed, inner = value
        return _sequence(inner, char, (flags | added) & ~removed)
    if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
        return _NOTHING._replace(inside=_sequence(value[1], char, flags).inside)
    if kind is _constants.ATOMIC_GROUP:
        return _once(_sequence(value, char, flags), optional=False)
    if kind is _constants.POSSESSIVE_REPEAT:
        return _once(_sequence(value[2], char, flags), optional=not value[0])
    if kind in _REPEATS:
        least, most, inner = value
        return _repeat(_sequence(inner, char, flags), least, most)
    if kind in (_constants.AT, _constants.GROUPREF, _constants.GROUPREF_EXISTS):
        return _NOTHING
    return _NOTHING._replace(moves=True) if _matches(kind, value, char, flags) else _OTHER


def _any_of(ways: list[_Run]) -> _Run:
    through = [way.through for way in ways if way.through is not None]
    return _Run(
        max(through, default=None),
        max(way.begin for way in ways),
        max(way.end for way in ways),
        max(way.inside for way in ways),
        any(way.moves for way in ways),
    )


def _once(run: _Run, *, optional: bool) -> _Run:
    """A part that matches in one way only."""
    through = 0 if optional or run.through is not None else None
    return _Run(through, 0, 0, run.inside, run.moves)


def _repeat(run: _Run, least: int, most: int) -> _Run:
    if run.through is not None and run.moves and most > _MANY:
        ways = 1 if run.through == 0 else _MOST  # a repeat of a repeat takes exponential time
        return _Run(ways, ways, ways, max(run.inside, ways), moves=True)
    if run.through is None and not least:
        return run._replace(through=0)
    return run


def _matches(kind: Any, value: Any, char: str, flags: int) -> bool:
    if kind is _constants.LITERAL:
        return _is(value, char, flags)
    if kind is _constants.NOT_LITERAL:
        return not _is(value, char, flags)
    if kind is _constants.ANY:
        return char != "\n" or bool(flags & re.DOTALL)
    if kind is _constants.IN:
        negates = value[0][0] is _constants.NEGATE
        return negates != any(_in(each, inner, char, flags) for each, inner in value)
    return False


def _in(kind: Any, value: Any, char: str, flags: int) -> bool:
    if kind is _constants.LITERAL:
        return _is(value, char, flags)
    if kind is _constants.RANGE:
        return any(value[0] <= ord(one) <= value[1] for one in _cases(char, flags))
    return bool(kind is _constants.CATEGORY and _CATEGORIES[value](char))


def _is(code: int, char: str, flags: int) -> bool:
    return chr(code) in _cases(char, flags)


def _cases(char: str, flags: int) -> str:
    return char + char.swapcase() if flags & re.IGNORECASE else char
