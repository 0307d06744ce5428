"""Values in the calls of a history: shown as the model's own template shows them, and read back as they were."""

import json
from typing import Any

import pytest

from callwright import Parser, collect, render
from callwright.chat_template.repeats import common_start
from callwright.dialects.base import get_dialect, read_options
from callwright.dialects.detect import by_name, options_by_name
from callwright.openai_format.messages import read_conversation

PARAMETERS: dict[str, Any] = {
    "fresh": {"type": "boolean"},
    "sold": {"type": ["boolean", "null"]},
    "weight": {"type": "number"},
    "buyer": {"type": ["string", "null"]},
    "baskets": {"type": "array"},
    "trip": {"type": "object"},
}
TOOLS = [{"type": "function", "function": {"name": "log", "parameters": {"type": "object", "properties": PARAMETERS}}}]
VALUES: list[dict[str, Any]] = [
    {"fresh": True, "sold": False},
    {"sold": None, "buyer": None},
    {"weight": -0.5, "buyer": "True"},
    {"weight": 1e30, "buyer": "None"},
    {"baskets": [[1, 2], ['Dorsch\'s "best"', [3.5, True]]]},
    {"trip": {"stops": ["F\u00f6hr", "\u6e21"], "by_night": False, "guide": {"name": "J\u00f8rn"}}},
]
FLAVOURS = [
    *(("qwen3_coder", name) for name in ("qwen3_coder", "qwen3.5", "qwen3.6", "qwen3.8", "nemotron3", "step3.5")),
    *(("lfm2", name) for name in ("lfm2", "lfm2.5")),
    *(("laguna", name) for name in ("xs", "s-2.1")),
    *(("glm47", name) for name in ("glm", "spark2.5")),
    *(("llama3_json", name) for name in ("llama3", "llama4")),
    *(("hermes", name) for name in ("qwen", "granite4", "reka")),
    *(("apriel", name) for name in ("1.6", "1.5")),
    *((name, "") for name in ("seed_oss", "minicpm5", "gemma4", "minimax_m3", "jamba", "functionary_v31")),
]


@pytest.mark.parametrize(("dialect", "flavour"), FLAVOURS)
@pytest.mark.parametrize("arguments", VALUES, ids=json.dumps)
def test_a_call_of_a_history_is_read_back(dialect: str, flavour: str, arguments: dict[str, Any]) -> None:
    question = {"role": "user", "content": "Write it down."}
    function = {"name": "log", "arguments": json.dumps(arguments)}
    call = {"role": "assistant", "tool_calls": [{"id": "call00000", "type": "function", "function": function}]}
    options = {"flavour": flavour} if flavour else {}
    asked = render([question], tools=TOOLS, dialect=dialect, **options).text
    shown = render([question, call], tools=TOOLS, dialect=dialect, **options, add_generation_prompt=False).text
    parser = Parser(dialect, tools=TOOLS)
    turn = collect([*parser.feed(shown.removeprefix(common_start(asked, shown))), *parser.finish("stop")])
    assert [(one.name, json.loads(one.arguments), one.complete) for one in turn.calls] == [("log", arguments, True)]


@pytest.mark.parametrize(
    ("model", "dialect", "flavour"),
    [
        ("poolside/Laguna-S-2.1", "laguna", "s-2.1"),
        ("poolside/Laguna-XS-2.1", "laguna", None),
        ("qwen3.8:27b", "qwen3_coder", "qwen3.8"),
        ("Qwen/Qwen3.6-35B-A3B", "qwen3_coder", "qwen3.6"),
        ("iflytek/Spark-2.5", "glm47", "spark2.5"),
        ("RekaAI/reka-edge-2603", "hermes", "reka"),
        ("ServiceNow-AI/Apriel-1.5-15b-Thinker", "apriel", "1.5"),
        ("ServiceNow-AI/Apriel-1.6-15b-Thinker", "apriel", None),
    ],
)
def test_a_name_chooses_the_flavour(model: str, dialect: str, flavour: str | None) -> None:
    found = by_name(model)
    assert found is not None
    assert (found.dialect, options_by_name(dialect, model).get("flavour")) == (dialect, flavour)


@pytest.mark.parametrize(
    ("level", "told"), [("minimal", "low"), ("low", "low"), ("medium", ""), ("high", "xhigh"), ("xhigh", "xhigh")]
)
def test_qwen_is_told_its_effort_once(level: str, told: str) -> None:
    later = {"role": "system", "content": "It is late."}
    dialect = get_dialect("qwen3_coder")
    options = read_options("qwen3_coder", {"flavour": "qwen3.8"}).with_effort(level)
    assert options is not None
    prompt = dialect.render(read_conversation([{"role": "user", "content": "Hello"}, later], None, None), options).text
    assert prompt.count("Reasoning effort is set to") == bool(told)
    assert prompt.count(f"Reasoning effort is set to {told}") == bool(told)


def test_an_effort_is_told_where_there_is_a_place_for_it() -> None:
    for flavour in ("qwen3_coder", "qwen3.6"):
        options = read_options("qwen3_coder", {"flavour": flavour})
        assert options.with_effort("low") is None
        assert options.with_effort("none") is not None
    assert (
        "Reasoning effort"
        not in render(
            [{"role": "user", "content": "Hello"}], dialect="qwen3_coder", flavour="qwen3.8", thinking="off"
        ).text
    )
