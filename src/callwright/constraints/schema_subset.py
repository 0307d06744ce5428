"""A schema reduced to the parts that one engine can enforce: wider is fine, narrower never.

Keywords that an engine ignores, refuses or gets wrong are dropped (the validation afterwards uses the whole schema),
and its implicit defaults are written out. Sources: measurements of llguidance 1.9, xgrammar 0.2.8 and llama.cpp b11549.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from callwright.constraints.gbnf.regex import is_sayable
from callwright.constraints.limits import Bounding, Limits, limits_for
from callwright.constraints.number_ranges import BOUNDS, has_values, integer_range
from callwright.schema.keywords import DEFINITIONS, LOCAL_REFERENCE, STRICT_FORMATS, properties, required
from callwright.schema.resolve import TYPE_NAMES, Schema, resolve

Engine: TypeAlias = Literal["llguidance", "xgrammar", "llamacpp"]

# An extra option for llguidance: at most one blank is allowed between two parts. Unbounded ones are a known way to
# never end. (The separators that newer versions accept as expressions are literal texts in older ones, with which
# llama.cpp is built.) Other engines ignore it.
SPACING: Final[Mapping[str, Any]] = {"x-guidance": {"whitespace_flexible": True, "whitespace_pattern": " ?"}}

_TIMES: Final = ("date", "date-time", "time")  # that xgrammar and llama.cpp's own JSON schemas have, too
_DATE: Final = (
    "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_TIME: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_LABEL: Final = "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
# Formats as patterns, for GBNF.
FORMAT_PATTERNS: Final[Mapping[str, str]] = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}T{_TIME}$",
    "uuid": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    "ipv4": r"^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])$",
    "email": rf"^[A-Za-z0-9_+-]{{1,32}}(\.[A-Za-z0-9_+-]{{1,16}}){{0,3}}@{_LABEL}(\.{_LABEL}){{1,3}}$",
}
_MAX_INTEGER: Final = 2**63 - 1
# llama.cpp takes no longer repetition, and reads a longer one as none.
_MAX_REPEATED: Final = 2_000
# A schema that is nested deeper is any JSON from there on.
_MAX_LEVELS: Final = 40
_ANY: Final[dict[str, Any]] = {}
_STEPS: Final = frozenset(float(f"1e-{digits}") for digits in range(10))
_SHORT_KEY: Final = "^[^\\x00-\\x1f]{0,64}$"


def projected(schema: Schema, engine: Engine, limits: Limits | None = None) -> dict[str, Any]:
    """The schema of one tool's arguments for an engine, within these limits. References in it have their definitions
    in it.
    """
    found = _projected(schema, engine, closes=limits is not None)
    return found if limits is None else _sayable(Bounding(found, limits).schema(), engine)


def limits_of(schemas: Iterable[Schema], tokens: int | None) -> Limits:
    """The limits of the values of these schemas in an answer with this token limit."""
    return limits_for(tokens, (_projected(schema, "llguidance", closes=True) for schema in schemas))


def _projected(schema: Schema, engine: Engine, *, closes: bool) -> dict[str, Any]:
    projection = _Projection(schema, engine, closes=closes)
    out = projection.node(schema, 0) or {"type": "object", "additionalProperties": True}
    for group in DEFINITIONS:
        defined = schema.get(group)
        if isinstance(defined, Mapping):
            out[group] = {name: projection.node(inner, 1) for name, inner in defined.items()}
    return out


class _Projection:
    """`closes`: an object with declared members has no others, unless its schema allows them."""

    def __init__(self, root: Schema, engine: Engine, *, closes: bool) -> None:
        self._root = root
        self._engine = engine
        self._closes = closes

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
        return self._project_type(schema, level)

    def _reference(self, reference: object) -> dict[str, Any]:
        """Siblings of a reference are dropped."""
        found = LOCAL_REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
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
        return {"type": "object", "properties": declared, "required": needed}

    def _project_type(self, schema: Schema, level: int) -> dict[str, Any]:
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
        least = _count(schema.get("minProperties")) or 0
        is_closed = self._closes and bool(declared) and len(declared) >= least
        others = schema.get("additionalProperties", not is_closed)
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
        first, least, most = schema.get("prefixItems"), _count(schema.get("minItems")), _count(schema.get("maxItems"))
        if self._closes and isinstance(first, list) and (least or 0) <= len(first):
            # A tuple is written as a whole.
            parts = [self.node(part, level + 1) for part in first[:most]]
            return {**out, "prefixItems": parts, "items": False, "minItems": len(parts), "maxItems": len(parts)}
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
        if self._engine == "xgrammar":  # its bounded strings let raw control characters in and escapes not
            return {"format": schema["format"]} if schema.get("format") in _TIMES else {}
        out: dict[str, Any] = dict(self._lengths(schema, "minLength", "maxLength"))
        pattern = schema.get("pattern", FORMAT_PATTERNS.get(str(schema.get("format"))) if self._closes else None)
        if self._engine == "llamacpp" and isinstance(pattern, str) and is_sayable(pattern):
            return {"pattern": pattern}  # it cannot be combined with lengths
        if self._engine == "llguidance":
            pattern = schema.get("pattern")
            if isinstance(pattern, str) and _compiles(pattern):
                out["pattern"] = pattern
            if schema.get("format") in STRICT_FORMATS:
                out["format"] = schema["format"]
        return out

    def _of_number(self, kind: str, schema: Schema) -> dict[str, Any]:
        step = schema.get("multipleOf")
        steps = {"multipleOf": step} if self._closes and kind == "number" and _is_decimal(step) else {}
        if kind == "number" and self._engine == "xgrammar":
            return steps
        found = {name: schema[name] for name in BOUNDS if _is_bound(schema.get(name))}
        if not has_values(kind, found):
            return steps  # every value is invalid: the check reports it
        if kind == "integer":  # engines take no fractions
            bounds = zip(BOUNDS, integer_range(found), strict=False)
            found = {name: bound for name, bound in bounds if bound is not None}
        return {**found, **steps}


def _sayable(schema: Any, engine: Engine) -> Any:
    """A bounded schema without the bounds that an engine lacks."""
    if isinstance(schema, list):
        return [_sayable(part, engine) for part in schema]
    if not isinstance(schema, dict) or "enum" in schema:
        return schema
    out: dict[str, Any] = {}
    for key, inner in schema.items():
        named = key in ("properties", *DEFINITIONS) and isinstance(inner, dict)
        out[key] = {name: _sayable(one, engine) for name, one in inner.items()} if named else _sayable(inner, engine)
    if engine == "llamacpp":
        return out
    most = out.pop("maxProperties", None)
    if engine == "xgrammar":  # vLLM refuses these for xgrammar, llama.cpp a longer repetition
        return {key: inner for key, inner in out.items() if _is_for_xgrammar(key, inner, out)}
    if most is not None and not out["properties"]:
        # Members that are not declared are bounded by a pattern of their keys, where no others are declared.
        out["patternProperties"] = {_SHORT_KEY: out["additionalProperties"]}
        out |= {"additionalProperties": False, "maxProperties": most}
    elif most is not None and out["properties"].keys() == set(out.get("required", ())):
        out["maxProperties"] = most
    if "pattern" in out and not (out["maxLength"] <= _MAX_REPEATED and _compiles(out["pattern"], out["maxLength"])):
        del out["maxLength"]  # the engine holds both by states, and refuses very many
    return out


def _is_for_xgrammar(key: str, inner: object, schema: Mapping[str, Any]) -> bool:
    """Whether xgrammar gets a keyword of a bounded schema: it has no multiples, and warns of a length with a format."""
    return key != "multipleOf" and not _is_long(key, inner) and not (key == "maxLength" and "format" in schema)


def _is_long(key: str, bound: object) -> bool:
    return key in ("maxLength", "maxItems") and isinstance(bound, int) and bound > _MAX_REPEATED


def enumerated(schema: Schema) -> list[Any]:
    """The values of an enum or a constant, as OpenAI reads it; empty if the schema has neither."""
    if "const" in schema:
        return [schema["const"]]
    members = list(schema["enum"]) if isinstance(schema.get("enum"), list) else []
    kinds = schema.get("type")
    if members and isinstance(kinds, list) and "null" in kinds and None not in members:
        members.append(None)
    return members


def _is_decimal(step: object) -> bool:
    """Whether multiples of this are the numbers with a fixed count of digits after the point."""
    return isinstance(step, int | float) and step in _STEPS


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1_000_000 else None


def _is_bound(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_INTEGER


@lru_cache(1024)
def _compiles(pattern: str, most: int | None = None) -> bool:
    from llguidance import LLMatcher  # here: 5 MB, and few schemas have patterns

    bound = {} if most is None else {"maxLength": most}
    grammar = LLMatcher.grammar_from_json_schema({"type": "string", "pattern": pattern, **bound})
    return not LLMatcher.validate_grammar(grammar)
