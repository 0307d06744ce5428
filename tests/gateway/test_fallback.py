"""Another model of the gateway: over each wire, whole and streamed, for each fault of the first server."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from callwright.gateway.access.keys import hash_of
from callwright.gateway.config.config import Config, KeyConfig, ModelConfig
from tests.gateway.test_deferred_tools import ask, listed
from tests.gateway.test_metrics import settled, value
from tests.support.http_client import CHAT, request
from tests.support.outputs import ARGUMENTS, QUESTION, TOOLS
from tests.support.servers import Answer, ClosedPort, Gateway, ModelServer, calling, completion, said, whole
from tests.support.turns import shown
from tests.support.waiting import until

ALL, FEW, NONE = "cw-all-" + "a" * 40, "cw-few-" + "b" * 40, "cw-none-" + "c" * 40
TOO_LONG: Final = {"error": {"message": "This model's maximum context length is 10 tokens.", "code": 400}}
FAULTS: Final[dict[str, Answer]] = {
    "rate_limit_exceeded": whole({"error": {"message": "Slow down."}}, 429),
    "status": whole({"error": {"message": "Broken."}}, 500),
    "unavailable": whole({"error": {"message": "Busy."}}, 503),
    "context_length_exceeded": whole(TOO_LONG, 400),
    "cut": Answer(("reset",)),
    "slow": Answer(("silence",)),
    "no_json": whole("<html>Bad gateway</html>", kind="text/html"),
    "broken_events": Answer((b'data: {"choices": [\n\n',)),
    "invalid": calling("get_weather", '{"x": 1}'),
    "invalid_and_cut_later": calling("get_weather", '{"x": 1}', finish="length"),
}
PARAMETERS: Final = TOOLS[0]["function"]["parameters"]
STRICT: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WIRES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "chat": (CHAT, {"messages": [QUESTION], "tools": [TOOLS[0]], "tool_choice": "required"}),
    "responses": (
        "/v1/responses",
        {
            "input": QUESTION["content"],
            "tools": [{"type": "function", "name": "get_weather", "parameters": PARAMETERS}],
            "tool_choice": "required",
        },
    ),
    "messages": (
        "/v1/messages",
        {
            "max_tokens": 100,
            "messages": [QUESTION],
            "tools": [{"name": "get_weather", "input_schema": PARAMETERS}],
            "tool_choice": {"type": "any"},
        },
    ),
}
GOOD: Final = f'get_weather", "arguments": {ARGUMENTS}}}\n</tool_call>'  # after the begin that the prompt has


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[ModelServer, ModelServer]]:
    first, other = ModelServer(), ModelServer()
    yield first, other
    first.stop()
    other.stop()


@pytest.fixture(scope="module")
def gateway(servers: tuple[ModelServer, ModelServer]) -> Iterator[str]:
    first, other = servers
    closed = ClosedPort()
    small: dict[str, Any] = {"mode": "native", "retries": 0, "fallback": ("big",), "idle_timeout_s": 0.5}
    keys = [KeyConfig(name="all", sha256=hash_of(ALL)), KeyConfig(name="none", sha256=hash_of(NONE), fallback=False)]
    keys.append(KeyConfig(name="few", sha256=hash_of(FEW), models=("small",)))
    models = (
        ModelConfig(name="small", upstream=first.url, **small),
        ModelConfig(name="down", upstream=closed.url, **small),
        ModelConfig(name="big", upstream=other.url, mode="raw", dialect="hermes", server="vllm", constrain="off"),
    )
    served = Gateway(Config(models=models, keys=tuple(keys)))
    yield served.url
    served.stop()
    closed.close()


def asked(gateway: str, wire: str, model: str = "small", *, stream: bool = False, key: str = ALL, **more: str) -> Any:
    path, body = WIRES[wire]
    headers = {"authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in more.items()}}
    return request(gateway + path, {"model": model, "stream": stream, **body}, headers=headers)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", ["unreachable", *FAULTS])
def test_the_other_model_answers_once_and_is_named(
    gateway: str, servers: tuple[ModelServer, ModelServer], fault: str, wire: str, stream: bool
) -> None:
    first, other = servers
    first.plays(FAULTS.get(fault, FAULTS["status"]))
    other.plays(completion(GOOD, size=400))
    reply = asked(gateway, wire, "down" if fault == "unreachable" else "small", stream=stream)
    assert reply.status == 200, reply.text
    assert reply.headers["x-callwright-fallback"].startswith("big; reason=")
    assert len(other.asked) == 1
    assert json.loads(ARGUMENTS)["city"] in reply.text
    assert '"big"' not in reply.text  # the answer has the name that was asked for
    if not stream:
        assert reply.text.count("get_weather") <= 2  # the call, and the tool that the Responses API repeats


@pytest.mark.parametrize(
    ("key", "headers"), [(FEW, {}), (NONE, {}), (ALL, {"x_callwright_fallback": "none"})], ids=["few", "none", "header"]
)
def test_no_other_model_answers_a_client_that_may_not_or_will_not_ask_it(
    gateway: str, servers: tuple[ModelServer, ModelServer], key: str, headers: dict[str, Any]
) -> None:
    first, other = servers
    first.plays(FAULTS["unavailable"])
    other.plays(completion(GOOD, size=400))
    reply = asked(gateway, "chat", key=key, **headers)
    assert (reply.status, other.asked) == (502, [])
    assert "x-callwright-fallback" not in reply.headers


def test_a_structured_answer_that_does_not_hold_is_asked_of_the_other_model(
    gateway: str, servers: tuple[ModelServer, ModelServer]
) -> None:
    first, other = servers
    first.plays(said('{"city": [1, {}]}'))
    other.plays(completion(ARGUMENTS, size=400))
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": STRICT, "strict": True}}
    body = {"model": "small", "messages": [QUESTION], "response_format": form}
    reply = request(gateway + CHAT, body, headers={"authorization": f"Bearer {ALL}"})
    assert reply.status == 200, reply.text
    assert json.loads(reply.json["choices"][0]["message"]["content"]) == json.loads(ARGUMENTS)
    assert reply.headers["x-callwright-fallback"].startswith("big; reason=")


def test_the_metric_has_the_other_model_and_the_reason(servers: tuple[ModelServer, ModelServer]) -> None:
    first, other = servers
    first.plays(FAULTS["unavailable"])
    other.plays(completion(GOOD, size=400))
    small = ModelConfig(name="small", upstream=first.url, mode="native", retries=0, fallback=("big",))
    big = ModelConfig(name="big", upstream=other.url, mode="raw", dialect="hermes", server="vllm", constrain="off")
    served = Gateway(Config(models=(small, big)))
    try:
        reason = asked(served.url, "chat").headers["x-callwright-fallback"].partition("reason=")[2]
        samples = settled(served.url)
    finally:
        served.stop()
    assert value(samples, "fallbacks_total", model="small", to="big", reason=reason) == 1
    assert value(samples, "fallbacks_total") == 1


def test_an_unknown_wish_is_refused(gateway: str) -> None:
    reply = asked(gateway, "chat", x_callwright_fallback="big")
    assert reply.status == 400
    assert "expected 'none', got 'big'" in reply.text


def tool_calls(message: Any) -> list[tuple[str, Any]]:
    """The calls of a chat message."""
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]]


@pytest.mark.parametrize("fault", ["unavailable", "invalid"])
def test_each_choice_of_several_has_its_own_fallback(
    gateway: str, servers: tuple[ModelServer, ModelServer], fault: str
) -> None:
    first, other = servers
    good = calling("get_weather", ARGUMENTS)
    first.plays(FAULTS[fault], good)
    other.plays(completion(GOOD, size=400))
    body = {"model": "small", **WIRES["chat"][1], "n": 2}
    reply = request(gateway + CHAT, body, headers={"authorization": f"Bearer {ALL}"})
    assert reply.status == 200, reply.text
    found = [tool_calls(choice["message"]) for choice in reply.json["choices"]]
    assert found == [[("get_weather", json.loads(ARGUMENTS))]] * 2
    assert (len(first.asked), len(other.asked)) == (2, 1)


@pytest.mark.parametrize("fault", ["unavailable", "invalid"])
def test_a_response_in_the_background_has_its_fallback(
    gateway: str, servers: tuple[ModelServer, ModelServer], fault: str
) -> None:
    first, other = servers
    first.plays(FAULTS[fault])
    other.plays(completion(GOOD, size=400))
    headers = {"authorization": f"Bearer {ALL}"}
    path, body = WIRES["responses"]
    begun = request(gateway + path, {"model": "small", **body, "background": True}, headers=headers).json
    shown: list[Any] = []

    def is_over() -> bool:
        shown.append(request(f"{gateway}{path}/{begun['id']}", method="GET", headers=headers).json)
        return bool(shown[-1]["status"] not in ("queued", "in_progress"))

    until(is_over)
    assert shown[-1]["status"] == "completed"
    (call,) = shown[-1]["output"]
    assert (call["name"], json.loads(call["arguments"])) == ("get_weather", json.loads(ARGUMENTS))


@pytest.mark.parametrize("fault", ["unavailable", "invalid"])
def test_a_response_over_websocket_has_its_fallback(
    gateway: str, servers: tuple[ModelServer, ModelServer], fault: str
) -> None:
    websockets = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    first, other = servers
    first.plays(FAULTS[fault])
    other.plays(completion(GOOD, size=400))
    path, body = WIRES["responses"]
    headers = {"authorization": f"Bearer {ALL}"}
    with websockets.connect(gateway.replace("http", "ws", 1) + path, additional_headers=headers) as connection:
        connection.send(json.dumps({"type": "response.create", "model": "small", **body}))
        events: list[Any] = []
        while not events or events[-1]["type"] not in ("response.completed", "response.failed", "error"):
            events.append(json.loads(connection.recv(timeout=20)))
    assert events[-1]["type"] == "response.completed", events[-1]
    (call,) = events[-1]["response"]["output"]
    assert (call["name"], json.loads(call["arguments"])) == ("get_weather", json.loads(ARGUMENTS))


def test_each_round_with_a_server_tool_has_its_fallback(servers: tuple[ModelServer, ModelServer]) -> None:
    """The gateway runs a search between two answers of the model; the server fails after it."""
    first, other = servers
    first.plays(calling("tool_search", '{"query": "weather"}'), FAULTS["unavailable"])
    other.plays(completion(GOOD, size=400))
    small = ModelConfig(name="small", upstream=first.url, mode="native", retries=0, fallback=("big",))
    big = ModelConfig(name="big", upstream=other.url, mode="raw", dialect="hermes", server="vllm", constrain="off")
    served = Gateway(Config(models=(small, big)))
    tool = {"type": "function", "name": "get_weather", "parameters": PARAMETERS, "defer_loading": True}
    body = {"model": "small", "input": QUESTION["content"], "tools": [tool, {"type": "tool_search"}]}
    other.plays(completion(f'<tool_call>\n{{"name": "{GOOD}', size=400))
    try:
        reply = request(served.url + "/v1/responses", body)
    finally:
        served.stop()
    assert reply.status == 200, reply.text
    kinds = [item["type"] for item in reply.json["output"]]
    assert kinds == ["tool_search_call", "tool_search_output", "function_call"]
    assert json.loads(reply.json["output"][-1]["arguments"]) == json.loads(ARGUMENTS)
    assert "weather" in other.body["prompt"]  # with the tools found


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_fallback_defers_tools_by_its_own_setting(
    servers: tuple[ModelServer, ModelServer], wire: str, stream: bool
) -> None:
    first, other = servers
    first.plays(FAULTS["unavailable"], FAULTS["unavailable"])
    other.plays(calling("tool_search", '{"query": "move album"}'), calling("move_album", '{"id": 7}'))
    small = ModelConfig(name="small", upstream=first.url, mode="native", fallback=("big",))
    big = ModelConfig(name="big", upstream=other.url, mode="native", defer_tools_above=20)
    served = Gateway(Config(models=(small, big)))
    try:
        reply = ask(served.url, wire, "small", "Hm?", stream=stream)
    finally:
        served.stop()
    assert (len(first.asked), len(other.asked)) == (1, 2)
    assert "tool_search" not in listed(first.body)
    assert "update_calendar" in listed(first.body)
    assert "update_calendar" not in listed(other.asked[0].body)
    assert "move_album" in listed(other.asked[1].body)
    assert "move_album" in reply.text
    assert "tool_search" not in reply.text
    assert reply.headers["x-callwright-fallback"].startswith("big; reason=")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_further_rounds_of_a_turn_ask_the_model_that_answered(
    servers: tuple[ModelServer, ModelServer], wire: str, stream: bool
) -> None:
    first, other = servers
    first.plays(FAULTS["unavailable"], FAULTS["unavailable"], FAULTS["unavailable"])
    searches = [calling("tool_search", json.dumps({"query": query})) for query in ("update calendar", "move album")]
    other.plays(*searches, calling("move_album", '{"id": 7}'))
    small = ModelConfig(name="small", upstream=first.url, mode="native", fallback=("big",), defer_tools_above=20)
    served = Gateway(Config(models=(small, ModelConfig(name="big", upstream=other.url, mode="native"))))
    try:
        reply = ask(served.url, wire, "small", "Hm?", stream=stream)
    finally:
        served.stop()
    assert (len(first.asked), len(other.asked)) == (1, 3)
    assert "update_calendar" in shown(other.asked[2].body)
    assert "move_album" in reply.text
    assert reply.headers["x-callwright-fallback"].startswith("big; reason=")


@pytest.mark.parametrize("stream", [False, True])
def test_rounds_with_a_server_tool_stay_with_the_model_that_answered(
    servers: tuple[ModelServer, ModelServer], stream: bool
) -> None:
    first, other = servers
    first.plays(FAULTS["unavailable"], FAULTS["unavailable"])
    other.plays(calling("tool_search", '{"query": "weather"}'), calling("get_weather", ARGUMENTS))
    small = ModelConfig(name="small", upstream=first.url, mode="native", retries=0, fallback=("down", "big"))
    closed = ClosedPort()
    down = ModelConfig(name="down", upstream=closed.url, mode="native")
    served = Gateway(Config(models=(small, down, ModelConfig(name="big", upstream=other.url, mode="native"))))
    tool = {"type": "function", "name": "get_weather", "parameters": PARAMETERS, "defer_loading": True}
    body = {"model": "small", "input": QUESTION["content"], "tools": [tool, {"type": "tool_search"}], "stream": stream}
    try:
        reply = request(served.url + "/v1/responses", body)
    finally:
        served.stop()
        closed.close()
    assert (len(first.asked), len(other.asked)) == (1, 2)
    assert json.loads(ARGUMENTS)["city"] in reply.text
    assert reply.headers["x-callwright-fallback"].startswith("big; reason=")
