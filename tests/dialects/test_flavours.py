"""Models that write the calls of another family between turn tokens of their own."""

from typing import Any

import pytest

from callwright import Parser, collect, render

TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}]
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Is it there?"},
    {
        "role": "assistant",
        "content": "I ask.",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "ping", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "a", "content": "pong"},
]


@pytest.mark.parametrize(
    ("dialect", "flavour", "begin", "end"),
    [
        (
            "hermes",
            "granite4",
            "<|start_of_role|>system<|end_of_role|>Be brief.\n\nYou are a helpful assistant",
            (
                "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Is it there?<|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>I ask.\n"
                '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call><|end_of_text|>\n'
                "<|start_of_role|>user<|end_of_role|>\n<tool_response>\npong\n</tool_response><|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>"
            ),
        ),
        (
            "pythonic",
            "llama4",
            "<|begin_of_text|><|header_start|>system<|header_end|>\n\nBe brief.\n\n",
            (
                "<|eot|><|header_start|>user<|header_end|>\n\nIs it there?<|eot|>"
                "<|header_start|>assistant<|header_end|>\n\nI ask.\n[ping()]<|eot|>"
                "<|header_start|>ipython<|header_end|>\n\npong<|eot|><|header_start|>assistant<|header_end|>\n\n"
            ),
        ),
        (
            "xlam",
            "llama",
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.\nYou have access to a set",
            (
                "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nIs it there?<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\nI ask.\n"
                '[{"name": "ping", "arguments": {}}]<|eot_id|>'
                "<|start_header_id|>ipython<|end_header_id|>\n\npong<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\n"
            ),
        ),
    ],
)
def test_the_turns_are_the_models_own(dialect: str, flavour: str, begin: str, end: str) -> None:
    prompt = render(MESSAGES, tools=TOOLS, dialect=dialect, flavour=flavour).text
    assert prompt.startswith(begin)
    assert prompt.endswith(end)


@pytest.mark.parametrize(
    ("dialect", "output"),
    [
        ("hermes", '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call><|end_of_text|>'),
        ("pythonic", "[ping()]<|eot|>"),
        ("xlam", '[{"name": "ping", "arguments": {}}]<|eot_id|>'),
    ],
)
def test_the_end_of_a_turn_is_no_content(dialect: str, output: str) -> None:
    parser = Parser(dialect, tools=TOOLS)
    turn = collect([*parser.feed(output), *parser.finish("stop")])
    assert turn.content is None
    assert [(call.name, call.arguments) for call in turn.calls] == [("ping", "{}")]
