"""What OpenAI's API demands of the schema of a function or of an answer, in its words.

`schema_problems` holds for every schema, `strict_problems` for those with `strict: true`; `closed_problems` for those
of Anthropic's API, which lets members be optional. Source: the guide to structured outputs, the messages as public
threads quote them, November 2026. `default` is an annotation, as at api.openai.com since 2026 (Azure refuses it);
`minLength` and `maxLength` are taken, as for its base models.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import jsonschema_rs

from callwright.schema.keywords import DEFINITIONS, LOCAL_REFERENCE, STRICT_FORMATS
from callwright.schema.size import most_properties
from callwright.schema.validate import validator_of
from callwright.settings.bounds import MAX_PROPERTIES
from callwright.tolerant_json.codec import encode

# Levels of JSON that a schema may have: the validator compiles no more than 255.
MAX_LEVELS: Final = 200

TOO_DEEP: Final = f"schema is nested too deeply. Expected at most {MAX_LEVELS} levels."

_DRAFTS: Final = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#",
)
_UNIONS: Final = ("oneOf", "anyOf", "allOf", "enum", "not")
_REFUSED: Final = (
    *("oneOf", "allOf", "not", "if", "then", "else"),
    *("prefixItems", "additionalItems", "uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"),
    *("patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"),
    *("dependencies", "dependentRequired", "dependentSchemas", "$dynamicRef", "$recursiveRef"),
)
# An escaped character, a class of characters, or what opens a group that looks around.
_PATTERN_PART: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\]|(?!))*+(?:\]|\\?\Z)|(?P<around>\(\?<?[=!])", re.DOTALL)

_MAX_NESTING: Final = 10
_MAX_CHARACTERS: Final = 120_000
_MAX_MEMBERS: Final = 1_000
_LARGE_ENUM: Final = 250
_MAX_LARGE_ENUM_CHARACTERS: Final = 15_000

Schema: TypeAlias = Mapping[str, Any]
Path: TypeAlias = tuple[str | int, ...]


def schema_problems(schema: Schema) -> list[str]:
    """The problems of a schema of arguments, strict or not: empty if it describes an object and is well formed."""
    if levels(schema) > MAX_LEVELS:
        return [TOO_DEEP]
    return [*_of_root(schema), *_of_form(schema, _DRAFTS)]


def form_problems(schema: Schema) -> list[str]:
    """The problems of a schema of any value: invalid or too deep; empty if it is well formed."""
    return [TOO_DEEP] if levels(schema) > MAX_LEVELS else list(_of_form(schema, _DRAFTS))


def strict_problems(schema: Schema) -> list[str]:
    """Why OpenAI's strict mode refuses a schema, in its words, outermost first; empty when it accepts it."""
    if (properties := most_properties(schema)) > MAX_PROPERTIES:  # counted first: the rest takes longer
        return [too_many_properties(properties, MAX_PROPERTIES)]
    if malformed := schema_problems(schema) or list(_of_form(schema, _DRAFTS[:1])):
        return malformed
    defined = [(group, name) for group in DEFINITIONS for name in _mapping(schema.get(group))]
    starts: list[tuple[Path, Any]] = [((), schema)]
    starts += [((group, name), schema[group][name]) for group, name in defined]
    known = frozenset(defined)
    sizes = [_Size() for _ in starts]
    problems: list[str] = []
    for (path, node), size in zip(starts, sizes, strict=True):
        problems += _of_tree(path, node, size, known)
    problems += _of_sizes(sizes, sum(len(name) for _, name in defined))
    return problems or list(_of_engine(schema))


def closed_problems(schema: Schema) -> list[str]:
    """Why Anthropic's strict mode refuses a schema: an object may have other members, or nothing can be checked."""
    if malformed := schema_problems(schema):
        return malformed
    problems: list[str] = []
    row: list[tuple[Path, Any]] = [((), schema)]
    while row:
        for path, node in row:
            if isinstance(node, Mapping) and "properties" in node and node.get("additionalProperties") is not False:
                problems.append(_open(_context(path)))
        row = [(path + step, child) for path, node in row for step, child in _parts(node)]
    return problems or list(_of_engine(schema))


