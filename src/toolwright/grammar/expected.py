"""What may come next in a text, in words for people and models: literals, few characters, or a class of them.

Kept short, because it goes into the message with which a model is asked again.
"""

import json
from collections.abc import Iterable
from typing import Final

from llguidance import LLMatcher

from toolwright.grammar.engine import allowed_bytes

__all__ = ["END", "expected", "shown"]

END: Final = "the end of the text"

_MAX_OPTIONS: Final = 6
_MAX_LITERAL: Final = 40
_MAX_WORDS: Final = 100

_ASCII: Final = frozenset(range(128))
_CONTROL: Final = frozenset({*range(32), 127})
# What can begin a character beyond ASCII in UTF-8.
_LEADS: Final = frozenset(range(0xC2, 0xF5))
_NAMES: Final = {"\n": "a line feed", "\r": "a carriage return", "\t": "a tab", " ": "a space"}


def shown(text: str) -> str:
    """A piece of text in quotes, white space by its name."""
    if len(text) > _MAX_LITERAL:
        return json.dumps(text[:_MAX_LITERAL], ensure_ascii=False)[:-1] + '…"'
    return _NAMES.get(text) or json.dumps(text, ensure_ascii=False)


def expected(reading: LLMatcher) -> str:
    """What may come next. `reading` stands between two characters. Raises `ExhaustedError`."""
    literals = [shown(literal) for literal in _literals(reading)]
    if literals:
        words = literals[0] if len(literals) == 1 else f"one of {_joined(literals)}"
    else:
        words = _class(allowed_bytes(reading.deep_copy()))
    if not reading.is_accepting():
        return words or "nothing: there is no way on from here"
    if not words:
        return END
    return f"{words} or {END}" if len(literals) == 1 else f"{words}, or {END}"


# --- literals ---


def _literals(reading: LLMatcher) -> list[str]:
    """The few ways on, each as far as it is forced; empty when there are more than that, or none."""
    ahead = reading.deep_copy()
    forced = _forced(ahead)
    branches = [] if forced and ahead.is_accepting() else _characters(ahead, _MAX_OPTIONS)
    if not branches:
        return [_text(forced)] if forced else []
    found = []
    for branch in branches:
        further = ahead.deep_copy()
        further.try_consume_tokens(list(branch))
        found.append(_text(forced + branch + _forced(further)))
    return found


def _forced(reading: LLMatcher) -> bytes:
    """Go on as long as there is one way only, and not for ever; answers what was read."""
    found = bytearray()
    while len(found) <= _MAX_LITERAL and not reading.is_accepting():
        allowed = allowed_bytes(reading)
        if len(allowed) != 1:
            break
        reading.try_consume_tokens(allowed)
        found += bytes(allowed)
    return bytes(found)


def _text(data: bytes) -> str:
    return data.decode(errors="ignore")  # what is forced may end in the middle of a character


def _characters(reading: LLMatcher, most: int) -> list[bytes]:
    """The characters that may come next, in UTF-8; empty when there are more than `most`."""
    found: list[bytes] = []
    open_ = [b""]
    while open_:
        begin = open_.pop()
        reading.try_consume_tokens(list(begin))
        allowed = allowed_bytes(reading)
        reading.rollback(len(begin))
        if len(allowed) + len(open_) + len(found) > most:
            return []
        for byte in allowed:
            longer = begin + bytes([byte])
            (found if _is_whole(longer) else open_).append(longer)
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
        words += [f"{chr(run[0])}-{chr(run[-1])}"] if size > 2 else [shown(chr(code)) for code in run]
    return words


def _joined(words: Iterable[str]) -> str:
    """A list that stays short."""
    fitting: list[str] = []
    for word in words:
        if fitting and sum(map(len, fitting)) + len(word) > _MAX_WORDS:
            return f"{', '.join(fitting)}, …"
        fitting.append(word)
    return ", ".join(fitting)
