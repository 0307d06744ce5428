"""MCP servers as tools: real ones of the official SDK, over both transports, driven by agents."""

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import callwright
from callwright.agent.events import RunResult, ToolEnded, ToolProgress
from callwright.agent.mcp.tools import mcp_tools
from callwright.agent.tools import Tool
from callwright.cli.chat.background import Background
from callwright.errors import ConfigError
from tests.support import scripted_agents as running
from tests.support.paths import ROOT
from tests.support.servers import ModelServer, whole

pytestmark = pytest.mark.clients

SERVER = str(ROOT / "tests" / "clients" / "mcp_server.py")
LEGACY = str(ROOT / "tests" / "clients" / "codex_mcp_demo.py")
BROKE = "The connection to the tool's server broke. The call may still have taken effect."


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")


@pytest.fixture
def background() -> Iterator[Background]:
    with Background() as background:
        yield background


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
def loop(_sdk: None) -> Iterator[Background]:
    with Background() as background:
        yield background


@pytest.fixture(scope="module")
def tools(loop: Background, folder: Path) -> Mapping[str, Tool]:
    """Those of one server, started once, by the server's own names."""
    return connected(loop, [sys.executable, SERVER, "stdio", str(folder)])


def connected(background: Background, server: str | Sequence[str], **how: Any) -> dict[str, Tool]:
    found = background.enter(mcp_tools(server, name="s", approve=False, **how))
    return {tool.name.removeprefix("s__"): tool for tool in found}


def called(background: Background, tools: Mapping[str, Tool], *calls: tuple[str, Any]) -> RunResult:
    """A run whose model makes these calls at once, and then is content."""
    named = [(f"s__{name}", arguments) for name, arguments in calls]
    agent = running.agent(named, "Good.", tools=list(tools.values()))
    return background.call(callwright.run(agent, "Go on"))


def outcome(background: Background, tools: Mapping[str, Tool], name: str, arguments: Any = None) -> ToolEnded:
    (ended,) = called(background, tools, (name, arguments or {})).calls
    return ended


def heard(folder: Path) -> list[str]:
    return (folder / "heard").read_text().split() if (folder / "heard").exists() else []


# --- the tools ---


def test_the_tools_are_sorted_and_carry_what_the_server_says_of_them(tools: Mapping[str, Tool]) -> None:
    names = list(tools)
    assert names == sorted(names)
    add = tools["add"].definition
    assert (add.name, add.description) == ("s__add", "Add two numbers.")
    assert add.parameters is not None
    assert add.parameters["required"] == ["a", "b"]


def test_names_that_openai_would_not_take_get_others_and_stay_apart(
    tools: Mapping[str, Tool], loop: Background
) -> None:
    long = [name for name in tools if name.startswith("long_")]
    assert len(long) == 2
    assert all(len(f"s__{name}") == 64 for name in long)
    assert [outcome(loop, tools, name, {"self": name}).text for name in long] == [f"self={name}" for name in long]


def test_without_a_name_the_tools_are_called_after_the_server_and_only_readers_run_unasked(
    background: Background, tmp_path: Path
) -> None:
    found = background.enter(mcp_tools([sys.executable, SERVER, "stdio", str(tmp_path)]))
    assert all(tool.name.startswith("test_server__") for tool in found)
    unasked = {tool.name.removeprefix("test_server__") for tool in found if not tool.options.approve}
    assert unasked == {"add", "say", "show"}


# --- results ---

