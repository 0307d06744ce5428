"""Tools to constrain calls of, calls that fit them and calls that do not, and the answers with them."""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from callwright.constraints.constraint import Constraint
from callwright.constraints.format_pieces import fixed_text
from callwright.constraints.shape import AnswerShape, sentence, shape_of
from callwright.constraints.tree import Optional, Ref, Repeat, TextUntil, Values
from callwright.conversation import AssistantTurn, Call, Conversation, FunctionTool, Message, TextPart, ToolChoice
from callwright.dialects.base import Dialect, dialect_names, get_dialect
from callwright.prompt import Prompt

WEATHER: Final = FunctionTool(
    "get_weather",
    "The weather in a city.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
        },
        "required": ["city", "unit"],
        "additionalProperties": False,
    },
    strict=False,
)
SAVE: Final = FunctionTool(
    "save",
    None,
    {
        "type": "object",
        "properties": {
            "lines": {"type": "array", "items": {"type": "string"}},
            "options": {
                "type": "object",
                "properties": {"force": {"type": "boolean"}, "mode": {"type": ["integer", "null"]}},
                "required": ["force"],
            },
            "note": {"type": ["string", "null"]},
        },
    },
)
TIME: Final = FunctionTool("get_time")
TOOLS: Final = (WEATHER, SAVE, TIME)

# Schemas of all kinds, in strict form where that can be said, with arguments that fit and that do not.
_PLACE: Final = {
    "type": "object",
    "properties": {"größe": {"type": "number"}, "名前": {"type": "string"}, "type": {"enum": ["city", "sea"]}},
    "required": ["名前", "type"],
    "additionalProperties": False,
}
_FLAGS: Final = {"type": "array", "items": {"type": "boolean"}}
_KEYWORDS: Final = {"name": {"type": "integer"}, "arguments": {"type": "boolean"}, "$ref": {"type": "null"}}
_TREE: Final = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
    "required": ["value", "next"],
    "additionalProperties": False,
}


def _tool(name: str, properties: Mapping[str, Any], *needed: str, **more: Any) -> FunctionTool:
    schema = {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}
    return FunctionTool(name, None, {**schema, **more})


