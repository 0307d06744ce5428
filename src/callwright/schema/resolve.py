"""Resolve a schema at one place: references followed, `allOf` merged, unions split at any level.

Everybody who asks for the types or the members at a place asks here: the repair of arguments, live or whole, and the
writers of values that were text.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from callwright.schema.keywords import properties, required

Schema: TypeAlias = Mapping[str, Any]

# The types of JSON Schema.
TYPE_NAMES: Final = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
_MAX_REFERENCES: Final = 16
_MAX_BRANCHES: Final = 64
_EMPTY: Final[Schema] = {}
# Keywords that combine schemas; and those that do not constrain the value itself.
_JOINING: Final = frozenset(("$ref", "allOf", "anyOf", "oneOf"))
_SILENT: Final = _JOINING | {
    *("$defs", "definitions", "$schema", "$id", "$comment", "title", "description", "default", "examples"),
    "discriminator",
}
_NAMES: Final = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def resolve(schema: object, root: Schema) -> Schema:
    """A schema with its `$ref` into `root` followed and a lone `allOf` unwrapped; `{}` if it has no constraints."""
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


def branches(schema: object, root: Schema) -> list[Schema]:
    """The choices that a schema leaves at its place, each with all that holds for it; never none."""
    return _choices(schema, root, ()) or [_EMPTY]


def _choices(schema: object, root: Schema, inside: tuple[int, ...]) -> list[Schema]:
    """`inside`: the schemas that lead here, as one may lead to itself."""
    if not isinstance(schema, Mapping):
        return [] if schema is False else [_EMPTY]
    if id(schema) in inside or len(inside) == _MAX_REFERENCES:
        return []
    if _JOINING.isdisjoint(schema):
        return _by_type([schema])
    groups = _joined(schema, root, (*inside, id(schema)))
    own = {key: value for key, value in schema.items() if key not in _SILENT}
    if not (own or any(groups)):
        return []  # nothing but the way back
    found: list[Schema] = _by_type([own] if own else [_EMPTY])
    for group in groups:
        if group:
            found = [both for one in found for other in group if (both := _both(one, other)) is not None] or found
            del found[_MAX_BRANCHES:]
    return found


def _joined(schema: Schema, root: Schema, inside: tuple[int, ...]) -> list[list[Schema]]:
    """The choices of each schema that this one is joined with; of a union one group."""
    reference, all_of = schema.get("$ref"), schema.get("allOf")
    groups = [_choices(pointed_at(reference, root), root, inside)] if isinstance(reference, str) else []
    groups += [_choices(part, root, inside) for part in all_of] if isinstance(all_of, list) else []
    for union in (schema.get("anyOf"), schema.get("oneOf")):
        if isinstance(union, list) and union:
            groups.append([choice for part in union for choice in _choices(part, root, inside)])
    return groups


def _by_type(schemas: Sequence[Schema]) -> list[Schema]:
    """The schemas with one type each."""
    found: list[Schema] = []
    for schema in schemas:
        kinds = schema.get("type")
        found += [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else [schema]
    return found


def _both(one: Schema, other: Schema) -> Schema | None:
    """A schema for what fits both; None if no type does."""
    if not one or not other:
        return one or other
    kinds = [kind for kind in (one.get("type"), other.get("type")) if kind is not None]
    if len(kinds) == 2 and kinds[0] != kinds[1]:
        if set(map(str, kinds)) != {"integer", "number"}:
            return None
        kinds = ["integer"]
    both = {**one, **other, **({"type": kinds[0]} if kinds else {})}
    if "properties" in one and "properties" in other:
        ours, theirs = properties(one), properties(other)
        both["properties"] = {
            name: {"allOf": [ours[name], theirs[name]]} if name in ours and name in theirs else schema
            for name, schema in {**ours, **theirs}.items()
        }
    if "required" in one and "required" in other:
        both["required"] = [*required(one), *required(other)]
    if isinstance(one.get("enum"), list) and isinstance(other.get("enum"), list):
        both["enum"] = [member for member in one["enum"] if member in other["enum"]]
    return both


def root_properties(schema: Schema | None) -> Mapping[str, Any]:
    """The members that a root schema declares, in whatever branch, with their schemas."""
    if not schema or _JOINING.isdisjoint(schema):
        return properties(schema)
    return properties(merged(branches(schema, schema)))


def merged(choices: Sequence[Schema]) -> Schema:
    """One schema for an object that may match any of the choices: a member may be that of any choice, and is required
    if all require it.
    """
    if len(choices) == 1:
        return choices[0]
    names = dict.fromkeys(name for choice in choices for name in properties(choice))
    members: dict[str, Any] = {}
    for name in names:
        told: list[Any] = []
        for choice in choices:
            part = properties(choice).get(name, choice.get("additionalProperties", False))
            if part not in (False, *told):
                told.append(part)
        members[name] = told[0] if len(told) == 1 else {"anyOf": told}
    needed = [name for name in names if all(name in required(choice) for choice in choices)]
    others = [choice.get("additionalProperties") for choice in choices]
    free = {"additionalProperties": others[0]} if all(other == others[0] for other in others) else {}
    return {"type": "object", "properties": members, "required": needed, **free}


def chosen(choices: Sequence[Schema], name: str, value: object, root: Schema) -> Sequence[Schema]:
    """The choices whose member `name` may have this value, by its `const` or `enum`; all of them if none may."""
    fitting = [choice for choice in choices if _may_be(properties(choice).get(name), value, root)]
    return fitting or choices


def _may_be(schema: object, value: object, root: Schema) -> bool:
    for part in branches(schema, root):
        members = [part["const"]] if "const" in part else part.get("enum")
        if not isinstance(members, list) or value in members:
            return True
    return False


def wanted_type(schema: Schema) -> str:
    """The type that a branch wants, `""` when it takes any."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    members = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(members, list) and members:
        kinds = {_NAMES.get(type(member), "") for member in members}
        return kinds.pop() if len(kinds) == 1 else ""
    if isinstance(schema.get("properties"), Mapping):
        return "object"
    return "array" if isinstance(schema.get("items"), Mapping) else ""


def pointed_at(reference: str, root: Schema) -> object:
    """The target of a reference of the form `#/a/b`; None if there is none."""
    value: object = root
    if not reference.startswith("#"):
        return None
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
