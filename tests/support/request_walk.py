"""Requests that have one field of an API's request types each, walked as the provider's library declares them.

A path names the type of what it goes through where there are several: `tools[function].strict`. Of a union each member
has a request of its own, of an enumeration each value.
"""

import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import typing_extensions
from msgspec import Struct

__all__ = ["FieldRequest", "requests_of"]

_PNG: Final = "data:image/png;base64,iVBORw0KGgo="
# Sample texts by the name of their field, where not any text will do.
_TEXTS: Final[Mapping[str, str]] = {
    "arguments": "{}",
    "call_id": "call_1",
    "tool_call_id": "call_1",
    "tool_use_id": "call_1",
    "data": "iVBORw0KGgo=",
    "definition": "start: /a+/",
    "file_data": "data:text/plain;base64,eA==",
    "file_url": "https://files.example/a.pdf",
    "image_url": _PNG,
    "name": "f",
    "tool_name": "f",
    "server_label": "files",
    "server_url": "https://mcp.example/mcp",
    "url": _PNG,
}
_SCHEMA: Final = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
# Sample objects of fields that the library leaves open, by the name of the field.
_OPEN: Final[Mapping[str, Mapping[str, Any]]] = {
    "input_schema": _SCHEMA,
    "parameters": _SCHEMA,
    "properties": {},
    "schema": _SCHEMA,
    "tools": {"type": "function", "name": "f", "function": {"name": "f"}},
}
# What an object needs though its type does not say so: one of several fields.
_NEEDED: Final[Mapping[str, Mapping[str, Any]]] = {
    "compaction": {"content": "x"},
    "function": {"parameters": _SCHEMA},
    "function_call_output": {"call_id": "call_1"},
    "input_file": {"file_data": "data:text/plain;base64,eA==", "filename": "a.txt"},
    "input_image": {"image_url": _PNG},
    "mcp": {"server_url": "https://mcp.example/mcp"},
    "system": {"content": "x"},
    "FunctionDefinition": {"parameters": _SCHEMA},
    "JSONSchema": {"schema": _SCHEMA},
}
_MAX_DEPTH: Final = 7


class FieldRequest(Struct, frozen=True):
    """What a request has for the field at `path` to have a `value`, beside what every request has; and the same
    without the field, or without the objects around it that need it: None where each request needs it.
    """

    path: str
    value: Any
    given: Mapping[str, Any]
    without: Mapping[str, Any] | None


def requests_of(request: type) -> Iterator[FieldRequest]:
    """A request for each field, value of an enumeration and member of a union that a request type has."""
    seen: set[tuple[str, str]] = set()
    for found in _walk(request, "", frozenset()):
        if (found.path, repr(found.value)) not in seen:
            seen.add((found.path, repr(found.value)))
            yield found


def _walk(kind: type, path: str, inside: frozenset[type]) -> Iterator[FieldRequest]:
    if kind in inside or len(inside) > _MAX_DEPTH:
        return
    needed = _needed(kind)
    for name, hint in typing_extensions.get_type_hints(kind).items():
        at = f"{path}.{name}" if path else name
        others = {key: value for key, value in needed.items() if key != name}
        without = None if name in needed else others
        for value in _plain(hint, name):
            yield FieldRequest(at, value, {**others, name: value}, without)
        for inner, in_list in _objects(hint):
            tag = _tag(inner)
            for found in _walk(inner, f"{at}[{tag}]" if tag else at, inside | {kind}):
                wrapped, bare = ([found.given], [found.without]) if in_list else (found.given, found.without)
                if found.without is not None:
                    less: dict[str, Any] | None = {**others, name: bare}
                else:
                    less = without
                yield FieldRequest(found.path, found.value, {**others, name: wrapped}, less)


def _needed(kind: type, depth: int = 0) -> dict[str, Any]:
    """The fields that an object must have, with the plainest values."""
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    mark: Any = typing_extensions.Required
    required = {name: hint for name, hint in hints.items() if typing.get_origin(hint) is mark}
    plainest = {name: _plainest(typing.get_args(hint)[0], name, depth) for name, hint in required.items()}
    also = _NEEDED.get(_tag(kind) or kind.__name__, {})
    return plainest | {name: value for name, value in also.items() if name in hints and name not in plainest}


def _plainest(hint: Any, name: str, depth: int) -> Any:
    plain = [value for value in _plain(hint, name) if value is not None]
    if plain:
        return plain[0]
    for inner, in_list in _objects(hint):
        if depth < _MAX_DEPTH:
            value = _needed(inner, depth + 1)
            return [value] if in_list else value
    return None


def _plain(hint: Any, name: str, depth: int = 0) -> Iterator[Any]:
    """Values of a type that are no object of known fields."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        yield from inner
    elif hint is str:
        yield _TEXTS.get(name, "x")
    elif hint is bool:
        yield True
    elif hint is int or hint is float:
        yield 1
    elif origin in (typing.Annotated, typing_extensions.Required, typing_extensions.NotRequired):
        yield from _plain(inner[0], name, depth)
    elif origin is dict or hint is object or hint is dict:
        yield _OPEN.get(name, {"a": "b"})
    elif isinstance(origin, type) and issubclass(origin, Iterable):
        yield from ([value] for value in _plain(inner[0], name, depth) if value is not None)
    elif inner:
        for one in inner:
            yield from _plain(one, name, depth)


def _objects(hint: Any, in_list: bool = False) -> Iterator[tuple[type, bool]]:
    """The objects in a type: in its unions and lists, and whether in a list."""
    if typing_extensions.is_typeddict(hint):
        yield hint, in_list
        return
    origin = typing.get_origin(hint)
    lists = isinstance(origin, type) and origin is not dict and issubclass(origin, Iterable)
    for inner in typing.get_args(hint):
        if not isinstance(inner, str):
            yield from _objects(inner, in_list or lists)


def _tag(kind: type) -> str | None:
    hints = typing_extensions.get_type_hints(kind)
    for name in ("type", "role"):
        literal = typing.get_args(hints.get(name))
        if literal and isinstance(literal[0], str) and re.fullmatch(r"\w+", literal[0]):
            return literal[0]
    return None
