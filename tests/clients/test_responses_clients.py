"""Real client libraries against `/v1/responses` of a started gateway, and custom tools in the Chat API.

The simulated model answers in each dialect and mode, the scripted server with what gpt-oss and Qwen models write.
"""

import asyncio
import functools
import json
import operator
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import callwright
from tests import conftest
from tests.clients.node import run_node
from tests.clients.test_chat_clients import both, interpreters, scripted_ways, simulated_ways
from tests.support import outputs
from tests.support.outputs import FEW_WAYS, played, spoken
from tests.support.paths import ROOT
from tests.support.sdk_conversations import QUESTION, RESULT, talk_with_pydantic_ai
from tests.support.servers import Answer, ModelServer, calling

pytestmark = pytest.mark.clients

CLIENTS = ROOT / "tests" / "clients"
PATIENCE_S = 120
SIGHT = 'How high is the "Eiffel Tower", which has 330 m?'
EIFFEL = {"place": "Eiffel Tower", "height": 330}
HTTP = "OpenAIResponsesModel"
CONVERSATIONS = 6  # that each script holds with each model


def sight() -> Any:
    """A class that answers are parsed into."""
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    return pydantic.create_model("Sight", __doc__="Something to see.", place=(str, ...), height=(int, ...))


def run(*command: str, env: Mapping[str, str] | None = None) -> None:
    """Run a script, which must have nothing to say."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env={**os.environ, **(env or {})}
    )
    assert done.returncode == 0, done.stderr or done.stdout
    assert not done.stderr


# --- openai ---


def run_openai(python: str, base_url: str, what: str, *models: str) -> None:
    if python == sys.executable:
        pytest.importorskip("openai", reason="the openai package is not installed")
    run(python, "-W", "error", str(CLIENTS / "openai_responses.py"), f"{base_url}/v1", what, *models)


@pytest.mark.parametrize("what", ["turns", "rest"])
@pytest.mark.parametrize(("python", "major"), interpreters())
def test_the_openai_package_talks_with_the_simulated_model(simulated: str, python: str, major: str, what: str) -> None:
    run_openai(python, simulated, what, *conftest.WAYS)


@pytest.mark.parametrize(("python", "major"), interpreters())
def test_the_openai_package_talks_with_real_outputs(gateway: str, model: ModelServer, python: str, major: str) -> None:
    turns = [played(way, what) for way in outputs.WAYS for _ in range(CONVERSATIONS) for what in ("call", "text")]
    model.plays(*turns)
    run_openai(python, gateway, "turns", *outputs.WAYS)
    assert len(model.asked) == len(turns)


# --- openai-agents ---


def ask_agents(
    base_url: str,
    name: str,
    questions: Sequence[str],
    cities: Sequence[str],
    *,
    stream: bool,
    over: str = HTTP,
) -> None:
    """Ask an agent with a tool; each question goes on with the items of the one before. `cities`: the tool's."""
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)
    asked: list[str] = []

    def get_weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return RESULT

    async def ask(agent: Any, given: Any) -> Any:
        if not stream:
            return await agents.Runner.run(agent, given)
        running = agents.Runner.run_streamed(agent, given)
        names = [event.name async for event in running.stream_events() if event.type == "run_item_stream_event"]
        assert names.count("tool_called") == names.count("tool_output") == len(cities) // len(questions)
        return running

    async def talk() -> None:
        async with AsyncOpenAI(base_url=f"{base_url}/v1", api_key="any", max_retries=0) as client:
            model = getattr(agents, over)(model=name, openai_client=client)
            tool = agents.function_tool(get_weather)
            agent = agents.Agent(name="Guide", instructions="Be brief.", model=model, tools=[tool])
            items: list[Any] = []
            for question in questions:
                done = await ask(agent, [*items, {"role": "user", "content": question}])
                assert "18 °C" in done.final_output
                assert len(done.raw_responses) == 2
                assert done.context_wrapper.usage.total_tokens > 0
                items = done.to_input_list()
            if over == "OpenAIResponsesWSModel":
                await model.close()

    asyncio.run(talk())
    assert sorted(asked) == list(cities)


def talk_with_agents(base_url: str, name: str, cities: Sequence[str], *, stream: bool, over: str = HTTP) -> None:
    questions = [QUESTION, "And what is the weather in Rome?"]
    ask_agents(base_url, name, questions, cities, stream=stream, over=over)


@both
@simulated_ways
def test_openai_agents_talks_with_the_simulated_model(simulated: str, way: str, stream: bool) -> None:
    talk_with_agents(simulated, way, ["Paris", "Rome"], stream=stream)


@both
@scripted_ways
def test_openai_agents_talks_with_real_outputs(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(*(played(way, what) for what in ("call", "text", "call", "text")))
    talk_with_agents(gateway, way, ["Paris", "Paris"], stream=stream)
    assert len(model.asked) == 4


@both
@scripted_ways
def test_openai_agents_runs_a_call_beside_text(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "text_and_call"), played(way, "text"))
    ask_agents(gateway, way, [QUESTION], ["Paris"], stream=stream)
    assert len(model.asked) == 2


