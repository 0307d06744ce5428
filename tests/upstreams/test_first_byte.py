"""A stream begins with the upstream's first delta: what fails until then is the API's own error, whatever is asked."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from callwright.tolerant_json.codec import encode
from tests.conftest import Served, scripted_models
from tests.support.http_client import CHAT, Live, request
from tests.support.outputs import QUESTION, TOOLS
from tests.support.responses_client import FUNCTIONS, RESPONSES
from tests.support.servers import Answer, ModelServer, chunk, sse, whole

WAYS: Final = (
    "native",
    "prompt-json",
    "prompt-hermes",
    "prompt-harmony",
    "raw-hermes-vllm",
    "raw-json-openai",
    "raw-harmony-openai",
    "raw-harmony-llamacpp",
)
CHOICES: Final[Mapping[str, Any]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "named": {"type": "function", "function": {"name": "get_weather"}},
}
BUSY: Final = whole({"error": {"message": "Loading model", "code": 503}}, 503, retry_after="2")
# What a server does before its first delta, and the status of the API's error.
FAILURES: Final[Mapping[str, tuple[Answer, int]]] = {
    "an error status": (BUSY, 502),
    "too many requests": (whole({"error": {"message": "Slow down."}}, 429), 429),
    "a reset": (Answer(("reset",)), 503),
    "an error in place of the first event": (Answer(sse({"error": {"message": "It broke."}})), 502),
    "a role, then an error": (
        Answer(sse({**chunk({"role": "assistant"}), "system_fingerprint": "f"}, {"error": {"message": "It broke."}})),
        502,
    ),
}


def asked(way: str, choice: Any, path: str) -> dict[str, Any]:
    """A request for a stream, to either API."""
    if path == CHAT:
        return {"model": way, "messages": [QUESTION], "tools": TOOLS, "tool_choice": choice, "stream": True}
    flat = {"type": "function", **choice["function"]} if isinstance(choice, dict) else choice
    return {"model": way, "input": QUESTION["content"], "tools": FUNCTIONS, "tool_choice": flat, "stream": True}


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FAILURES)
def test_a_server_that_fails_before_its_first_delta_is_an_error_status(
    gateway: str, model: ModelServer, name: str, way: str, choice: str, path: str
) -> None:
    answer, status = FAILURES[name]
    model.plays(answer, answer)
    reply = request(gateway + path, asked(way, CHOICES[choice], path))
    assert reply.status == status, reply.text
    assert reply.error["message"]


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("way", WAYS)
def test_so_is_a_server_that_is_down(serve: Served, closed_port: str, way: str, choice: str, path: str) -> None:
    gateway = serve(*scripted_models(closed_port))
    reply = request(gateway + path, asked(way, CHOICES[choice], path))
    assert reply.status == 503, reply.text
    assert "cannot be reached" in reply.error["message"]


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_sent_while_a_server_has_not_begun(gateway: str, model: ModelServer, way: str, path: str) -> None:
    gate = model.gate()
    model.plays(Answer((gate, *BUSY.steps), BUSY.status, BUSY.headers))
    with Live(gateway + path, encode(asked(way, "required", path))) as live:
        gate.wait_until_reached()
        gate.open()
        assert live.status == 502


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_a_server_that_takes_long_to_begin_gets_a_heartbeat_before_it(
    serve: Served, model: ModelServer, path: str
) -> None:
    gateway = serve(*scripted_models(model.url), heartbeat_s=0.05)
    gate = model.gate()
    model.plays(Answer((gate, *BUSY.steps), BUSY.status, BUSY.headers))
    with Live(gateway + path, encode(asked("native", "required", path))) as live:
        assert live.status == 200
        events = live.events()
        next(events)
        gate.open()
        assert any(b"Loading model" in event for event in events)