DIVERSE: Final[Mapping[str, tuple[FunctionTool, Mapping[str, Any], Mapping[str, Any]]]] = {
    "nested": (
        _tool("geo-places_add", {"places": {"type": "array", "items": _PLACE, "minItems": 1}}, "places"),
        {"places": [{"größe": -1.5, "名前": '東京 \\"x"', "type": "city"}, {"名前": "", "type": "sea"}]},
        {"places": [{"größe": 1, "名前": "東京", "type": "land"}]},
    ),
    "enums": (
        _tool("pick", {"a": {"enum": ["x y", 1, None, True]}, "b": {"const": "only"}}, "a"),
        {"a": None, "b": "only"},
        {"a": "x", "b": "only"},
    ),
    "unions": (
        _tool(
            "u", {"v": {"anyOf": [{"type": "integer"}, _PLACE, {"type": "array", "items": {"type": "boolean"}}]}}, "v"
        ),
        {"v": [True, False]},
        {"v": [1]},
    ),
    "types": (_tool("t", {"v": {"type": ["integer", "boolean", "null"]}}, "v"), {"v": None}, {"v": 1.5}),
    "empty": (_tool("nothing_to_say", {}), {}, {"a": 1}),
    "no parameters": (FunctionTool("ping", "Pings."), {}, {"a": 1}),
    "all optional": (
        _tool("opt", {"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"type": "integer"}}),
        {"b": False},
        {"b": 0},
    ),
    "bounds": (
        _tool("dice", {"n": {"type": "integer", "minimum": -3, "maximum": 120}}, "n"),
        {"n": -3},
        {"n": 121},
    ),
    "recursion": (
        _tool("tree", {"root": {"$ref": "#/$defs/tree"}}, "root", **{"$defs": {"tree": _TREE}}),
        {"root": {"value": 1, "next": {"value": 2, "next": None}}},
        {"root": {"value": 1}},
    ),
    "names of keywords": (
        _tool(
            "name", {"name": {"type": "integer"}, "arguments": {"type": "boolean"}, "$ref": {"type": "null"}}, "name"
        ),
        {"name": 1, "arguments": True},
        {"name": "x"},
    ),
}

PARIS: Final[Mapping[str, Any]] = {"city": "Paris", "unit": "celsius"}
FITTING: Final[tuple[tuple[str, Mapping[str, Any]], ...]] = (
    ("get_weather", PARIS),
    ("get_weather", {"city": 'A "b"\\ é 東', "days": 3, "unit": "kelvin"}),
    ("save", {"lines": ["x", ""], "options": {"force": True, "mode": None}}),
    ("save", {"note": "two words"}),
    ("get_time", {}),
)
WRONG: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "another name": ("get_wether", PARIS),
    "the begin of a name": ("get", PARIS),
    "no member of the enum": ("get_weather", {"city": "Paris", "unit": "c"}),
    "a missing parameter": ("get_weather", {"city": "Paris"}),
    "an unknown parameter": ("get_weather", {**PARIS, "country": "FR"}),
    "a number as a text": ("get_weather", {"city": "Paris", "days": "three", "unit": "kelvin"}),
    "an array that is none": ("save", {"lines": "x"}),
}

# Of these only the envelope is known, and the name in it.
ENVELOPES: Final = ("minimax_m3",)


def wrong_calls(name: str) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    """The calls that do not fit, as far as this dialect's shape can tell."""
    return {what: wrong for what, wrong in WRONG.items() if name not in ENVELOPES or "name" in what}


def call(name: str, arguments: Mapping[str, Any]) -> Call:
    return Call(name, json.dumps(arguments, ensure_ascii=False))


def rendered(name: str, choice: ToolChoice = "required", **fields: Any) -> Prompt:
    dialect = get_dialect(name)
    asked = Message("user", (TextPart("Hi"),))
    conversation = Conversation((asked,), fields.pop("tools", TOOLS), tool_choice=choice, **fields)
    return dialect.render(conversation, dialect.options())


def constraint(
    name: str, *, tools: tuple[FunctionTool, ...] = TOOLS, demanded: bool = True, **fields: Any
) -> Constraint:
    prompt = rendered(name, "required" if demanded else "auto", tools=tools)
    prefill = prompt.prefill if demanded else ""
    return Constraint(name, tools, demanded=demanded, start=prompt.start, prefill=prefill, **fields)


SHAPED: Final = tuple(name for name in dialect_names() if shape_of(constraint(name)) is not None)
AUTO: Final = tuple(name for name in dialect_names() if shape_of(constraint(name, demanded=False)) is not None)


def shape(given: Constraint) -> AnswerShape:
    found = shape_of(given)
    assert found is not None
    return found


def answer(given: Constraint, *calls: Call, reasoning: str = "", said: str = "", stop: bool = True) -> str:
    """What the model writes behind the prompt. Where that has opened the reasoning, there is some."""
    dialect: Dialect = get_dialect(given.dialect)
    found = shape(given)
    reasoning = reasoning or ("Hm." if found.in_reasoning else "")
    message = Message("assistant", (TextPart(said),)) if said else None
    text = dialect.write(AssistantTurn(reasoning or None, message, list(calls)))
    if found.in_reasoning and found.reasoning is not None:
        text = text.removeprefix(fixed_text(found.reasoning.begin) or "")
    for end in () if stop else dialect.stops:
        text = text.removesuffix(end)
    return text.removeprefix(given.prefill)


def closers(given: Constraint) -> tuple[str, ...]:
    """The texts that end a free text in an answer."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[object] = [sentence(shape(given))]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, TextUntil):
            found.add(fixed_text(node.end) or "")
        waiting += getattr(node, "nodes", ()) or (
            [node.node] if isinstance(node, Optional | Repeat | Ref | Values) else []
        )
    return tuple(sorted(found))


def single(given: Constraint) -> Constraint:
    return msgspec.structs.replace(given, parallel=False)
