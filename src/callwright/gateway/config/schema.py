"""The JSON Schema of the configuration: structs say names, types, bounds and defaults, their source the meanings."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec.inspect import ListType, StructType, Type, UnionType, VarTupleType, type_info

from callwright.gateway.config.config import Config
from callwright.settings.expiry import Expiry

_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def meanings(table: type[msgspec.Struct]) -> dict[str, str]:
    """What the text below each field of a struct says, in Markdown on one line."""
    (class_,) = ast.parse(textwrap.dedent(inspect.getsource(table))).body
    assert isinstance(class_, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(class_.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def tables() -> dict[str, type[msgspec.Struct]]:
    """The structs that a configuration is made of, by name."""
    return {struct.__name__: struct for struct in _inside(type_info(Config))}


def _inside(type_: Type) -> Iterator[type[msgspec.Struct]]:
    """The structs within a type, whatever list or choice they stand in."""
    match type_:
        case StructType(cls, fields):
            yield cls
            for field in fields:
                yield from _inside(field.type)
        case UnionType(types):
            for each in types:
                yield from _inside(each)
        case ListType(item_type) | VarTupleType(item_type):
            yield from _inside(item_type)


def config_schema() -> dict[str, Any]:
    """A JSON Schema of `callwright.toml`, as editors read it."""
    schema = msgspec.json.schema(Config, schema_hook=_schema_of)
    for name, table in tables().items():
        definition = schema["$defs"][name]
        definition["description"] = _plain(inspect.getdoc(table) or "")
        for field, meaning in meanings(table).items():
            definition["properties"][field] = _described(definition["properties"][field], _plain(meaning))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "callwright.toml", **schema}


def _schema_of(kind: type) -> dict[str, Any]:
    """The schema of a type that msgspec does not know. Editors see TOML dates as strings with a format."""
    if kind is Expiry:
        return {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
    raise NotImplementedError(kind)


def _described(field: Mapping[str, Any], meaning: str) -> dict[str, Any]:
    """A field without the default None, which TOML cannot say."""
    told = {name: value for name, value in field.items() if (name, value) != ("default", None)}
    return {"description": meaning, **told}


def _plain(text: str) -> str:
    """Without the links, which lead from the page that has them."""
    return _LINK.sub(r"\1", text)
