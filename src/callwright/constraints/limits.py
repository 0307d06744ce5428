"""Bounds for schemas without any: a model may write texts, digits and items until its token limit.

The bounds are as wide as the token limit of the request allows, so that a value which fits in them fits in the answer.
They concern only the output under a constraint. The check uses the schema alone.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from callwright.constraints.number_ranges import BOUNDS, MAX_WHOLE
from callwright.schema.size import pattern_size

# Without a limit of the request.
_TOKENS: Final = 16_384
# A weak model's token has few characters; from this limit on there is more room than such a model needs.
_CHARACTERS_OF_TOKEN: Final = 3
_AMPLE_TOKENS: Final = 512
# Calls after the first, without a limit of the request: a weak model never stops by itself.
_CALLS: Final = 15
_MAX_CALLS: Final = 64
_TOKENS_OF_CALL: Final = 64
# Each halves texts and lists.
_LEVELS: Final = 13
_FORMATTED: Final = 64  # characters of a text with a format, such as a UUID
_KEY: Final = 64  # characters of a key that is not declared
MAX_DIGITS: Final = 18  # of an integer: engines hold no more than 64 bits
_FRACTION: Final = 1e-9
_FINE: Final = 1e-6
_NUMBER_SIZE: Final = 18
_MAX_NESTED: Final = 3  # of values whose schema allows anything
_ANY: Final = "any value"
_NO_BOUND: Final = 1 << 62
_GROUPS: Final = ("$defs", "definitions")


class Limits(Struct, frozen=True):
    """The longest text, the longest list, and how often a schema may contain itself. `preamble`: characters of text or
    reasoning before a call; `calls`: calls after the first.
    """

    characters: int
    items: int
    depth: int
    preamble: int
    calls: int

    @property
    def members(self) -> int:
        """How many members an object may have that are not declared."""
        return min(self.items, 32)

    def text(self, schema: Mapping[str, Any]) -> int:
        """The length of the longest text of this schema."""
        least = [_count(schema.get("minLength"), 0)]
        if "format" in schema:
            least.append(_FORMATTED)
        if isinstance(schema.get("pattern"), str):
            least.append(2 * pattern_size(schema["pattern"]))
        return min(max(self.characters, *least), _count(schema.get("maxLength"), _NO_BOUND))

    def number(self, schema: Mapping[str, Any]) -> int:
        """The same for the items of a list."""
        return min(max(self.items, _count(schema.get("minItems"), 0)), _count(schema.get("maxItems"), _NO_BOUND))


def _count(value: object, default: int) -> int:
    """A count in a schema, whose author may have written anything."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def rounded(tokens: int | None) -> int | None:
    """A token limit, rounded down so that requests of about the same limit share a constraint."""
    return None if tokens is None else tokens & (-1 << max(tokens.bit_length() - 2, 0))


