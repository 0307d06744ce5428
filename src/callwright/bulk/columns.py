"""The types of a table's columns, for rows with any fields: inferred row by row, merged part by part."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from callwright.tolerant_json.codec import NotJsonError, decode, encode

Row: TypeAlias = dict[str, Any]
# `none`: nothing but null so far. `json`: texts as they are, anything else as JSON text.
ColumnKind: TypeAlias = Literal["none", "bool", "int64", "double", "string", "json"]

_MAX_INT: Final = 2**63
# Columns that may hold JSON as text.
_JSON_COLUMNS: Final = ("messages", "input", "tools", "tool_choice")


def kinds_of(rows: Iterable[Row]) -> dict[str, ColumnKind]:
    """The kinds of these rows' fields, in order of first appearance."""
    found: dict[str, ColumnKind] = {}
    for row in rows:
        for name, value in row.items():
            found[name] = _common(found.get(name, "none"), _kind(value))
    return found


def merged_kinds(each: Iterable[Mapping[str, ColumnKind]]) -> dict[str, ColumnKind]:
    """The kinds of the fields of all parts."""
    found: dict[str, ColumnKind] = {}
    for kinds in each:
        for name, kind in kinds.items():
            found[name] = _common(found.get(name, "none"), kind)
    return found


def _kind(value: object) -> ColumnKind:
    match value:
        case None:
            return "none"
        case bool():
            return "bool"
        case int():
            return "int64" if -_MAX_INT <= value < _MAX_INT else "json"
        case float():
            return "double"
        case str():
            return "string"
    return "json"


def _common(one: ColumnKind, other: ColumnKind) -> ColumnKind:
    if one == other or other == "none":
        return one
    if one == "none":
        return other
    return "double" if {one, other} == {"int64", "double"} else "json"


def cell(value: Any, kind: str) -> Any:
    """A value as a column of this kind holds it."""
    if value is None or isinstance(value, str) or kind in ("bool", "bool_", "int64"):
        return value
    return float(value) if kind == "double" else encode(value).decode()


def from_columns(row: Row) -> Row:
    """Convert a row of a table back to the original object."""
    return {name: _from_column(name, value) for name, value in row.items()}


def _from_column(name: str, value: Any) -> Any:
    if name in _JSON_COLUMNS and isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return decode(value)
        except NotJsonError:
            return value
    return _without_nothing(value)


def _without_nothing(value: Any) -> Any:
    """A nested value without null members, which only other rows have."""
    match value:
        case dict():
            return {key: _without_nothing(member) for key, member in value.items() if member is not None}
        case list():
            return [_without_nothing(item) for item in value]
    return value
