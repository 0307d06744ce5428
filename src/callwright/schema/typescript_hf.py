"""Function tools as TypeScript, the way the gpt-oss chat template shows them.

Source: the jinja template of gpt-oss (the copies of 2026), which every server without a Harmony renderer of its own
runs. Only for prompts that must equal what such a server makes.
"""

import json
from collections.abc import Mapping
from typing import Any

from callwright.conversation import FunctionTool
from callwright.schema.keywords import properties, required
from callwright.schema.plain import resolved_schema

# The template's own line breaks leak into nested types.
_NESTED_INDENT = " " * 16
_VARIANT_DEFAULT_INDENT = " " * 20
_LONGEST_ITEM_TYPE = 50
_ITEM_TYPES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}


def declaration(tool: FunctionTool, *, resolved: bool = False) -> str:
    """One tool as a comment line and `type NAME = … => any;`, without a final line feed. `resolved`: with what each
    reference leads to.
    """
    head = f"// {tool.about or ''}\ntype {tool.name} = "
    parameters = _with_unions(resolved_schema(tool)) if resolved else tool.parameters
    declared = properties(parameters)
    if not declared:
        return f"{head}() => any;"
    needed = set(required(parameters))
    lines = "".join(_parameter(name, schema, name in needed) for name, schema in declared.items())
    return f"{head}(_: {{\n{lines}}}) => any;"


def _with_unions(schema: Any) -> Any:
    """A resolved schema with unions, and enumerations that null belongs to, as the template shows these."""
    if isinstance(schema, list):
        return [_with_unions(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {"oneOf" if key == "anyOf" else key: value for key, value in schema.items()}
    for key in ("oneOf", "items"):
        if key in made:
            made[key] = _with_unions(made[key])
    if isinstance(made.get("properties"), Mapping):
        made["properties"] = {name: _with_unions(part) for name, part in made["properties"].items()}
    if isinstance(made.get("enum"), list):
        made |= {"type": "string", "enum": [member for member in made["enum"] if member is not None]}
    elif isinstance(made.get("type"), list) and made.keys() & {"properties", "items"}:
        made["type"] = next((kind for kind in made["type"] if kind in ("object", "array")), "any")
    return made


def _parameter(name: str, schema: object, needed: bool) -> str:
    mark = "" if needed else "?"
    if not isinstance(schema, dict):
        return f"{name}{mark}: any,\n"
    comment = f"// {schema['description']}\n" if schema.get("description") else ""
    return f"{comment}{name}{mark}: {_type(schema)}{_default(schema)},\n"


def _default(schema: dict[str, Any]) -> str:
    if "default" not in schema:
        return ""
    value = schema["default"]
    if schema.get("enum"):
        return f", // default: {value}"
    if schema.get("oneOf"):
        return f"// default: {value}"
    return f", // default: {_json(value)}"


def _type(schema: object) -> str:
    if not isinstance(schema, dict):
        return "any"
    kind = schema.get("type")
    if kind == "array":
        return _array(schema) + (" | null" if schema.get("nullable") else "")
    if isinstance(kind, list) and kind:
        return " | ".join(map(str, kind))
    if isinstance(schema.get("oneOf"), list) and schema["oneOf"]:
        return " | \n".join(map(_variant, schema["oneOf"]))
    match kind:
        case "string":
            if isinstance(schema.get("enum"), list) and schema["enum"]:
                return '"' + '" | "'.join(map(str, schema["enum"])) + '"'
            return "string | null" if schema.get("nullable") else "string"
        case "number" | "integer":
            return "number"
        case "boolean":
            return "boolean"
        case "object":
            return _object(schema)
    return "any"


def _array(schema: dict[str, Any]) -> str:
    items = schema.get("items")
    if not isinstance(items, dict) or not items:
        return "any[]"
    kind = items.get("type")
    if isinstance(kind, str) and kind in _ITEM_TYPES:
        return f"{_ITEM_TYPES[kind]}[]"
    inner = _type(items)
    return "any[]" if len(inner) > _LONGEST_ITEM_TYPE else f"{inner}[]"


def _object(schema: dict[str, Any]) -> str:
    declared = properties(schema)
    if not declared:
        return "object"
    needed = set(required(schema))
    lines = [
        f"{name}{'' if name in needed else '?'}: \n{_NESTED_INDENT}{_type(value)}" for name, value in declared.items()
    ]
    return "{\n" + ", ".join(lines) + "}"


def _variant(variant: object) -> str:
    text = _type(variant)
    if isinstance(variant, dict):
        if variant.get("description"):
            text += f"// {variant['description']}"
        if "default" in variant:
            text += f"{_VARIANT_DEFAULT_INDENT}// default: {_json(variant['default'])}"
    return text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
