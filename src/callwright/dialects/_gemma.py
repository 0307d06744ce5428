"""What Gemma's models are shown: turns, and in the notation of their calls tools, declared with types in capitals and
sorted keys.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.conversation import FunctionTool
from callwright.layout.literal import put_value
from callwright.prompt import PromptBuilder
from callwright.schema.keywords import properties, required
from callwright.schema.plain import resolved_schema
from callwright.schema.shown import ShownKeywords

# Source: the templates; no other keyword has a place there.
SHOWN: Final = ShownKeywords(
    frozenset(("type", "description", "enum", "properties", "required", "items", "anyOf", "oneOf"))
)


def declare(out: PromptBuilder, quote: str, tool: FunctionTool) -> None:
    """Write the declaration of a tool."""
    out.text(f"declaration:{tool.name}")
    declared: dict[str, Any] = {"description": tool.about or ""}
    if schema := resolved_schema(tool):
        declared["parameters"] = {**_object(schema), "type": _kind(schema)}
    put_value(out, quote, declared)


def if_new(layout: str) -> str:
    """A layout for a new turn: not if the answer continues after calls or their results."""
    return f"«!after_outputs !after_calls¦{layout}»"


def _united(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A union as one schema with several types, for which the notation has words."""
    parts = [
        _united(part) for union in ("anyOf", "oneOf") for part in schema.get(union) or () if isinstance(part, Mapping)
    ]
    if not parts:
        return schema
    made: dict[str, Any] = {}
    for part in reversed(parts):
        made |= part
    made["type"] = _kinds(parts)
    if members := [member for part in parts for member in part.get("enum") or ()]:
        made["enum"] = members
    if inner := {name: each for part in reversed(parts) for name, each in properties(part).items()}:
        made["properties"] = inner
        made["required"] = [name for name in required(made) if all(name in required(p) for p in parts if properties(p))]
    told = [text for part in (schema, *parts) if isinstance(text := part.get("description"), str) and text]
    return {**made, **schema, "type": made["type"], **({"description": " ".join(told)} if told else {})}


def _kinds(parts: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The types of the parts of a union, each once."""
    kinds = [_kind(part) for part in parts]
    return list(dict.fromkeys(one for kind in kinds for one in (kind if isinstance(kind, list) else [kind])))


def _render_schema(schema: object) -> dict[str, Any]:
    """A schema as the templates show it: description, what its type adds, and the type at the end."""
    if not isinstance(schema, Mapping):
        return {}
    schema = _united(schema)
    shown: dict[str, Any] = {}
    if schema.get("description"):
        shown["description"] = str(schema["description"])
    if schema.get("nullable"):
        shown["nullable"] = True
    kind = _kind(schema)
    if schema.get("enum"):
        shown["enum"] = list(schema["enum"])
    if kind == "OBJECT" or "OBJECT" in kind:
        shown |= _object(schema)
    if (kind == "ARRAY" or "ARRAY" in kind) and schema.get("items"):
        shown["items"] = _render_schema(schema["items"])
    return {**shown, "type": kind}


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of an object, sorted, and which of them must be there."""
    shown: dict[str, Any] = {}
    if members := properties(schema):
        shown["properties"] = {key: _render_schema(members[key]) for key in sorted(members, key=str.lower)}
    if needed := required(schema):
        shown["required"] = list(needed)
    return shown


def _kind(schema: Mapping[str, Any]) -> str:
    """The type, in capitals: a list of types as Python shows it, no type as an empty text."""
    return str(schema.get("type", "object" if properties(schema) else "")).upper()
