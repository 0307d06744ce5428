"""Many tools in the loop of an agent: those that are deferred are found by a search, and the prompt keeps its begin."""

import asyncio
import itertools
import json
import subprocess
import sys
from typing import Annotated, Any

import pytest

import callwright
from callwright import Agent, Hidden, RequestError, RunResult, run_sync
from callwright.upstreams.simulated.scripted import ScriptedUpstream
from tests.support.paths import ROOT
from tests.support.scripted_agents import check_history, scripted

SEARCH = ("tool_search", {"query": "latest news"})


def plain(word: str) -> str:
    """Say a word."""
    return word


@callwright.tool(deferred=True)
def get_news(topic: str) -> str:
    """Get the latest news."""
    return f"no news of {topic}"


@callwright.tool(deferred=True, approve=True)
def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@callwright.tool(deferred=True)
def delete_mail(number: int) -> str:
    """Delete a mail."""
    return f"deleted {number}"


TOOLS = (get_news, plain, send_mail, delete_mail)


def asked(*answers: Any, history: Any = None, dialect: str | None = None, **how: Any) -> tuple[RunResult, Any]:
    """A run, and what its model was asked."""
    model, upstream = scripted(*answers, dialect=dialect)
    return run_sync(Agent(model=model, tools=TOOLS, **how), "Go on", history=history), upstream.asked


def names(generation: Any) -> list[str]:
    return [tool.name for tool in generation.conversation.tools]


def test_a_model_finds_tools_and_calls_them() -> None:
    result, seen = asked([SEARCH], [("get_news", {"topic": "tea"})], "None.")
    assert [names(one) for one in seen] == [
        ["plain", "tool_search"],
        ["plain", "tool_search", "get_news"],
        ["plain", "tool_search", "get_news"],
    ]
    assert [call.text for call in result.calls] == ["These tools can be called now: get_news.", "no news of tea"]
    check_history(result.to_messages())


def test_what_was_found_stays_in_its_order_behind_the_others() -> None:
    mail = ("tool_search", {"query": "mail"})
    result, seen = asked([mail], [SEARCH, mail], "Done.")
    assert names(seen[1]) == ["plain", "tool_search", "send_mail", "delete_mail"]
    assert names(seen[2]) == [*names(seen[1]), "get_news"]
    more, seen = asked("Yes.", history=result)
    assert names(seen[0]) == ["plain", "tool_search", "send_mail", "delete_mail", "get_news"]
    assert more.stop == "completed"


@pytest.mark.parametrize("dialect", [None, "hermes", "harmony"])
def test_every_dialect_searches_and_the_conversation_grows_at_its_end_only(dialect: str | None) -> None:
    result, seen = asked([SEARCH], [("get_news", {"topic": "tea"})], "None.", dialect=dialect)
    assert (result.stop, result.text) == ("completed", "None.")
    for before, after in itertools.pairwise(seen):
        items = before.conversation.items
        assert after.conversation.items[: len(items)] == items


def test_a_search_that_finds_nothing_says_so() -> None:
    result, seen = asked([("tool_search", {"query": "zebra"})], "Sorry.")
    assert result.calls[0].text == "No tool was found."
    assert names(seen[1]) == ["plain", "tool_search"]


def test_a_run_that_waits_remembers_what_was_found() -> None:
    model, upstream = scripted([("tool_search", {"query": "send mail"})], [("send_mail", {"to": "Anna"})], "Sent.")
    agent = Agent(model=model, tools=TOOLS)
    waiting = run_sync(agent, "Go on")
    pending = json.loads(json.dumps(waiting.pending))
    result = run_sync(agent, pending, decisions={pending["calls"][0]["id"]: True})
    assert (result.stop, result.calls[0].text) == ("completed", "sent to Anna")
    assert names(upstream.asked[2])[2:] == ["send_mail", "delete_mail"]


def test_a_tool_that_the_choice_names_is_there_at_once() -> None:
    result, seen = asked([("get_news", {"topic": "tea"})], "None.", tool_choice="get_news")
    assert names(seen[0]) == ["plain", "tool_search", "get_news"]
    assert result.calls[0].status == "ok"


