"""The option `examples`: calls of the offered tools, shown as an earlier conversation."""

import json
from typing import Any

import pytest

from callwright import parse, render
from callwright.chat_template.dialect import template_dialect
from callwright.conversation import AssistantTurn, Message
from callwright.dialects.base import get_dialect, read_options
from callwright.dialects.prompts.examples import example_turns
from callwright.errors import RequestError
from callwright.openai_format.messages import read_conversation
from callwright.openai_format.tools import read_tools
from callwright.prompt import Control
from callwright.schema.validate import is_valid

ASK = [{"role": "user", "content": "Water the roses."}]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def tool(name: str, properties: dict[str, Any], *, required: bool = True, **others: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": [*properties] if required else [], **others}
    return {
        "type": "function",
        "function": {"name": name, "description": f"Does {name}.\nAlso more.", "parameters": schema},
    }


FITTING = {
    "none": tool("none", {}),
    "text": tool("text", {"bed_name": {"type": "string"}}),
    "any": tool("any", {"x": {}}),
    "choice": tool("choice", {"bed": {"type": "string", "enum": ["a", "b"]}}),
    "constant": tool("constant", {"bed": {"const": 7}}),
    "date": tool(
        "date", {"day": {"type": "string", "format": "date"}, "at": {"type": "string", "format": "date-time"}}
    ),
    "numbers": tool("numbers", {"n": {"type": "integer", "minimum": 20}, "x": {"type": "number"}}),
    "nullable": tool(
        "nullable", {"n": {"type": ["null", "string"]}, "m": {"anyOf": [{"type": "null"}, {"type": "object"}]}}
    ),
    "nested": tool("nested", {"at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}),
    "list": tool("list", {"beds": {"type": "array", "items": {"type": "string"}, "minItems": 1}}),
    "reference": tool("reference", {"a": {"$ref": "#/definitions/a"}}, definitions={"a": {"type": "boolean"}}),
    "optional": tool("optional", {"bed": {"type": "string"}}, required=False),
    "example": tool("example", {"bed": {"type": "string", "pattern": "^B[0-9]$", "examples": ["B4"]}}),
}
UNFITTING = {
    "pattern": tool("pattern", {"bed": {"type": "string", "pattern": "^B[0-9]$"}}),
    "impossible": tool("impossible", {"bed": {"not": {}}}),
    "endless": tool("endless", {"a": {"$ref": "#/properties/a"}, "b": {"minLength": 900}}),
    "custom": {"type": "custom", "custom": {"name": "custom"}},
}
SEVERAL = [FITTING["text"], UNFITTING["pattern"], FITTING["list"], FITTING["date"]]


@pytest.mark.parametrize("name", FITTING)
def test_the_arguments_fit_and_the_user_names_them(name: str) -> None:
    given = read_tools([FITTING[name]])
    user, answer, *_ = example_turns(given)
    assert isinstance(user, Message)
    assert isinstance(answer, AssistantTurn)
    (call,) = answer.calls
    arguments = json.loads(call.arguments)
    assert call.name == name
    assert is_valid(given[0].parameters or {}, arguments)
    assert bool(arguments) == (name != "none")
    assert f"Does {name}" in user.text
    assert all(value in user.text for value in arguments.values() if isinstance(value, str))


@pytest.mark.parametrize("name", UNFITTING)
def test_a_tool_whose_arguments_cannot_be_made_up_has_none(name: str) -> None:
    assert not example_turns(read_tools([UNFITTING[name]]))


def test_they_are_of_two_tools_before_the_conversation_and_are_read_as_calls() -> None:
    conversation = read_conversation(ASK, SEVERAL, None)
    dialect = get_dialect("json")
    plain = dialect.messages(conversation, dialect.options())
    shown = dialect.messages(conversation, read_options("json", {"examples": True}))
    assert [shown[0], shown[-1]] == plain
    assert [message["role"] for message in shown[1:-1]] == ["user", "assistant"] * 3
    read = [parse(message["content"], dialect="json", tools=SEVERAL).calls for message in shown[2:-1:2]]
    assert [[call.name for call in calls] for calls in read] == [["text"], ["list"], []]


def test_a_plain_text_has_the_same_ones() -> None:
    conversation = read_conversation(ASK, SEVERAL, None)
    messages = get_dialect("json").messages(conversation, read_options("json", {"examples": True}))
    text = render(ASK, dialect="json", tools=SEVERAL, examples=True).text
    headed = "".join(f"### {message['role'].capitalize()}\n{message['content']}\n\n" for message in messages)
    assert text == f"{headed}### Assistant\n"
    assert "some bed name" not in render(ASK, dialect="json", tools=SEVERAL).text


def test_without_tools_there_are_none() -> None:
    assert render(ASK, dialect="json", examples=True).text == render(ASK, dialect="json").text


def test_a_description_that_looks_like_a_heading_is_text() -> None:
    shown = tool("text", {})
    shown["function"]["description"] = "### Assistant"
    prompt = render(ASK, dialect="json", tools=[shown], examples=True)
    controls = [piece.text for piece in prompt.pieces if isinstance(piece, Control)]
    assert controls == ["### System", *["### User", "### Assistant"] * 3]


@pytest.mark.processes
def test_a_template_that_shows_no_tools_has_the_option() -> None:
    dialect = template_dialect(CHATML)
    conversation = read_conversation(ASK, SEVERAL, None)
    text = dialect.render(conversation, read_options(dialect, {"examples": True})).text
    assert text.count("<|im_start|>assistant") == 4
    assert '"arguments": {"bed_name": "some bed name"}' in text
    assert dialect.render(conversation, dialect.options()).text.count("<|im_start|>assistant") == 1


@pytest.mark.processes
def test_a_template_that_shows_calls_refuses_it() -> None:
    shows = "{{ tools | tojson if tools }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    shows += (
        "{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}<|im_end|>\n"
    )
    shows += "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    dialect = template_dialect(shows)
    assert "shows tools and calls" in dialect.source
    with pytest.raises(RequestError, match="examples"):
        read_options(dialect, {"examples": True})
