"""A tool of an MCP server as the search engine: which forms of answers are read, and what is not."""

import sys
from typing import Any

import pytest

from callwright.gateway.config.config import McpConfig, SearchConfig
from tests.conftest import Served, scripted_models
from tests.support.messages_client import message_of, user
from tests.support.paths import ROOT
from tests.support.responses_client import respond
from tests.support.servers import ModelServer, calling, said

pytestmark = pytest.mark.clients
SERVER = str(ROOT / "tests" / "clients" / "mcp_search_server.py")
SOURCES = ["web_search_call.action.sources"]


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    pytest.importorskip("mcp.server", reason="the SDK of MCP is not installed")


@pytest.fixture(params=["find"])
def url(request: pytest.FixtureRequest, serve: Served, model: ModelServer) -> str:
    return serve(
        *scripted_models(model.url),
        mcp=(McpConfig(label="web", command=[sys.executable, SERVER]),),
        search=SearchConfig(mcp="web", tool=request.param, timeout_s=30.0),
    )


def searched(url: str, model: ModelServer, query: str, **tool: Any) -> tuple[Any, str]:
    """The item of a search, and what the model has read of it."""
    model.plays(calling("web_search", f'{{"query": "{query}"}}'), said("Well [1]."))
    asked: dict[str, Any] = {
        "model": "native",
        "input": "Hi",
        "tools": [{"type": "web_search", **tool}],
        "include": SOURCES,
    }
    item = respond(url, stream=True, **asked)["output"][0]
    return item, model.asked[-1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("query", "sources", "words"),
    [
        ("json x", ["https://a.example/"], "[1] A\nhttps://a.example/\nAbout A."),
        ("paragraphs x", ["https://a.example/x", "https://b.example/"], "[2] B ( ): about B.\nhttps://b.example/"),
        ("plain x", [], "It rains."),
    ],
)
def test_what_the_tool_answers_is_what_was_found(
    url: str, model: ModelServer, query: str, sources: list[str], words: str
) -> None:
    item, told = searched(url, model, query)
    assert item["status"] == "completed"
    assert [one["url"] for one in item["action"]["sources"]] == sources
    assert words in told


def test_a_text_without_addresses_is_nothing_where_domains_count(url: str, model: ModelServer) -> None:
    item, told = searched(url, model, "plain x", filters={"allowed_domains": ["a.example"]})
    assert item["status"] == "failed"
    assert "cannot be filtered by domain" in told


@pytest.mark.parametrize(
    ("url", "reason"),
    [("find", "has failed"), ("nothing", "no tool 'nothing'"), ("other", "no parameter 'query'")],
    indirect=["url"],
)
def test_a_tool_that_fails_is_a_search_that_fails(
    url: str, model: ModelServer, caplog: pytest.LogCaptureFixture, reason: str
) -> None:
    item, told = searched(url, model, "broken x")
    assert item["status"] == "failed"
    assert told.startswith("Error: the search has failed")
    assert "out of order" not in told
    assert any(reason in record.getMessage() for record in caplog.records)


def test_the_tool_itself_is_not_offered(url: str, model: ModelServer) -> None:
    model.plays(calling("web_search", '{"query": "plain"}'), said("Well."))
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    message = message_of(url, {"model": "native", "messages": [user("Hi")], "tools": tools}, stream=False)
    assert message["content"][1]["content"] == []
    assert [tool["function"]["name"] for tool in model.asked[0].body["tools"]] == ["web_search"]
