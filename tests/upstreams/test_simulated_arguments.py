"""The arguments that the simulated model makes up: they fit the schema, and no schema makes it fail or stall."""

from typing import Any

import pytest

from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.http_client import CHAT, request

FITTING: dict[str, dict[str, Any]] = {
    "a number above the one that was said": {"properties": {"n": {"type": "number", "minimum": 5}}},
    "a number below the one that was said": {"properties": {"n": {"type": "integer", "maximum": 2}}},
    "a number with more digits than there are": {"properties": {"n": {"type": "integer", "minimum": 10**400}}},
    "one that is required and not described": {"properties": {}},
    "one that may be anything": {"properties": {"n": True}},
    "a length written as a decimal": {"properties": {"n": {"type": "string", "minLength": 3.0, "maxLength": 4.0}}},
    "two, written as a decimal": {"properties": {"n": {"type": "array", "items": {"type": "string"}, "minItems": 2.0}}},
}
TOO_MUCH: dict[str, Any] = {
    "a text that is too long": {"type": "string", "minLength": 10**12},
    "too many": {"type": "array", "items": {"type": "array", "items": {}, "minItems": 10**6}, "minItems": 10**6},
}


def asked(gateway: str, parameters: dict[str, Any]) -> tuple[int, Any]:
    """Status and body of an answer that has to be a call."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {**parameters, "type": "object"}}}
    said = f"Use 3 for Anna and Bert, not {'9' * 400}."
    body = {"messages": [{"role": "user", "content": said}], "tools": [tool], "tool_choice": "required"}
    reply = request(gateway + CHAT, {"model": "simulated", **body})
    return reply.status, reply.json


@pytest.fixture
def gateway(serve: Served) -> str:
    return serve(ModelConfig(name="simulated", upstream="simulated"))


@pytest.mark.parametrize("what", FITTING)
def test_arguments_fit(gateway: str, what: str) -> None:
    status, body = asked(gateway, {**FITTING[what], "required": ["n"]})
    assert status == 200, body
    assert body["choices"][0]["message"]["tool_calls"]


@pytest.mark.parametrize("what", TOO_MUCH)
def test_nobody_has_to_wait_for_what_is_too_much(gateway: str, what: str) -> None:
    status, body = asked(gateway, {"properties": {"n": TOO_MUCH[what]}, "required": ["n"]})
    assert (status, body["error"]["code"]) == (502, "upstream_unmet")
