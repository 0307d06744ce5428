"""Events that differ from the previous one only in their text, as most of a stream do.

The bytes around the text are known, so only the text is parsed. JSON makes that safe: any string may be replaced by
another, without effect on the rest.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from callwright.upstreams.base import ReasoningTextDelta, TextDelta, ToolCallDelta
from callwright.upstreams.http_client.response import AT_ONCE

D = TypeVar("D")
_PROBE: Final = "another text"
# Limit of failed attempts: some servers write a time or a random text into each event.
_TRIES: Final = 3
_text: Final = msgspec.json.Decoder(str).decode


class RepeatedEvents(Generic[D]):
    """Those of one answer. `read` answers the deltas of an event, and may be asked for one that was never sent."""

    def __init__(self, read: Callable[[bytes], Sequence[D]]) -> None:
        self._read = read
        self._before = self._behind = b""  # around the text
        self._least = 0
        self._made: Callable[[str], D] | None = None
        self._latest: type[Any] | None = None  # of the delta of the last event, if it has one
        self._tries = _TRIES

    def maybe(self, data: bytes) -> D | None:
        """The delta of an event of which all but the text is known; None for any other."""
        made = self._made
        if made is None or not (data.startswith(self._before) and data.endswith(self._behind)):
            return None
        if len(data) < self._least or type(data) is not bytes:
            return None
        try:
            text = _text(data[len(self._before) : len(data) - len(self._behind)])
        except (msgspec.DecodeError, UnicodeError):
            return None
        if not text or len(text) > AT_ONCE:
            return None
        self._tries = _TRIES
        return made(text)

    def learn(self, data: bytes, deltas: Sequence[D]) -> None:
        """An event was read, and has these deltas."""
        self._made = None
        latest, self._latest = self._latest, type(deltas[0]) if len(deltas) == 1 else None
        if latest is None or latest is not self._latest or self._tries == 0 or type(data) is not bytes:
            return
        found = _slot(deltas[0])
        if found is None:
            return
        text, made = found
        literal = b'"%b"' % text.encode("utf-8", "replace")
        if not (text.isascii() and text.isprintable()) or "\\" in text or '"' in text or data.count(literal) != 1:
            return
        self._tries -= 1
        at = data.index(literal)
        before, behind = data[:at], data[at + len(literal) :]
        if list(self._read(b'%b"%b"%b' % (before, _PROBE.encode(), behind))) == [made(_PROBE)]:
            self._before, self._behind, self._made = before, behind, made
            self._least = len(before) + len(behind)


def _slot(delta: Any) -> tuple[str, Callable[[str], Any]] | None:
    """The text of a delta that is nothing else, and what makes one of another text."""
    if type(delta) is TextDelta and delta.logprobs is None:
        return delta.text, TextDelta
    if type(delta) is ReasoningTextDelta:
        return delta.text, ReasoningTextDelta
    if type(delta) is ToolCallDelta and delta.id is None and delta.name is None:
        number = delta.index
        return delta.arguments, lambda text: ToolCallDelta(number, arguments=text)
    return None
