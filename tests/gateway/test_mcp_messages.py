"""MCP servers in the Messages API: a real one of the official SDK, whose tools are run for a scripted model."""

import sys
from pathlib import Path
from typing import Any

import pytest

from callwright.gateway.config.config import McpConfig
from tests.agent.test_mcp import SERVER
from tests.conftest import Served, scripted_models
from tests.support.http_client import request
from tests.support.messages_client import MESSAGES, message_of, user
from tests.support.servers import ModelServer, call_deltas, calling, chat, said

pytestmark = pytest.mark.clients
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
SUM = '{"a": 1, "b": 2}'
ASKED: dict[str, Any] = {
    "model": "native",
    "messages": [user("What is 1 + 2?")],
    "mcp_servers": [{"type": "url", "name": "s"}],
    "tools": [{"type": "mcp_toolset", "mcp_server_name": "s"}],
}


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture
def url(serve: Served, model: ModelServer, folder: Path) -> str:
    """A gateway that may use the server `s`."""
    command = [sys.executable, SERVER, "stdio", str(folder)]
    return serve(*scripted_models(model.url), mcp=(McpConfig(label="s", command=command, timeout_s=10.0),))


@STREAMED
def test_a_tool_is_run_and_the_answer_shows_call_and_result(url: str, model: ModelServer, stream: bool) -> None:
    model.plays(calling("s__add", SUM), said("It is 3."))
    message = message_of(url, ASKED, stream=stream)
    use, result, text = message["content"]
    assert (use["type"], use["server_name"], use["name"]) == ("mcp_tool_use", "s", "add")
    assert use["input"] == {"a": 1, "b": 2}
    assert (result["type"], result["tool_use_id"]) == ("mcp_tool_result", use["id"])
    assert (result["is_error"], result["content"]) == (
        False,
        [{"type": "text", "text": '{"sum":3}', "citations": []}],
    )
    assert (text["text"], message["stop_reason"]) == ("It is 3.", "end_turn")
    # and in the next turn the model sees both again
    model.plays(said("Gladly."))
    history = [*ASKED["messages"], {"role": "assistant", "content": message["content"]}, user("Thanks")]
    message_of(url, {**ASKED, "messages": history}, stream=stream)
    shown = model.asked[-1].body["messages"]
    assert [each["role"] for each in shown] == ["user", "assistant", "tool", "assistant", "user"]
    assert shown[2]["content"] == '{"sum":3}'


@STREAMED
def test_calls_of_the_client_end_the_answer(url: str, model: ModelServer, stream: bool) -> None:
    here = call_deltas("s__add", SUM)
    there = call_deltas("read", '{"path": "a"}', index=1, id_="call_up_1")
    model.plays(chat(*here, *there, finish="tool_calls"))
    read = {"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
    message = message_of(url, {**ASKED, "tools": [*ASKED["tools"], read]}, stream=stream)
    assert [block["type"] for block in message["content"]] == ["mcp_tool_use", "mcp_tool_result", "tool_use"]
    assert message["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("toolset", "offered"),
    [
        ({"default_config": {"enabled": False}, "configs": {"add": {"enabled": True}}}, {"s__add"}),
        ({"configs": {"add": {"enabled": False}}}, None),
    ],
)
def test_only_what_the_request_enables_is_offered(
    url: str, model: ModelServer, toolset: dict[str, Any], offered: set[str] | None
) -> None:
    model.plays(said("Hi"))
    message_of(url, {**ASKED, "tools": [{**ASKED["tools"][0], **toolset}]}, stream=False)
    names = {tool["function"]["name"] for tool in model.body["tools"]}
    assert names == offered if offered else "s__add" not in names and names


def test_a_server_that_is_not_configured_is_refused(url: str) -> None:
    body = {"max_tokens": 50, **ASKED, "mcp_servers": [{"type": "url", "name": "t", "url": "https://example.com/mcp"}]}
    reply = request(url + MESSAGES, {**body, "tools": []})
    assert (reply.status, reply.json["error"]["type"]) == (400, "invalid_request_error")
    assert "mcp_servers[0]" in reply.json["error"]["message"]