def levels(value: object) -> int:
    """How deeply objects and arrays are nested; counting stops above `MAX_LEVELS`, as a value may contain itself."""
    deepest, row = 0, [value]
    while row and deepest <= MAX_LEVELS:
        inner: dict[int, object] = {}  # a part that several others share is visited only once
        found = False
        for item in row:
            if isinstance(item, dict | list):
                found = True
                for part in item.values() if isinstance(item, dict) else item:
                    inner[id(part)] = part
        deepest += found
        row = [*inner.values()]
    return deepest


# --- every schema ---


def _of_root(schema: Schema) -> Iterator[str]:
    kind = schema.get("type")
    if kind != "object":
        shown = "null" if kind is None else encode(kind).decode()
        yield f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {shown}'."
    elif any(key in schema for key in _UNIONS):
        yield "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."


def _of_form(schema: Schema, drafts: Sequence[str]) -> Iterator[str]:
    """What JSON Schema itself refuses: a schema that one of the drafts takes is well formed."""
    fault: jsonschema_rs.ValidationError | None = None
    for draft in drafts:
        try:
            jsonschema_rs.meta.validate({**schema, "$schema": draft})
        except jsonschema_rs.ValidationError as error:
            fault = fault or error
        except UnicodeEncodeError:
            yield "schema contains invalid Unicode: an unpaired surrogate."
            return
        else:
            return
    if fault is not None:
        yield f"{_context(tuple(fault.instance_path))}, {fault.message}."


# --- strict schemas ---


class _Size:
    """Counts for the root, or for one definition."""

    def __init__(self) -> None:
        self.nesting = 0
        self.characters = 0
        self.members = 0


def _of_tree(start: Path, schema: Any, size: _Size, defined: frozenset[tuple[str, str]]) -> Iterator[str]:
    """Each node, outermost first, without following references."""
    row: list[tuple[Path, Any, int]] = [(start, schema, 0)]
    while row:
        inner: list[tuple[Path, Any, int]] = []
        for path, node, nesting in row:
            if not isinstance(node, Mapping):
                yield f"{_context(path)}, schema must have a 'type' key."
                continue
            nesting += "properties" in node
            size.nesting = max(size.nesting, nesting)
            yield from _of_node(path, node, defined)
            yield from _count_node(path, node, size)
            inner += [(path + step, child, nesting) for step, child in _children(node)]
        row = inner


def _children(node: Schema) -> Iterator[tuple[Path, Any]]:
    for key, child in _mapping(node.get("properties")).items():
        yield ("properties", key), child
    if isinstance(node.get("items"), Mapping | bool):
        yield ("items",), node["items"]
    for number, branch in enumerate(node.get("anyOf") or ()):
        yield ("anyOf", number), branch


def _parts(node: Any) -> Iterator[tuple[Path, Any]]:
    """The schemas in a schema, without following references."""
    if not isinstance(node, Mapping):
        return
    yield from _children(node)
    for group in DEFINITIONS:
        yield from (((group, name), part) for name, part in _mapping(node.get(group)).items())
    yield from ((("allOf", number), branch) for number, branch in enumerate(node.get("allOf") or ()))


def _of_engine(schema: Schema) -> Iterator[str]:
    """Nothing could be checked against a schema that does not compile."""
    if unread := validator_of(schema).unread:
        yield f"schema cannot be compiled: {unread}."


def _open(context: str) -> str:
    return f"{context}, 'additionalProperties' is required to be supplied and to be false."


