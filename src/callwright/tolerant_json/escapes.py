"""Backslash escapes and control characters in JSON strings, legal or not, as strict JSON."""

import re
from typing import Final

__all__ = ["CONTROLS", "ESCAPE", "UNICODE", "escape", "may_be_escape"]

# Lengths of an escape: `\n` and its kind, and `\uXXXX`.
ESCAPE: Final = 2
UNICODE: Final = 6
CONTROLS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_LEGAL: Final = '"\\/bfnrt'
# The backslash before these is dropped: quotes, spaces, and what Markdown or a shell escapes, as in `\_` or `\$`.
_DROPPED: Final = "'`“‘”’„ _*#[]()<>~&$!|{}+-"
_UNICODE = re.compile(r"\\u[0-9a-fA-F]{4}").match
_BEGIN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3}|\r)?\Z").match


def may_be_escape(text: str, at: int) -> bool:
    r"""Whether the text ends in the middle of an escape that begins at `at`, as in `\u00`: its rest may be in the next
    delta.
    """
    return bool(_BEGIN(text, at))


def escape(text: str, at: int) -> tuple[str, int]:
    r"""Repair one whole escape: answers its strict JSON, and how many characters of `text` it stands for.

    A backslash that means nothing is kept as text (`\d` becomes `\\d`, as in a Windows path). It is dropped before
    marks that need none (`\'` becomes `'`), and together with a line break behind it.
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
