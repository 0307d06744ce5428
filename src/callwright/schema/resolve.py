"""What a schema says at one place: references followed, unions taken apart."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

__all__ = ["TYPE_NAMES", "Schema", "branches", "pointed_at", "resolve", "wanted"]

Schema: TypeAlias = Mapping[str, Any]

# The types of JSON Schema.
TYPE_NAMES: Final = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
_MAX_REFERENCES: Final = 16
_MAX_BRANCHES: Final = 64
_EMPTY: Final[Schema] = {}


def resolve(schema: object, root: Schema) -> Schema:
    """A schema with its `$ref` into `root` followed and a lone `allOf` opened; `{}` for what says nothing."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, Mapping):
            return _EMPTY
        reference, all_of = schema.get("$ref"), schema.get("allOf")
        if isinstance(reference, str):
            schema = pointed_at(reference, root)
        elif isinstance(all_of, list) and len(all_of) == 1 and "type" not in schema and "properties" not in schema:
            schema = all_of[0]
        else:
            return schema
    return _EMPTY


def branches(schema: Schema, root: Schema) -> list[Schema]:
    """The choices that a union leaves, unions in it included, each once; of any other schema itself."""
    found: list[Schema] = []
    waiting: list[object] = [schema]
    opened: set[int] = set()  # a union may lead to itself
    while waiting and len(found) < _MAX_BRANCHES:
        part = resolve(waiting.pop(0), root)
        union = part.get("anyOf") or part.get("oneOf")
        kinds = part.get("type")
        if isinstance(union, list):
            waiting = [*union, *waiting] if id(union) not in opened else waiting
            opened.add(id(union))
        elif isinstance(kinds, list):
            found += [{**part, "type": kind} for kind in kinds]
        else:
            found.append(part)
    return found


def wanted(schema: Schema) -> str:
    """The type that a branch wants, `""` when it takes any."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    members = schema.get("enum")
    if isinstance(members, list) and members and all(isinstance(member, str) for member in members):
        return "string"
    return "object" if isinstance(schema.get("properties"), Mapping) else ""


def pointed_at(reference: str, root: Schema) -> object:
    """What a reference of the form `#/a/b` leads to; None where it leads nowhere."""
    value: object = root
    if not reference.startswith("#"):
        return None
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
