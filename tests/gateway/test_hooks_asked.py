"""How often hooks are asked, and about what: choices, tools that the gateway runs, turns over WebSocket, HTTP."""

import hashlib
import hmac
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pytest

from callwright.gateway.config.config import McpConfig, SearchConfig
from callwright.gateway.config.hooks import HookConfig
from callwright.gateway.hooks.ways import SIGNATURE_HEADER
from callwright.hooks import Place
from tests.agent.test_mcp import SERVER
from tests.conftest import Hooked
from tests.gateway.test_doors import connected, last_of_turn
from tests.gateway.test_hooks import ALL, called, hook
from tests.support import hook_functions
from tests.support.http_client import CHAT, request
from tests.support.messages_client import MESSAGES
from tests.support.outputs import ARGUMENTS, QUESTION, TOOLS
from tests.support.responses_client import RESPONSES
from tests.support.search_server import SearchServer
from tests.support.servers import Answer, ClosedPort, Gateway, ModelServer, calling, completion, said, whole

SUM: Final = '{"a": 1, "b": 2}'
SECRET: Final = "a shared secret"
HISTORY: Final = [
    QUESTION,
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
]
FUNCTION: Final = {"type": "function", **TOOLS[0]["function"]}


def asked_at() -> dict[Place, int]:
    """How often the hooks were asked, by place."""
    return dict(Counter(given.place for given in hook_functions.ASKED))


# --- choices ---


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["native", "raw-hermes-vllm"])
@pytest.mark.parametrize("choices", [1, 2, 5])
def test_choices_share_the_questions_about_their_request(
    hooked: Hooked, model: ModelServer, choices: int, name: str, stream: bool
) -> None:
    text = f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
    answer = calling("get_weather", ARGUMENTS) if name == "native" else completion(text)
    model.plays(*[answer] * choices)
    gateway = hooked(hook("allow"))
    body = {"model": name, "messages": HISTORY, "tools": TOOLS, "n": choices, "stream": stream}
    reply = request(gateway.url + CHAT, body)
    assert reply.status == 200
    assert reply.text.count('"finish_reason":"tool_calls"') == choices
    assert asked_at() == {"request": 1, "prompt": 1, "result": 1, "call": choices}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("place", ["request", "prompt"])
@pytest.mark.parametrize("verdict", ["deny", "crash"])
def test_all_choices_are_denied_by_one_verdict(
    hooked: Hooked, model: ModelServer, verdict: str, place: Place, stream: bool
) -> None:
    gateway = hooked(hook(verdict, place), hook("allow", place))
    body = {"model": "native", "messages": [QUESTION], "n": 4, "stream": stream}
    reply = request(gateway.url + CHAT, body)
    assert reply.status == (403 if verdict == "deny" else 503)
    shown = request(f"{gateway.url}/metrics", method="GET").text
    outcome = "deny" if verdict == "deny" else "failed"
    assert f'callwright_hook_verdicts_total{{hook="{verdict}",outcome="{outcome}",place="{place}"}} 1.0' in shown
    assert model.asked == []


def test_each_new_prompt_of_a_request_is_judged(hooked: Hooked, model: ModelServer) -> None:
    gateway = hooked(hook("allow", "request", "prompt"), retries=1)
    model.plays(calling("get_weather", "{}"), calling("get_weather", ARGUMENTS), calling("get_weather", ARGUMENTS))
    body = {"model": "native", "messages": [QUESTION], "tools": TOOLS, "tool_choice": "required", "n": 2}
    assert request(gateway.url + CHAT, body).status == 200
    assert asked_at() == {"request": 1, "prompt": 2}


# --- tools that the gateway runs ---