def _of_node(path: Path, node: Schema, defined: frozenset[tuple[str, str]]) -> Iterator[str]:
    context = _context(path)
    for keyword in (*_REFUSED, *(DEFINITIONS if path else ())):
        if keyword in node:
            yield f"{context}, '{keyword}' is not permitted."
    if "$ref" in node:
        yield from _of_reference(context, node, defined)
    elif "type" not in node and not node.keys() & {"anyOf", "enum", "const", *_REFUSED}:
        yield f"{context}, schema must have a 'type' key."
    kinds = node.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds or ()
    if "object" in kinds or "properties" in node:
        yield from _of_object(context, node)
    if "array" in kinds and not isinstance(node.get("items"), Mapping | bool):
        yield f"{context}, array schema missing items."
    if "format" in node and node["format"] not in STRICT_FORMATS:
        yield f"{context}, '{node['format']}' is not a valid format."
    if any(part["around"] for part in _PATTERN_PART.finditer(node.get("pattern", ""))):
        yield f"Invalid JSON schema: regex lookaround is not supported. Found at {_place(path)}.pattern."


def _of_reference(context: str, node: Schema, defined: frozenset[tuple[str, str]]) -> Iterator[str]:
    beside = sorted(node.keys() - {"$ref"})
    if beside:
        yield f"{context}, $ref cannot have keywords {{{', '.join(map(repr, beside))}}}."
    target = LOCAL_REFERENCE.fullmatch(node["$ref"])
    name = (target["name"] or "").replace("~1", "/").replace("~0", "~") if target else ""
    if target is None or (target["group"] and (target["group"], name) not in defined):
        yield f"{context}, reference can only point to definitions defined at the top level of the schema."


def _of_object(context: str, node: Schema) -> Iterator[str]:
    if "properties" not in node:
        yield f"{context}, object schema missing properties."
        return
    if node.get("additionalProperties") is not False:
        yield _open(context)
    needed: Sequence[str] = node.get("required") or ()
    given = frozenset(needed)
    for key in node["properties"]:
        if key not in given:
            yield (
                f"{context}, 'required' is required to be supplied and to be an array including every key in "
                f"properties. Missing '{key}'."
            )
            return
    for key in needed:
        if key not in node["properties"]:
            yield (
                "'required' must be an array that includes every key in `properties`. "
                f"Extra required key '{key}' supplied."
            )
            return


def _count_node(path: Path, node: Schema, size: _Size) -> Iterator[str]:
    declared = _mapping(node.get("properties"))
    size.characters += sum(map(len, declared))
    members = node.get("enum") or ()
    texts = [member for member in members if isinstance(member, str)]
    size.members += len(members)
    characters = sum(map(len, texts))
    size.characters += characters
    if isinstance(node.get("const"), str):
        size.characters += len(node["const"])
    if len(texts) > _LARGE_ENUM and characters > _MAX_LARGE_ENUM_CHARACTERS:
        yield (
            f"{_context(path)}, expected at most {_MAX_LARGE_ENUM_CHARACTERS} characters in all values of an enum of "
            f"more than {_LARGE_ENUM} values, but received {characters}."
        )


def _of_sizes(sizes: Sequence[_Size], named: int) -> Iterator[str]:
    nesting = max(size.nesting for size in sizes)
    if nesting > _MAX_NESTING:
        yield f"{nesting} levels of nesting exceeds limit of {_MAX_NESTING}."
    members = sum(size.members for size in sizes)
    if members > _MAX_MEMBERS:
        yield _too_many(_MAX_MEMBERS, "enum values", members)
    characters = sum(size.characters for size in sizes) + named
    if characters > _MAX_CHARACTERS:
        yield _too_many(_MAX_CHARACTERS, "characters in names, enum values and const values", characters)


def too_many_properties(got: int, most: int) -> str:
    """The problem of a strict schema with too many properties."""
    return _too_many(most, "object properties", got)


def _too_many(most: int, what: str, got: int) -> str:
    return (
        f"Expected at most {most} {what} in total within a single schema when using structured outputs, but received "
        f"{got}. Consider reducing the number of {what}, or use 'strict: false' to opt out of structured outputs."
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _context(path: Path) -> str:
    return f"In context={path!r}"


def _place(path: Path) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
