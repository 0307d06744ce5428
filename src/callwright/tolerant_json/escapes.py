"""Backslash escapes and control characters in JSON strings, legal or not, as strict JSON."""

import re
from typing import Final

from callwright.tolerant_json.codec import decode

# Lengths of an escape: `\n` and its kind, and `\uXXXX`.
ESCAPE: Final = 2
UNICODE: Final = 6
CONTROLS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_LEGAL: Final = '"\\/bfnrt'
# The backslash before these is dropped: quotes, spaces, and what Markdown or a shell escapes, as in `\_` or `\$`.
_DROPPED: Final = "'`“‘”’„ _*#[]()<>~&$!|{}+-"
_UNICODE = re.compile(r"\\u[0-9a-fA-F]{4}").match
# JSON escapes: a pair of surrogates, half of one, or anything.
_HALF: Final = r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
_PAIR: Final = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPES: Final = re.compile(rf"{_PAIR}|(?P<half>{_HALF})|\\.", re.DOTALL)
# The same, and which of them a JSON text may hold without a backslash.
_UNESCAPED: Final = re.compile(
    rf"(?P<plain>{_PAIR}|\\u(?!00[01]|0022|005[cC]|[dD][89a-fA-F])[0-9a-fA-F]{{4}})|\\.", re.DOTALL
)
_MAY_BE_HALF: Final = re.compile(rf"[\ud800-\udfff]|{_HALF}")
_BEGIN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3}|\r)?\Z").match


def may_be_escape(text: str, at: int) -> bool:
    r"""Whether the text ends in the middle of an escape that begins at `at`, as in `\u00`: its rest may be in the next
    delta.
    """
    return bool(_BEGIN(text, at))


def escape(text: str, at: int) -> tuple[str, int]:
    r"""Repair one whole escape: returns its strict JSON, and the number of characters of `text` that it replaces.

    An invalid escape is preserved as text (`\d` becomes `\\d`, as in a Windows path). The backslash is dropped before
    marks that need none (`\'` becomes `'`), and together with a following line break.
    """
    mark = text[at + 1]
    if mark in _LEGAL or (mark == "u" and _UNICODE(text, at)):
        written = text[at : at + (UNICODE if mark == "u" else ESCAPE)]
        return written, len(written)
    if mark in "\r\n":  # a line continuation
        return "", 3 if text.startswith("\r\n", at + 1) else 2
    if mark in _DROPPED:
        return mark, 2
    return ("\\\\", 1) if mark < " " else ("\\\\" + mark, 2)


def with_whole_characters(text: str) -> str:
    """A JSON text with the replacement character in place of each half of a surrogate pair, which JSON may hold and
    hardly anything else.
    """
    if _MAY_BE_HALF.search(text) is None:
        return text
    written = _ESCAPES.sub(lambda found: "\\ufffd" if found["half"] else found[0], text)
    return written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def unescaped(text: str) -> str:
    r"""A JSON text with each character that was written as `\uXXXX` as it is, where JSON allows that."""
    if "\\u" not in text:
        return text
    return _UNESCAPED.sub(lambda found: str(decode(f'"{found[0]}"')) if found["plain"] else found[0], text)
