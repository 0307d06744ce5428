"""Closing tags that models write in place of a value's own: named as its parameter is, or as another format does it."""

import re
from collections.abc import Sequence
from typing import Final

from callwright.streaming.reader import Parse, StreamReader

OTHER_CLOSER: Final = "</"

_NAMES: Final = frozenset(("parameter", "param", "argument", "arg", "arg_key", "arg_value", "value"))
_TAG: Final = re.compile(r"</(?P<prefix>[^<>]*?)(?P<name>\w+)>")
# A closing tag at the end of a text; and the maximum length of its name, and of the white space after it.
_AT_END: Final = re.compile(r"</(?P<name>[^<>]+)>\s*\Z")
_MAX_NAME: Final = 200
_MAX_BLANKS: Final = 64


class OtherClosers:
    """The closing tags that may replace a format's `own`, which ends values; `further` are other tags of its
    parameters.
    """

    def __init__(self, own: str, *further: str) -> None:
        named = _TAG.fullmatch(own)
        self._prefix = named["prefix"] if named else ""
        names = {found["name"] for tag in (own, *further) if (found := _TAG.fullmatch(tag))}
        self._names = _NAMES | names
        self._opening = f"<{own[2:-1]}" if named else ""
        self._openings = tuple(tag for tag in further if not tag.startswith(OTHER_CLOSER)) if not named else ()
        self._own = own

    def rest(self, source: StreamReader, key: str) -> Parse[str]:
        """Read the rest of a closing tag of parameter `key` after its beginning; `""` if it is another tag."""
        while True:
            name, closed, _ = source.ahead(_MAX_NAME).partition(">")
            if closed:
                return source.take(source.at + len(name) + 1) if self._is_name(name, key) else ""
            if not (source.more(_MAX_NAME) and self._may_be_name(name, key)):
                return ""
            yield

    def place(self, text: str, key: str) -> int:
        """The position of another closing tag of parameter `key` at the end of a text, or the text's length."""
        at = text.rfind(OTHER_CLOSER, max(0, len(text) - _MAX_NAME - _MAX_BLANKS))
        found = _AT_END.match(text, at) if at >= 0 else None
        return at if found and self._is_name(found["name"], key) else len(text)

    def closes(self, pieces: Sequence[str], text: str, at: int) -> bool:
        """Whether the closing tag at this place of `text`, which follows the pieces, closes nothing in the value."""
        found = _AT_END.match(text, at)
        if found is None:
            return False
        name = re.escape(found["name"].strip().partition("=")[0])
        return _unclosed("".join(pieces) + text[:at], rf"<{name}(?=[\s>=])", rf"</{name}\s*>") <= 0

    def is_open(self, pieces: Sequence[str], text: str) -> bool:
        """Whether a value contains an unclosed opening for the format's own closer."""
        opening = (
            rf"{re.escape(self._opening)}(?=[\s>=])" if self._opening else "|".join(map(re.escape, self._openings))
        )
        return bool(opening) and _unclosed("".join(pieces) + text, opening, re.escape(self._own)) > 0

    def _is_name(self, written: str, key: str) -> bool:
        name = written.removeprefix(self._prefix).strip()
        first, _, second = name.partition("=")
        return name == key or name in self._names or (first in self._names and second.strip("\"'") == key)

    def _may_be_name(self, written: str, key: str) -> bool:
        name = written.removeprefix(self._prefix).strip()
        if self._prefix.startswith(written) or not name:
            return True
        return any(whole.startswith(name) or name.startswith(f"{whole}=") for whole in (key, *self._names))


def _unclosed(text: str, opening: str, closing: str) -> int:
    """How many of these openings in a text are not closed."""
    depth = 0
    for found in re.finditer(f"(?P<opens>{opening})|{closing}", text):
        depth = depth + 1 if found["opens"] else max(0, depth - 1)
    return depth
