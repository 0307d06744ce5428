"""JSON values, schemas and what is made of them: mostly what could be meant, now and then what nobody means."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fuzz.words import TRICKY
from tests.support.choices import Choices

__all__ = ["HOSTILE", "NAMES", "arguments", "instance", "mutated", "schema", "string", "value", "written"]

NAMES = ("path", "query", "text", "max_results", "message", "fileName", "input", "x", "name", "größe", 'a"b', "")
HOSTILE: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 1e300, 10**30, -(2**63), "", " ", "x" * 300, "\x00", [], {}, [[]], [None], {"": {}}),
    *({"a": [{"b": None}]}, "auto", "function", "none", "type", {"type": "function"}, {"type": "text"}, ["a", "a"]),
    *({"type": []}, {"$ref": "#"}, {"name": {}}, [[[[[[]]]]]], "null", "{", '{"a": 1}', "user", "tool"),
)
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_PATTERNS = (
    "^a+$",
    "\\d{2,4}",
    "(",
    "[a",
    "a{2,1}",
    "(?<=x)y",
    "\\p{L}+",
    "^[^/]*$",
    "\\u00e9",
    "(?i)a",
    "[[:alpha:]]",
)
_REFERENCES = (
    *("#", "#/$defs/a", "#/$defs/b", "#/definitions/a", "#/properties/x", "#/$defs/missing", "#a", "a", "", "#/"),
    *("https://example.com/s.json", "#/$defs/a/properties/x", "#/%24defs/a", "#/$defs/~0~1", "file:///etc/hosts"),
)


def string(draw: Choices) -> str:
    """A text with what formats stumble over."""
    return draw.text(TRICKY, 4)


def value(draw: Choices, depth: int = 3) -> Any:
    """Any JSON value."""
    kind = draw.number(7 if depth else 5)
    match kind:
        case 0 | 1:
            return string(draw)
        case 2:
            return draw.one((0, 1, -7, 10**20, 2**53, 12))
        case 3:
            return draw.one((0.5, -1.5, 1e300, 12.0, 1e-7))
        case 4:
            return draw.one((True, False))
        case 5:
            return None
        case 6:
            return draw.several(3, lambda: value(draw, depth - 1))
    return {draw.one(NAMES): value(draw, depth - 1) for _ in range(draw.number(3))}


def schema(draw: Choices, depth: int = 3, *, sane: bool = False) -> dict[str, Any]:
    """A schema; `sane`: one that everybody reads alike."""
    made: dict[str, Any] = {}
    kinds = _TYPES if depth else _TYPES[:4]
    kind = draw.one(kinds)
    match draw.number(11):
        case 0 | 1 | 2 | 3:
            made["type"] = kind
        case 4:
            made["type"] = [kind, "null"] if kind != "null" else "null"
        case 5:
            members = draw.several(3, lambda: draw.one(("north", "South", "a b", 1, True, None, "1"))) or ["north"]
            return {"enum": list({json.dumps(member): member for member in members}.values())}
        case 6:
            return {"const": value(draw, 1)}
        case 7 if depth:
            way = draw.one(("anyOf", "oneOf", "allOf"))
            return {way: [schema(draw, depth - 1, sane=sane) for _ in range(1 + draw.number(2))]}
        case 8:
            return {"$ref": draw.one(_REFERENCES[:2] if sane else _REFERENCES)}
        case 9:
            return {}
        case _:
            made["type"] = kind
    if kind == "object" and depth:
        names = list(dict.fromkeys(draw.several(4, lambda: draw.one(NAMES))))
        made["properties"] = {name: schema(draw, depth - 1, sane=sane) for name in names}
        made["required"] = [name for name in names if not draw.once_in(2)]
        if draw.once_in(2):
            made["additionalProperties"] = schema(draw, 0, sane=sane) if draw.once_in(3) else False
    elif kind == "array" and depth:
        made["items"] = schema(draw, depth - 1, sane=sane)
        if draw.once_in(4):
            made["minItems"] = draw.number(2)
    elif kind in ("integer", "number") and draw.once_in(3):
        made[draw.one(("minimum", "maximum", "exclusiveMinimum", "multipleOf"))] = draw.one((1, 2, 10))
    elif kind == "string" and draw.once_in(3):
        made["maxLength"] = draw.number(20)
    if not sane and draw.once_in(4):
        _spoil(draw, made, depth)
    return made


def _spoil(draw: Choices, made: dict[str, Any], depth: int) -> None:
    match draw.number(5):
        case 0:
            made["pattern"] = draw.one(_PATTERNS)
        case 1:
            made[draw.one(("patternProperties", "dependentSchemas"))] = {draw.one(_PATTERNS): schema(draw, 0)}
        case 2 if depth:
            made[draw.one(("not", "if", "then", "else", "contains", "propertyNames"))] = schema(draw, depth - 1)
        case 3 if depth:
            made["prefixItems"] = draw.several(2, lambda: schema(draw, depth - 1))
        case 4:
            made[draw.one(("$id", "$anchor", "$schema", "format", "$dynamicRef", "title", "$comment"))] = draw.one(
                ("a", "#a", "http://json-schema.org/draft-07/schema#", "date", "uuid", "")
            )
        case _:
            keyword = draw.one(
                (
                    *("type", "properties", "required", "items", "enum", "anyOf", "additionalProperties", "$defs"),
                    *(
                        "minimum",
                        "maxLength",
                        "minItems",
                        "multipleOf",
                        "pattern",
                        "default",
                        "nullable",
                        "$ref",
                        "const",
                    ),
                )
            )
            made[keyword] = draw.one(HOSTILE)


def arguments(draw: Choices, *, sane: bool = False) -> dict[str, Any]:
    """The schema of a tool's arguments."""
    names = list(dict.fromkeys(draw.several(4, lambda: draw.one(NAMES))))
    made: dict[str, Any] = {"type": "object", "properties": {name: schema(draw, 2, sane=sane) for name in names}}
    made["required"] = [name for name in names if not draw.once_in(2)]
    if draw.once_in(2):
        made["additionalProperties"] = False
    if sane or draw.once_in(2):
        made["$defs"] = {name: schema(draw, 1, sane=sane) for name in ("a", "b")}
        if sane:  # references that lead to themselves alone are read in more than one way
            made["$defs"] = {name: {"type": draw.one(_TYPES)} for name in ("a", "b")}
    if not sane and draw.once_in(6):
        _spoil(draw, made, 2)
    return made