def limits_for(tokens: int | None, schemas: Iterable[Mapping[str, Any]]) -> Limits:
    """The widest limits with which a value of each of these schemas fits in an answer with this token limit."""
    calls = max(3, min(tokens // _TOKENS_OF_CALL, _MAX_CALLS)) if tokens else _CALLS
    tokens = tokens or _TOKENS
    room = tokens * _CHARACTERS_OF_TOKEN * max(tokens, _AMPLE_TOKENS) // _AMPLE_TOKENS
    level = 0
    limits = _limits(level, calls, room)
    for schema in schemas:
        while level < _LEVELS and (Bounding(schema, limits).size() or room) > room // 2:
            level += 1
            limits = _limits(level, calls, room)
    return limits


def _limits(level: int, calls: int, room: int) -> Limits:
    return Limits(
        characters=max(65_536 >> level, 16),
        items=max(512 >> level, 2),
        depth=max(6 - level // 2, 1),
        preamble=min(room // 6, 65_536),
        calls=calls,
    )


class Bounding:
    """Bounds in a schema that `projected` has prepared."""

    def __init__(self, schema: Mapping[str, Any], limits: Limits) -> None:
        self._root = schema
        self._limits = limits
        self._cyclic = _cyclic(schema)
        self._depth = limits.depth * max(len(self._cyclic), 1)
        self._defined: dict[str, dict[str, Any]] = {}
        self._names: dict[tuple[str, int], str] = {}  # by the reference and the depth
        self._sizes: dict[str, int | None] = {}  # None: no value is that small

    def schema(self) -> dict[str, Any]:
        """The bounded schema; itself if no value of it is nested so little."""
        found = self._whole()
        if found is None:
            return dict(self._root)
        return {**found[0], **({"$defs": self._defined} if self._defined else {})}

    def size(self) -> int | None:
        """About how long the longest value is; None if none is nested so little."""
        found = self._whole()
        return found[1] if found else None

    def _whole(self) -> tuple[dict[str, Any], int] | None:
        return self._node({key: value for key, value in self._root.items() if key not in _GROUPS}, self._depth)

    def _node(self, schema: Mapping[str, Any], depth: int) -> tuple[dict[str, Any], int] | None:
        if "$ref" in schema:
            return self._reference(schema["$ref"], depth)
        if "enum" in schema:
            return dict(schema), max(len(json.dumps(member)) for member in schema["enum"])
        if "anyOf" in schema:
            found = [one for branch in schema["anyOf"] if (one := self._node(branch, depth)) is not None]
            return ({"anyOf": [one for one, _ in found]}, max(size for _, size in found)) if found else None
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "string":
                return self._string(schema)
            case "integer" | "number":
                return self._number(schema), _NUMBER_SIZE
            case None:
                return self._any(min(_MAX_NESTED, self._limits.depth))
        return dict(schema), 5

    def _reference(self, reference: str, depth: int) -> tuple[dict[str, Any], int] | None:
        if reference in self._cyclic:
            depth -= 1
        if depth < 0:
            return None
        name = self._names.setdefault((reference, depth), f"d{len(self._names)}")
        if name not in self._sizes:
            self._sizes[name] = None
            if (found := self._node(_target(reference, self._root), depth)) is not None:
                self._defined[name], self._sizes[name] = found
        size = self._sizes[name]
        return ({"$ref": f"#/$defs/{name}"}, size) if size is not None else None

    def _any(self, nested: int) -> tuple[dict[str, Any], int]:
        """Any value, with values in it nested so deeply at most."""
        name = self._names.setdefault((_ANY, nested), f"d{len(self._names)}")
        if name not in self._sizes:
            kinds: list[dict[str, Any]] = [{"type": kind} for kind in ("string", "number", "boolean", "null")]
            sizes = [self._limits.characters]
            if nested:
                inner, size = self._any(nested - 1)
                most = self._limits.members
                kinds[:0] = [self._others({}, inner, most), {"type": "array", "items": inner, "maxItems": most}]
                sizes.append(most * (size + _KEY))
            kinds = [self._string(one)[0] if one["type"] == "string" else one for one in kinds]
            kinds = [self._number(one) if one["type"] == "number" else one for one in kinds]
            self._defined[name], self._sizes[name] = {"anyOf": kinds}, max(sizes)
        return {"$ref": f"#/$defs/{name}"}, self._sizes[name] or 0

    def _object(self, schema: Mapping[str, Any], depth: int) -> tuple[dict[str, Any], int] | None:
        declared: dict[str, Any] = {}
        needed = schema.get("required", ())
        total = 2
        for key, inner in schema.get("properties", {}).items():
            found = self._node(inner, depth)
            if found is None and key in needed:
                return None
            if found is not None:
                declared[key] = found[0]
                total += found[1] + len(key) + 6
        open_ = schema.get("additionalProperties", True)
        others = None
        if open_ is not False:
            others = self._node({} if open_ is True else open_, depth)
        rest = {name: schema[name] for name in ("type", "required") if name in schema}
        if others is None:
            return {**rest, "properties": declared, "additionalProperties": False}, total
        most = self._limits.members
        return {**rest, **self._others(declared, others[0], most)}, total + most * (others[1] + _KEY)

    def _others(self, declared: dict[str, Any], inner: dict[str, Any], most: int) -> dict[str, Any]:
        """The keywords of an object with `most` members more than those that are declared."""
        return {
            "type": "object",
            "properties": declared,
            "additionalProperties": inner,
            "maxProperties": len(declared) + most,
        }

    def _array(self, schema: Mapping[str, Any], depth: int) -> tuple[dict[str, Any], int] | None:
        if "prefixItems" in schema:
            parts = [self._node(part, depth) for part in schema["prefixItems"]]
            held = [part for part in parts if part is not None]
            whole = {**schema, "prefixItems": [part for part, _ in held]}
            return (whole, sum(size + 2 for _, size in held) + 2) if len(held) == len(parts) else None
        item = self._node(schema.get("items", {}), depth)
        if item is None:
            return ({"type": "array", "maxItems": 0}, 2) if not schema.get("minItems") else None
        count = self._limits.number(schema)
        return {**schema, "items": item[0], "maxItems": count}, count * (item[1] + 2) + 2

    def _string(self, schema: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        most = self._limits.text(schema)
        return {**schema, "maxLength": most}, most + 2

    def _number(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A number of few digits, unless the schema has bounds of its own that need more."""
        bounds = [abs(schema[name]) for name in BOUNDS if name in schema]
        out = dict(schema)
        most = 10**MAX_DIGITS - 1 if schema["type"] == "integer" else MAX_WHOLE
        if not any(bound > most for bound in bounds):
            if "minimum" not in schema and "exclusiveMinimum" not in schema:
                out["minimum"] = -most
            if "maximum" not in schema and "exclusiveMaximum" not in schema:
                out["maximum"] = most
        if schema["type"] == "number" and not any(0 < bound < _FINE for bound in bounds):
            out.setdefault("multipleOf", _FRACTION)
        return out


def _target(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    if reference == "#":
        return {key: value for key, value in root.items() if key not in _GROUPS}
    _, group, name = reference.split("/")
    found: Mapping[str, Any] = root[group][name.replace("~1", "/").replace("~0", "~")]
    return found


def _cyclic(root: Mapping[str, Any]) -> frozenset[str]:
    """The references that lead to themselves."""
    leads: dict[str, frozenset[str]] = {}
    waiting = list(_references({key: value for key, value in root.items() if key not in _GROUPS}))
    while waiting:
        reference = waiting.pop()
        if reference not in leads:
            leads[reference] = frozenset(_references(_target(reference, root)))
            waiting += leads[reference]
    found: set[str] = set()
    for reference in leads:
        reached: set[str] = set()
        open_ = list(leads[reference])
        while open_:
            other = open_.pop()
            if other not in reached:
                reached.add(other)
                open_ += leads[other]
        if reference in reached:
            found.add(reference)
    return frozenset(found)


def _references(schema: object) -> Iterable[str]:
    waiting: list[object] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"]
            elif "enum" not in part:
                waiting += [*part.get("properties", {}).values(), *part.get("anyOf", ()), *part.get("prefixItems", ())]
                waiting += [part[word] for word in ("items", "additionalProperties") if word in part]
