"""Escapes in strings, and keys of arguments, in notations that look like program code."""

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Final, NamedTuple

from callwright.events import Markup
from callwright.stream_reader import Parse, StreamReader
from callwright.tolerant_json.codec import encode_inside

__all__ = [
    "CERTAIN_ESCAPE",
    "ESCAPE",
    "KeyPatterns",
    "key_patterns",
    "odd_keys",
    "read_escape",
    "read_escapes",
    "unescaped",
    "with_escapes",
]

ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"
                     r"|x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)  # fmt: skip
# Escapes that are whole with their second character, which is no white space and no closer.
_SHORT_ESCAPE: Final = r"\\[^uUx0-7\s)\]}]"
_SHORT_ESCAPES: Final = re.compile(f"({_SHORT_ESCAPE})", re.DOTALL).split
# Those of them whose text does not matter as JSON either.
CERTAIN_ESCAPE: Final = r"""\\(?:[abfnrtv/']|"(?![\s,]|\Z))"""
# A key without quotes.
_BARE: Final = r"[\w.$-]++"
_IS_BARE: Final = re.compile(rf"{_BARE}\Z").match
_MOST_ODD: Final = 256
_TOKEN: Final = 64  # characters of a text that may be a token, or some
_MAX_ESCAPE: Final = 12
_NAMED: Final[Mapping[str, str]] = dict(
    zip("ntrbfva\n\\'\"/", ("\n", "\t", "\r", "\b", "\f", "\v", "\a", "", *"\\'\"/"), strict=True)
)


def unescaped(escape: str) -> str:
    r"""The text that an escape stands for; an unknown one (`\d`) is itself."""
    mark = escape[1]
    if mark in _NAMED:
        return _NAMED[mark]
    if mark in "uUx" and len(escape) > 2:
        if len(escape) == _MAX_ESCAPE:
            halves = chr(int(escape[2:6], 16)) + chr(int(escape[8:], 16))
            return halves.encode("utf-16", "surrogatepass").decode("utf-16")
        return chr(min(int(escape[2:], 16), 0x10FFFF))
    return chr(int(escape[1:], 8)) if mark in "01234567" else escape


@cache
def with_escapes(firsts: str) -> Callable[[str], re.Match[str] | None]:
    """What matches a whole text in which short escapes are all that matters; the group is the half of one at its end.

    `firsts`: the characters that matter, as the first of something.
    """
    others = f"[^{re.escape(firsts)}]*+"
    return re.compile(rf"{others}(?:{_SHORT_ESCAPE}{others}|(?!))*+(\\?)\Z", re.DOTALL).match


def read_escape(source: StreamReader, *, raw: bool) -> Parse[str]:
    """Read an escape; answers its text. In a raw string that is the escape itself."""
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
    """A text that was read: its escapes, what was said up to the last of them and behind it, and all that as JSON."""

    markup: Markup
    said: tuple[str, str]
    inside: str


def read_escapes(text: str) -> _Escapes:
    """A text whose escapes are all short and whole. What comes in tokens comes again."""
    return _read_token(text) if len(text) <= _TOKEN else _read_escapes(text)


def _read_escapes(text: str) -> _Escapes:
    parts = _SHORT_ESCAPES(text)
    markup = Markup("".join(parts[1::2]))
    parts[1::2] = map(unescaped, parts[1::2])
    return _Escapes(markup, ("".join(parts[:-1]), parts[-1]), encode_inside("".join(parts)))


_read_token = lru_cache(maxsize=4096)(_read_escapes)


@lru_cache(maxsize=256)
def odd_keys(names: frozenset[str]) -> tuple[str, ...]:
    """Those of the names that are not known for keys by their form, as `key_patterns` takes them."""
    odd = (name for name in names if name.strip() and name == name.strip() and not _IS_BARE(name))
    return tuple(sorted(odd, reverse=True))[:_MOST_ODD]


class KeyPatterns(NamedTuple):
    """A key with what separates it from its value, at the begin of a text: the `whole` of it, with a group for each
    way to write it, or a `part`, all of the text, of which the rest may come.
    """

    whole: Callable[[str], re.Match[str] | None]
    part: Callable[[str], object]


@lru_cache(maxsize=256)
def key_patterns(separator: str, verbatim: tuple[str, ...], odd: tuple[str, ...] = ()) -> KeyPatterns:
    """How a key is found. `separator`: the characters that may stand behind it; `verbatim`: quotes without escapes;
    `odd` are keys that stand without quotes, whatever is in them, each before those that it begins with.
    """
    quoted = r""""(?:[^"\\]|\\.|(?!))*+"|'(?:[^'\\]|\\.|(?!))*+'"""
    half = r""""(?:[^"\\]|\\.|(?!))*+\\?|'(?:[^'\\]|\\.|(?!))*+\\?"""
    bare = "|".join((*map(re.escape, odd), _BARE))
    end = rf"\s*+[{re.escape(separator)}]"
    marks = (
        "|".join(rf"{re.escape(mark)}(?P<verbatim>.*?){re.escape(mark)}" for mark in verbatim) or "(?P<verbatim>(?!))"
    )
    halves = "|".join(rf"{re.escape(mark)}.*" for mark in verbatim) or "(?!)"
    begins = "|".join(re.escape(mark[:n]) for mark in verbatim for n in range(1, len(mark))) or "(?!)"
    whole = re.compile(rf"(?:(?P<quoted>{quoted})|{marks}|(?P<bare>{bare})){end}", re.DOTALL).match
    part = re.compile(rf"(?:(?:{quoted}|{bare})\s*+|{half}|{halves}|{begins})?\Z", re.DOTALL).match
    if not odd:
        return KeyPatterns(whole, part)

    def is_begun(text: str) -> bool:
        return any(name.startswith(text) for name in odd)

    def whole_or_odd(text: str) -> re.Match[str] | None:
        return None if is_begun(text) else whole(text)  # `a:` may be a key with its separator, or go on as `a:b`

    return KeyPatterns(whole_or_odd, lambda text: part(text) or is_begun(text))
