"""Which quote ends a string: the one that a legal delimiter follows. Pure looks at the text behind it.

In strict JSON a legal delimiter follows each closing quote, so a good string always ends where it says. Any other quote
is text that was not escaped.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

__all__ = ["AHEAD", "QUOTES", "Where", "closes_string", "key_follows", "key_with_value"]

Where: TypeAlias = Literal["top", "object", "array", "key"]

# So far is looked behind a quote.
AHEAD: Final = 512
# Opening and closing quotes.
QUOTES: Final = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’"}
_BLANKS = re.compile(r"[\s\ufeff]*+").match
_VALUE_BEGIN: Final = "\"'`“‘{[-0123456789tfnTFN"
_KEY = re.compile(
    r"""(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|`[^`\n]*+`|“[^”\n]*+”|‘[^’\n]*+’|[\w$.-]++["']?)\s*+(?:[:=]|\Z)"""
).match
_KEY_BEGIN = re.compile(
    r"""(?:"(?:[^"\\\n]|\\.)*+\\?|'(?:[^'\\\n]|\\.)*+\\?|`[^`\n]*+|“[^”\n]*+|‘[^’\n]*+|[\w$.-]*+)\Z"""
).match
_KEY_WITH_VALUE = re.compile(r"""["'][^"'\\\n,{}]{1,100}["']\s*+:\s*+(?P<value>\S)""").match
_KEY_WITH_VALUE_BEGIN = re.compile(r"""["'][^"'\\\n,{}]{0,100}(?:["']\s*+(?::\s*+)?)?\Z""").match
_CLOSERS = re.compile(r"[\s})\]]*+").match
_ITEM_WORD = re.compile(r"""[^,\]"'\n]*+""").match


def closes_string(text: str, at: int, closing: str, where: Where, open_: Sequence[str], *, ended: bool) -> bool | None:
    """Whether the quote at `at` ends its string, which stands in the brackets `open_`; None when that is not known yet.

    `ended`: nothing comes behind `text`.
    """
    if len(closing) == 3:
        ahead = text[at : at + 3]
        return ahead == closing or (None if closing.startswith(ahead) and not ended else False)
    if where == "top":
        return True
    ahead = text[at + 1 : at + 1 + AHEAD]
    is_all = ended or len(ahead) == AHEAD
    behind = _BLANKS(ahead).end()  # type: ignore[union-attr]  # matches always
    blanks, rest = ahead[:behind], ahead[behind:]
    if not rest:
        return True if is_all else None
    mark = rest[0]
    if where == "key":
        return mark in ":=,}" or rest.startswith(("//", "/*")) or (bool(blanks) and mark in _VALUE_BEGIN)
    if mark in "}]" or (mark == ")" and "(" in open_):
        return _closers_fit(rest, open_, is_all=is_all)
    if mark == ",":
        return _comma_fits(rest[1:].lstrip(), where, is_all=is_all)
    if mark in "/#":
        return rest.startswith(("//", "/*")) or (mark == "#" and bool(blanks)) or (None if rest == "/" else False)
    if rest.startswith("```") and "\n" in blanks:
        return True
    if where == "array":
        return bool(blanks) and (mark in QUOTES or mark in "{[-" or mark.isdigit() or "\n" in blanks)
    if blanks and (mark in QUOTES or "\n" in blanks):
        return key_follows(rest, is_all=is_all)
    return None if rest in ("`", "``") and not is_all else False


def key_follows(rest: str, *, is_all: bool) -> bool | None:
    """Whether a text begins with a key and its colon; None when that is not known yet."""
    found = _KEY(rest)
    if found and found.group()[-1:] in ":=":
        return True
    if (found and found.end() == len(rest)) or _KEY_BEGIN(rest):
        return True if is_all else None
    return False


def key_with_value(text: str, at: int, *, ended: bool) -> bool | None:
    """Whether a key in quotes, its colon and the begin of a value stand here; None when that is not known yet."""
    if found := _KEY_WITH_VALUE(text, at):
        return found["value"] in _VALUE_BEGIN
    return None if not ended and _KEY_WITH_VALUE_BEGIN(text, at) else False


def _closers_fit(rest: str, open_: Sequence[str], *, is_all: bool) -> bool | None:
    """Whether closers behind a quote may be those of what is open: what follows them must fit, too."""
    run = _CLOSERS(rest).group()  # type: ignore[union-attr]  # matches always
    if len(open_) <= sum(map(run.count, "}])")):
        return True
    behind = rest[len(run) : len(run) + 1]
    if not behind:
        return True if is_all else None
    return behind in ",/#;`{[<" or behind in QUOTES or (behind.isalnum() and "\n" in run)


def _comma_fits(after: str, where: Where, *, is_all: bool) -> bool | None:
    """Whether the comma behind a quote ends a value: something that may come next follows."""
    if not after:
        return True if is_all else None
    mark = after[0]
    if mark in "}],/#" or after.startswith("..."):
        return True
    if where == "object":
        return key_follows(after, is_all=is_all)
    if mark in QUOTES or mark in "{[-(" or mark.isdigit():
        return True
    word = _ITEM_WORD(after)
    if word is None or (word.end() == len(after) and not is_all):
        return None
    return after[word.end() : word.end() + 1] not in ("'", '"')
