"""The schema of a tool's arguments in the words of JSON Schema: what readers, checks, constraints and prompts ask for.

Authors write `nullable` as in OpenAPI, and the type names of their language. `tool_schema` converts both to
JSON Schema; `resolved_schema` also without references, for prompts that convert a schema. A prompt that shows a
tool as the client wrote it shows `FunctionTool.openai`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright.conversation import FunctionTool
from callwright.schema.resolve import TYPE_NAMES, Schema, pointed_at, wanted_type

_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("float", "float32", "float64", "double", "decimal", "real"), "number"),
    **dict.fromkeys(("int", "int8", "int16", "int32", "int64", "long", "short", "byte", "bigint"), "integer"),
    **dict.fromkeys(("uint", "uint8", "uint16", "uint32", "uint64", "ulong"), "integer"),
    "bool": "boolean",
    **dict.fromkeys(("list", "tuple", "set"), "array"),
    **dict.fromkeys(("dict", "map", "hash", "hashmap", "struct"), "object"),
    **dict.fromkeys(("str", "text", "char"), "string"),
    **dict.fromkeys(("none", "nil", "nonetype"), "null"),
    **dict.fromkeys(("any", "mixed"), ""),
}
# Keywords that hold one schema, several, and several by their names.
_ONE: Final = frozenset(
    ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems")
)
_SEVERAL: Final = frozenset(("anyOf", "oneOf", "allOf", "prefixItems", "items"))
_NAMED: Final = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_MAX_LEVELS: Final = 200
_MAX_PARTS: Final = 4_096  # of a resolved schema: a few lines of references can expand to millions
_NULL: Final[Schema] = {"type": "null"}


def tool_schema(tool: FunctionTool | None) -> Schema | None:
    """The schema of a tool's arguments in the words of JSON Schema; None if it takes none."""
    if tool is None or tool.parameters is None:
        return None
    return tool.once("plain schema", lambda tool: plain_schema(tool.parameters))


def resolved_schema(tool: FunctionTool) -> Schema | None:
    """The same with what each reference leads to in its place, a constant as an enumeration of one, and `allOf` of one
    opened. A schema that leads to itself is cut there, with a note.
    """
    schema = tool_schema(tool)
    return None if schema is None else tool.once("resolved schema", lambda _: _Resolver(schema).root())


def type_words(tool: FunctionTool) -> tuple[str, ...]:
    """The type names in a tool's schema that JSON Schema does not have."""
    found: dict[str, None] = {}

    def look(schema: Schema) -> Schema:
        kinds = schema.get("type")
        for word in kinds if isinstance(kinds, list) else [kinds]:
            if isinstance(word, str) and word not in TYPE_NAMES:
                found[word] = None
        return schema

    _mapped(tool.parameters, look)
    return tuple(found)


def plain_schema(schema: Schema) -> Schema:
    """A schema in the words of JSON Schema; the same object if it is one already."""
    made = _mapped(schema, _plain)
    assert isinstance(made, Mapping)
    return made


def without_keywords(schema: object, keywords: frozenset[str]) -> object:
    """A schema without these keywords in it, nor in its parts; the same object if it has none of them."""

    def change(schema: Schema) -> Schema:
        if keywords.isdisjoint(schema):
            return schema
        return {key: value for key, value in schema.items() if key not in keywords}

    return _mapped(schema, change)


def _mapped(schema: object, change: Callable[[Schema], Schema], level: int = 0) -> object:
    """A schema with each schema in it changed, the innermost first; the same object if nothing changes."""
    if not isinstance(schema, Mapping) or level > _MAX_LEVELS:
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        new = value
        if isinstance(value, Mapping) and key in _ONE:
            new = _mapped(value, change, level + 1)
        elif isinstance(value, list) and key in _SEVERAL:
            inner = [_mapped(part, change, level + 1) for part in value]
            new = inner if any(one is not other for one, other in zip(inner, value, strict=True)) else value
        elif isinstance(value, Mapping) and key in _NAMED:
            named = {name: _mapped(part, change, level + 1) for name, part in value.items()}
            new = named if any(named[name] is not value[name] for name in value) else value
        if new is not value:
            made[key] = new
    return change({**schema, **made} if made else schema)


def _plain(schema: Schema) -> Schema:
    """One schema, without those in it."""
    kinds = schema.get("type")
    words = kinds if isinstance(kinds, list) else [kinds]
    if all(isinstance(word, str) for word in words) and not TYPE_NAMES.issuperset(words):
        read = [_type_of(word) for word in words]
        schema = {key: value for key, value in schema.items() if key != "type"}
        if "" not in read:
            kinds = list(dict.fromkeys(read)) if isinstance(kinds, list) else read[0]
            schema = {**schema, "type": kinds}
    return _with_null(schema) if schema.get("nullable") is True else schema


