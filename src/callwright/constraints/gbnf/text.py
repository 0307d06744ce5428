"""Texts and classes of characters in GBNF, and the keys of an object that are not declared."""

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]

# Characters that a JSON string holds unescaped.
IN_STRINGS: Final[Ranges] = (
    *((32, 33), (35, 91), (93, 126), (0xA0, 0xD7FF)),
    *((0xE000, 0xFFFC), (0x10000, 0x10FFFF)),
)
# Characters of a text: no control characters, no halves of surrogate pairs.
IN_TEXTS: Final[Ranges] = ((9, 10), (13, 13), (32, 0xD7FF), (0xE000, 0xFFFC), (0x10000, 0x10FFFF))
_ESCAPED: Final = r'"\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_QUOTE: Final = r'"\""'
_PRINTABLE_FROM: Final = 32
_ASCII: Final = 128


def gbnf_literal(text: str) -> str:
    """A text as a literal."""
    inner = (_ESCAPES.get(c) or (c if ord(c) >= _PRINTABLE_FROM else f"\\x{ord(c):02X}") for c in text)
    return f'"{"".join(inner)}"'


# Keys up to this length are distinguished from others.
_MAX_KEY: Final = 128


def class_of(ranges: Ranges) -> str:
    """A class of characters."""
    codes = (_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in ranges)
    return f"[{''.join(codes)}]"


def without_characters(ranges: Ranges, characters: Iterable[str]) -> Ranges:
    """The ranges without_characters these characters."""
    for code in map(ord, characters):
        kept: list[tuple[int, int]] = []
        for low, high in ranges:
            split = ((low, code - 1), (code + 1, high)) if low <= code <= high else ((low, high),)
            kept += [part for part in split if part[0] <= part[1]]
        ranges = tuple(kept)
    return ranges


def other_keys(rules: dict[str, str], name: str, declared: Collection[str], more: str) -> str:
    """The rule of a JSON string that differs from all of these: a rule for each of their prefixes. `more`: the
    characters after the first that differs.

    A key that JSON must escape is not excluded, nor is one that is written in escapes, or a very long one.
    """
    keys = {key for key in declared if 0 < len(key) <= _MAX_KEY and all(_holds(character) for character in key)}
    known = sorted({key[:end] for key in keys for end in range(len(key) + 1)} | {""})
    place = {begin: f"{name}-{number}" for number, begin in enumerate(known)}
    following: dict[str, list[str]] = {begin: [] for begin in known}
    for begin in filter(None, known):
        following[begin[:-1]].append(begin[-1])
    for begin, rule in place.items():
        after = following[begin]
        ways = [f"({class_of(without_characters(IN_STRINGS, after))} | {_ESCAPED}) {more} {_QUOTE}"]
        ways += [f"{gbnf_literal(character)} {place[begin + character]}" for character in after]
        ways += [] if begin in keys else [_QUOTE]
        rules[rule] = " | ".join(ways)
    rules[name] = f"{_QUOTE} {place['']}"
    return name


def _holds(character: str) -> bool:
    return any(low <= ord(character) <= high for low, high in IN_STRINGS)


def _code(code: int) -> str:
    if code < _ASCII and chr(code).isalnum():
        return chr(code)
    return f"\\U{code:08X}" if code > 0xFFFF else f"\\u{code:04X}"
