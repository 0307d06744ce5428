"""What Gemma's models are shown in the notation of their calls: tools, declared with types in capitals and sorted keys,
and what tools have answered.
"""

from collections.abc import Mapping
from typing import Any

from callwright.conversation import AssistantTurn, ConversationTurn, FunctionTool, ToolTurn
from callwright.dialects.prompts.chat_messages import plain_text
from callwright.dialects.prompts.literal_arguments import put_value
from callwright.prompt import PromptBuilder
from callwright.schema.keywords import properties, required

__all__ = ["answers", "declare", "put_results"]


def declare(out: PromptBuilder, quote: str, tool: FunctionTool) -> None:
    """Write the declaration of a tool."""
    out.text(f"declaration:{tool.name}")
    declared: dict[str, Any] = {"description": tool.about or ""}
    if tool.parameters:
        declared["parameters"] = {**_object(tool.parameters), "type": _kind(tool.parameters)}
    put_value(out, quote, declared)


def answers(_: object, turn: ConversationTurn) -> bool:
    """Whether the model's answer goes on behind this turn: it has called, or has got its results."""
    return isinstance(turn, ToolTurn) or (isinstance(turn, AssistantTurn) and bool(turn.calls))


def put_results(out: PromptBuilder, turn: ToolTurn, number: int, tokens: tuple[str, str], quote: str) -> None:
    """Append outputs, each between these control tokens; `number` is that of the turn."""
    for name, output in turn.outputs:
        out.control(tokens[0]).text(f"response:{name}")
        put_value(out, quote, {"value": plain_text(output.parts, number)})
        out.control(tokens[1])


def _shown(schema: object) -> dict[str, Any]:
    """A schema as the templates show it: description, what its type adds, and the type at the end."""
    if not isinstance(schema, Mapping):
        return {}
    shown: dict[str, Any] = {}
    if schema.get("description"):
        shown["description"] = str(schema["description"])
    if schema.get("nullable"):
        shown["nullable"] = True
    kind = _kind(schema)
    if schema.get("enum"):
        shown["enum"] = list(schema["enum"])
    if kind == "OBJECT":
        shown |= _object(schema)
    elif kind == "ARRAY" and schema.get("items"):
        shown["items"] = _shown(schema["items"])
    return {**shown, "type": kind}


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of an object, sorted, and which of them must be there."""
    shown: dict[str, Any] = {}
    if members := properties(schema):
        shown["properties"] = {key: _shown(members[key]) for key in sorted(members, key=str.lower)}
    if needed := required(schema):
        shown["required"] = list(needed)
    return shown


def _kind(schema: Mapping[str, Any]) -> Any:
    """The type, in capitals; a list of types stays one."""
    kind = schema.get("type", "object" if properties(schema) else "string")
    return [str(one).upper() for one in kind] if isinstance(kind, list) else str(kind).upper()
