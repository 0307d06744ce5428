"""Finds repeated text: before and after each of several items, between two, and around all of them.

It compares words and tags, not characters: `<parameter=` and `</parameter>` share no `parameter>`.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

# Placeholders in a text for the number of a call: from 0, and from 1.
NUMBER: Final = "\ue010"
INDEX: Final = "\ue011"
_PIECE: Final = re.compile(r"<[^<>\s]*(?: [^<>\n]*)?>|\[/?[A-Z_]{2,}\]|\w+|\s|.", re.DOTALL)
_SPECIAL: Final = re.compile(r"<[^<>\s]+>|\[/?[A-Z_]{2,}\]|[\]\[]~[^\s\w]?\[?\w*\]?")
COUNTED: Final = {("0", "1"): NUMBER, ("1", "2"): INDEX}


class Repeats(Struct, frozen=True):
    """The repeated text: `begin` and `end` around each item, `between` two, `open` and `close` around all."""

    open: str
    begin: str
    end: str
    between: str
    close: str


def pieces(text: str) -> list[str]:
    """The words, tags, blanks and other characters of a text."""
    return _PIECE.findall(text)


def special(text: str) -> list[str]:
    """What in a text looks like a token of its own: a tag, or a word in brackets."""
    return _SPECIAL.findall(text)


def common_start(one: str, other: str) -> str:
    """The pieces that both begin with."""
    return "".join(_common(pieces(one), pieces(other)))


def common_end(one: str, other: str) -> str:
    """The pieces that both end with. A number that is one more in the other is a slot."""
    return "".join(_common(pieces(one)[::-1], pieces(other)[::-1], counts=True)[::-1])


def split_repeats(before: str, between: str, behind: str) -> Repeats:
    """Split the text around two items: `before` the first, `between` them, `behind` the second."""
    begin = common_end(before, between)
    open_, rest = before[: len(before) - len(begin)], between[: len(between) - len(begin)]
    blanks = begin[: len(begin) - len(begin.lstrip())]
    begin, open_, rest = begin[len(blanks) :], open_ + blanks, rest + blanks
    end = common_start(rest, behind)
    return Repeats(open_, begin, end, rest[len(end) :], behind[len(end) :])


def _common(one: Sequence[str], other: Sequence[str], *, counts: bool = False) -> list[str]:
    found: list[str] = []
    for mine, its in zip(one, other, strict=False):
        if mine == its:
            found.append(mine)
        elif counts and (mine, its) in COUNTED:
            found.append(COUNTED[mine, its])
        else:
            break
    return found
