"""How values are written in notations that look like program code, and the marks that a reader of them searches."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from callwright.streaming.reader import Markers
from callwright.tolerant_json.strings import Notation, Pattern

QUOTES: Final = ('"""', "'''", '"', "'")
# A key without quotes; in a notation that quotes no key, it may have any character that is not of the notation.
_BARE: Final = r"[\w.$-]++"
_UNQUOTED: Final = r"""[^\s,:=(){}\[\]"'`<>|;\\]++"""
_IS_BARE: Final = re.compile(rf"{_BARE}\Z").match
_MOST_ODD: Final = 256
_TOKENS: Final = re.compile(
    r"""(?P<string>(?:"(?:[^"\\\n]|\\.|(?!))*+"|'(?:[^'\\\n]|\\.|(?!))*+')(?P<behind>\s*+[^\s]?))|["'(){}\[\]]"""
).finditer
# Another call, after a comma or on the next line.
_ANOTHER: Final = Pattern(
    re.compile(r"[,;]?\s*+[^\W\d][\w./-]*+\(").match, re.compile(r"[,;]?\s*+(?:[^\W\d][\w./-]*+)?\Z").match
)


class Ends(Struct, frozen=True):
    """The literals that end a call: those that close it, that begin another, and stop tokens."""

    closes: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.closes, *self.begins, *self.stops)


class LiteralForm(Struct, frozen=True):
    """How values are written, in addition to Python: `verbatim` are quotes of strings without escapes, `ends` the
    literals that end a call, `names` keys that need no quotes, whatever is in them.
    """

    verbatim: tuple[str, ...] = ()
    ends: Ends = Ends()
    names: frozenset[str] = frozenset()

    def keys(self, separator: str) -> Pattern:
        """How a key is found. `separator`: the characters that may follow it."""
        return _key_patterns(separator, self.verbatim, _odd_keys(self.names))

    def notation(self, separator: str) -> Notation:
        """The notation after a string in a call whose names are followed by one of the characters `separator`."""
        return _notation(separator, self.verbatim, self.ends, _odd_keys(self.names))


class LookedFor(NamedTuple):
    """The marks in calls of one form: `in_string` by its quote, `escaped` to find its end, `calls` quoted in it, in
    `words` and in text without spaces (`tokens`).
    """

    in_string: Mapping[str, Markers]
    escaped: Mapping[str, Markers]
    calls: Mapping[str, Markers]
    words: Markers
    tokens: Markers


@lru_cache(maxsize=256)
def looked_for(verbatim: tuple[str, ...], ends: Ends) -> LookedFor:
    """The same for each call of a format."""
    in_string = {quote: Markers(quote, *ends.all) for quote in verbatim}
    in_string |= {quote: Markers(quote, "\\", *ends.all) for quote in QUOTES}
    return LookedFor(
        in_string,
        escaped={quote: Markers(quote, "\\") for quote in QUOTES},
        calls={quote: Markers(quote, *ends.begins, *ends.closes) for quote in verbatim},
        words=Markers(*",})]\n([{\"'", *verbatim, *ends.all),
        tokens=Markers(*",})]([{\"' \t\r\n", *verbatim, *ends.all),
    )


@lru_cache(maxsize=256)
def _odd_keys(names: frozenset[str]) -> tuple[str, ...]:
    """Those of the names that are not known for keys by their form, as `_key_patterns` takes them."""
    odd = (name for name in names if name.strip() and name == name.strip() and not _IS_BARE(name))
    return tuple(sorted(odd, reverse=True))[:_MOST_ODD]


@lru_cache(maxsize=256)
def _key_patterns(separator: str, verbatim: tuple[str, ...], odd: tuple[str, ...] = ()) -> Pattern:
    """How a key is found. `separator`: the characters that may follow it; `verbatim`: quotes without escapes; `odd` are
    keys without quotes, whatever is in them, each before those that it begins with.
    """
    quoted = r""""(?:[^"\\]|\\.|(?!))*+"|'(?:[^'\\]|\\.|(?!))*+'"""
    half = r""""(?:[^"\\]|\\.|(?!))*+\\?|'(?:[^'\\]|\\.|(?!))*+\\?"""
    bare = "|".join((*map(re.escape, odd), _UNQUOTED if verbatim else _BARE))
    end = rf"\s*+[{re.escape(separator)}]"
    mark = "|".join(map(re.escape, verbatim)) or "(?!)"
    marks = rf"(?P<mark>{mark})(?P<verbatim>.*?)(?P=mark)"
    whole = re.compile(rf"(?:(?P<quoted>{quoted})|{marks}|(?P<bare>{bare})){end}", re.DOTALL).match
    part = re.compile(rf"(?:(?:{quoted}|{bare})\s*+|{half}|(?:{mark}).*|{_begins(verbatim)})?\Z", re.DOTALL).match
    if not odd:
        return Pattern(whole, part)

    def is_begun(text: str) -> bool:
        return any(name.startswith(text) for name in odd)

    def whole_or_odd(text: str) -> re.Match[str] | None:
        # `a:` may be a key with its separator, or the beginning of `a:b`
        return None if is_begun(text) else whole(text)

    return Pattern(whole_or_odd, lambda text: part(text) or is_begun(text))


def _begins(literals: tuple[str, ...]) -> str:
    """A pattern for the beginning of one of the literals."""
    return "|".join(re.escape(literal[:n]) for literal in literals for n in range(1, len(literal))) or "(?!)"


@lru_cache(maxsize=256)
def _notation(separator: str, verbatim: tuple[str, ...], ends: Ends, odd: tuple[str, ...]) -> Notation:
    outer, inner = _key_patterns(separator, verbatim, odd), _key_patterns(":", verbatim, odd)
    mark = "|".join(map(re.escape, verbatim)) or "(?!)"
    return Notation(
        keys=lambda depth, _: outer if depth <= 1 else inner,
        item=Pattern(
            re.compile(rf"[\"'\[({{\d.+\-\])}}]|[rRuU][\"']|(?:[Tt]rue|[Ff]alse|None|null)\s*+[,\])}}]|{mark}").match,
            re.compile(rf"\w{{0,5}}\s*+\Z|(?:{_begins(verbatim)})\Z").match,
        ),
        tokens=_TOKENS,
        delimiters=",:=)}]",
        commas=",",
        ends=ends.all,
        another=_ANOTHER,
    )
