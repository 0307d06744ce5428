"""Possible continuations of a text, in words for people and models: literals, few characters, or a class of them.

Short, because it is part of the retry message to the model.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from callwright.grammar.engine import allowed_bytes

if TYPE_CHECKING:
    from llguidance import LLMatcher


END: Final = "the end of the text"

_MAX_OPTIONS: Final = 6
_MAX_LITERAL: Final = 40
_MIN_WORD: Final = 2
_MAX_WORDS: Final = 100

_ASCII: Final = frozenset(range(128))
_CONTROL: Final = frozenset({*range(32), 127})
# What can begin a character beyond ASCII in UTF-8.
_LEADS: Final = frozenset(range(0xC2, 0xF5))
_NAMES: Final = {"\n": "a line feed", "\r": "a carriage return", "\t": "a tab", " ": "a space"}


def escaped(text: str) -> str:
    """A piece of text in quotes, white space by its name."""
    if text in _NAMES:
        return _NAMES[text]
    cut = len(text) > _MAX_LITERAL
    quoted = json.dumps(text[:_MAX_LITERAL], ensure_ascii=False).encode(errors="backslashreplace").decode()
    return f'{quoted[:-1]}…"' if cut else quoted


def expected(reading: "LLMatcher") -> str:
    """The possible continuations. `reading` must be between two characters. Raises `ExhaustedError`."""
    ways = _Ways(reading)
    literals = [escaped(literal.decode()) for literal in _literals(ways)]
    if len(literals) == 1:
        return f"{literals[0]} or {END}" if ways.may_end(b"") else literals[0]
    words = f"one of {_joined(literals)}" if literals else _class(ways.on(b""))
    if not ways.may_end(b""):
        return words or "nothing: no text can follow here"
    return f"{words}, or {END}" if words else END


class _Ways:
    """The continuations of a reading, each identified by its bytes.

    One copy moves back and forth: a copy costs time in proportion to the length of the text.
    """

    def __init__(self, reading: "LLMatcher") -> None:
        self._reading = reading
        self._copy = reading.deep_copy()
        self._at = b""

    def on(self, way: bytes) -> list[int]:
        """The bytes that may follow then."""
        self._go(way)
        return allowed_bytes(self._copy)

    def may_end(self, way: bytes) -> bool:
        self._go(way)
        return self._copy.is_accepting()

    def _go(self, way: bytes) -> None:
        if self._copy.is_error():  # it is at a dead end
            self._copy, self._at = self._reading.deep_copy(), b""
        kept = 0
        while kept < len(self._at) and self._at[kept : kept + 1] == way[kept : kept + 1]:
            kept += 1
        self._copy.rollback(len(self._at) - kept)
        self._copy.try_consume_tokens(list(way[kept:]))
        self._at = way


# --- literals ---


def _literals(ways: _Ways) -> list[bytes]:
    """The few ways on, each as far as it is forced; empty when there are more than that, or none."""
    forced = b"" if ways.may_end(b"") else _forced(ways, b"")
    if forced and ways.may_end(forced):
        return [forced]
    found: list[bytes] = []
    for branch in _branches(ways, forced, _MAX_OPTIONS):
        # Words that begin alike part once more.
        parting = [] if ways.may_end(branch) else _branches(ways, branch, _MAX_OPTIONS - 1)
        words = len(parting) > 1 and all(len(part) > len(branch) + _MIN_WORD for part in parting)
        found += parting if words else [branch]
    if len(found) > _MAX_OPTIONS:
        found = []
    return found or ([forced] if forced else [])


def _branches(ways: _Ways, begin: bytes, most: int) -> list[bytes]:
    """After `begin` each possible character with the text that it forces; empty if there are more than `most`."""
    return [_forced(ways, character) for character in _characters(ways, begin, most)]


def _forced(ways: _Ways, begin: bytes) -> bytes:
    """Extend while there is one continuation only, within a limit; whole characters of it."""
    way = begin
    while len(way) <= len(begin) + _MAX_LITERAL and not ways.may_end(way):
        allowed = ways.on(way)
        if len(allowed) != 1:
            break
        way += bytes(allowed)
    return way.decode(errors="ignore").encode()


def _characters(ways: _Ways, begin: bytes, most: int) -> list[bytes]:
    """The characters that may follow `begin`, with it; empty if there are more than `most`."""
    found: list[bytes] = []
    open_ = [begin]
    while open_:
        way = open_.pop()
        allowed = ways.on(way)
        if len(allowed) + len(open_) + len(found) > most:
            return []
        for byte in allowed:
            longer = way + bytes([byte])
            (found if _is_whole(longer[len(begin) :]) else open_).append(longer)
    return sorted(found)


def _is_whole(data: bytes) -> bool:
    """Whether these bytes are all of a character in UTF-8."""
    lead = data[0]
    return len(data) == (1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)


# --- classes ---


def _class(allowed: list[int]) -> str:
    """Many characters, by their first bytes."""
    ascii_, leads = _ASCII.intersection(allowed), _LEADS.intersection(allowed)
    if leads == _LEADS:
        left_out = _ASCII - ascii_
        return f"any character but {_joined(_ranges(left_out))}" if left_out else "any character"
    if ascii_ >= _ASCII - _CONTROL:
        return "any ASCII character"
    if leads and not ascii_:
        return "a character beyond ASCII"
    words = [*_ranges(ascii_), *(["characters beyond ASCII"] if leads else [])]
    return f"one of {_joined(words)}" if words else ""


def _ranges(codes: frozenset[int]) -> list[str]:
    """Codes of ASCII as ranges of letters and digits, and single characters."""
    words = ["control characters"] if len(codes & _CONTROL) > _MAX_OPTIONS else []
    rest = [code for code in sorted(codes) if not (words and code in _CONTROL)]
    while rest:
        size = 1
        while rest[size : size + 1] == [rest[0] + size] and chr(rest[0]).isalnum() and chr(rest[size]).isalnum():
            size += 1
        run, rest = rest[:size], rest[size:]
        words += [f"{chr(run[0])}-{chr(run[-1])}"] if size > 2 else [escaped(chr(code)) for code in run]
    return words


def _joined(words: Iterable[str]) -> str:
    """A list that stays short."""
    joined = ""
    for word in words:
        if joined and len(joined) + len(word) > _MAX_WORDS:
            return f"{joined}, …"
        joined = f"{joined}, {word}" if joined else word
    return joined
