"""A schema reduced to the parts that one engine can enforce: wider is fine, narrower never.

Keywords that an engine ignores, refuses or gets wrong are dropped (the validation afterwards uses the whole schema),
and its implicit defaults are written out. Sources: measurements of llguidance 1.9, xgrammar 0.2.8 and llama.cpp b11549.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from callwright.constraints.gbnf.regex import is_sayable
from callwright.schema.keywords import properties, required
from callwright.schema.resolve import TYPE_NAMES, Schema, resolve

Engine: TypeAlias = Literal["llguidance", "xgrammar", "llamacpp"]

# An extra option for llguidance: at most one blank is allowed between two parts. Unbounded ones are a known way to
# never end. (The separators that newer versions accept as expressions are literal texts in older ones, with which
# llama.cpp is built.) Other engines ignore it.
SPACING: Final[Mapping[str, Any]] = {"x-guidance": {"whitespace_flexible": True, "whitespace_pattern": " ?"}}

_REFERENCE: Final = re.compile(r"#(?:/(?P<group>\$defs|definitions)/(?P<name>[^/]+))?")
_DEFINITIONS: Final = ("$defs", "definitions")
_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_MAX_INTEGER: Final = 2**63 - 1
# llama.cpp takes no longer repetition, and reads a longer one as none.
_MAX_REPEATED: Final = 2_000
# A schema that is nested deeper is any JSON from there on.
_MAX_LEVELS: Final = 40
_ANY: Final[dict[str, Any]] = {}


def projected(schema: Schema, engine: Engine) -> dict[str, Any]:
    """The schema of one tool's arguments for an engine. References in it have their definitions in it."""
    projection = _Projection(schema, engine)
    out = projection.node(schema, 0) or {"type": "object", "additionalProperties": True}
    for group in _DEFINITIONS:
        defined = schema.get(group)
        if isinstance(defined, Mapping):
            out[group] = {name: projection.node(inner, 1) for name, inner in defined.items()}
    return out