@both
@pytest.mark.parametrize("way", ["native", "prompt-hermes", "raw-hermes-vllm"])  # gpt-oss stops behind each call
def test_openai_agents_runs_calls_side_by_side(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "two_calls"), played(way, "text"))
    ask_agents(gateway, way, [QUESTION], ["Paris", "Rome"], stream=stream)
    assert len(model.asked) == 2


@both
def test_openai_agents_talks_over_a_websocket(simulated: str, stream: bool) -> None:
    talk_with_agents(simulated, "raw-harmony", ["Paris", "Rome"], stream=stream, over="OpenAIResponsesWSModel")


@simulated_ways
def test_openai_agents_hands_over_and_parses_an_output(simulated: str, way: str) -> None:
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)

    async def talk() -> None:
        async with AsyncOpenAI(base_url=f"{simulated}/v1", api_key="any", max_retries=0) as client:
            model = agents.OpenAIResponsesModel(model=way, openai_client=client)
            other = agents.Agent(name="Sights agent", model=model)
            guide = agents.Agent(name="Guide", model=model, handoffs=[other])
            handed = await agents.Runner.run(guide, "Please transfer me to the sights agent.")
            sights = agents.Agent(name="Sights", model=model, output_type=sight())
            answer = await agents.Runner.run(sights, SIGHT)
        assert handed.last_agent is other
        assert "Sights agent" in handed.final_output
        assert dict(answer.final_output) == EIFFEL

    asyncio.run(talk())


@both
@pytest.mark.parametrize("way", FEW_WAYS)
def test_openai_agents_runs_custom_and_built_in_tools(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    from agents.editor import ApplyPatchResult
    from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellResult
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)
    ran: list[Any] = []

    async def take_note(_: Any, text: str) -> str:
        ran.append(text)
        return "noted"

    def run_shell(request: Any) -> Any:
        ran.append(request.data.action.commands)
        done = ShellCallOutcome(type="exit", exit_code=0)
        return ShellResult([ShellCommandOutput(command=each, stdout="ok", outcome=done) for each in ran[-1]])

    class Editor:
        def create_file(self, operation: Any) -> Any:
            ran.append((operation.type, operation.path, operation.diff))
            return ApplyPatchResult(status="completed", output="created")

        update_file = delete_file = create_file

    def get_customer(id: str) -> str:  # noqa: A002  # the tool's own word
        """A customer's profile."""
        ran.append(id)
        return "Ada"

    model.plays(
        wrote(way, "take_note", {"input": 'two\nlines, "quoted"'}),
        wrote(way, "shell", {"commands": ["ls", "pwd"], "timeout_ms": None, "max_output_length": None}),
        wrote(way, "apply_patch", {"type": "create_file", "path": "a.txt", "diff": "+x"}),
        wrote(way, "tool_search", {"query": "profile of a customer"}),
        wrote(way, "crm__get_customer", {"id": "7"}),
        played(way, "text"),
    )

    async def talk() -> None:
        async with AsyncOpenAI(base_url=f"{gateway}/v1", api_key="any", max_retries=0) as client:
            customer = agents.function_tool(get_customer, defer_loading=True)
            agent = agents.Agent(
                name="Clerk",
                model=agents.OpenAIResponsesModel(model=way, openai_client=client),
                tools=[
                    agents.CustomTool("take_note", "Keeps a note.", take_note),
                    agents.ShellTool(executor=run_shell),
                    agents.ApplyPatchTool(editor=Editor()),
                    agents.ToolSearchTool(),
                    *agents.tool_namespace(name="crm", description="Customers.", tools=[customer]),
                ],
            )
            if stream:
                done = agents.Runner.run_streamed(agent, "Do it all.")
                async for _ in done.stream_events():
                    pass
            else:
                done = await agents.Runner.run(agent, "Do it all.")
        assert done.final_output == outputs.TEXT

    asyncio.run(talk())
    assert ran == ['two\nlines, "quoted"', ["ls", "pwd"], ("create_file", "a.txt", "+x"), "7"]


def wrote(way: str, name: str, arguments: Mapping[str, Any]) -> Answer:
    """A call as the scripted server answers it in this way."""
    mode, _, rest = way.partition("-")
    text = json.dumps(arguments)
    if mode == "native":
        return calling(name, text)
    dialect = rest.partition("-")[0]
    return spoken(way, callwright.write([{"name": name, "arguments": text}], dialect=dialect))


# --- langchain-openai ---


def langchain_model(base_url: str, name: str, **settings: Any) -> Any:
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    return langchain.ChatOpenAI(
        model=name, base_url=f"{base_url}/v1", api_key="any", max_retries=0, use_responses_api=True, **settings
    )


def ask_langchain(chat: Any, *messages: Any, stream: bool) -> Any:
    if not stream:
        return chat.invoke(messages)
    first, *others = chat.stream(messages)
    return functools.reduce(operator.add, others, first)


