"""Strict JSON: the one place where JSON texts of models and servers become values."""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, TypeVar, overload

import msgspec

__all__ = ["NotJsonError", "decode", "encode", "fold", "unfenced", "without"]

T = TypeVar("T")

_JOINTS = re.compile(r"[\s_.-]+")
_MAX_NAME = 64  # of names that are folded again and again
_FENCE = re.compile(r"\s*+(?P<ticks>`{3,}|~{3,})[\w+-]*+\s*+")


class NotJsonError(ValueError):
    """The text is no JSON, or not of the shape that was asked for; the message says where."""


@overload
def decode(text: str | bytes | msgspec.Raw) -> Any: ...
@overload
def decode(text: str | bytes | msgspec.Raw, kind: type[T]) -> T: ...
def decode(text: str | bytes | msgspec.Raw, kind: Any = Any) -> Any:
    """The value of a JSON text. Raises `NotJsonError`, also for texts nested too deeply and for halves of surrogate
    pairs.
    """
    try:
        return _decoder(kind).decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise NotJsonError(str(error)) from error


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def encode(value: object) -> bytes:
    """Compact JSON text. A half of a surrogate pair, which UTF-8 cannot hold, becomes the replacement character."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_whole(value))


def without(text: str, parts: Iterable[str]) -> str:
    """What is left of a text without these parts of it, which stand in it in this order."""
    left: list[str] = []
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found >= 0:
            left.append(text[at:found])
            at = found + len(part)
    return "".join([*left, text[at:]])


def fold(text: str) -> str:
    """A text without case, blanks and the marks that join words."""
    return _fold(text) if len(text) > _MAX_NAME else _folded_name(text)


def _fold(text: str) -> str:
    return _JOINTS.sub("", text).casefold()


_folded_name = lru_cache(maxsize=8_192)(_fold)


def unfenced(text: str) -> tuple[int, int] | None:
    """From where to where the inside of a fence goes that a whole text is; None when it begins with no fence.

    White space at the ends of the inside is left out; the closing fence may be missing.
    """
    opening = _FENCE.match(text)
    if opening is None:
        return None
    end = len(text[opening.end() :].rstrip().removesuffix(opening["ticks"]).rstrip())
    return opening.end(), opening.end() + end


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list() | tuple():
            return [_whole(item) for item in value]
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
    return value
