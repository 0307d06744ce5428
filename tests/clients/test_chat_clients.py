"""Real client libraries against a started gateway: each holds a conversation of two turns, in every way of asking.

The simulated model answers in each dialect and mode, the scripted server with what gpt-oss and Qwen models write.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from callwright.gateway.config.config import ServerConfig, simulated_config
from tests import conftest
from tests.conftest import Served
from tests.support import outputs
from tests.support.outputs import played
from tests.support.paths import ROOT
from tests.support.sdk_conversations import QUESTION, RESULT, talk_with_pydantic_ai
from tests.support.servers import ModelServer

pytestmark = pytest.mark.clients

PAGE = ROOT / "docs" / "clients.md"
SCRIPT = ROOT / "tests" / "clients" / "openai_two_turns.py"
STYLES = 3  # in which the script asks each model

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
simulated_ways = pytest.mark.parametrize("way", conftest.WAYS)
scripted_ways = pytest.mark.parametrize(
    "way", ["native", "prompt-hermes", "raw-hermes-vllm", "raw-harmony-vllm", "raw-harmony-llamacpp"]
)


def interpreters() -> list[Any]:
    """Python with openai 3.x, which runs this test, and with 2.x."""
    other = os.environ.get("CALLWRIGHT_OPENAI2_PYTHON", "")
    reason = "CALLWRIGHT_OPENAI2_PYTHON names no Python with openai 2.x"
    return [
        pytest.param(sys.executable, "3.", id="openai 3"),
        pytest.param(other, "2.", id="openai 2", marks=pytest.mark.skipif(not other, reason=reason)),
    ]


def run_script(python: str, major: str, base_url: str, *models: str, script: Path = SCRIPT) -> None:
    if python == sys.executable:
        pytest.importorskip("openai", reason="the openai package is not installed")
    code = f"import openai, sys; sys.exit(not openai.__version__.startswith({major!r}))"
    assert subprocess.run([python, "-c", code], check=False).returncode == 0, f"{python} has no openai {major}x"
    done = subprocess.run(
        [python, "-W", "error", str(script), f"{base_url}/v1", *models],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


@pytest.mark.parametrize(
    ("section", "package", "printed"),
    [("LangChain", "langchain_openai", "'city': 'Paris'"), ("OpenAI Agents SDK", "agents", "18 degrees in Paris")],
)
def test_the_page_of_clients_works_as_printed(serve: Served, section: str, package: str, printed: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]  # the rest shows its problems
    code = code.replace("http://127.0.0.1:8642", serve(*simulated_config(ServerConfig()).models))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


@pytest.mark.parametrize(("python", "major"), interpreters())
def test_the_openai_package_talks_with_the_simulated_model(simulated: str, python: str, major: str) -> None:
    run_script(python, major, simulated, *conftest.WAYS)


@pytest.mark.parametrize(("python", "major"), interpreters())
def test_the_openai_package_gets_completions_and_embeddings(simulated: str, python: str, major: str) -> None:
    run_script(python, major, simulated, "raw-hermes", script=SCRIPT.with_name("openai_other_endpoints.py"))


@pytest.mark.parametrize(("python", "major"), interpreters())
def test_the_openai_package_talks_with_real_outputs(gateway: str, model: ModelServer, python: str, major: str) -> None:
    turns = [played(way, what) for way in outputs.WAYS for _ in range(STYLES) for what in ("call", "text")]
    model.plays(*turns)
    run_script(python, major, gateway, *outputs.WAYS)
    assert len(model.asked) == len(turns)


# --- langchain-openai ---


def talk_with_langchain(base_url: str, name: str, *, stream: bool) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    import openai
    from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
    from langchain_core.tools import tool

    asked: list[str] = []

    @tool  # type: ignore[untyped-decorator]
    def get_weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return RESULT

    def ask(chat: Any, *messages: Any) -> Any:
        if not stream:
            return chat.invoke(messages)
        answer: AIMessageChunk | None = None
        for chunk in chat.stream(messages):
            answer = chunk if answer is None else answer + chunk
        return answer

    with openai.DefaultHttpxClient() as client:
        model = langchain.ChatOpenAI(
            model=name, base_url=f"{base_url}/v1", api_key="any", max_retries=0, stream_usage=True, http_client=client
        )
        chat = model.bind_tools([get_weather])
        question = HumanMessage(QUESTION)
        first = ask(chat, question)
        (call,) = first.tool_calls
        result = get_weather.invoke(call)
        last = ask(chat, question, first, result)
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Paris"})
    assert not first.invalid_tool_calls
    assert first.response_metadata["finish_reason"] == "tool_calls"
    assert isinstance(result, ToolMessage)
    assert asked == ["Paris"]
    assert "18 °C" in last.content
    assert not last.tool_calls
    assert last.response_metadata["finish_reason"] == "stop"
    assert last.usage_metadata["total_tokens"] > 0


@both
@simulated_ways
def test_langchain_talks_with_the_simulated_model(simulated: str, way: str, stream: bool) -> None:
    talk_with_langchain(simulated, way, stream=stream)


@both
@scripted_ways
def test_langchain_talks_with_real_outputs(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "call"), played(way, "text"))
    talk_with_langchain(gateway, way, stream=stream)
    assert len(model.asked) == 2


# --- pydantic-ai ---


@both
@simulated_ways
def test_pydantic_ai_talks_with_the_simulated_model(simulated: str, way: str, stream: bool) -> None:
    talk_with_pydantic_ai(simulated, way, "OpenAIChatModel", stream=stream)


@both
@scripted_ways
def test_pydantic_ai_talks_with_real_outputs(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "call"), played(way, "text"))
    talk_with_pydantic_ai(gateway, way, "OpenAIChatModel", stream=stream)
    assert len(model.asked) == 2