def test_allowed_tools_can_be_searched_for() -> None:
    entry = {"type": "function", "function": {"name": "get_news"}}
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [entry]}}
    result, seen = asked([SEARCH], [("get_news", {"topic": "tea"})], "None.", tool_choice=choice)
    assert seen[0].conversation.allowed_tools == ("get_news", "tool_search")
    assert [call.status for call in result.calls] == ["ok", "ok"]


def test_without_deferred_tools_there_is_no_search() -> None:
    assert "tool_search" not in Agent(model="simulated", tools=[plain]).tools


def test_the_name_of_the_search_is_taken() -> None:
    with pytest.raises(RequestError, match="call this tool otherwise"):
        Agent(model="simulated", tools=[get_news, callwright.tool(name="tool_search")(lambda: 1)])


@pytest.mark.clients
def test_the_tools_of_an_mcp_server_can_be_deferred() -> None:
    pytest.importorskip("mcp_server_time", reason="mcp-server-time is not installed")
    call = ("time__get_current_time", {"timezone": "Europe/Oslo"})
    model, upstream = scripted([("tool_search", {"query": "current time"})], [call], "Late.")

    async def main() -> RunResult:
        command = [sys.executable, "-m", "mcp_server_time"]
        async with callwright.mcp_tools(command, name="time", approve=False, deferred=True) as tools:
            return await callwright.run(Agent(model=model, tools=tools), "What time is it?")

    result = asyncio.run(main())
    assert [names(one)[:1] for one in upstream.asked] == [["tool_search"]] * 3
    assert result.calls[1].value["timezone"] == "Europe/Oslo"


# --- tools whose schema comes from outside ---

SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "tenant": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query", "tenant"],
}


async def foreign(**arguments: Any) -> dict[str, Any]:
    return arguments


LOOK_UP = callwright.tool(foreign, name="look_up", description="Look up.", parameters=SCHEMA)


def ran(tool: Any, arguments: Any, **how: Any) -> tuple[RunResult, ScriptedUpstream]:
    model, upstream = scripted([(tool.name, arguments)], "Done.")
    return run_sync(Agent(model=model, tools=[tool]), "Go", **how), upstream


def test_any_callable_with_a_schema_is_a_tool() -> None:
    result, upstream = ran(LOOK_UP, {"query": "a", "tenant": "t", "limit": 2})
    assert result.calls[0].value == {"query": "a", "tenant": "t", "limit": 2}
    told = upstream.asked[0].conversation.tools[0]
    assert (told.name, told.description, told.parameters) == ("look_up", "Look up.", SCHEMA)


SOURCES: dict[str, tuple[Any, dict[str, Any]]] = {
    "a value": ("t1", {}),
    "a value of the run": (Hidden, {"hidden": {"tenant": "t1"}}),
    "a function": (callwright.From(lambda: "t1"), {}),
}


@pytest.mark.parametrize("case", SOURCES)
def test_what_the_program_gives_is_not_asked_of_the_model(case: str) -> None:
    value, how = SOURCES[case]
    result, upstream = ran(callwright.bind(LOOK_UP, tenant=value), {"query": "a"}, **how)
    assert result.calls[0].value == {"query": "a", "tenant": "t1"}
    told = upstream.asked[0].conversation.tools[0].parameters
    assert told is not None
    assert (list(told["properties"]), told["required"]) == (["query", "limit"], ["query"])
    assert SCHEMA["required"] == ["query", "tenant"]


def test_the_value_of_a_model_never_wins() -> None:
    result, _ = ran(callwright.bind(LOOK_UP, tenant="t1"), {"query": "a", "tenant": "t2"})
    assert (result.calls[0].status, "unknown argument 'tenant'" in result.calls[0].text) == ("retry", True)


def test_what_cannot_be_bound_is_told() -> None:
    with pytest.raises(RequestError, match=r"has no parameter 'tenent'\. Did you mean 'tenant'"):
        callwright.bind(LOOK_UP, tenent="t1")

    @callwright.tool
    def mine(a: Annotated[int, "number"]) -> int:
        return a

    with pytest.raises(RequestError, match="annotate the parameter as Hidden"):
        callwright.bind(mine, a=1)


@pytest.mark.processes
def test_the_core_is_imported_without_the_extra() -> None:
    code = "import sys; sys.modules['mcp'] = None; import callwright; callwright.mcp_tools; callwright.bind"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=False, cwd=ROOT)
    assert done.returncode == 0
