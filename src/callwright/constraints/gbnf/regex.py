"""Regular expressions in Rust's syntax as GBNF, in plain text or inside a JSON string.

Classes of Unicode are narrower here (`\\d` is ASCII), so that the output fits the expression. Anything that GBNF cannot
express, or that would grow too large in it, is an `UnsayableError`: then the text is free, and validated.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from math import isqrt
from typing import Final

from callwright.constraints.gbnf.pieces import GbnfPart, UnsayableError, either, repeated, row
from callwright.constraints.gbnf.text import IN_STRINGS, IN_TEXTS, Ranges, class_of, gbnf_literal, without_characters
from callwright.constraints.rust_regex import whole_pattern

_LAST: Final = 0x10FFFF
_DIGITS: Final[Ranges] = ((48, 57),)
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_BEYOND: Final[Ranges] = ((128, _LAST),)
_SPACES: Final[Ranges] = (
    *((9, 13), (32, 32), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
)
# Characters certainly in a class, and possibly in it: the second is for negated classes.
_SURE: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACES}
_MAYBE: Final = {"d": (*_DIGITS, *_BEYOND), "w": (*_WORD, *_BEYOND), "s": _SPACES}
_ESCAPES: Final = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "a": 7}
_SHORT: Final = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}
_GROUP: Final = re.compile(r"\?(?:P?<\w+>|(?P<flags>[isu]*)(?P<end>[:)]))")
_COUNT: Final = re.compile(r"\{(\d*)(?:(,)(\d*))?\}")
_CODE: Final = re.compile(r"x([0-9A-Fa-f]{2})|[xu]\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})")


def expression(
    pattern: str,
    flags: str = "",
    *,
    in_json: bool,
    rules: dict[str, str] | None = None,
    most: int | None = None,
) -> GbnfPart:
    """An expression for a whole text, without anchors. Raises `UnsayableError`.

    `rules` get those of large repetitions. Repetitions without an end are bounded by about `most` characters.
    """
    if "x" in flags:
        raise UnsayableError
    reading = _Reading(pattern, in_json=in_json, rules=rules, most=most)
    found = reading.alternatives("i" in flags, "s" in flags)
    if reading.at < len(pattern):
        raise UnsayableError
    return found


@lru_cache(1024)
def may_read(pattern: str, ranges: Ranges) -> bool:
    """Whether an expression for a whole text may match one of these characters; True if unknown."""
    reading = _Reading(pattern, in_json=False)
    try:
        reading.alternatives(any_case=False, dot_all=False)
    except UnsayableError:
        return True
    return reading.at < len(pattern) or any(_common(read, ranges) for read in reading.read)


@lru_cache(1024)
def is_sayable(pattern: str) -> bool:
    """Whether a schema's pattern can be expressed for a JSON string."""
    whole = whole_pattern(pattern)
    if whole is None:
        return False
    try:
        expression(whole, in_json=True)
    except UnsayableError:
        return False
    return True


def characters(ranges: Ranges, *, in_json: bool) -> GbnfPart:
    """One character out of these."""
    plain = _common(ranges, IN_STRINGS if in_json else IN_TEXTS)
    ways = [class_of(plain)] if plain else []
    if in_json:
        special = [
            code for low, high in _common(ranges, ((0, 31), (34, 34), (92, 92))) for code in range(low, high + 1)
        ]
        ways += [gbnf_literal(f"\\{_SHORT[code]}" if code in _SHORT else f"\\u{code:04x}") for code in special]
    if not ways:
        raise UnsayableError
    return GbnfPart(ways[0] if len(ways) == 1 else f"({' | '.join(ways)})")