MCP_TOOL: Final = {"type": "mcp", "server_label": "s", "require_approval": "never"}
# The ways to ask for a sum with the tools of an MCP server.
MCP_WAYS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "chat": (CHAT, {"messages": [QUESTION], "tools": [MCP_TOOL]}),
    "responses": (RESPONSES, {"input": "1 + 2?", "tools": [MCP_TOOL]}),
    "messages": (
        MESSAGES,
        {
            "messages": [QUESTION],
            "max_tokens": 50,
            "mcp_servers": [{"type": "url", "name": "s"}],
            "tools": [{"type": "mcp_toolset", "mcp_server_name": "s"}],
        },
    ),
    "websocket": (RESPONSES, {"input": "1 + 2?", "tools": [MCP_TOOL]}),
}
# The hook and its place; what the model reads as the result, or None if it is not asked again; and the questions.
MCP_CASES: Final[dict[str, tuple[str, tuple[Place, ...], str | None, dict[Place, int]]]] = {
    "allowed": ("allow", ALL, '{"sum":3}', {"request": 1, "prompt": 2, "call": 1, "result": 1}),
    "call changed": ("enlarge", ("call",), '{"sum":7}', {"call": 1}),
    "result changed": ("enlarge", ("result",), 'checked: {"sum":3}', {"result": 1}),
    "both changed": ("enlarge", ALL, 'checked: {"sum":7}', {"request": 1, "prompt": 2, "call": 1, "result": 1}),
    "call denied": ("deny", ("call",), None, {}),
    "call to be approved": ("ask", ("call",), None, {}),
    "result denied": ("deny", ("result",), "The output of this tool was withheld: Not here.", {}),
    "result with a fault": (
        "crash",
        ("result",),
        "The output of this tool was withheld: The hook 'crash' gave no usable answer, so this is not allowed.",
        {},
    ),
    "call with a fault": ("crash", ("call",), None, {}),
    "request denied": ("deny", ("request",), None, {}),
}


def answer_over(gateway: Gateway, way: str, ways: dict[str, tuple[str, dict[str, Any]]], stream: bool) -> str:
    """The text of an answer."""
    path, body = ways[way]
    if way != "websocket":
        return request(gateway.url + path, {"model": "native", "stream": stream, **body}).text
    with connected(gateway) as connection:
        connection.send(json.dumps({"type": "response.create", "model": "native", **body}))
        return json.dumps(last_of_turn(connection))


@pytest.mark.clients
@pytest.mark.processes
@pytest.mark.parametrize("way", MCP_WAYS)
@pytest.mark.parametrize("title", MCP_CASES)
def test_hooks_see_the_calls_and_results_of_mcp_tools(
    hooked: Hooked, model: ModelServer, tmp_path: Path, title: str, way: str
) -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")
    name, places, result, questions = MCP_CASES[title]
    command = [sys.executable, SERVER, "stdio", str(tmp_path)]
    gateway = hooked(hook(name, *places), mcp=(McpConfig(label="s", command=command, timeout_s=10.0),))
    model.plays(calling("s__add", SUM), said("Done."))
    text = answer_over(gateway, way, MCP_WAYS, stream=title == "both changed")
    heard = (tmp_path / "heard").read_text().split() if (tmp_path / "heard").exists() else []
    assert ("Done." in text) == (result is not None)
    assert heard == ([] if result is None else ["add"])
    if result is None:
        assert "Not here." in text or "approve it first" in text or "gave no usable answer" in text
    else:
        assert [one["content"] for one in model.asked[1].body["messages"] if one["role"] == "tool"] == [result]
    assert asked_at() == questions


SEARCH_WAYS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "responses": (RESPONSES, {"input": "High water?", "tools": [{"type": "web_search"}]}),
    "messages": (
        MESSAGES,
        {
            "messages": [QUESTION],
            "max_tokens": 50,
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        },
    ),
    "websocket": (RESPONSES, {"input": "High water?", "tools": [{"type": "web_search"}]}),
}


@pytest.mark.parametrize("way", SEARCH_WAYS)
@pytest.mark.parametrize(
    ("name", "place", "is_run"),
    [("allow", "call", True), ("deny", "call", False), ("allow", "result", True), ("deny", "result", True)],
)
def test_hooks_see_the_searches_of_the_gateway(
    hooked: Hooked, model: ModelServer, name: str, place: Place, is_run: bool, way: str
) -> None:
    engine = SearchServer()
    engine.finds()
    gateway = hooked(hook(name, place), search=SearchConfig(url=engine.url, timeout_s=10.0))
    model.plays(calling("web_search", '{"query": "tides"}'), said("At six."))
    text = answer_over(gateway, way, SEARCH_WAYS, stream=False)
    assert engine.queries == (["tides"] if is_run else [])
    assert ("At six." in text) == is_run
    if is_run:
        result = model.asked[1].body["messages"][-1]["content"]
        assert ("Tides at Oban" in result) == (name == "allow")
    assert asked_at() == ({place: 1} if name == "allow" else {})
    engine.stop()


# --- over a WebSocket ---


def test_each_turn_over_a_websocket_is_a_request(hooked: Hooked, model: ModelServer) -> None:
    gateway = hooked(hook("allow"))
    model.plays(*[calling("get_weather", ARGUMENTS)] * 3)
    with connected(gateway) as connection:
        for number in range(1, 4):
            turn = {"type": "response.create", "model": "native", "input": f"Turn {number}", "tools": [FUNCTION]}
            connection.send(json.dumps(turn))
            assert last_of_turn(connection)["response"]["output"][0]["arguments"] == ARGUMENTS
            assert asked_at() == {"request": number, "prompt": number, "call": number}


