"""What a backslash and the character behind it say in a JSON string, legal or not, and control characters in one."""

import re
from typing import Final

__all__ = ["CONTROLS", "ESCAPE", "UNICODE", "escape", "may_be_escape"]

# How long escapes are, the second with `\\u`.
ESCAPE: Final = 2
UNICODE: Final = 6
CONTROLS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_LEGAL: Final = '"\\/bfnrt'
# The backslash before these is dropped: quotes, blanks, and what Markdown escapes.
_DROPPED: Final = "'`“‘”’„ _*#[]()<>~&$!|{}+-"
_UNICODE = re.compile(r"\\u[0-9a-fA-F]{4}").match
_BEGIN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3}|\r)?\Z").match


def may_be_escape(text: str, at: int) -> bool:
    """Whether the text ends in the middle of an escape that begins at `at`."""
    return bool(_BEGIN(text, at))


def escape(text: str, at: int) -> tuple[str, int]:
    """The strict JSON of a whole escape that begins at `at`, and how many characters were written for it.

    A backslash that means nothing is itself, but before marks that need none it is dropped, with a line's end both.
    """
    mark = text[at + 1]
    if mark in _LEGAL or (mark == "u" and _UNICODE(text, at)):
        written = text[at : at + (UNICODE if mark == "u" else ESCAPE)]
        return written, len(written)
    if mark in "\r\n":  # the line goes on
        return "", 3 if text.startswith("\r\n", at + 1) else 2
    if mark in _DROPPED:
        return mark, 2
    return ("\\\\", 1) if mark < " " else ("\\\\" + mark, 2)
