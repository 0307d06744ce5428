"""The calls of an answer as one JSON Schema, for servers that constrain nothing but JSON (`response_format`).

The answer is then the bare object `{"name": …, "arguments": …}`, or `{"tool_calls": […]}` with several, which the
dialect `json` reads as calls.
"""

from collections.abc import Sequence
from typing import Any

from callwright.constraints.constraint import arguments_schema
from callwright.constraints.limits import Limits
from callwright.constraints.schema_subset import SPACING, projected
from callwright.conversation import FunctionTool


def calls_schema(tools: Sequence[FunctionTool], *, parallel: bool, limits: Limits | None = None) -> dict[str, Any]:
    """The schema of an answer that calls one of these tools, or several. Definitions move to the root."""
    definitions: dict[str, Any] = {}
    calls = []
    for number, tool in enumerate(tools):
        schema = _moved(projected(arguments_schema(tool), "xgrammar", limits), f"t{number}_")
        definitions |= schema.pop("$defs", {})
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"type": "string", "const": tool.name}, "arguments": schema},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    one: dict[str, Any] = calls[0] if len(calls) == 1 else {"anyOf": calls}
    most = {} if limits is None else {"maxItems": limits.calls + 1}
    whole = {"type": "object", "properties": {"tool_calls": {"type": "array", "items": one, "minItems": 1, **most}}}
    out = {**whole, "required": ["tool_calls"], "additionalProperties": False} if parallel else one
    return {**out, **({"$defs": definitions} if definitions else {}), **SPACING}


def _moved(schema: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The schema with its definitions under names of their own; a reference to itself becomes any object."""
    groups = {group: schema.pop(group) for group in ("$defs", "definitions") if group in schema}
    found = {f"{prefix}{name}": inner for defined in groups.values() for name, inner in defined.items()}
    renamed = {f"#/{group}/{name}": f"#/$defs/{prefix}{name}" for group in groups for name in groups[group]}
    out: dict[str, Any] = _renamed(schema, renamed)
    if found:
        out["$defs"] = {name: _renamed(inner, renamed) for name, inner in found.items()}
    return out


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str) and len(value) == 1:
            return {"$ref": names[reference]} if reference in names else {"type": "object"}
        return {key: _renamed(inner, names) for key, inner in value.items()}
    return [_renamed(inner, names) for inner in value] if isinstance(value, list) else value