@pytest.mark.parametrize(
    ("name", "place", "words"),
    [
        ("deny", "request", "Not here."),
        ("deny", "prompt", "Not here."),
        ("deny", "call", "The call of 'get_weather' was not made: Not here."),
        ("ask", "call", "a person must approve it first"),
        ("crash", "request", "gave no usable answer"),
        ("crash", "prompt", "gave no usable answer"),
        ("crash", "call", "gave no usable answer"),
    ],
)
def test_a_turn_over_a_websocket_can_be_denied_and_the_next_one_allowed(
    hooked: Hooked, model: ModelServer, name: str, place: Place, words: str
) -> None:
    gateway = hooked(hook(name, place, models=("native",)))
    turn = {"type": "response.create", "input": "Hi", "tools": [FUNCTION]}
    model.plays(*[calling("get_weather", ARGUMENTS)] * 2)
    with connected(gateway) as connection:
        connection.send(json.dumps({**turn, "model": "native"}))
        last = last_of_turn(connection)
        assert words in json.dumps(last)
        assert ARGUMENTS not in json.dumps(last.get("response", {}).get("output"))
        connection.send(json.dumps({**turn, "model": "prompt-hermes"}))
        assert last_of_turn(connection)["response"]["status"] == "completed"


# --- over HTTP ---


def test_a_signature_is_that_of_the_body_and_its_time(
    hooked: Hooked, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    judge = ModelServer()
    judge.plays(*[whole("", 204)] * 4)
    gateway = hooked(HookConfig(name="far", url=judge.url, secret_env="HOOK_SECRET", places=ALL))
    model.plays(calling("get_weather", ARGUMENTS))
    began = int(time.time())
    body = {"model": "native", "messages": HISTORY, "tools": TOOLS}
    assert request(gateway.url + CHAT, body).status == 200
    assert [given.body["place"] for given in judge.asked] == ["request", "result", "prompt", "call"]
    for given in judge.asked:
        parts = dict(part.split("=") for part in given.headers[SIGNATURE_HEADER].split(","))
        signed = hmac.new(SECRET.encode(), parts["t"].encode() + b"." + given.raw, hashlib.sha256)
        assert parts.keys() == {"t", "v1"}
        assert parts["v1"] == signed.hexdigest()
        assert began <= int(parts["t"]) <= time.time()
    judge.stop()


Fault: TypeAlias = Literal["deadline", "status 500", "not JSON", "an unknown action", "reset", "refused"]
FAULTS: Final[dict[str, Answer | None]] = {
    "deadline": Answer(("silence",)),
    "status 500": whole({"action": "allow"}, 500),
    "not JSON": whole("allowed"),
    "an unknown action": whole({"action": "permit"}),
    "reset": Answer(("reset",)),
    "refused": None,
}
# The status, and whether the call is in the answer, if a hook fails closed.
CLOSED: Final[dict[Place, tuple[int, bool]]] = {
    "request": (503, False),
    "prompt": (503, False),
    "call": (200, False),
    "result": (200, True),  # the model reads that the result was withheld
}


@pytest.mark.parametrize("place", ALL)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("on_failure", ["open", "closed"])
def test_a_server_that_fails_denies_or_allows_as_it_is_set(
    hooked: Hooked, model: ModelServer, on_failure: Literal["open", "closed"], fault: str, place: Place
) -> None:
    judge, closed = ModelServer(), ClosedPort()
    if (answer := FAULTS[fault]) is not None:
        judge.plays(answer)
    far = HookConfig(
        name="far",
        url=judge.url if answer is not None else f"{closed.url}/check",
        places=(place,),
        deadline_s=0.3,
        on_failure=on_failure,
    )
    gateway = hooked(far)
    model.plays(calling("get_weather", ARGUMENTS))
    reply = request(gateway.url + CHAT, {"model": "native", "messages": HISTORY, "tools": TOOLS})
    status, is_called = (200, True) if on_failure == "open" else CLOSED[place]
    assert reply.status == status
    assert called(reply) == ([ARGUMENTS] if is_called else [])
    if place == "result":
        result = model.asked[0].body["messages"][-1]["content"]
        assert result == "rain" if on_failure == "open" else "was withheld" in result
    if status == 503:
        assert (reply.error["code"], model.asked) == ("hook_failed", [])
    assert len(judge.asked) == (answer is not None)
    judge.stop()
    closed.close()
