"""DeepSeek V4 and V4.1 against the encoder of their makers, deepseek-recipe: prompts agree character by character.

Not compared: `tool_choice`. With `none` the encoder leaves the tools out; ours stay, so that a prompt remains the begin
of the next one. A demanded call it refuses in reasoning.
"""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from callwright import render
from callwright.dialects.base import get_dialect
from callwright.openai_format.messages import read_conversation
from callwright.openai_format.response_format import read_response_format
from tests.support.examples import examples

library: Any = pytest.importorskip("deepseek_recipe")  # there is a wheel for Linux only

Json = dict[str, Any]

checked = examples(150)

ENCODERS: Final[dict[str, tuple[str, Any]]] = {
    "deepseek_v4": ("DeepSeek-V4-Pro", library.DeepseekV4Encoding),
    "deepseek_v41": ("DeepSeek-V4.1-Flash", library.DeepseekV41Encoding),
}
EFFORTS: Final = (None, "none", "minimal", "low", "medium", "high", "xhigh", "max")
_TYPED: Final[Json] = {
    "type": "object",
    "properties": {
        "harbour": {"type": "string", "description": 'Where "it" lies: <Föhr>'},
        "depth": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "boats": {"type": "array", "items": {"type": ["string", "null"]}},
        "by_night": {"type": "boolean", "default": False},
    },
    "required": ["harbour"],
    "additionalProperties": False,
}
TOOLS: Final[list[Json]] = [
    {"type": "function", "function": {"name": "find_ferry", "description": "Fähren, 渡し船.", "parameters": _TYPED}},
    {"type": "function", "function": {"name": "tide", "description": "Tells\n  the tide. "}},
    {"type": "function", "function": {"name": "moor", "parameters": {"type": "object", "properties": {}}}},
]


def encoded(dialect: str, messages: list[Json], tools: list[Json], thinks: bool, effort: str | None) -> str:
    """The prompt that the library makes."""
    model, encoder = ENCODERS[dialect]
    body: Json = {"model": model, "messages": messages, "thinking": {"type": "enabled" if thinks else "disabled"}}
    if tools:
        body["tools"] = tools
    if effort is not None:
        body["reasoning_effort"] = effort
    if effort == "none":
        del body["thinking"]  # either says that nothing is thought
    asked = library.ChatCompletionRequest(json.dumps(body)).convert(library.ConversionOptions())
    prompt: str = encoder().render_conversation(asked.conversation).prompt
    return prompt


def ours(dialect: str, messages: list[Json], tools: list[Json], thinks: bool, effort: str | None) -> str:
    options: Json = {"thinking": "open" if thinks else "off"}
    if effort is not None:
        options["reasoning_effort"] = effort
    return render(messages, tools=tools, dialect=dialect, **options).text


def turn(calls: list[tuple[str, Json]], text: str | None, thought: str | None, number: int) -> Json:
    """An assistant's message."""
    said: Json = {"role": "assistant", "content": text}
    if thought is not None:
        said["reasoning_content"] = thought
    if calls:
        said["tool_calls"] = [
            {
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for index, (name, arguments) in enumerate(calls)
        ]
    return said


# --- conversations ---

TEXT = st.lists(
    st.sampled_from(
        [
            "tide",
            "Föhr",
            " ",
            "\n",
            "\n\n",
            "渡",
            "<pier>",
            '"',
            "｜",
            "🛥",
            "<think>",
            "</think>",
            "<｜User｜>",
            "｜DSML｜",
        ]
    ),
    max_size=5,
).map("".join)
FULL_TEXT = TEXT.map("a{}".format)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.sampled_from([0.5, -2.25, 100.0]) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["ö", "b c"]), inner, max_size=2),
    max_leaves=4,
)
CALL = st.tuples(
    st.sampled_from(["find_ferry", "tide", "moor"]),
    st.dictionaries(st.sampled_from(["harbour", "depth", "boats", "by_night", "größe"]), VALUE, max_size=3),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Json]:
    """Messages in any order that the library takes: a system message may stand anywhere between turns."""
    messages: list[Json] = [{"role": "system", "content": draw(TEXT)} for _ in range(draw(st.integers(0, 2)))]
    messages.append({"role": "user", "content": draw(TEXT)})
    for number in range(draw(st.integers(0, 4))):
        calls = draw(st.lists(CALL, max_size=2))
        thought = draw(st.none() | TEXT)
        messages.append(turn(calls, draw(TEXT if calls else FULL_TEXT), thought, number))
        for call in messages[-1].get("tool_calls", ()):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": draw(TEXT)})
        for role in draw(st.lists(st.sampled_from(["user", "system"]), max_size=2)):
            messages.append({"role": role, "content": draw(TEXT)})
        if not calls and messages[-1]["role"] in ("assistant", "system"):  # behind an answer somebody asks again
            messages.append({"role": "user", "content": draw(TEXT)})
    return messages