class _Reading:
    def __init__(
        self, pattern: str, *, in_json: bool, rules: dict[str, str] | None = None, most: int | None = None
    ) -> None:
        self._pattern = pattern
        self._in_json = in_json
        self._rules = {} if rules is None else rules
        self._most = most
        self._depth = 0
        self.at = 0
        self.read: list[Ranges] = []

    def alternatives(self, any_case: bool, dot_all: bool) -> GbnfPart:
        rows = [self._row(any_case, dot_all)]
        while self._take("|"):
            rows.append(self._row(any_case, dot_all))
        return either(rows)

    def _row(self, any_case: bool, dot_all: bool) -> GbnfPart:
        parts: list[GbnfPart] = []
        while self.at < len(self._pattern) and self._pattern[self.at] not in "|)":
            if self._pattern.startswith("(?", self.at) and (found := self._flags()) is not None:
                any_case, dot_all = any_case or "i" in found, dot_all or "s" in found
                continue
            parts.append(self._apply_count(self._atom(any_case, dot_all)))
        return row(parts)

    def _flags(self) -> str | None:
        """Flags for the rest of a group: `(?i)`."""
        found = _GROUP.match(self._pattern, self.at + 1)
        if found is None or found["end"] != ")":
            return None
        self.at = found.end()
        return found["flags"]

    def _apply_count(self, piece: GbnfPart) -> GbnfPart:
        mark = self._pattern[self.at : self.at + 1]
        if mark in ("*", "+", "?") and mark:
            self.at += 1
            piece = self._repeated(piece, int(mark == "+"), 1 if mark == "?" else None)
        elif mark == "{":
            found = _COUNT.match(self._pattern, self.at)
            if found is None or not found[1]:
                raise UnsayableError
            self.at = found.end()
            least = int(found[1])
            piece = self._repeated(piece, least, least if not found[2] else int(found[3]) if found[3] else None)
        else:
            return piece
        if self._pattern[self.at : self.at + 1] in ("?", "+", "*", "{"):
            raise UnsayableError
        return piece

    def _repeated(self, piece: GbnfPart, least: int, most: int | None) -> GbnfPart:
        if most is None and self._most is not None:
            room = isqrt(self._most) if self._depth else self._most
            most = least + max(room // piece.size, 1)
        return repeated(piece, least, most, self._rules)

    def _atom(self, any_case: bool, dot_all: bool) -> GbnfPart:
        mark = self._pattern[self.at]
        self.at += 1
        if mark == "(":
            if self._take("?"):
                found = _GROUP.match(self._pattern, self.at - 1)
                if found is None:
                    raise UnsayableError
                self.at = found.end()
                any_case, dot_all = any_case or "i" in (found["flags"] or ""), dot_all or "s" in (found["flags"] or "")
            self._depth += 1
            inner = self.alternatives(any_case, dot_all)
            self._depth -= 1
            if not self._take(")"):
                raise UnsayableError
            return inner
        if mark == ".":
            return self._one_of(((0, _LAST),) if dot_all else without_characters(((0, _LAST),), "\n"))
        if mark in "^$":
            raise UnsayableError
        if mark == "[":
            ranges = self._class(any_case)
        else:
            ranges = self._escape(sure=True) if mark == "\\" else ((ord(mark), ord(mark)),)
        return self._one_of(_any_case(ranges) if any_case else ranges)

    def _one_of(self, ranges: Ranges) -> GbnfPart:
        self.read.append(ranges)
        return characters(ranges, in_json=self._in_json)

    def _escape(self, *, sure: bool) -> Ranges:
        """The characters of an escape. `sure`: of a class only those certainly in it, otherwise all that may be."""
        if found := _CODE.match(self._pattern, self.at):
            self.at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            return ((code, code),)
        mark = self._pattern[self.at : self.at + 1]
        self.at += 1
        if mark.lower() in _SURE:
            known = _SURE if sure == mark.islower() else _MAYBE
            return known[mark.lower()] if mark.islower() else _complement(known[mark.lower()])
        if mark in _ESCAPES:
            return ((_ESCAPES[mark], _ESCAPES[mark]),)
        if not mark or mark.isalnum():
            raise UnsayableError
        return ((ord(mark), ord(mark)),)

    def _class(self, any_case: bool) -> Ranges:
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        first = True
        while first or not self._take("]"):
            if self.at >= len(self._pattern) or self._pattern[self.at : self.at + 2] in ("&&", "--", "~~"):
                raise UnsayableError
            low = self._member(sure=not negated)
            if len(low) == 1 and low[0][0] == low[0][1] and self._is_range():
                self.at += 1
                high = self._member(sure=not negated)
                if len(high) != 1:
                    raise UnsayableError
                low = ((low[0][0], high[0][1]),)
            found += low
            first = False
        if not negated:
            return tuple(found)
        return _complement(_any_case(tuple(found)) if any_case else found)

    def _member(self, *, sure: bool) -> Ranges:
        mark = self._pattern[self.at : self.at + 1]
        self.at += 1
        if mark in ("[", ""):
            raise UnsayableError
        return self._escape(sure=sure) if mark == "\\" else ((ord(mark), ord(mark)),)

    def _is_range(self) -> bool:
        return self._pattern[self.at : self.at + 1] == "-" and self._pattern[self.at + 1 : self.at + 2] not in ("]", "")

    def _take(self, mark: str) -> bool:
        found = self._pattern.startswith(mark, self.at)
        self.at += len(mark) if found else 0
        return found


def _common(one: Iterable[tuple[int, int]], other: Ranges) -> Ranges:
    pairs = ((max(a, c), min(b, d)) for a, b in one for c, d in other)
    return tuple(sorted(pair for pair in pairs if pair[0] <= pair[1]))


def _complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    out: list[tuple[int, int]] = []
    at = 0
    for low, high in sorted(ranges):
        if low > at:
            out.append((at, low - 1))
        at = max(at, high + 1)
    return (*out, (at, _LAST)) if at <= _LAST else tuple(out)


def _any_case(ranges: Ranges) -> Ranges:
    """With the other cases of ASCII letters: of `k` and `s` there are more than two."""
    upper = [(low + 32, high + 32) for low, high in _common(ranges, ((65, 90),))]
    lower = [(low - 32, high - 32) for low, high in _common(ranges, ((97, 122),))]
    more = [
        (other, other)
        for letter, other in ((107, 0x212A), (115, 0x17F))
        if _common((*ranges, *upper), ((letter, letter),))
    ]
    return (*ranges, *upper, *lower, *more)
