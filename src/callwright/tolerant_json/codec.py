"""Strict JSON: the one place that decodes and encodes it, over msgspec. Repairs nothing; see `reader` for that."""

from functools import cache
from json.encoder import encode_basestring
from typing import Any, Final, TypeVar, overload

import msgspec

T = TypeVar("T")
UNDECODABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeError)


class NotJsonError(ValueError):
    """The text is not JSON, or not of the requested type; the message has the place."""


@overload
def decode(text: str | bytes | bytearray | msgspec.Raw) -> Any: ...
@overload
def decode(text: str | bytes | bytearray | msgspec.Raw, kind: type[T]) -> T: ...
def decode(text: str | bytes | bytearray | msgspec.Raw, kind: Any = Any) -> Any:
    """The value of a JSON text, validated against the type `kind`, if given.

    Raises `NotJsonError`, also for texts nested too deeply and for lone surrogates.
    """
    try:
        return decoder(kind).decode(text)
    except UNDECODABLE as error:
        raise NotJsonError(str(error)) from error


@cache
def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """A decoder for a type, for callers with many small texts: it raises the errors in `UNDECODABLE`."""
    return msgspec.json.Decoder(kind)


def encode(value: object) -> bytes:
    """A value as compact JSON in UTF-8, which cannot hold a lone surrogate: it becomes the replacement character."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_whole(msgspec.to_builtins(value)))


def encode_inside(text: str) -> str:
    """A text as JSON, without its quotes."""
    if not text.isascii():
        return encode(text).decode()[1:-1]
    return encode_basestring(text)[1:-1]  # writes ASCII as msgspec does, at less cost


def _whole(value: Any) -> Any:
    """A value with the replacement character in place of each lone surrogate, in keys too."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list() | tuple():
            return [_whole(item) for item in value]
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
    return value


def same_json(one: str, other: str) -> bool:
    """Whether two JSON texts have the same value. Invalid JSON only equals the same text."""
    try:
        return one == other or encode(decode(one)) == encode(decode(other))
    except NotJsonError:
        return False