class _Projection:
    def __init__(self, root: Schema, engine: Engine) -> None:
        self._root = root
        self._engine = engine

    def node(self, schema: object, level: int) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or level > _MAX_LEVELS:
            return {}
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if isinstance(schema.get("allOf"), list):
            schema = self._merged(schema)
        members = enumerated(schema)
        if members and not (self._engine == "xgrammar" and any(isinstance(one, dict | list) for one in members)):
            return {"enum": members}  # xgrammar takes objects with one spacing only
        union = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(union, list) and union:
            found = [] if "properties" in schema else [self.node(branch, level + 1) for branch in union]
            if found and all(found):  # no engine can enforce both
                return {"anyOf": found}
        return self._typed(schema, level)

    def _reference(self, reference: object) -> dict[str, Any]:
        """Siblings of a reference are dropped."""
        found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
        target = resolve({"$ref": reference}, self._root) if found else _ANY
        return {"$ref": reference} if found and (target or reference == "#") else {}

    def _merged(self, schema: Schema) -> Schema:
        """`allOf` as one schema: objects with the properties of all, others only when there is one."""
        parts = [resolve(part, self._root) for part in schema["allOf"]]
        own = {key: value for key, value in schema.items() if key != "allOf"}
        if len(parts) == 1 and not own.keys() & parts[0].keys():
            return {**parts[0], **own}
        every = [own, *parts]
        if not all("properties" in part or part.get("type") == "object" for part in parts):
            return own
        declared: dict[str, Any] = {}
        needed: list[str] = []
        for part in every:
            declared = declared | {key: inner for key, inner in properties(part).items() if key not in declared}
            needed += required(part)
        return {"type": "object", "properties": declared, "required": needed, "additionalProperties": True}

    def _typed(self, schema: Schema, level: int) -> dict[str, Any]:
        kinds = schema.get("type")
        if kinds is None and "properties" in schema:
            kinds = "object"
        names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, Sequence) else []
        known = [kind for kind in names if isinstance(kind, str) and kind in TYPE_NAMES]
        if not known or len(known) < len(names):
            return {}
        each = [self._one(kind, schema, level) for kind in known]
        return each[0] if len(each) == 1 else {"anyOf": each}

    def _one(self, kind: str, schema: Schema, level: int) -> dict[str, Any]:
        match kind:
            case "object":
                return self._object(schema, level)
            case "array":
                return self._array(schema, level)
            case "string":
                return {"type": "string", **self._of_string(schema)}
            case "integer" | "number":
                return {"type": kind, **self._of_number(kind, schema)}
        return {"type": kind}

    def _object(self, schema: Schema, level: int) -> dict[str, Any]:
        declared = {key: self.node(inner, level + 1) for key, inner in properties(schema).items()}
        needed = list(dict.fromkeys(required(schema)))
        others = schema.get("additionalProperties", True)
        if "patternProperties" in schema:
            others = True
        open_ = others if isinstance(others, bool) else self.node(others, level + 1)
        # A required key that is not declared is one of the others.
        declared |= {key: {} if isinstance(open_, bool) else open_ for key in needed if key not in declared}
        out: dict[str, Any] = {"type": "object", "properties": declared}
        if needed:
            out["required"] = needed
        return {**out, "additionalProperties": open_}

    def _array(self, schema: Schema, level: int) -> dict[str, Any]:
        out: dict[str, Any] = {"type": "array"}
        if "prefixItems" not in schema and isinstance(schema.get("items"), Mapping):
            out["items"] = self.node(schema["items"], level + 1)
        return {**out, **self._lengths(schema, "minItems", "maxItems")}

    def _lengths(self, schema: Schema, low: str, high: str) -> dict[str, int]:
        least, most = _count(schema.get(low)), _count(schema.get(high))
        if self._engine == "llamacpp":
            least = least if least is not None and least <= _MAX_REPEATED else None
            most = most if most is not None and most <= _MAX_REPEATED else None
        if least is not None and most is not None and least > most:
            return {}
        return {name: count for name, count in ((low, least), (high, most)) if count is not None}

    def _of_string(self, schema: Schema) -> dict[str, Any]:
        if self._engine == "xgrammar":
            return {}  # its bounded strings let raw control characters in and escapes not
        out: dict[str, Any] = dict(self._lengths(schema, "minLength", "maxLength"))
        pattern = schema.get("pattern")
        if self._engine == "llamacpp" and isinstance(pattern, str) and is_sayable(pattern):
            return {"pattern": pattern}  # it cannot be combined with lengths
        if self._engine == "llguidance":
            if isinstance(pattern, str) and _compiles(pattern):
                out["pattern"] = pattern
            if schema.get("format") in _FORMATS:
                out["format"] = schema["format"]
        return out

    def _of_number(self, kind: str, schema: Schema) -> dict[str, Any]:
        if kind == "number" and self._engine != "llguidance":
            return {}
        found = {name: schema[name] for name in _BOUNDS if _is_bound(schema.get(name), kind)}
        low = max((found[name] for name in _BOUNDS[::2] if name in found), default=None)
        high = min((found[name] for name in _BOUNDS[1::2] if name in found), default=None)
        return {} if low is not None and high is not None and low >= high else found


def enumerated(schema: Schema) -> list[Any]:
    """The values of an enum or a constant, as OpenAI reads it; empty if the schema has neither."""
    if "const" in schema:
        return [schema["const"]]
    members = list(schema["enum"]) if isinstance(schema.get("enum"), list) else []
    kinds = schema.get("type")
    if members and isinstance(kinds, list) and "null" in kinds and None not in members:
        members.append(None)
    return members


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1_000_000 else None


def _is_bound(value: object, kind: str) -> bool:
    kinds = (int,) if kind == "integer" else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and abs(value) <= _MAX_INTEGER


@lru_cache(1024)
def _compiles(pattern: str) -> bool:
    from llguidance import LLMatcher  # here: 5 MB, and few schemas have patterns

    grammar = LLMatcher.grammar_from_json_schema({"type": "string", "pattern": pattern})
    return not LLMatcher.validate_grammar(grammar)
