"""Escapes in strings, and keys of arguments, in notations that look like program code."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

__all__ = ["ESCAPE", "MAX_ESCAPE", "SHORT_ESCAPE", "key_patterns", "unescaped"]

ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"
                     r"|x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)  # fmt: skip
# Escapes that are whole with their second character, which is no white space and no closer.
SHORT_ESCAPE: Final = r"\\[^uUx0-7\s)\]}]"
MAX_ESCAPE: Final = 12
_NAMED: Final[Mapping[str, str]] = dict(
    zip("ntrbfva\n\\'\"/", ("\n", "\t", "\r", "\b", "\f", "\v", "\a", "", *"\\'\"/"), strict=True)
)


def unescaped(escape: str) -> str:
    r"""The text that an escape stands for; an unknown one (`\d`) is itself."""
    mark = escape[1]
    if mark in _NAMED:
        return _NAMED[mark]
    if mark in "uUx" and len(escape) > 2:
        if len(escape) == MAX_ESCAPE:
            halves = chr(int(escape[2:6], 16)) + chr(int(escape[8:], 16))
            return halves.encode("utf-16", "surrogatepass").decode("utf-16")
        return chr(min(int(escape[2:], 16), 0x10FFFF))
    return chr(int(escape[1:], 8)) if mark in "01234567" else escape


@lru_cache(maxsize=16)
def key_patterns(
    separator: str, verbatim: tuple[str, ...]
) -> tuple[Callable[[str], re.Match[str] | None], Callable[[str], re.Match[str] | None]]:
    """Two matchers: a key with one of the characters of `separator` behind it, and a partial match of that. `verbatim`:
    quotes without escapes.
    """
    quoted = r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'"""
    half = r""""(?:[^"\\]|\\.)*+\\?|'(?:[^'\\]|\\.)*+\\?"""
    bare = r"[\w.$-]++"
    end = rf"\s*+[{re.escape(separator)}]"
    marks = (
        "|".join(rf"{re.escape(mark)}(?P<verbatim>.*?){re.escape(mark)}" for mark in verbatim) or "(?P<verbatim>(?!))"
    )
    halves = "|".join(rf"{re.escape(mark)}.*" for mark in verbatim) or "(?!)"
    begins = "|".join(re.escape(mark[:n]) for mark in verbatim for n in range(1, len(mark))) or "(?!)"
    whole = re.compile(rf"(?:(?P<quoted>{quoted})|{marks}|(?P<bare>{bare})){end}", re.DOTALL).match
    part = re.compile(rf"(?:(?:{quoted}|{bare})\s*+|{half}|{halves}|{begins})?\Z", re.DOTALL).match
    return whole, part
