"""The requests that pages, examples and tests send to the simulated model get the answers that they show.

`known_simulated_requests.json` has the tools (name, description, parameters, grammar) and the conversations, each with
the calls or the text of its answer.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from callwright.conversation import (
    Call,
    CallOutput,
    Conversation,
    CustomInput,
    FunctionTool,
    Item,
    Message,
    NamedTool,
    ResponseFormat,
    TextPart,
)
from callwright.grammar.grammar import Grammar
from callwright.upstreams.simulated.answer import answer

KNOWN: Final = json.loads(Path(__file__).with_name("known_simulated_requests.json").read_text(encoding="utf-8"))


def tool(name: str, about: str | None, parameters: dict[str, Any] | None, *grammar: list[str] | None) -> FunctionTool:
    custom = [CustomInput(Grammar(*each) if each else None) for each in grammar]
    return FunctionTool(name, about, parameters, custom=custom[0] if custom else None)


def item(kind: str, *fields: Any) -> Item:
    if kind == "call":
        return Call(*fields)
    parts = tuple(TextPart(text) for text in fields[1] if text is not None)
    return Message(fields[0], parts) if kind == "message" else CallOutput(fields[0], parts)


def name_of(known: dict[str, Any]) -> str:
    asked = next(item[2][-1] for item in reversed(known["items"]) if item[:2] == ["message", "user"])
    return f"{asked[:60]} {len(known['items'])} {','.join(known['tools'][:2])}"


@pytest.mark.parametrize("known", KNOWN["requests"], ids=name_of)
def test_a_known_request_gets_its_answer(known: dict[str, Any]) -> None:
    choice: Any = known.get("choice", "auto")
    turn = answer(
        Conversation(
            tuple(item(*fields) for fields in known["items"]),
            tuple(tool(*KNOWN["tools"][name]) for name in known["tools"]),
            tool_choice=NamedTool(choice["name"]) if isinstance(choice, dict) else choice,
            allowed_tools=known.get("allowed"),
            parallel_tool_calls=known.get("parallel", True),
            response_format=ResponseFormat("json_schema", schema=known["form"]) if "form" in known else None,
        )
    )
    assert [[call.name, json.loads(call.arguments)] for call in turn.calls] == known.get("calls", [])
    assert turn.text == known.get("text", "")
