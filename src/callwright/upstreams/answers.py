"""The JSON of a server's answers: bounded, and with characters that it has cut in two. Knows no API."""

import json
import re
from collections.abc import Hashable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from callwright.tolerant_json.codec import UNDECODABLE, NotJsonError, decoder
from callwright.upstreams.http_client.response import AT_ONCE
from callwright.upstreams.received import Tell, read_leniently

T = TypeVar("T")
# An object whose values stay as they were written; an answer is one, or a list of them.
RawFields: TypeAlias = dict[str, msgspec.Raw]
RawAnswer: TypeAlias = RawFields | list[RawFields]

# Smaller answers cannot hold enough values to matter.
_SMALL_BYTES: Final = 65_536
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


class UnreadableError(Exception):
    """A server sent something without a plain meaning; the message describes it ("sent …")."""


def read_json(data: bytes | bytearray, kind: type[T], most_values: int, tell: Tell | None = None) -> T:
    """The value of an answer or an event, checked against `kind`.

    With `tell`, which is called for deviations, an invalid side field does not cost the answer
    (`callwright.upstreams.received`).

    A text may begin or end in half of a surrogate pair: servers that count UTF-16 split a character in two. Raises
    `NotJsonError`; `UnreadableError` for more values than `most_values`, before any of them takes memory. Values that
    stay text take none: for a `RawAnswer` the names count.
    """
    keeps_text = kind is RawAnswer  # type: ignore[comparison-overlap]
    counted = (b":",) if keeps_text else (b",", b"{", b"[")
    if len(data) > _SMALL_BYTES and sum(map(data.count, counted)) > most_values:
        raise UnreadableError(f"sent more than {most_values:,} values in one piece (a stream comes in small ones)")
    try:
        read: msgspec.json.Decoder[T] = decoder(kind)  # type: ignore[arg-type]  # a type is hashable
        return read.decode(data)
    except UNDECODABLE as error:
        failure = NotJsonError(str(error))
        failure.__cause__ = error
    if _SURROGATE_ESCAPE.search(data):
        try:
            return msgspec.convert(_with_halves(json.loads(data)), kind)
        except (ValueError, RecursionError) as error:
            failure = NotJsonError(str(error))
            failure.__cause__ = error
    if tell is None:
        raise failure
    try:
        return read_leniently(data, kind, tell)
    except (ValueError, RecursionError):
        raise failure from failure.__cause__


def is_unfinished(data: bytes | bytearray) -> bool:
    """Whether this is how a JSON text begins, and no more of it."""
    whole_characters = _SURROGATE_ESCAPE.sub(rb"\\u00", data)
    try:
        msgspec.json.decode(whole_characters, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        # A truncated number is reported at the end of the text.
        return bool(data.strip()) and str(error).endswith(("was truncated", f"(byte {len(data)})"))
    except RecursionError:
        pass
    return False


def _with_halves(value: Any) -> Any:
    """A value whose texts hold halves of characters where another text may hold the other half, and nowhere else."""
    match value:
        case str():
            return _SURROGATE.sub(_kept_at_the_ends, value)
        case list():
            return [_with_halves(item) for item in value]
        case dict():
            return {key: _with_halves(item) for key, item in value.items()}
    return value


def _kept_at_the_ends(found: re.Match[str]) -> str:
    is_cut = found.end() == len(found.string) if _is_first_half(found[0]) else found.start() == 0
    return found[0] if is_cut else _REPLACEMENT


def _is_first_half(char: str) -> bool:
    return "\ud800" <= char < "\udc00"


class HalfCharacters(Struct):
    """Joins surrogate halves that arrived in two consecutive texts of one `key`.

    While `first_halves` is empty, ASCII need not be examined.
    """

    first_halves: dict[Hashable, str] = {}

    def pieces(self, key: Hashable, text: str) -> Sequence[str]:
        """The text to forward, preceded by a held half; a first half at its end is held. In pieces that do not take
        long to read.
        """
        first = self.first_halves.pop(key, "") if self.first_halves and text else ""
        if first or (text and ("\ud800" <= text[-1] < "\udc00" or "\udc00" <= text[0] <= "\udfff")):
            text = first + text
            if _is_first_half(text[-1]):
                self.first_halves[key] = text[-1]
                text = text[:-1]
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if len(text) <= AT_ONCE:
            return (text,)
        return [text[begin : begin + AT_ONCE] for begin in range(0, len(text), AT_ONCE)]

    def take_replacements(self) -> list[tuple[Hashable, str]]:
        """Replacement for each unpaired surrogate, by key."""
        if not self.first_halves:
            return []
        left = [(key, _REPLACEMENT) for key in self.first_halves]
        self.first_halves.clear()
        return left