@pytest.mark.parametrize("dialect", ENCODERS)
@checked
@given(
    messages=conversations(),
    tools=st.lists(st.sampled_from(TOOLS), max_size=3, unique_by=lambda tool: tool["function"]["name"]),
    thinks=st.booleans(),
    effort=st.sampled_from(EFFORTS),
)
def test_a_prompt_is_what_the_makers_encoder_writes(
    dialect: str, messages: list[Json], tools: list[Json], thinks: bool, effort: str | None
) -> None:
    assert ours(dialect, messages, tools, thinks, effort) == encoded(dialect, messages, tools, thinks, effort)


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize("tools", [[], TOOLS], ids=["no tools", "tools"])
@pytest.mark.parametrize("dialect", ENCODERS)
def test_each_effort_is_written_as_the_makers_write_it(
    dialect: str, tools: list[Json], thinks: bool, effort: str | None
) -> None:
    asked = {"role": "user", "content": "How is the tide?"}
    begun = [
        asked,
        turn([("tide", {})], "", "Look.", 0),
        {"role": "tool", "tool_call_id": "call_0_0", "content": "Low."},
    ]
    for system in ([], [{"role": "system", "content": ""}], [{"role": "system", "content": "Be brief."}]):
        for messages in (system, [*system, asked], [*system, *begun]):
            if any(message["content"] for message in messages):
                expected = encoded(dialect, messages, tools, thinks, effort)
                assert ours(dialect, messages, tools, thinks, effort) == expected


@pytest.mark.parametrize("dialect", ENCODERS)
def test_a_developer_is_shown_as_the_system_is(dialect: str) -> None:
    texts = [
        ("system", "Be brief."),
        ("user", "Hi."),
        ("assistant", "Hello."),
        ("system", "In French."),
        ("user", "Go."),
    ]
    by_system, by_developer = (
        [{"role": name if role == "system" else role, "content": text} for role, text in texts]
        for name in ("system", "developer")
    )
    assert ours(dialect, by_developer, TOOLS, True, None) == encoded(dialect, by_system, TOOLS, True, None)


@pytest.mark.parametrize("tools", [[], TOOLS], ids=["no tools", "tools"])
@pytest.mark.parametrize("dialect", ENCODERS)
def test_the_form_of_the_answer_is_asked_for_as_the_makers_do(dialect: str, tools: list[Json]) -> None:
    schema = {"type": "object", "properties": {"tiefe": {"type": "string", "description": "für <alle>"}}}
    named = {"type": "json_schema", "json_schema": {"name": "depth", "schema": schema}}
    model, encoder = ENCODERS[dialect]
    for system in ("", "Answer in json."):
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": "How deep, in json?"})
        for form in ({"type": "json_object"}, named):
            body = {
                "model": model,
                "messages": messages,
                "response_format": form,
                **({"tools": tools} if tools else {}),
            }
            asked = library.ChatCompletionRequest(json.dumps(body)).convert(library.ConversionOptions())
            wanted = replace(read_conversation(messages, tools, None), response_format=read_response_format(form))
            prompt = get_dialect(dialect).render(wanted, get_dialect(dialect).options())
            assert prompt.text == encoder().render_conversation(asked.conversation).prompt
