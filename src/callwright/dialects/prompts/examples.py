"""An earlier conversation that shows calls of the tools, for models that were not trained to make any."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.conversation import AssistantTurn, Call, ConversationTurn, FunctionTool, Message, TextPart
from callwright.schema.keywords import properties, required
from callwright.schema.plain import resolved_schema
from callwright.schema.validate import is_valid

_MOST: Final = 2
_MAX_NESTED: Final = 4
_FORMATS: Final[Mapping[str, str]] = {
    "date": "2024-05-17",
    "date-time": "2024-05-17T08:30:00Z",
    "time": "08:30:00Z",
    "email": "mail@example.com",
    "uri": "https://example.com/",
    "uuid": "6f2c1a52-8f0e-4f5b-9c41-0d6b7a3e2f10",
}
_NO_CALL: Final = (
    Message("user", (TextPart("Thank you!"),)),
    AssistantTurn(message=Message("assistant", (TextPart("You are welcome."),))),
)
_GIVEN: Final = ("enum", "examples")


def example_turns(tools: Sequence[FunctionTool]) -> Sequence[ConversationTurn]:
    """A request of the user and its call, for the first two tools with arguments that can be made up; and then thanks,
    which want no call. The same for the same tools.
    """
    turns: list[ConversationTurn] = []
    for tool in tools:
        arguments = _arguments(tool)
        if arguments is not None and len(turns) < 2 * _MOST:
            turns.append(Message("user", (TextPart(_request(tool, arguments)),)))
            turns.append(AssistantTurn(calls=[Call(tool.name, _json(arguments))]))
    return [*turns, *_NO_CALL] if turns else []


def _arguments(tool: FunctionTool) -> Mapping[str, Any] | None:
    """The required arguments, or all if none is; None if the made-up ones do not fit."""
    schema = resolved_schema(tool) or {}
    arguments = _object(schema, _MAX_NESTED) or {name: _value(name, one, 1) for name, one in properties(schema).items()}
    return arguments if tool.custom is None and is_valid(schema, arguments) else None


def _object(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    declared = properties(schema)
    return {name: _value(name, declared.get(name), depth) for name in required(schema)}


def _value(name: str, schema: object, depth: int) -> Any:
    """A value that may fit, in a word that shows its place."""
    given = schema if isinstance(schema, Mapping) else {}
    for key in ("const", "default"):
        if key in given:
            return given[key]
    for key in _GIVEN:
        if isinstance(given.get(key), list) and given[key]:
            return given[key][0]
    for key in ("anyOf", "oneOf"):
        if isinstance(given.get(key), list) and given[key] and depth:
            return _value(name, given[key][0], depth - 1)
    kind = given.get("type")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            return _object(given, depth - 1) if depth else {}
        case "array":
            return [_value(name, given.get("items"), depth - 1)] if depth else []
        case "integer" | "number":
            return given.get("minimum", 3)
        case "boolean":
            return True
        case "null":
            return None
    return _FORMATS.get(str(given.get("format")), f"some {name.replace('_', ' ')}")


def _request(tool: FunctionTool, arguments: Mapping[str, Any]) -> str:
    about = (tool.description or "").strip() or tool.name.replace("_", " ")
    told = [
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else _json(value)}"
        for name, value in arguments.items()
    ]
    return f"Please do this: {about.splitlines()[0].rstrip('.')}{', with ' if told else ''}{', '.join(told)}."


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
