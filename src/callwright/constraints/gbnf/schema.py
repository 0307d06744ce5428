"""JSON Schema as rules of GBNF, for schemas that `callwright.constraints.schema_subset` has prepared for llama.cpp.

Strings are written as ranges, because an open negated class would let invalid UTF-8 through. A blank after comma and
colon is optional, others are not allowed.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from callwright.constraints.gbnf.pieces import repeat_rule
from callwright.constraints.gbnf.regex import expression
from callwright.constraints.gbnf.text import gbnf_literal, other_keys
from callwright.constraints.number_ranges import has_bounds, integer_pattern, integer_range, number_pattern
from callwright.constraints.rust_regex import whole_pattern

_SHARED: Final = {
    "char": r'[ !#-\[\]-~\u00A0-\uD7FF\uE000-\uFFFC\U00010000-\U0010FFFF] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})',
    "string": r'"\"" char* "\""',
    "integer": r'"-"? natural',
    "natural": r'"0" | [1-9] [0-9]{0,20}',
    "number": r'integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?',
    "key": r'"\"" char{0,64} "\""',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "comma": '"," " "?',
    "colon": '":" " "?',
    "object": r'"{" (string colon value (comma string colon value)*)? "}"',
    "array": r'"[" (value (comma value)*)? "]"',
    "value": "object | array | string | number | boolean | null",
}
# Steps by their number of digits after the point. The default step is not among them: exponents are allowed with it.
_DECIMALS: Final = tuple(float(f"1e-{digits}") for digits in range(9))
_USES: Final = {
    "string": ("char",),
    "key": ("char",),
    "integer": ("natural",),
    "number": ("integer",),
    "object": ("string", "colon", "comma", "value"),
    "array": ("comma", "value"),
    "value": ("object", "array", "string", "number", "boolean", "null"),
}


def _digits(schema: Mapping[str, Any]) -> int | None:
    """How many digits after the point a step allows; None: no such step."""
    step = schema.get("multipleOf")
    return _DECIMALS.index(step) if step in _DECIMALS else None


def _members(values: Iterable[object]) -> str:
    """Each of these values, with and without blanks after comma and colon."""
    wide = [json.dumps(value, ensure_ascii=False) for value in values]
    narrow = [json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in values]
    return " | ".join(map(gbnf_literal, dict.fromkeys(wide + narrow)))


class SchemaRules:
    """Adds the rules of schemas to `rules`, which it shares with its caller."""

    def __init__(self, rules: dict[str, str]) -> None:
        self._rules = rules
        self._root: Mapping[str, Any] = {}
        self._known: dict[str, str] = {}  # references of this schema
        self._prefix = ""

    def add(self, schema: Mapping[str, Any], name: str) -> str:
        """The name of the rule for a whole schema."""
        self._root, self._known, self._prefix = schema, {"#": name}, name
        self._rules[name] = ""  # its place, before those that it needs
        self._rules[name] = self._body(schema, name)
        return name

    def shared(self, name: str) -> str:
        """One of the rules that every grammar may use."""
        if name not in self._rules:
            self._rules[name] = _SHARED[name]
            for other in _USES.get(name, ()):
                self.shared(other)
        return name

    def _of(self, schema: Mapping[str, Any], name: str) -> str:
        """A rule, or an expression, for a schema below the root."""
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if not schema:
            return self.shared("value")
        if schema.keys() == {"type"} and schema["type"] not in ("object", "array"):
            return self.shared(schema["type"])
        body = self._body(schema, name)
        self._rules[name] = body
        return name

    def _reference(self, reference: str) -> str:
        if reference not in self._known:
            _, group, key = reference.split("/")
            schema = self._root[group][key.replace("~1", "/").replace("~0", "~")]
            self._known[reference] = name = f"{self._prefix}-d{len(self._known)}"
            self._rules[name] = ""
            self._rules[name] = self._body(schema, name)
        return self._known[reference]

    def _body(self, schema: Mapping[str, Any], name: str) -> str:
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "enum" in schema:
            return _members(schema["enum"])
        if "anyOf" in schema:
            return " | ".join(self._of(branch, f"{name}-{number}") for number, branch in enumerate(schema["anyOf"]))
        match schema.get("type"):
            case "object":
                return self._object(schema, name)
            case "array":
                return self._array(schema, name)
            case "string" if "pattern" in schema:
                pattern, most = whole_pattern(schema["pattern"]) or "", schema.get("maxLength")
                return rf'"\"" {expression(pattern, in_json=True, rules=self._rules, most=most).text} "\""'
            case "string" if len(schema) > 1:
                char, least, most = self.shared("char"), schema.get("minLength", 0), schema.get("maxLength")
                return rf'"\"" {repeat_rule(self._rules, char, least, most)} "\""'
            case "integer":
                return self._matching(integer_pattern(*integer_range(schema)))
            case "number" if has_bounds(schema):
                return self._matching(number_pattern(schema, _digits(schema)))
            case "number" if schema.get("multipleOf") in _DECIMALS:
                digits = _digits(schema)
                return self.shared("integer") + (f' ("." [0-9]{{1,{digits}}})?' if digits else "")
            case str(kind):
                return self.shared(kind)
        return self.shared("value")

    def _matching(self, pattern: str) -> str:
        return expression(pattern, in_json=False, rules=self._rules).text

    def _array(self, schema: Mapping[str, Any], name: str) -> str:
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if most == 0:
            return '"[]"'
        if "prefixItems" in schema:
            parts = [self._of(part, f"{name}-i{number}") for number, part in enumerate(schema["prefixItems"])]
            between = f" {self.shared('comma')} "
            return f'"[" {between.join(parts)} "]"'
        item = self._of(schema["items"], f"{name}-i") if "items" in schema else self.shared("value")
        comma = self.shared("comma")
        times = "*" if least < 2 and most is None else f"{{{max(least - 1, 0)},{'' if most is None else most - 1}}}"
        items = f"{item} ({comma} {item}){times}"
        return f'"[" {items} "]"' if least else f'"[" ({items})? "]"'

    def _object(self, schema: Mapping[str, Any], name: str) -> str:
        declared = schema.get("properties", {})
        needed = set(schema.get("required", ()))
        others = schema.get("additionalProperties", True)
        comma, colon = self.shared("comma"), self.shared("colon")
        firsts: list[str] = []
        rest = ""
        if others is not False:
            value = self.shared("value") if others is True else self._of(others, f"{name}-o")
            self.shared("char")
            most = schema.get("maxProperties")
            if declared:
                key = other_keys(self._rules, f"{name}-k", declared, "char*" if most is None else "char{0,64}")
            else:
                key = self.shared("string" if most is None else "key")
            other = f"{key} {colon} {value}"
            times = "*" if most is None else f"{{0,{most - len(declared)}}}"
            self._rules[f"{name}-more"] = f"({comma} {other}){times}"
            firsts, rest = [f"{other} {name}-more"], f"{name}-more"
        for number, (key, inner) in reversed(list(enumerate(declared.items()))):
            pair = f"{name}-p{number}"
            self._rules[pair] = (
                f"{gbnf_literal(json.dumps(key, ensure_ascii=False))} {colon} {self._of(inner, f'{pair}-v')}"
            )
            tail = f"{pair} {rest}".rstrip()
            if key in needed:
                firsts = []
            firsts.insert(0, tail)
            behind = f"{comma} {pair}" if key in needed else f"({comma} {pair})?"
            self._rules[f"{name}-r{number}"] = f"{behind} {rest}".rstrip()
            rest = f"{name}-r{number}"
        if not firsts:
            return '"{}"'
        members = " | ".join(firsts)
        return f'"{{" ({members}) "}}"' if needed & declared.keys() else f'"{{" ({members})? "}}"'