ALL_KINDS = """\
Look:
[image below]
[audio below]
[audio/ogg, 15 bytes]
notes: file:///notes.txt
inside a
[file:///b.bin: application/zip, 15 bytes]"""
RESULTS: dict[str, tuple[str, Any, str, list[str]]] = {
    "a structured value": ("add", {"a": 1, "b": 2}, '{"sum":3}', []),
    "text": ("say", {"self": "x", "context": "y"}, "self=x\ncontext=y", []),
    "nothing": ("nothing", {}, "done", []),
    "a text that the SDK wrapped": ("wrapped", {"value": "Oslo"}, "Oslo", []),
    "a number that the SDK wrapped": ("wrapped", {"value": 4}, "4", []),
    "a list that the SDK wrapped": ("wrapped", {"value": ["a", {"b": 1}]}, '["a",{"b":1}]', []),
    "a result that is one": ("wrapped", {"value": "Oslo", "says": "It is Oslo."}, '{"result":"Oslo"}', []),
    "a value and an image": ("measure", {}, '{"height":7}\n[image below]', ["image_url"]),
    "all kinds": (
        "show",
        {},
        ALL_KINDS,
        ["image_url", "input_audio"],
    ),
}


@pytest.mark.parametrize("case", RESULTS)
def test_each_kind_of_result_reaches_the_model(loop: Background, tools: Mapping[str, Tool], case: str) -> None:
    name, arguments, text, media = RESULTS[case]
    result = called(loop, tools, (name, arguments))
    (ended,) = result.calls
    assert (ended.status, ended.text) == ("ok", text)
    assert [part.value["type"] for part in ended.media] == media
    running.check_history(result.to_messages())


