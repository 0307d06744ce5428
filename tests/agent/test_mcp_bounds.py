"""An MCP server that sends too much is read no further, over both transports, and the others go on."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from callwright.cli.chat.background import Background
from callwright.errors import ConfigError
from callwright.gateway.config.config import Config, McpConfig, ModelConfig
from callwright.settings.bounds import Bounds
from tests.agent.test_mcp import connected, outcome
from tests.support.bounded import bounded
from tests.support.http_client import request
from tests.support.paths import ROOT
from tests.support.responses_client import RESPONSES
from tests.support.servers import Gateway, ModelServer, calling, said

pytestmark = pytest.mark.clients

LIAR = str(ROOT / "tests" / "clients" / "lying_mcp_server.py")
SMALL = Bounds(max_answer_bytes=1_000_000)
Target = str | list[str]
both = pytest.mark.parametrize("how", ["stdio", "http"])


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with bounded(MAX_ANSWER_VALUES=20_000, MAX_SCHEMA_BYTES=50_000, MAX_SCHEMA_PARTS=100, MAX_PATTERN_SIZE=200):
        yield


@pytest.fixture
def background() -> Iterator[Background]:
    with Background() as background:
        yield background


@pytest.fixture
def liar() -> Iterator[Callable[[str, str], Target]]:
    """Where a server is that lies in some way: its command, or its URL."""
    started: list[subprocess.Popen[str]] = []

    def target(how: str, tools: str) -> Target:
        command = [sys.executable, LIAR, how, tools]
        if how == "stdio":
            return command
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started.append(process)
        assert process.stdout is not None
        return f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"

    yield target
    for process in started:
        process.kill()
        process.communicate(timeout=10)


LISTS = {
    "endless": "sent more than 1,000,000 bytes in one answer (`max_answer_bytes`)",
    "pages": "its list of tools does not end: expected at most 100 pages, got more",
    "large": "its tools take more than 50,000 bytes",
    "parts": "the schema of its tool 'f': expected at most 100 parts with all references followed, got more",
    "patterns": "the schema of its tool 'f': expected patterns of at most 200 characters",
}


@both
@pytest.mark.parametrize("tools", LISTS)
def test_a_list_of_tools_is_bounded(
    background: Background, liar: Callable[[str, str], Target], how: str, tools: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        connected(background, liar(how, tools), bounds=SMALL)
    assert LISTS[tools] in str(refused.value)


@both
def test_an_answer_to_a_call_is_bounded_and_the_next_call_runs(
    background: Background, liar: Callable[[str, str], Target], how: str
) -> None:
    tools = connected(background, liar(how, "fair"), bounds=SMALL, timeout_s=5.0)
    for name, arguments, told in (
        ("endless", {}, "sent more than 1,000,000 bytes in one answer (`max_answer_bytes`)."),
        ("values", {}, "sent more than 20,000 values in one answer."),
        *([("endless", {"stream": True}, "sent more than 1,000,000 bytes in one answer")] if how == "http" else []),
    ):
        ended = outcome(background, tools, name, arguments)
        assert ended.status == "failed"
        assert told in ended.text
        assert outcome(background, tools, "honest").text == "honestly"


def test_an_answer_that_is_deep_is_refused(background: Background, liar: Callable[[str, str], Target]) -> None:
    tools = connected(background, liar("http", "fair"), bounds=SMALL)
    assert outcome(background, tools, "deep").status == "failed"
    assert outcome(background, tools, "honest").text == "honestly"


@both
def test_a_server_that_talks_without_end_has_so_much_time_and_no_more(
    background: Background, liar: Callable[[str, str], Target], how: str
) -> None:
    tools = connected(background, liar(how, "fair"), timeout_s=0.3)
    assert outcome(background, tools, "chatty").status == "timeout"


def test_the_gateway_holds_its_servers_to_its_own_bounds(
    model: ModelServer, liar: Callable[[str, str], Target]
) -> None:
    servers = tuple(McpConfig(label=name, command=[sys.executable, LIAR, "stdio", name]) for name in ("fair", "parts"))
    models = (ModelConfig(name="native", upstream=model.url, mode="native"),)
    gateway = Gateway(Config(models=models, limits=SMALL, mcp=servers))
    asked: dict[str, Any] = {"model": "native", "input": "Hi"}
    tools = {name: [{"type": "mcp", "server_label": name, "require_approval": "never"}] for name in ("fair", "parts")}
    try:
        refused = request(gateway.url + RESPONSES, {**asked, "tools": tools["parts"]})
        assert refused.status == 424
        assert LISTS["parts"] in refused.error["message"]
        model.plays(calling("fair__endless", "{}"), said("Oh."))
        call = request(gateway.url + RESPONSES, {**asked, "tools": tools["fair"]}).json["output"][1]
        assert "sent more than 1,000,000 bytes" in str(call["error"])
    finally:
        gateway.stop()
