"""Prompts of GigaChat 3.5, traced by hand through its chat template: no package carries that one."""

from typing import Any

from callwright import render

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "find_ferry",
            "description": "Finds ferries.\n\nBetween harbours.",
            "parameters": {
                "type": "object",
                "properties": {
                    "harbour": {"type": "string", "description": "Where it begins"},
                    "day": {"type": "string", "enum": ["today", "tomorrow"], "default": "today"},
                    "passengers": {"type": "integer", "minimum": 1},
                    "stops": {"type": "array", "items": {"type": "string"}},
                    "class": {"type": ["string", "null"]},
                    "trip": {"type": "object", "properties": {"by_night": {"type": "boolean"}}},
                },
                "required": ["harbour"],
            },
        },
    },
    {"type": "function", "function": {"name": "tide", "parameters": {"type": "object", "properties": {}}}},
]
HEAD = """<s>developer system<|role_sep|>
Вызов функций: последовательный
Безопасность: соответствует законодательству РФ.
Текущая дата: 2026-11-23
Ограничение знаний: Декабрь, 2025.
Ты сделан на базе нейросети GigaChat.<|message_sep|>

"""
SHOWN = """function descriptions<|role_sep|>
namespace functions {
// Finds ferries.
// Between harbours.
type find_ferry = (_: {
  // Where it begins
  harbour: string,
  day?: "today" | "tomorrow", // default: "today"
  // minimum: 1
  passengers?: integer,
  stops?: (string)[],
  class?: (string) | (null),
  trip?: {
    by_night?: boolean,
  },
}) => any;

type tide = () => any;

} // namespace functions

<|message_sep|>

"""


def prompt(messages: list[dict[str, Any]], tools: list[dict[str, Any]], thinking: str = "off") -> str:
    return render(messages, tools=tools, dialect="gigachat35", thinking=thinking, current_date="2026-11-23").text


def test_a_question_without_tools_stands_behind_an_empty_system_message() -> None:
    assert prompt([{"role": "user", "content": "Привет"}], []) == (
        HEAD + "system<|role_sep|>\n<|message_sep|>\n\nuser<|role_sep|>\nПривет<|message_sep|>\n\n"
        "available functions<|role_sep|>\n[]<|message_sep|>\n\nassistant<|role_sep|>\n"
    )


def test_tools_stand_before_the_first_question_and_their_names_behind_each_turn_for_the_model() -> None:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "find_ferry", "arguments": '{"harbour": "Föhr", "passengers": 2}'},
    }
    tide = {"id": "call_2", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "I look.", "reasoning_content": "Ferry.", "tool_calls": [call, tide]},
        {"role": "tool", "tool_call_id": "call_1", "content": "18:40"},
        {"role": "tool", "tool_call_id": "call_2", "content": "Low."},
    ]
    names = 'available functions<|role_sep|>\n["find_ferry", "tide"]<|message_sep|>\n\n'
    assert prompt(messages, TOOLS, "open") == (
        HEAD
        + "system<|role_sep|>\nBe brief.<|message_sep|>\n\n"
        + SHOWN
        + "user<|role_sep|>\nWhen?<|message_sep|>\n\n"
        + names
        + """assistant<|role_sep|>
<think>Ferry.</think>

I look.

<｜GCML｜tool_calls>
<｜GCML｜invoke name="find_ferry">
<｜GCML｜parameter name="harbour" string="true">Föhr</｜GCML｜parameter>
<｜GCML｜parameter name="passengers" string="false">2</｜GCML｜parameter>
</｜GCML｜invoke>
<｜GCML｜invoke name="tide">
</｜GCML｜invoke>
</｜GCML｜tool_calls><|message_sep|>

function result<|role_sep|>
<function_response name="find_ferry">18:40</function_response>
<function_response name="tide">Low.</function_response><|message_sep|>

"""
        + names
        + "assistant<|role_sep|>\n<think>"
    )