def _type_of(word: object) -> object:
    if not isinstance(word, str) or word in TYPE_NAMES:
        return word
    low = word.lower().partition("[")[0].strip()
    return low if low in TYPE_NAMES else _WORDS.get(low, word)


def _with_null(schema: Schema) -> Schema:
    """A schema that takes null, too."""
    own = {key: value for key, value in schema.items() if key != "nullable"}
    kinds = own.get("type")
    if kinds is None and not own.keys() & {"$ref", "allOf", "anyOf", "oneOf", "enum", "const"}:
        return own  # takes anything
    if "const" in own or (kinds is None and "enum" not in own):
        about: dict[str, Any] = {key: own.pop(key) for key in ("description", "title", "default") if key in own}
        return {**about, "anyOf": [own, _NULL]}
    if kinds is not None:
        several = kinds if isinstance(kinds, list) else [kinds]
        own["type"] = several if "null" in several else [*several, "null"]
    if isinstance(own.get("enum"), list) and None not in own["enum"]:
        own["enum"] = [*own["enum"], None]
    return own


class _Resolver:
    """Puts in place what references lead to."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._parts = 0

    def root(self) -> Schema:
        """The whole schema, without its definitions."""
        own = {key: value for key, value in self._root.items() if key not in ("$defs", "definitions")}
        made = self._resolved(own, ())
        return made if isinstance(made, Mapping) else own

    def _resolved(self, schema: object, inside: tuple[str, ...]) -> object:
        if not isinstance(schema, Mapping) or self._parts > _MAX_PARTS or len(inside) > _MAX_LEVELS:
            return schema
        self._parts += 1
        reference, all_of = schema.get("$ref"), schema.get("allOf")
        if isinstance(reference, str):
            return self._followed(schema, reference, inside)
        if isinstance(all_of, list) and len(all_of) == 1 and isinstance(all_of[0], Mapping):
            beside = {key: value for key, value in schema.items() if key != "allOf"}
            if not (beside.keys() & all_of[0].keys()) - {"title", "description", "default"}:
                return self._resolved(_beside(all_of[0], beside), inside)
        made: dict[str, Any] = {}
        for key, value in schema.items():
            if isinstance(value, Mapping) and key in _ONE:
                made[key] = self._resolved(value, inside)
            elif isinstance(value, list) and key in _SEVERAL:
                made[key] = [self._resolved(part, inside) for part in value]
            elif isinstance(value, Mapping) and key in _NAMED:
                made[key] = {name: self._resolved(part, inside) for name, part in value.items()}
            else:
                made[key] = value
        return _simpler(made)

    def _followed(self, schema: Schema, reference: str, inside: tuple[str, ...]) -> object:
        """The schema that a reference leads to, with its sibling keywords; a note if it is recursive."""
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        target = pointed_at(reference, self._root)
        if reference in inside:
            name = reference.rpartition("/")[2] or "the whole"
            note = f"{beside.get('description') or ''} (nested: {name} again)".strip()
            kind = target.get("type") if isinstance(target, Mapping) else None
            return {**({"type": kind} if kind else {}), **beside, "description": note}
        if not isinstance(target, Mapping):
            return schema
        return self._resolved(_beside(target, beside), (*inside, reference))


def _beside(schema: Schema, more: Schema) -> Schema:
    """A schema with the sibling keywords of the reference to it; its own description follows theirs."""
    told = [text for part in (more, schema) if isinstance(text := part.get("description"), str) and text]
    return {**schema, **more, **({"description": " ".join(dict.fromkeys(told))} if told else {})}


def _simpler(schema: dict[str, Any]) -> dict[str, Any]:
    """A constant as an enumeration of one, which has a type; a union of a schema and null as one with two types."""
    if "const" in schema:
        schema = {key: value for key, value in schema.items() if key != "const"} | {"enum": [schema["const"]]}
    if "type" not in schema and (kind := wanted_type(schema)):
        schema["type"] = kind
    for union in ("anyOf", "oneOf"):
        parts = schema.get(union)
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            continue
        others = [part for part in parts if part != _NULL]
        beside = schema.keys() - {union, "title", "description", "default"}
        if len(others) == 1 and len(parts) == 2 and isinstance(others[0].get("type"), str) and not beside:
            own = dict(_beside(others[0], {key: value for key, value in schema.items() if key != union}))
            enum = {"enum": [*own["enum"], None]} if isinstance(own.get("enum"), list) else {}
            return {**own, **enum, "type": [own["type"], "null"]}
    return schema
