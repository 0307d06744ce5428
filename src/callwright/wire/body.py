"""Decode the JSON of a request's body, within the bounds.

Clients send the same tools with each request, and agents all messages or items of the previous one: decoded and
validated parts are cached by their text.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from callwright.errors import RequestError
from callwright.memo.by_text import kept_by_text
from callwright.memo.prefixes import SharedList, fold, intern_all
from callwright.settings import bounds
from callwright.settings.bounds import Bounds
from callwright.tolerant_json.codec import NotJsonError, decode
from callwright.wire.bounds import check_bounds, check_depth, check_values
from callwright.wire.errors import json_fault

_TOOLS: Final = "tools"
# Tools of type "mcp", in any JSON spelling, contain credentials, which must not be cached.
_SECRETIVE: Final = re.compile(rb'"(?:m|\\u006[dD])(?:c|\\u0063)(?:p|\\u0070)"').search
_LISTS: Final = ("messages", "input")  # of the APIs; each has one of them
_OF_OBJECTS: Final = re.compile(rb"\[\s*\{").match  # not of texts or tokens to embed
# Estimates of memory in bytes: copies of a text in its value and results, each bracket, each comma.
_COPIES: Final = 4
_BRACKET_BYTES: Final = 200
_COMMA_BYTES: Final = 64
_WIDEST: Final = re.compile(rb"[\xf0-\xff]").search  # in UTF-8, of characters beyond the first 65,536


def decoded(body: bytes | str, limits: Bounds) -> object:
    """The value of a body. Raises `RequestError` if it is not JSON, or too large.

    Its tools, messages and items may be shared with an earlier body: callers must not change them.
    """
    check_values(body)
    value = _with_kept_parts(body, limits)
    return _whole(body, limits) if value is None else value


def _whole(body: bytes | str, limits: Bounds) -> object:
    try:
        value = decode(body)
    except NotJsonError as error:
        fault = json_fault(body if isinstance(body, bytes) else body.encode("utf-8", "replace"), error)
        raise RequestError(f"We could not parse the JSON body of your request. (It {fault}.)") from error
    check_depth(body, value, bounds.MAX_DEPTH)
    check_bounds(value, body, limits)
    return value


def _with_kept_parts(body: bytes | str, limits: Bounds) -> dict[str, Any] | None:
    """The value of a body with tools, messages or items; None for any other, and for one with an error, which is
    then reported for the whole body. Of duplicate fields, the last one counts.
    """
    if len(body) > bounds.MAX_SCHEMA_BYTES:  # a limit for all schemas of a body together
        return None
    try:
        fields = decode(body, dict[str, msgspec.Raw])
        tools = fields.get(_TOOLS)
        lists = {name: fields[name] for name in _LISTS if name in fields and _OF_OBJECTS(fields[name])}
        if tools is None and not lists:
            return None
        texts: list[bytes | msgspec.Raw] = [b"{"]
        value: dict[str, Any] = dict.fromkeys(fields)
        for name, text in fields.items():
            if name != _TOOLS and name not in lists:
                texts.append(text)
                value[name] = decode(text)
        check_depth(b"".join(texts), value, bounds.MAX_DEPTH)
        for name, text in lists.items():
            texts.append(text)
            value[name] = _shared_objects(bytes(text))
        check_bounds(value, b"".join(texts), limits)
        if tools is not None:
            value[_TOOLS] = _checked_tools(bytes(tools), limits)
    except (NotJsonError, RequestError, _NotToBeKept):
        return None
    return value


def _shared_objects(text: bytes) -> SharedList:
    """The objects of an array. Those with the same bytes as earlier ones are the same objects."""
    values = SharedList(intern_all(map(bytes, decode(text, list[msgspec.Raw])), _decoded_public, _memory_of))
    if fold(values, 0, _levels) > bounds.MAX_DEPTH - 2:
        raise _NotToBeKept
    return values


def _decoded_public(text: bytes) -> object:
    if _SECRETIVE(text):
        raise _NotToBeKept
    return decode(text)


def _memory_of(text: bytes) -> int:
    """The bytes that the value of a text and its results may take."""
    brackets = text.count(b"{") + text.count(b"[")
    return _COPIES * _char_bytes(text) * len(text) + _BRACKET_BYTES * brackets + _COMMA_BYTES * text.count(b",")


def _char_bytes(text: bytes) -> int:
    """The bytes of a character of a decoded text: all take as many as the widest. What looks like a control token is
    broken by a wide character.
    """
    if b"\\u" in text or _WIDEST(text):
        return 4
    return 1 if text.isascii() and b"<" not in text else 2


def _levels(before: int, values: Sequence[Any], start: int) -> int:
    return max([before, *map(_levels_of, values[start:])])


def _levels_of(value: object) -> int:
    """How deeply a value is nested, itself included: 0 for a value that is no object or array."""
    levels, row = 0, [value]
    while row := [item for item in row if type(item) is dict or type(item) is list]:
        levels += 1
        row = [inner for item in row for inner in (item.values() if type(item) is dict else item)]
    return levels


class _NotToBeKept(Exception):  # noqa: N818  # not an error
    """The text contains credentials, or is too deep."""


@kept_by_text
def _checked_tools(text: bytes, limits: Bounds) -> object:
    if _SECRETIVE(text):
        raise _NotToBeKept
    value = decode(text)
    check_depth(text, value, bounds.MAX_DEPTH - 1)
    check_bounds({_TOOLS: value}, text, limits)
    return SharedList(value) if isinstance(value, list) else value
