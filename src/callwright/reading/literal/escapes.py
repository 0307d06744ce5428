"""Escapes in strings of notations that look like program code."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from callwright.events import Markup
from callwright.streaming.reader import Parse, StreamReader
from callwright.tolerant_json.codec import encode_inside

ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"
                     r"|x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)  # fmt: skip
# Escapes that are complete with their second character, which is not white space or a closer.
_SHORT_ESCAPE: Final = r"\\[^uUx0-7\s)\]}]"
_SHORT_ESCAPES: Final = re.compile(f"({_SHORT_ESCAPE})", re.DOTALL).split
# Those of them whose text does not matter as JSON either.
CERTAIN_ESCAPE: Final = r"""\\(?:[abfnrtv/']|"(?![\s,]|\Z))"""
_TOKEN: Final = 64  # characters of a text that may be a token, or some
_MAX_ESCAPE: Final = 12
_NAMED: Final[Mapping[str, str]] = dict(
    zip("ntrbfva\n\\'\"/", ("\n", "\t", "\r", "\b", "\f", "\v", "\a", "", *"\\'\"/"), strict=True)
)


def unescaped(escape: str) -> str:
    r"""The text that an escape denotes; an unknown one (`\d`), and half of a surrogate pair, is itself."""
    mark = escape[1]
    if mark in _NAMED:
        return _NAMED[mark]
    if mark in "uUx" and len(escape) > 2:
        if len(escape) == _MAX_ESCAPE:
            halves = chr(int(escape[2:6], 16)) + chr(int(escape[8:], 16))
            return halves.encode("utf-16", "surrogatepass").decode("utf-16")
        char = chr(min(int(escape[2:], 16), 0x10FFFF))
        return escape if "\ud800" <= char <= "\udfff" else char
    return chr(int(escape[1:], 8)) if mark in "01234567" else escape


def read_escape(source: StreamReader, *, raw: bool) -> Parse[str]:
    """Read an escape; returns its text. In a raw string that is the escape itself."""
    if raw:
        while source.more(2):
            yield
        return source.take(min(source.at + 2, len(source.text)))
    while source.more(_MAX_ESCAPE):
        begin = source.ahead(_MAX_ESCAPE)
        if len(begin) > 1 and begin[1] not in "uUx01234567":
            break
        yield
    found = ESCAPE.match(source.text, source.at)
    if found is None:
        return source.take(source.at + 1)
    source.emit(Markup(found.group()))
    return unescaped(source.take(found.end()))


class _Escapes(NamedTuple):
    """A text with escapes: the escapes, the decoded text up to the last of them and after it, and all of it as JSON."""

    markup: Markup
    said: tuple[str, str]
    inside: str


def read_escapes(text: str) -> _Escapes:
    """Read a text whose escapes are all short and whole. Texts as short as a token are cached."""
    return _read_token(text) if len(text) <= _TOKEN else _read_escapes(text)


def _read_escapes(text: str) -> _Escapes:
    parts = _SHORT_ESCAPES(text)
    markup = Markup("".join(parts[1::2]))
    parts[1::2] = map(unescaped, parts[1::2])
    return _Escapes(markup, ("".join(parts[:-1]), parts[-1]), encode_inside("".join(parts)))


_read_token = lru_cache(maxsize=4096)(_read_escapes)
