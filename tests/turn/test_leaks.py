"""Calls that a server left in the text of its answer, broken: each endpoint reads them, asks again or names them."""

import json
from typing import Any

import pytest

import callwright
from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.http_client import CHAT, request
from tests.support.outputs import QUESTION, TOOLS
from tests.support.servers import Answer, ModelServer, chat, said

NAME = "get_weather"
SCHEMA = next(tool["function"] for tool in TOOLS if tool["function"]["name"] == NAME)["parameters"]
FORMATS = ["hermes", "qwen3_coder", "glm47", "minimax_m2", "deepseek_v31", "kimi_k2", "gemma4", "step3", "lfm2"]
PATHS = {"chat": CHAT, "responses": "/v1/responses", "messages": "/v1/messages"}
# In each mode the server answers text in a form that is not the dialect's.
MODES: dict[str, dict[str, Any]] = {"native": {}, "prompt": {"mode": "prompt", "dialect": "json"}}


def _bodies(name: str) -> dict[str, dict[str, Any]]:
    function = {"name": NAME, "description": "Weather", "parameters": SCHEMA}
    own = {"model": name}
    return {
        "chat": {**own, "messages": [QUESTION], "tools": [{"type": "function", "function": function}]},
        "responses": {**own, "input": QUESTION["content"], "tools": [{"type": "function", **function}]},
        "messages": {
            **own,
            "max_tokens": 900,
            "messages": [QUESTION],
            "tools": [{"name": NAME, "description": "Weather", "input_schema": SCHEMA}],
        },
    }


def _leaks(dialect: str) -> dict[str, str]:
    whole = callwright.write([{"name": NAME, "arguments": {"city": "Paris"}}], dialect=dialect)
    return {"whole": whole, "cut": whole[: len(whole) * 4 // 5], "no end": whole.rstrip()[:-1]}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("endpoint", PATHS)
def test_no_leak_is_silent(serve: Served, model: ModelServer, endpoint: str, mode: str, stream: bool) -> None:
    gateway = serve(ModelConfig(name="leaky", upstream=model.url, retries=1, **MODES[mode]))
    for dialect in FORMATS:
        for blemish, text in _leaks(dialect).items():
            answers: list[Answer] = [said(text), said("The second answer.")]
            model.plays(*answers)
            reply = request(gateway + PATHS[endpoint], {**_bodies("leaky")[endpoint], "stream": stream})
            assert reply.status == 200, reply.text
            asked_again = len(model.asked) > 1
            assert asked_again or reply.problems, (dialect, blemish, reply.text)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", FORMATS)
def test_a_call_at_the_end_of_the_reasoning_field_is_made(
    gateway: str, model: ModelServer, dialect: str, stream: bool
) -> None:
    model.plays(chat({"reasoning_content": f"I look it up.\n{_leaks(dialect)['whole']}"}))
    reply = request(gateway + CHAT, {**_bodies("native")["chat"], "stream": stream})
    assert "call_in_thought" in reply.problems
    assert json.dumps(NAME) in reply.text.replace('\\"', '"')
    assert "tool_calls" in reply.text
