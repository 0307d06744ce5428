"""A model that repeats the same text without end: the answer ends, the problem is named, the server is left."""

import json
from typing import Any

import msgspec
import pytest

from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served, scripted_models
from tests.support.http_client import CHAT, Reply, request
from tests.support.servers import Answer, ModelServer, call_deltas, chunk, said, sse

MOST = 1_024
STOP = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def _ask(serve: Served, model: ModelServer, most: int) -> Reply:
    url = serve(*(msgspec.structs.replace(each, max_repeated_text=most) for each in scripted_models(model.url)))
    messages = [{"role": "user", "content": "Hi"}]
    return request(url + CHAT, {"model": "native", "messages": messages, "tools": [TOOL], "stream": True})


DELTAS: dict[str, list[dict[str, Any]]] = {
    "content": [{"content": "and again "}] * 200,
    "reasoning": [{"reasoning_content": "\n"}] * 2_000,
    "arguments": call_deltas("look", '{"at":["', *["x"] * 2_000),
}


@pytest.mark.parametrize("where", DELTAS)
def test_the_answer_ends_and_the_server_is_left(serve: Served, model: ModelServer, where: str) -> None:
    model.plays(Answer((*sse(*map(chunk, DELTAS[where])), "silence")))
    reply = _ask(serve, model, MOST)
    assert reply.problems["output_endless"] == 1
    reasons = [choice.get("finish_reason") for event in reply.events for choice in event.get("choices", ())]
    assert [reason for reason in reasons if reason] == ["length"]
    model.wait_until_left()


def test_it_can_be_switched_off(serve: Served, model: ModelServer) -> None:
    model.plays(said(*["and again "] * 1_000))
    reply = _ask(serve, model, 0)
    assert "output_endless" not in reply.problems
    text = "".join(choice["delta"].get("content") or "" for event in reply.events for choice in event["choices"])
    assert text == "and again " * 1_000, json.dumps(text[-100:])


def test_without_a_setting_only_an_answer_with_a_grammar_is_stopped(serve: Served, model: ModelServer) -> None:
    given: dict[str, Any] = {"upstream": model.url, "mode": "raw", "dialect": "hermes", "server": "vllm", "retries": 0}
    url = serve(ModelConfig(name="m", **given))
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [TOOL], "stream": True}
    text = "and again " * 2_000
    for choice, is_stopped in (("auto", False), ("required", True)):
        model.plays(
            Answer(sse(*({"choices": [{"index": 0, "text": "and again "}]} for _ in range(2_000)), STOP, "[DONE]"))
        )
        reply = request(url + CHAT, {**body, "tool_choice": choice})
        assert ("output_endless" in reply.text) is is_stopped
        assert is_stopped or text.strip() in "".join(
            each["delta"].get("content") or "" for event in reply.events for each in event.get("choices", ())
        )
