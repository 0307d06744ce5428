"""Settings that users write: checked against a struct; each error lists the valid values."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from callwright.errors import did_you_mean
from callwright.settings.expiry import Expiry

T = TypeVar("T")
_STEP = re.compile(r"\.(\w+)|\[([^\]]*)\]")
_BOUNDS = ("<", ">", "of length")
_ENUM = re.compile(r"Invalid enum value '?(?P<value>.*?)'?(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_TYPE = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)


class SlipError(ValueError):
    """An invalid setting; `path` is its place, as in `models[0].mode`, `what` the rest."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.what = message


def read_settings(given: Mapping[str, Any], kind: type[T]) -> T:
    """The settings as a struct. Raises `SlipError`."""
    type_ = inspect.type_info(kind)
    _check_names(given, type_, "")
    try:
        return msgspec.convert(given, kind, dec_hook=_convert)
    except msgspec.ValidationError as error:
        raise _slip(str(error), type_, given) from error


def _convert(kind: type, given: object) -> object:
    """A value of a type that msgspec does not know. Raises `ValueError`, which msgspec reports with its path."""
    if kind is Expiry:
        return Expiry.read(given)
    raise NotImplementedError(kind)


def _check_names(given: object, type_: inspect.Type, path: str) -> None:
    """msgspec names an unknown name only, not the one that was meant; nor does it know how TOML writes tables."""
    if isinstance(type_, inspect.UnionType):  # a table that may be left out
        type_ = next((one for one in type_.types if isinstance(one, inspect.StructType)), type_)
    is_list = isinstance(type_, inspect.VarTupleType) and isinstance(type_.item_type, inspect.StructType)
    if is_list and isinstance(given, Mapping):
        raise SlipError(path, f"expected an array of tables, got one table: write [[{path}]] instead of [{path}].")
    if isinstance(type_, inspect.StructType) and isinstance(given, list) and path:
        raise SlipError(path, f"expected one table, got an array: write [{path}] instead of [[{path}]].")
    if isinstance(type_, inspect.VarTupleType) and isinstance(given, list):
        for number, item in enumerate(given):
            _check_names(item, type_.item_type, f"{path}[{number}]")
    elif isinstance(type_, inspect.StructType) and isinstance(given, Mapping):
        known = {field.name: field.type for field in type_.fields}
        for name, value in given.items():
            inner = f"{path}.{name}" if path else name
            if name not in known:
                hint = did_you_mean(name, known)
                raise SlipError(inner, f"unknown name.{hint} It can be: {', '.join(known)}.")
            _check_names(value, known[name], inner)


def _slip(message: str, type_: inspect.Type, given: object) -> SlipError:
    if found := _ENUM.match(message):
        path, value = found["path"] or "", found["value"]
        known = _values(_at(type_, path))
        return SlipError(
            path.removeprefix("."), f"{value!r} cannot be.{did_you_mean(value, known)} It can be: {', '.join(known)}."
        )
    found = _TYPE.match(message)
    assert found is not None
    what, path = found["what"].replace("`", "").rstrip("."), found["path"] or ""
    if "[...]" not in path and any(bound in what for bound in _BOUNDS):  # only these messages lack the value
        what += f", got {_value_at(given, path)!r}"
    return SlipError(path.removeprefix("."), f"{what}.")


def _value_at(given: Any, path: str) -> Any:
    for name, number in _STEP.findall(path):
        given = given[name] if name else given[int(number)]
    return given


def _at(type_: inspect.Type, path: str) -> inspect.Type:
    """The type that a path leads to."""
    for step in _STEP.finditer(path):
        if isinstance(type_, inspect.UnionType):
            type_ = next(one for one in type_.types if not isinstance(one, inspect.NoneType))
        if isinstance(type_, inspect.StructType):
            type_ = next(field.type for field in type_.fields if field.name == step[1])
        elif isinstance(type_, inspect.VarTupleType):
            type_ = type_.item_type
    return type_


def _values(type_: inspect.Type) -> list[str]:
    types = type_.types if isinstance(type_, inspect.UnionType) else (type_,)
    return [str(value) for one in types if isinstance(one, inspect.LiteralType) for value in one.values]