def talk_with_langchain(base_url: str, name: str, *, stream: bool, refers: bool = False) -> None:
    pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    import openai
    from langchain_core.messages import HumanMessage
    from langchain_core.tools import tool

    asked: list[str] = []

    @tool  # type: ignore[untyped-decorator]
    def get_weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return RESULT

    with openai.DefaultHttpxClient() as client:
        model = langchain_model(base_url, name, http_client=client, use_previous_response_id=refers)
        chat = model.bind_tools([get_weather], strict=True, parallel_tool_calls=False)
        question = HumanMessage(QUESTION)
        first = ask_langchain(chat, question, stream=stream)
        (call,) = first.tool_calls
        last = ask_langchain(chat, question, first, get_weather.invoke(call), stream=stream)
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Paris"})
    assert not first.invalid_tool_calls
    assert asked == ["Paris"]
    assert "18 °C" in last.text
    assert not last.tool_calls
    assert last.response_metadata["status"] == "completed"
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


@both
def test_langchain_goes_on_by_reference(simulated: str, stream: bool) -> None:
    talk_with_langchain(simulated, "raw-harmony", stream=stream, refers=True)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@simulated_ways
def test_langchain_parses_an_output(simulated: str, way: str, method: str) -> None:
    openai = pytest.importorskip("openai", reason="the openai package is not installed")

    with openai.DefaultHttpxClient() as client:
        model = langchain_model(simulated, way, http_client=client)
        answer = model.with_structured_output(sight(), method=method, strict=True).invoke(SIGHT)
    assert dict(answer) == EIFFEL


@both
@simulated_ways
def test_langchain_calls_a_custom_tool(simulated: str, way: str, stream: bool) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    asked: list[str] = []

    def find_place(name: str) -> str:
        """Finds a place by its name."""
        asked.append(name)
        return "48.9 N"

    tool = langchain.custom_tool(format={"type": "grammar", "syntax": "regex", "definition": "[A-Z][a-z]+"})(find_place)
    question = {"role": "user", "content": "Please find the place Paris."}
    with openai.DefaultHttpxClient() as client:
        model = langchain_model(simulated, way, http_client=client, output_version="responses/v1")
        chat = model.bind_tools([tool])
        first = ask_langchain(chat, question, stream=stream)
        (call,) = first.tool_calls
        last = ask_langchain(chat, question, first, tool.invoke(call), stream=stream)
    assert len(asked) == 1
    assert asked[0].isalpha()
    assert "48.9 N" in last.text


# --- pydantic-ai ---


@both
@simulated_ways
def test_pydantic_ai_talks_with_the_simulated_model(simulated: str, way: str, stream: bool) -> None:
    talk_with_pydantic_ai(simulated, way, "OpenAIResponsesModel", stream=stream)


@both
@scripted_ways
def test_pydantic_ai_talks_with_real_outputs(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    model.plays(played(way, "call"), played(way, "text"))
    talk_with_pydantic_ai(gateway, way, "OpenAIResponsesModel", stream=stream)
    assert len(model.asked) == 2


@both
def test_pydantic_ai_goes_on_by_reference(simulated: str, stream: bool) -> None:
    settings = {"openai_previous_response_id": "auto", "openai_reasoning_summary": "auto"}
    talk_with_pydantic_ai(simulated, "raw-harmony", "OpenAIResponsesModel", stream=stream, settings=settings)


@pytest.mark.parametrize("by", ["tool", "schema"])
@simulated_ways
def test_pydantic_ai_parses_an_output(simulated: str, way: str, by: str) -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from openai import AsyncOpenAI
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def talk() -> None:
        async with AsyncOpenAI(base_url=f"{simulated}/v1", api_key="any", max_retries=0) as client:
            model = OpenAIResponsesModel(way, provider=OpenAIProvider(openai_client=client))
            agent: Any = Agent(model, output_type=sight() if by == "tool" else NativeOutput(sight()))
            done = await agent.run(SIGHT)
        assert dict(done.output) == EIFFEL
        assert done.usage.requests == 1

    asyncio.run(talk())


# --- JavaScript: openai and the AI SDK ---

scripts = pytest.mark.parametrize("script", ["openai_npm.mjs", "ai_sdk.mjs"])


@scripts
@pytest.mark.parametrize("what", ["turns", "rest"])
def test_clients_in_javascript_talk_with_the_simulated_model(simulated: str, script: str, what: str) -> None:
    run_node(script, simulated, what, *conftest.WAYS)


@scripts
def test_clients_in_javascript_talk_with_real_outputs(gateway: str, model: ModelServer, script: str) -> None:
    turns = [played(way, what) for way in outputs.WAYS for _ in range(CONVERSATIONS) for what in ("call", "text")]
    model.plays(*turns)
    run_node(script, gateway, "turns", *outputs.WAYS)
    assert len(model.asked) == len(turns)
