"""Which quote ends a string? The one that a legal delimiter follows. Pure functions that look at the text after a
quote.

In strict JSON a comma, colon or closer follows every closing quote, so a valid string always ends there. Any
other quote is text the model did not escape: `{"a": "say "hi" now"}`. Such quotes come in pairs. So the second of a
pair ends the string only if everything open is then closed properly: in `"print("a", "b")"` the quote before the comma
does not.

Every function returns None if the verdict depends on text that has not arrived.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from callwright.tolerant_json.certain import JsonRepair

Where: TypeAlias = Literal["top", "object", "array", "key"]

# Lookahead after a quote, in characters.
AHEAD: Final = 512
# After a quote: another text, maybe after a comma; a name; a colon; closing brackets, then an opener.
_FOLLOWS = re.compile(r""""(?:\s*+,\s*+)?"++\w|"\s*+,\s*+[\w.-]++"|"\s*+:|"\s*+[}\]][\s}\]]*+,?+\s*+[{\["]""").match
_MAY_FOLLOW = re.compile(r'"\s*+(?:,\s*+)?(?:"*+|[\w.-]*+)\Z|"\s*+[}\]][\s}\]]*+,?+\s*+\Z').match
# Opening quotes, with the closing quote of each.
QUOTES: Final = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’"}
_OPENING: Final = {"}": "{", "]": "[", ")": "("}
_BLANKS = re.compile(r"[\s\ufeff]*+").match
_VALUE_BEGIN: Final = "\"'`“‘{[-0123456789tfnTFN"
_QUOTED: Final = (
    r"""(?:"(?:[^"\\\n]|\\.|(?!))*+"|'(?:[^'\\\n]|\\.|(?!))*+'|`[^`\n]*+`|“[^”\n]*+”|‘[^’\n]*+’|[\w$.-]++["'])"""
)
_HALF_QUOTED: Final = (
    r"""(?:"(?:[^"\\\n]|\\.|(?!))*+\\?|'(?:[^'\\\n]|\\.|(?!))*+\\?|`[^`\n]*+|“[^”\n]*+|‘[^’\n]*+|[\w$.-]*+)"""
)


class Pattern(NamedTuple):
    """A prefix pattern: matches the `whole` prefix, or a `part` of it if the rest may arrive later."""

    whole: Callable[[str], re.Match[str] | None]
    part: Callable[[str], object]

    def begins(self, text: str, *, is_all: bool) -> bool | None:
        """Whether a text begins so; None if that depends on text that has not arrived."""
        if self.whole(text):
            return True
        return (True if is_all else None) if self.part(text) else False


class Notation(NamedTuple):
    """What may follow a string.

    `keys` answers the patterns of a key, by the number of open brackets around it, and by the marks that may end a key
    without quotes (`a:`, `a=`; "": quotes are a must). `item` matches what may follow a comma in a list. `tokens` finds
    strings and brackets, `delimiters` follow a string. `ends` are literals that end all of it.

    `another`: the notation is that of calls, whose brackets have members, whose strings in a row are one, and which
    another call may follow, of this begin.
    """

    keys: Callable[[int, str], Pattern]
    item: Pattern
    tokens: Callable[[str], Iterator[re.Match[str]]]
    delimiters: str = ",:}]"
    commas: str = ",;"
    ends: tuple[str, ...] = ()
    another: Pattern | None = None


# By the marks that may end a key without quotes.
_KEYS: Final = {
    bare: Pattern(
        re.compile(rf"{_QUOTED}\s*+[:=]" + (rf"|[\w$.-]++\s*+[{bare}]" if bare else "")).match,
        re.compile(rf"(?:{_QUOTED}\s*+|{_HALF_QUOTED}" + (r"|[\w$.-]++\s*+" if bare else "") + r")\Z").match,
    )
    for bare in ("", ":", ":=")
}
_KEY_WITH_VALUE = re.compile(r"""["'][^"'\\\n,{}]{1,100}["']\s*+:\s*+(?P<value>\S)""").match
_KEY_WITH_VALUE_BEGIN = re.compile(r"""["'][^"'\\\n,{}]{0,100}(?:["']\s*+(?::\s*+)?)?\Z""").match
_ESCAPED_QUOTE = re.compile(r'\\"[ \t]{0,9}+,\s{0,99}+(?=")').match
_ESCAPED_QUOTE_BEGIN = re.compile(r'\\(?:"[ \t]{0,9}+(?:,\s{0,99}+)?)?\Z').match
_CLOSERS = re.compile(r"[\s})\]]*+").match
_COMMENT = re.compile(r"(?://|#)[^\n]*+(?P<line>\n|\Z)|/\*(?:[^*]|\*(?!/)|(?!))*+(?P<block>\*/|\*?\Z)").match
_COMMA_TAIL = re.compile(r",[ \t]*+\Z").search
_MAX_COMMA_TAIL: Final = 64
# What may follow a whole value: closers, then the end, a fence or a tag.
_ENDINGS = re.compile(r"[\s})\];]*+").match
_BEHIND_ALL = re.compile(r"[\s})\];]*+(?:\Z|```|<)").match

JSON: Final = Notation(
    keys=lambda depth, bare: _KEYS[bare],
    item=Pattern(
        re.compile(r"""["'`“‘{\[(\d}\],/#-]|\.\.\.|[^,\]"'\n]*+[,\]\n]""").match,
        re.compile(r"""[^,\]"'\n]*+\Z""").match,
    ),
    tokens=re.compile(r'(?P<string>"(?:[^"\\\n]|\\.|(?!))*+"(?P<behind>\s*+[^\s]?))|["{}\[\]]').finditer,
)
# The same inside an object whose keys are not strict JSON: the next one may not be either.
LOOSE_JSON: Final = JSON._replace(keys=lambda depth, bare: _KEYS[":="])


def judge_quote(
    text: str,
    at: int,
    closing: str,
    where: Where,
    open_: Sequence[str],
    inner: int,
    *,
    ended: bool,
    behind_comma: bool,
    notation: Notation,
) -> Literal["closes", "missing_quote", "quote_in_key", "early_end", "inner_quote"] | None:
    """The role of the quote at `text[at]`, after `inner` others in the string: it closes the string, or begins the next
    key after a comma (the string's own closing quote is missing), or is text; None if that is not known yet.
    """
    odd = inner % 2 == 1
    closes = closes_string(text, at, closing, where, open_, ended=ended, odd=odd, notation=notation)
    if closes:
        return "closes"
    # Quotes that come in pairs are text, as in code: none of them begins the next key.
    may_begin = closes is False and behind_comma and (odd or not inner)
    begins_key = may_begin and key_with_value(text, at, ended=ended)
    is_first = not inner and closing == '"' and where != "key"
    may_close = may_close_early(text, at, ended=ended) if is_first else False
    if closes is None or begins_key is None or may_close is None:
        return None
    if begins_key:
        return "missing_quote"
    if where == "key":
        return "quote_in_key"
    return "early_end" if may_close else "inner_quote"


def quote_repairs(verdict: JsonRepair | Literal["closes"], closing: str, inner: int) -> Sequence[JsonRepair]:
    """The repairs that the role of a quote means, after `inner` others in its string."""
    if verdict == "closes":
        return ("odd_quotes",) if inner % 2 and closing == '"' else ()
    return (verdict,) if verdict in ("missing_quote", "inner_quote") else (verdict, "inner_quote")


def closes_string(
    text: str,
    at: int,
    closing: str,
    where: Where,
    open_: Sequence[str],
    *,
    ended: bool,
    odd: bool = False,
    notation: Notation = JSON,
) -> bool | None:
    """Whether the quote at `text[at]` ends its string; None if that is not known yet.

    `open_` are the opening brackets around the string, outermost first. `ended`: no text will follow. `odd`: the string
    has an odd number of quotes inside, so this may be the second of a pair.
    """
    if len(closing) == 3:
        ahead = text[at : at + 3]
        return ahead == closing or (None if closing.startswith(ahead) and not ended else False)
    if where == "top" or (where == "key" and text.startswith(":", at + 1)):
        return True
    odd = odd and closing == '"' and where != "key"
    ahead = text[at + 1 : at + 1 + AHEAD]
    return is_delimited(ahead, closing, where, open_, ended=ended, odd=odd, notation=notation)


def is_delimited(
    ahead: str,
    closing: str,
    where: Where,
    open_: Sequence[str],
    *,
    ended: bool,
    odd: bool = False,
    notation: Notation = JSON,
) -> bool | None:
    """The same for `ahead`, at most `AHEAD` characters of the text after a quote: whether it begins with a legal
    delimiter.
    """
    is_all = ended or len(ahead) == AHEAD
    closes = _delimited(ahead, closing, where, open_, notation, is_all=is_all)
    return _ends_well(ahead, len(open_), notation, ended=ended) if closes and odd else closes


def _delimited(
    ahead: str, closing: str, where: Where, open_: Sequence[str], notation: Notation, *, is_all: bool
) -> bool | None:
    at = _BLANKS(ahead).end()  # type: ignore[union-attr]  # matches always
    blanks = ahead[:at]
    if where != "key" and ahead.startswith(("/", "#"), at):
        at, blanks = _behind_comments(ahead, at)
    rest = ahead[at:]
    if not rest or (rest == "/" and not is_all):
        return True if is_all else None
    mark = rest[0]
    if where == "key":
        return mark in ":=,}" or rest.startswith(("//", "/*")) or (bool(blanks) and mark in _VALUE_BEGIN)
    if mark in "}]" or (mark == ")" and "(" in open_):
        return _closers_fit(rest, closing, open_, notation, is_all=is_all)
    if mark == "," or (mark in notation.commas and where == "object"):
        return _comma_fits(rest[1:].lstrip(), where, len(open_), notation, is_all=is_all, bare=":" * (mark == ","))
    return _next_value(rest, blanks, where, len(open_), notation, is_all=is_all)


def _behind_comments(text: str, at: int) -> tuple[int, str]:
    """The position after comments, and the blanks up to it: a comment counts as one, or as its line feed."""
    blanks = text[:at]
    while (blanks or not text.startswith("#", at)) and (comment := _COMMENT(text, at)):
        blanks += comment["line"] or " "
        at = _BLANKS(text, comment.end()).end()  # type: ignore[union-attr]  # matches always
    return at, blanks


def _next_value(rest: str, blanks: str, where: Where, depth: int, notation: Notation, *, is_all: bool) -> bool | None:
    """Whether the end of all, or the next value without its comma, follows a quote and `blanks`."""
    if rest.startswith(notation.ends):
        return True
    if not is_all and any(end.startswith(rest) for end in notation.ends):
        return None
    mark = rest[0]
    if rest.startswith("```") and "\n" in blanks:
        return True
    if notation.another and mark in "\"'":
        return True
    if rest == '"' and not is_all:
        return None
    if where == "array":
        return bool(blanks) and (_begins_item(mark) or "\n" in blanks)
    if blanks and (mark in QUOTES or "\n" in blanks or notation.another):
        return notation.keys(depth, "").begins(rest, is_all=is_all)
    return None if rest in ("`", "``") and not is_all else False


def _begins_item(mark: str) -> bool:
    """Whether a value that is no word may begin with this character."""
    return mark in QUOTES or mark in "{[-" or mark.isdigit()


def key_follows(rest: str, *, is_all: bool) -> bool | None:
    """Whether a text begins with a key and its colon, or `=`; None if that is not known yet."""
    return _KEYS[":="].begins(rest, is_all=is_all)


def key_with_value(text: str, at: int, *, ended: bool) -> bool | None:
    """Whether `"key": ` and the start of a value are at `at`; None if that is not known yet."""
    if found := _KEY_WITH_VALUE(text, at):
        return found["value"] in _VALUE_BEGIN
    return None if not ended and _KEY_WITH_VALUE_BEGIN(text, at) else False


def may_close_early(text: str, at: int, *, ended: bool) -> bool | None:
    """Whether the quote at this place, which closes no string, may have been meant to: after it, the next token of the
    JSON follows in a malformed form, as in `{"a": "x", "b" {`. None if that depends on text that has not arrived.
    """
    if not ended and len(text) - at < AHEAD and _MAY_FOLLOW(text, at):
        return None
    return _FOLLOWS(text, at, at + AHEAD) is not None


def backslash_ends(text: str, at: int, *, ended: bool) -> bool | None:
    r"""Whether the backslash at `at` is text and the quote after it ends the string; None if that is not known yet.

    Models forget to escape it at the end of a path: `{"dir": "C:\dir\", "key": 1}`. In strict JSON a comma and a quoted
    key with its value never follow an escaped quote.
    """
    found = _ESCAPED_QUOTE(text, at)
    if found is None:
        return None if not ended and _ESCAPED_QUOTE_BEGIN(text, at) else False
    return key_with_value(text, found.end(), ended=ended)


def _closers_fit(rest: str, closing: str, open_: Sequence[str], notation: Notation, *, is_all: bool) -> bool | None:
    """Whether closers after a quote may close the containers in `open_`; the text after them must fit, too.

    In `{"a": "x"}` they may, in `{"a": "f("b") = c"}` the `)` closes nothing that is open.
    """
    run = _CLOSERS(rest).group()  # type: ignore[union-attr]  # matches always
    left, right = _closed(run, open_)
    behind = rest[len(run) :]
    if not behind:
        return True if is_all else None
    if behind[0] == closing and not run[-1:].isspace():  # a quote of JSON inside the string
        after = behind[1:].lstrip()
        if not after:
            return (right and not left) if is_all else None
        if after[0] in ",}])":
            return False
    if right and not left:
        return _follows_all(behind, notation, is_all=is_all)
    return _follows_some(behind, left, notation, right=right, lines="\n" in run, is_all=is_all)


def _closed(run: str, open_: Sequence[str]) -> tuple[list[str], bool]:
    """The brackets that are still open after a run of closers, and whether each has closed its own kind."""
    left, right = list(open_), True
    for mark in run:
        if mark in _OPENING and left:
            right = right and left[-1] == _OPENING[mark]
            while left.pop() != _OPENING[mark] and _OPENING[mark] in left:
                pass
    return left, right


def _follows_some(
    behind: str, left: Sequence[str], notation: Notation, *, right: bool, lines: bool, is_all: bool
) -> bool | None:
    """Whether a text may follow closers that leave the brackets in `left` open. `right`: each of them has closed its
    own kind; `lines`: a line feed is among them.
    """
    is_object = not left or left[-1] == "{" or (notation.another is not None and len(left) == 1)
    if behind[0] in notation.commas:
        where: Where = "object" if is_object else "array"
        return _comma_fits(behind[1:].lstrip(), where, len(left), notation, is_all=is_all, bare=":" * right)
    if behind[0] in "`</" and len(behind) < 3 and not is_all:
        return None
    if behind.startswith(("```", "</", "<|", *notation.ends)):
        return True
    if not right:
        return False
    if behind[0] in "/#":
        return behind.startswith(("//", "/*", "#"))
    if is_object:
        return notation.keys(len(left), "").begins(behind, is_all=is_all)
    return _begins_item(behind[0]) or (behind[0].isalpha() and lines)


def _follows_all(behind: str, notation: Notation, *, is_all: bool) -> bool | None:
    """Whether a text may follow the last closer: of a call, another call or something that is no text."""
    if notation.another is None or not (behind[0] in "\"',;" or behind[0].isalnum()):
        return True
    return notation.another.begins(behind, is_all=is_all)


def _comma_fits(after: str, where: Where, depth: int, notation: Notation, *, is_all: bool, bare: str) -> bool | None:
    """Whether a comma after a quote separates values: a key must follow in an object, a value in an array."""
    if not after:
        return True if is_all else None
    if after[0] in "}],/#" or after.startswith("...") or (notation.another and after[0] == ")"):
        return True
    return (notation.keys(depth, bare) if where == "object" else notation.item).begins(after, is_all=is_all)


def _ends_well(ahead: str, depth: int, notation: Notation, *, ended: bool) -> bool | None:
    """Whether all `depth` open brackets are closed as the notation has it, with nothing but closers after that."""
    full = len(ahead) == AHEAD
    unknown = None if not (ended or full) else False
    for token in notation.tokens(ahead):
        mark = token.group()
        if token["string"]:
            if not token["behind"].strip():
                return True if ended and not full else unknown
            if token["behind"].strip() not in notation.delimiters:
                return False
            mark = token["behind"].strip()
        if mark in ('"', "'"):
            return unknown
        depth += (mark in "{[(") - (mark in "}])")
        if not depth:
            if ended or full:
                return bool(_BEHIND_ALL(ahead, token.end()))
            behind = ahead[_ENDINGS(ahead, token.end()).end() :]  # type: ignore[union-attr]  # matches always
            return None if behind in ("", "`", "``") else bool(_BEHIND_ALL(ahead, token.end()))
    return True if ended and not full else unknown


def comma_at_end(text: str, at: int, end: int) -> int:
    """The end of a run of string text without its trailing comma and blanks, which may belong after the string."""
    found = _COMMA_TAIL(text, max(at, end - _MAX_COMMA_TAIL), end)
    return found.start() if found else end
