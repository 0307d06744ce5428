"""The position of a candidate in its text: on lines of its own, within a line, or in a place for things shown, not
meant.

Decided by form alone, so it works for every language. Inline code on one line and fences of other languages never get
here: `callwright.tolerant_json.find` skips them.
"""

import re
from typing import Final, Literal, TypeAlias

from callwright.tolerant_json.markers import TRAILING

Standing: TypeAlias = Literal["lines", "line", "shown"]

_MAX_LINE: Final = 400  # characters of a line that are examined, before and after
_LIST_MARK = re.compile(r"\s*(?:[-*+•]|\(?\w{1,3}[.)])(?:\s+|\Z)")
_INLINE = re.compile(r"(?<!`)`{1,2}(?!`)")
_QUOTED = re.compile(r"\s*[>|]")
_DIFF: Final = {"+": "-", "-": "+"}
# Opening quotation marks, by the closing one. A mark that opens in one language closes in another.
_QUOTES: Final = {"”": "“„", "“": "„", "»": "«", "«": "»", "›": "‹", "‹": "›", "’": "‘‚", "」": "「", "』": "『"}
_STRAIGHT: Final = ('"', "'")


_CODE_INDENT: Final = "    "
# A sentence ends, or the announced text begins.
_SENTENCE_END = re.compile(r"(?:[.!?:…。！？：।]|</[^<>\s]+>)[)\]\"'*_”»’]*\s*\Z").search
# The last quotation mark of a line opens: a blank or bracket is before it, and text after it. An apostrophe does not
# count.
_OPEN_QUOTE = re.compile(
    r"""(?:(?<![^\s(\[{<>=,:])(?:["'“„«‹‘‚]|[»›](?!\s))|[「『])(?:[^"'“”„«»‹›‘’‚「」『』]|(?<=\w)['’](?=\w))*\Z"""
).search
# An operator, a bracket, a quotation mark or an HTML tag opens: the following text is a part of something.
_OPENS = re.compile(r"(?:[=(\[{<,;'\"`«“„‹‚「『|+*/\\$#@&%~^-]|<[a-zA-Z][^<>/|]*>)\s*\Z").search


def begins_apart(before: str) -> bool:
    """Whether a line begins after this text, not indented like code, or a sentence ends with it, not in a quotation."""
    line = before.rpartition("\n")[2]
    if not line.strip():
        return not line.expandtabs(len(_CODE_INDENT)).startswith(_CODE_INDENT)
    return _SENTENCE_END(line) is not None and not opens_quotation(line) and line.count("(") <= line.count(")")


def opens_quotation(line: str) -> bool:
    """Whether the last quotation mark of a line opens."""
    return _OPEN_QUOTE(line) is not None


def ends_as_prose(before: str) -> bool:
    """Whether a text may continue with a call: its last line does not open a quotation, an expression or an element."""
    line = before.rpartition("\n")[2]
    return bool(line.strip()) and _OPENS(line) is None


def is_blank(text: str) -> bool:
    """Whether a text consists of nothing but white space, spare closers, leftover fences and stop tokens."""
    return not text.strip(" \t\r\n\f\v\xa0\u3000\ufeff") or TRAILING.fullmatch(text) is not None


def stands(text: str, begin: int, end: int, before: str = "") -> Standing:
    """The standing of `text[begin:end]` in a text, after the earlier output `before`."""
    head = text[max(0, begin - _MAX_LINE) : begin]
    lead = (head if "\n" in head or begin > _MAX_LINE else before[-_MAX_LINE:] + head).rpartition("\n")[2]
    rest, _, below = text[end : end + _MAX_LINE].partition("\n")
    words = lead.strip()
    if _is_code((before + head)[-_MAX_LINE:], text[end : end + _MAX_LINE]):
        return "shown"
    if not words and is_blank(rest):
        return "lines"
    shown = (
        _QUOTED.match(lead)
        or _is_listed(lead, rest)
        or _is_changed(words, head, below)
        or _is_quoted(lead, rest)
        or _is_nested(lead, rest)
    )
    return "shown" if shown else "line"


def _is_code(head: str, behind: str) -> bool:
    """Whether inline code opens before it in its paragraph, and closes after it, be it on other lines."""
    opened = len(_INLINE.findall(head.rpartition("\n\n")[2])) % 2
    return bool(opened) and _INLINE.search(behind.partition("\n\n")[0]) is not None


def _is_listed(lead: str, rest: str) -> bool:
    """Whether it is on the line of a list item, with other words."""
    mark = _LIST_MARK.match(lead)
    return mark is not None and bool(lead[mark.end() :].strip() or not is_blank(rest))


def _is_changed(words: str, head: str, below: str) -> bool:
    """Whether it is a line of a diff: the line above or below has the other sign."""
    other = _DIFF.get(words)
    if other is None:
        return False
    above = head.rpartition("\n")[0].rpartition("\n")[2]
    return any(line.lstrip().startswith((other, "@@")) for line in (above, below))


def _is_quoted(lead: str, rest: str) -> bool:
    """Whether quotation marks open before it on its line, and close after it."""
    closer = rest.lstrip()[:1]
    if closer in _STRAIGHT and lead.count(closer) % 2:
        return True
    if '"' in rest and lead.count('"') % 2:
        return True
    for close, openers in _QUOTES.items():
        if close in rest and lead.count(close) < max(map(lead.count, openers)):
            return True
    return False


def _is_nested(lead: str, rest: str) -> bool:
    """Whether it is an item of a list, or a value of an object, that is written on its line."""
    goes_on = rest.lstrip().startswith((",", "]", "}"))
    return goes_on and any(lead.count(opener) > lead.count(close) for opener, close in ("[]", "{}"))
