"""How a JSON value becomes a value of Python: one reader for each form of type. They refuse what does not fit.

Strict (`"5"` is no integer) but for what JSON Schema itself calls equal: 5.0 is one.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

__all__ = [
    "Kind",
    "MisfitError",
    "Read",
    "UnknownTypeError",
    "built",
    "decimal",
    "enumeration",
    "first_of",
    "inside",
    "leaf",
    "list_of",
    "member_of",
    "named",
    "shown",
    "tuple_of",
]

Read: TypeAlias = Callable[[Any], Any]

_JSON_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_EXACT_FLOAT: Final = 2**53


class UnknownTypeError(TypeError):
    """An annotation that has no form in JSON."""


class MisfitError(ValueError):
    """A JSON value that is not what the annotation says; `path` as in `.items[0].name`."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"${self.path}: {self.message}"


class Kind(NamedTuple):
    """A type: its schema, how a JSON value becomes one of it (raises `MisfitError`), and whether None is one."""

    schema: dict[str, Any]
    read: Read
    takes_none: bool = False


def inside(read: Read, value: Any, path: str) -> Any:
    try:
        return read(value)
    except MisfitError as error:
        raise MisfitError(error.message, path + error.path) from None
    except msgspec.DecodeError as error:
        raise MisfitError(str(error), path) from None


def built(make: Callable[..., Any], made: dict[str, Any]) -> Any:
    made.pop("", None)  # the tag of a Struct
    try:
        return make(**made)
    except (ValueError, TypeError) as error:  # what its own checks say
        raise MisfitError(str(error)) from None


def leaf(type_: Any) -> Read:
    whole = type_ is int

    def read(value: Any) -> Any:
        if whole and isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_FLOAT:
            value = int(value)
        try:
            return msgspec.convert(value, type_)
        except (msgspec.ValidationError, OverflowError) as error:
            raise MisfitError(str(error).replace("`", "").replace("Expected", "expected")) from None

    return read


def decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise MisfitError(f"expected a number, got {named(value)}")
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise MisfitError(f"expected a number, got {value!r}") from None


def enumeration(members: Sequence[tuple[Any, Any]], type_: object) -> Kind:
    """One of some JSON values, in the order of the source; each stands for a Python value."""
    values = [value for value, _ in members]
    kinds = {_JSON_TYPES.get(type(value)) for value in values}
    if None in kinds or not values:
        raise UnknownTypeError(f"{shown(type_)} has members that are no JSON values")
    schema: dict[str, Any] = {"type": kinds.pop(), "enum": values} if len(kinds) == 1 else {"enum": values}
    return Kind(schema, member_of(values, [member for _, member in members]), None in values)


def member_of(values: Sequence[Any], members: Sequence[Any] | None = None) -> Read:
    stands_for = {(type(value), value): member for value, member in zip(values, members or values, strict=True)}

    def read(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer() and (float, value) not in stands_for:
            value = int(value)
        try:
            return stands_for[type(value), value]
        except (KeyError, TypeError):
            raise MisfitError(f"expected one of {', '.join(map(repr, values))}, got {named(value)}") from None

    return read


def list_of(item: Read, make: Callable[[list[Any]], Any]) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise MisfitError(f"expected an array, got {named(value)}")
        return make([inside(item, one, f"[{number}]") for number, one in enumerate(value)])

    return read


def tuple_of(items: Sequence[Read]) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(items):
            raise MisfitError(f"expected an array of {len(items)}, got {named(value)}")
        return tuple(inside(item, one, f"[{n}]") for n, (item, one) in enumerate(zip(items, value, strict=True)))

    return read


def first_of(branches: Sequence[Read]) -> Read:
    def read(value: Any) -> Any:
        told: list[str] = []
        for branch in branches:
            try:
                return branch(value)
            except MisfitError as error:
                told.append(error.message if not error.path else f"{error.path.lstrip('.')}: {error.message}")
        raise MisfitError("; or ".join(dict.fromkeys(told)))

    return read


def named(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def shown(type_: Any) -> str:
    return f"{type_.__module__}.{type_.__qualname__}" if isinstance(type_, type) else str(type_)