def instance(draw: Choices, wanted: object, root: Mapping[str, Any], depth: int = 4) -> Any:
    """A value that mostly fits a schema."""
    if not isinstance(wanted, Mapping) or not depth or draw.once_in(12):
        return value(draw, 1)
    reference = wanted.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        defs = root.get("$defs")
        name = reference.rpartition("/")[2]
        return instance(draw, defs.get(name) if isinstance(defs, Mapping) else None, root, depth - 1)
    if isinstance(wanted.get("enum"), list) and wanted["enum"]:
        return draw.one(wanted["enum"])
    if "const" in wanted:
        return wanted["const"]
    for way in ("anyOf", "oneOf", "allOf"):
        if isinstance(wanted.get(way), list) and wanted[way]:
            return instance(draw, draw.one(wanted[way]), root, depth - 1)
    kinds = wanted.get("type")
    kind = draw.one(kinds) if isinstance(kinds, list) and kinds else kinds
    match kind:
        case "string":
            return string(draw)
        case "integer":
            return draw.one((1, 2, 10, 0, -5, 10**20))
        case "number":
            return draw.one((1, 2.5, 10.0, -5, 1e300))
        case "boolean":
            return draw.one((True, False))
        case "null":
            return None
        case "array":
            return draw.several(3, lambda: instance(draw, wanted.get("items"), root, depth - 1))
        case "object":
            given = wanted.get("properties")
            members = given if isinstance(given, Mapping) else {}
            return {
                name: instance(draw, inner, root, depth - 1) for name, inner in members.items() if not draw.once_in(6)
            }
    return value(draw, 1)


def written(draw: Choices, given: object) -> str:
    """A value as JSON, in one of the ways of writing it."""
    form: dict[str, Any] = draw.one(({}, {"indent": 2}, {"separators": (",", ":")}))
    return json.dumps(given, ensure_ascii=draw.once_in(2), **form)


def mutated(draw: Choices, given: Any, foreign: Sequence[Any] = HOSTILE) -> Any:
    """A value with one thing in it changed, left out, doubled or put elsewhere."""
    if isinstance(given, dict) and given and not draw.once_in(6):
        name = draw.one(list(given))
        match draw.number(7):
            case 0:
                return {key: inner for key, inner in given.items() if key != name}
            case 1:
                return {**given, str(draw.one((*given, *NAMES))): draw.one(foreign)}
            case 2:
                return {**given, name: [given[name], given[name]]}
        return {**given, name: mutated(draw, given[name], foreign)}
    if isinstance(given, list) and given and not draw.once_in(6):
        at = draw.number(len(given) - 1)
        match draw.number(5):
            case 0:
                return given[:at] + given[at + 1 :]
            case 1:
                return [*given[:at], given[at], *given[at:]]
            case 2:
                other = draw.number(len(given) - 1)
                return [*given[:at], given[other], *given[at + 1 :]]
        return [*given[:at], mutated(draw, given[at], foreign), *given[at + 1 :]]
    return draw.one(foreign) if not draw.once_in(4) else value(draw)
