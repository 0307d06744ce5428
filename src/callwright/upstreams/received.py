"""Parses answers that deviate from their API: strict for fields that carry the answer, lenient for all others.

A token count as text, a `NaN`, a byte order mark, a side field of another type: none of them costs the answer. Values
that were left out, or read as something else, are reported. Knows the names of fields, not their meaning.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")
# Called with a description of the deviation, and the value.
Tell: TypeAlias = Callable[[str, object], None]

# Fields that carry the answer: if not empty, they must match the API.
_CARRYING: Final = frozenset(
    ("arguments", "choices", "content", "delta", "finish_reason", "function", "function_call", "message", "name")
) | {"stop", "text", "thinking", "tool_calls"}
_REASONING: Final = frozenset(("reasoning", "reasoning_content"))
# Keys under which an object has its text.
_TEXTS: Final = ("text", "content", "reasoning", "reasoning_content", "thinking", "summary")
_PATH: Final = re.compile(r" - at `\$(?P<path>.*)`\Z", re.DOTALL)
_STEP: Final = re.compile(r"\.(?P<name>\w+)|\[(?P<number>\d+)\]")
_BOM: Final = b"\xef\xbb\xbf"
# Limit of deviations in one piece of an answer.
_MOST: Final = 64


def read_leniently(data: bytes | bytearray, kind: type[T], tell: Tell) -> T:
    """Parse a piece of an answer that is not valid for `kind`, without its deviations.

    Raises `ValueError` or `RecursionError` if a deviation is in a field that carries the answer.
    """
    if data.startswith(_BOM):
        tell("a byte order mark before JSON, which is left out", data[:20])
    value = json.loads(data, parse_constant=lambda word: tell("a number that JSON does not have, read as none", word))
    if not isinstance(value, dict):
        if value and isinstance(value, str | list):
            return msgspec.convert(value, kind)
        tell("an event that is not an object, which is left out", value)
        return msgspec.convert({}, kind)
    odd = ""
    for attempt in range(_MOST):
        try:
            # A value may be valid as another type: a number sent as a text.
            return msgspec.convert(value, kind, strict=not attempt)
        except msgspec.ValidationError as error:
            found = _PATH.search(str(error))
            path = found["path"] if found else ""
            if not attempt and path:
                odd = path
                tell(f"another type of value than its API has at {path.removeprefix('.')}", _at(value, path))
                continue
            if not _leave_out(value, path):
                raise
            if path != odd:
                tell(f"an invalid value at {path.removeprefix('.')}, which is left out", path)
    raise ValueError(f"more than {_MOST} fields are not what the API has")


def _steps(path: str) -> list[str | int]:
    return [step["name"] or int(step["number"]) for step in _STEP.finditer(path)]


def _at(value: Any, path: str) -> Any:
    for step in _steps(path):
        value = value[step]
    return value


def _leave_out(value: Any, path: str) -> bool:
    """Take a field or an item out, unless the answer is lost with it; answers whether it is out. Of reasoning its text
    stays.
    """
    *before, last = _steps(path) or [""]
    if last == "":
        return False
    for step in before:
        value = value[step]
    odd = value[last]
    name = next((step for step in (last, *reversed(before)) if isinstance(step, str)), "")
    if odd and name in _CARRYING:
        return False
    if name in _REASONING and (text := _text(odd)):
        value[last] = text
    else:
        del value[last]
    return True


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case list():
            return "".join(map(_text, value))
        case dict():
            return next(filter(None, (_text(value[key]) for key in _TEXTS if key in value)), "")
    return ""