FAILURES = {
    "an error of the tool": ("refuse", "no such city"),
    "an exception in the server": ("fail", "Internal server error"),
    "a value against the tool's own schema": ("lie", "'many' is not of type 'integer'"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failures_are_outcomes_that_the_model_reads(loop: Background, tools: Mapping[str, Tool], case: str) -> None:
    name, words = FAILURES[case]
    ended = outcome(loop, tools, name)
    assert ended.status == "failed"
    assert words in ended.text


def test_the_server_never_hears_of_calls_that_do_not_fit(
    loop: Background, tools: Mapping[str, Tool], folder: Path
) -> None:
    before = heard(folder).count("add")
    for arguments in ({"a": "one", "b": 2}, {"a": 1}, {"a": 1, "b": 2, "c": 3}):
        ended = outcome(loop, tools, "add", arguments)
        assert ended.status == "retry"
        assert "this call was not run" in ended.text
    assert heard(folder).count("add") == before


def test_calls_run_side_by_side(loop: Background, tools: Mapping[str, Tool]) -> None:
    calls = [("add", {"a": number, "b": 0}) for number in range(8)]
    result = called(loop, tools, *calls)
    assert [ended.value for ended in result.calls] == [{"sum": number} for number in range(8)]


def test_progress_is_told_and_a_cancelled_run_cancels_the_call_in_the_server(
    loop: Background, tools: Mapping[str, Tool], folder: Path
) -> None:
    agent = running.agent([("s__wait", {})], tools=list(tools.values()))

    async def cancelled() -> list[Any]:
        cancel = asyncio.Event()
        progress = []
        async for event in callwright.stream(agent, "Wait", cancel=cancel):
            if isinstance(event, ToolProgress):
                progress.append(event.value)
                cancel.set()
        return progress

    assert loop.call(cancelled()) == [{"progress": 1.0, "total": 3.0, "message": "waiting"}]
    outcome(loop, tools, "nothing")
    assert heard(folder)[-4:] == ["wait", "was", "cancelled", "nothing"]


def test_a_call_that_takes_too_long_is_cancelled_in_the_server(
    loop: Background, tools: Mapping[str, Tool], folder: Path
) -> None:
    limits = callwright.Limits(tool_timeout_s=0.2)
    agent = running.agent([("s__wait", {})], "Oh.", tools=list(tools.values()), limits=limits)
    (ended,) = loop.call(callwright.run(agent, "Wait")).calls
    assert ended.status == "timeout"
    assert outcome(loop, tools, "nothing").status == "ok"
    assert heard(folder)[-4:] == ["wait", "was", "cancelled", "nothing"]


# --- servers that end ---


def test_a_server_that_dies_is_started_again_and_a_call_is_repeated_only_where_that_does_no_harm(
    background: Background, tmp_path: Path
) -> None:
    tools = connected(background, [sys.executable, SERVER, "stdio", str(tmp_path)])
    ended = outcome(background, tools, "die")
    assert (ended.status, ended.text) == ("failed", BROKE)
    assert heard(tmp_path) == ["die"]
    assert outcome(background, tools, "die_once").text == "alive"
    assert heard(tmp_path) == ["die", "die_once", "die_once"]


def test_a_tool_that_has_changed_since_is_not_run(background: Background, tmp_path: Path) -> None:
    tools = connected(background, [sys.executable, SERVER, "stdio", str(tmp_path)])
    (tmp_path / "changed").touch()
    outcome(background, tools, "die")
    ended = outcome(background, tools, "add", {"a": 1, "b": 2})
    assert ended.status == "failed"
    assert "has changed or removed this tool" in ended.text
    assert outcome(background, tools, "nothing").status == "ok"
    assert heard(tmp_path) == ["die", "nothing"]


def test_at_the_end_the_process_is_gone(tmp_path: Path) -> None:
    with Background() as background:
        command = f"GIVEN=1 {shlex.join([sys.executable, SERVER, 'stdio', str(tmp_path)])}"
        os.environ["NOT_GIVEN"] = "1"
        try:
            tools = connected(background, command)
        finally:
            del os.environ["NOT_GIVEN"]
        environment, pid = outcome(background, tools, "surroundings").text.splitlines()
    assert environment == "{'GIVEN': '1', 'NOT_GIVEN': None}"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


# --- HTTP ---


class HttpServer:
    """The server in a process of its own; it can be ended and started again at the same port."""

    def __init__(self, folder: Path, *more: str) -> None:
        self._rest = (str(folder), *more)
        self._port = "0"
        self.start()
        self.url = f"http://127.0.0.1:{self._port}/mcp"

    def start(self) -> None:
        command = [sys.executable, SERVER, "http", self._port, *self._rest]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        self._port = self._process.stdout.readline().strip()
        assert self._port

    def end(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=10)


@pytest.mark.parametrize("kind", [(), ("legacy",)], ids=["2026", "with sessions"])
def test_over_http_a_server_may_go_and_come_back(
    background: Background, tmp_path: Path, kind: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    server = HttpServer(tmp_path, *kind)
    try:
        tools = connected(background, server.url)
        assert outcome(background, tools, "add", {"a": 1, "b": 2}).value == {"sum": 3}
        assert outcome(background, tools, "refuse").text == "no such city"
        server.end()
        server.start()
        assert outcome(background, tools, "nothing").status == "ok"
        server.end()
        ended = outcome(background, tools, "nothing")
        assert (ended.status, ended.text) == (
            "failed",
            "The tool's server cannot be reached. The call was not run.",
        )
        server.start()
        assert [one.status for one in called(background, tools, *[("nothing", {})] * 2).calls] == ["ok", "ok"]
        assert heard(tmp_path) == ["add", "refuse", *["nothing"] * 3]
    finally:
        server.end()


# --- other servers ---


def test_a_server_of_an_older_protocol_is_understood(background: Background) -> None:
    tools = connected(background, [sys.executable, LEGACY, "2"])
    assert list(tools) == ["get_weather", "twin_0", "twin_1"]
    assert outcome(background, tools, "get_weather", {"city": "Oslo"}).text == "18 degrees in Oslo"


def test_a_real_server_is_driven_by_the_simulated_model(background: Background) -> None:
    pytest.importorskip("mcp_server_time", reason="mcp-server-time is not installed")
    found = background.enter(mcp_tools([sys.executable, "-m", "mcp_server_time"], name="time"))
    agent = callwright.Agent(model="simulated", tools=found)
    question = 'What is the current time in timezone "Europe/Oslo"?'
    result = background.call(callwright.run(agent, question))
    assert [(ended.name, ended.status) for ended in result.calls] == [("time__get_current_time", "ok")]
    assert result.calls[0].value["timezone"] == "Europe/Oslo"
    assert "Europe/Oslo" in result.text
    wrong = running.agent([("time__get_current_time", {"timezone": "Mars/Base"})], "Oh.", tools=found)
    (ended,) = background.call(callwright.run(wrong, "Go on")).calls
    assert (ended.status, "Mars/Base" in ended.text) == ("failed", True)


# --- what cannot be used ---

SILENT = [sys.executable, "-c", "import time; time.sleep(60)"]
SAYS_WHY = [sys.executable, "-c", "import sys; sys.exit('no token in TOKEN')"]
REFUSED: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "nothing": ("", {}, ("python server.py", "URL")),
    "only an assignment": ("KEY=value", {}, ("Got nothing",)),
    "a quote that is open": ("run 'it", {}, ("cannot be read", "quotation")),
    "a program that is not there": ("no-such-server", {}, ("'no-such-server' is not on the PATH", "its full path")),
    "a program that uv brings": ("uvx mcp-server-time", {"env": {"PATH": ""}}, ("'uvx'", "uvx comes with uv")),
    "a file that is not there": ("/no/such/server", {}, ("the program '/no/such/server' does not exist.",)),
    "a folder that is not there": ("run", {"cwd": "/no/such"}, ("the folder '/no/such'", "does not exist")),
    "a program that ends": (SAYS_WHY, {}, ("Connection closed", "no token in TOKEN")),
    "a program that is silent": (SILENT, {"connect_timeout_s": 0.2}, ("did not answer within 0.2 s",)),
    "a URL with an environment": ("http://a/mcp", {"env": {"A": "b"}}, ("env", "URL")),
    "a command with headers": ("run", {"headers": {"A": "b"}}, ("headers", "env")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_told_at_the_start(background: Background, case: str) -> None:
    server, how, words = REFUSED[case]
    with pytest.raises(ConfigError) as raised:
        connected(background, server, **how)
    told = " ".join((str(raised.value), *getattr(raised.value, "__notes__", ())))
    assert not [word for word in words if word not in told], told


def test_a_url_that_refuses_is_told_without_its_password(background: Background, closed_port: str) -> None:
    url = closed_port.replace("http://", "http://user:hush@")
    with pytest.raises(ConfigError, match="cannot be used") as raised:
        connected(background, url)
    assert "hush" not in str(raised.value)


KEY = "sk-0123456789"
# What stands in the URL and in the headers of a server that lets nobody in, and what is told of it.
LOCKED: dict[str, tuple[str, dict[str, str], str]] = {
    "a wrong key": ("/mcp", {"authorization": f"Bearer {KEY}"}, "it refused the credentials (HTTP 401)"),
    "no key": ("/mcp", {}, "it refused the request without any (HTTP 401)"),
    "a key in the path": (f"/s/{KEY}/mcp", {}, "HTTP 401"),
    "a key in the query": (f"/mcp?key={KEY}", {}, "HTTP 401"),
}


@pytest.mark.parametrize("case", LOCKED)
def test_a_server_that_lets_nobody_in_says_401_and_no_key_is_shown(
    background: Background, model: ModelServer, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, headers, words = LOCKED[case]
    model.plays(*[whole({"error": f"no access with {KEY}"}, 401)] * 8)
    with caplog.at_level("INFO"), pytest.raises(ConfigError) as raised:
        connected(background, model.url.removesuffix("/v1") + path, headers=headers)
    told = str(raised.value)
    assert words in told
    assert "127.0.0.1" in told
    assert KEY not in told
    assert KEY not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("callwright"))


def test_without_the_sdk_it_is_said_how_to_install_it(background: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ConfigError, match=r"mcp is missing\. Install it: .* -m pip install '.*\[mcp\]'"):
        connected(background, "anything")


def test_in_another_event_loop_the_tools_say_so(loop: Background, tools: Mapping[str, Tool]) -> None:
    agent = running.agent([("s__nothing", {})], "Good.", tools=list(tools.values()))
    (ended,) = callwright.run_sync(agent, "Go on").calls
    assert ended.status == "failed"
    assert "event loop" in ended.text
