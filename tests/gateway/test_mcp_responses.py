"""MCP servers in the Responses API: a real one of the official SDK, whose tools are run for a scripted model."""

import http.client
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from callwright.errors import ConfigError
from callwright.gateway.config.config import Config, McpConfig, ModelConfig
from callwright.gateway.server_tools import mcp_servers
from callwright.gateway.server_tools.mcp_servers import McpServers
from tests.agent.test_mcp import SERVER, HttpServer, heard
from tests.conftest import Served, scripted_models
from tests.support.http_client import Live, request
from tests.support.outputs import ARGUMENTS
from tests.support.responses_client import (
    BEGIN,
    FUNCTIONS,
    RESPONSES,
    body,
    fetch,
    function,
    kinds,
    order,
    respond,
    streamed,
    text_of,
)
from tests.support.servers import Answer, Gateway, ModelServer, call_deltas, calling, chat, completion, said
from tests.support.waiting import until

pytestmark = pytest.mark.clients
both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])

S = {"type": "mcp", "server_label": "s", "require_approval": "never"}
ASKS = {"type": "mcp", "server_label": "s"}
SUM = '{"a": 1, "b": 2}'


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    pytest.importorskip("mcp.client", reason="the SDK of MCP is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture
def url(serve: Served, model: ModelServer, folder: Path) -> str:
    """A gateway that may use the server `s`, with all it has, with little, and in haste."""
    command = [sys.executable, SERVER, "stdio", str(folder)]
    url = serve(
        *scripted_models(model.url),
        mcp=(
            McpConfig(label="s", command=command, timeout_s=10.0),
            McpConfig(label="little", command=command, tools=["add", "wait", "say"]),
            McpConfig(label="hasty", command=command, tools=["wait"], timeout_s=0.3),
        ),
    )
    connect(url, S, {**S, "server_label": "little"}, {**S, "server_label": "hasty"})
    return url


def connect(url: str, *tools: Any) -> None:
    """Let the gateway connect to servers, however long it takes to start their processes."""
    body = json.dumps({"model": "native", "input": "Hi", "tools": tools})
    with closing(http.client.HTTPConnection(urlsplit(url).netloc)) as client:
        client.request("POST", f"{RESPONSES}/input_tokens", body, {"content-type": "application/json"})
        assert client.getresponse().status == 200


Ask = Callable[..., Any]


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def ask(request: pytest.FixtureRequest, url: str) -> Ask:
    """Asks for a response in one of the two ways, with the tools of the server."""
    return lambda given="Hi", **fields: respond(
        url, stream=request.param, **{"model": "native", "input": given, "tools": [S], **fields}
    )


def shown(model: ModelServer) -> list[Any]:
    """The messages of the latest request that the model server got."""
    return list(model.asked[-1].body["messages"])


def refused(url: str, **fields: Any) -> tuple[int, Any]:
    reply = request(url + RESPONSES, {"model": "native", "input": "Hi", **fields})
    return reply.status, reply.error


def parallel(*calls: tuple[str, str]) -> Answer:
    """A turn that makes several calls at once."""
    deltas = [
        delta
        for index, (name, arguments) in enumerate(calls)
        for delta in call_deltas(name, arguments, index=index, id_=f"call_up_{index}")
    ]
    return chat(*deltas, finish="tool_calls")


# --- calls ---


def test_a_call_is_run_and_the_model_goes_on_with_what_came_of_it(ask: Ask, model: ModelServer) -> None:
    model.plays(calling("s__add", SUM), said("It is 3."))
    response = ask()
    listed, call, message = response["output"]
    assert listed["type"] == "mcp_list_tools"
    assert {"name", "description", "input_schema", "annotations"} == set(listed["tools"][0])
    assert call == {
        "id": call["id"],
        "type": "mcp_call",
        "status": "completed",
        "server_label": "s",
        "name": "add",
        "arguments": SUM,
        "approval_request_id": None,
        "output": '{"sum":3}',
        "error": None,
    }
    assert [item["id"].partition("_")[0] for item in response["output"]] == ["mcpl", "mcp", "msg"]
    assert text_of(response) == "It is 3."
    assert (message["phase"], response["status"], response["usage"]["total_tokens"]) == (
        "final_answer",
        "completed",
        36,
    )
    made, answered = shown(model)[-2:]
    assert made["tool_calls"][0]["function"] == {"name": "s__add", "arguments": SUM}
    assert (answered["role"], answered["content"]) == ("tool", '{"sum":3}')


def test_the_events_come_in_openais_order(url: str, model: ModelServer) -> None:
    model.plays(calling("s__add", '{"a": 1,', ' "b": 2}'), said("3"))
    events = streamed(url, model="native", input="Hi", tools=[S])
    item = ["output_item.added", "output_item.done"]
    assert order(events)[:-5] == [
        *BEGIN,
        item[0],
        "mcp_list_tools.in_progress",
        "mcp_list_tools.completed",
        item[1],
        item[0],
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_call.completed",
        item[1],
        item[0],
        "content_part.added",
    ]


def test_arguments_flow_while_they_are_written(url: str, model: ModelServer) -> None:
    model.plays(calling("s__say", '{"self": "a', "bc", 'def"}'), said("Done."))
    events = streamed(url, model="native", input="Hi", tools=[S])
    deltas = [event["delta"] for event in events if event["type"] == "response.mcp_call_arguments.delta"]
    assert len(deltas) > 1
    assert json.loads("".join(deltas)) == {"self": "abcdef"}


def test_calls_of_one_turn_are_run_side_by_side_and_answered_in_order(ask: Ask, model: ModelServer) -> None:
    calls = [("s__add", json.dumps({"a": number, "b": 0})) for number in range(12)]
    model.plays(parallel(*calls), said("Done."))
    output = ask()["output"]
    assert [item["output"] for item in output[1:-1]] == [f'{{"sum":{number}}}' for number in range(12)]


FAILURES = {
    "an error of the tool": ("s__refuse", "{}", "no such city"),
    "an exception in the server": ("s__fail", "{}", "Internal server error"),
    "a value against the tool's own schema": ("s__lie", "{}", "'many' is not of type 'integer'"),
    "a server that dies": ("s__die", "{}", "The connection to the tool's server broke."),
    "a time-out": ("hasty__wait", "{}", "No answer within 0.3 s"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_is_an_error_that_the_model_reads(ask: Ask, model: ModelServer, case: str) -> None:
    name, arguments, words = FAILURES[case]
    model.plays(calling(name, arguments), said("Oh."))
    output = ask(tools=[S, {**S, "server_label": "hasty"}])["output"]
    call = output[2]
    assert (call["status"], call["output"], call["error"]["type"]) == ("failed", None, "mcp_tool_execution_error")
    assert words in call["error"]["content"][0]["text"]
    assert shown(model)[-1]["content"].startswith("Error: ")
    assert words in shown(model)[-1]["content"]


WRONG = {
    "a wrong type": '{"a": "one", "b": 2}',
    "a missing argument": '{"a": 1}',
    "an unknown argument": '{"a": 1, "b": 2, "c": 3}',
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("tool", [S, ASKS], ids=["never", "always"])
def test_the_server_never_hears_of_a_call_that_does_not_fit(
    ask: Ask, model: ModelServer, folder: Path, case: str, tool: Any
) -> None:
    before = heard(folder).count("add")
    model.plays(calling("s__add", WRONG[case]), said("Oh."))
    _, call, _ = ask(tools=[tool])["output"]
    assert (call["type"], call["status"], call["error"]["code"]) == ("mcp_call", "failed", -32602)
    assert "This call was not run. $" in call["error"]["message"]
    assert call["error"]["message"] in shown(model)[-1]["content"]
    assert heard(folder).count("add") == before


def test_images_are_told_in_words_and_long_results_are_cut(
    ask: Ask, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_servers, "_RESULT_CHARS", 100)
    model.plays(
        parallel(("s__show", "{}"), ("little__say", json.dumps({"self": "x" * 1000}))),
        said("Seen."),
    )
    output = ask(tools=[S, {**S, "server_label": "little"}])["output"]
    first, second = output[2]["output"], output[3]["output"]
    assert first.startswith("Look:\n[image/png, 15 bytes]\n[audio/wav, 15 bytes]")
    assert "905 of 1,005 characters left out here" in second


# --- the conversation ---


def turns(ask: Ask, model: ModelServer, *, stateless: bool) -> None:
    """Three turns of a conversation in which everything happens that can."""
    model.plays(
        chat({"reasoning_content": "Hm."}, {"content": "I add."}, *call_deltas("s__add", SUM), finish="tool_calls"),
        parallel(("s__add", SUM), ("s__refuse", "{}"), ("s__add", '{"a": 1}')),
        said("3"),
        parallel(("s__say", '{"self": "x"}'), ("get_weather", ARGUMENTS)),
        said("x"),
        calling("s__nothing", "{}"),
        said("Nothing."),
    )
    tools = [{**S, "require_approval": {"always": {"tool_names": ["nothing"]}}}, *FUNCTIONS]
    history: list[Any] = []
    before: dict[str, Any] = {}

    def turn(*given: Any) -> Any:
        items = [*history, *given] if stateless else list(given)
        response = ask(items, tools=tools, store=not stateless, **before)
        history.extend([*given, *response["output"]])
        if not stateless:
            before["previous_response_id"] = response["id"]
        return response["output"]

    turn({"role": "user", "content": "Add"})
    call = turn({"role": "user", "content": "Say"})[-1]
    assert call["type"] == "function_call"
    turn({"type": "function_call_output", "call_id": call["call_id"], "output": "18 °C"})
    asked = turn({"role": "user", "content": "Do nothing"})[-1]
    assert asked["type"] == "mcp_approval_request"
    output = turn({"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": True})
    assert kinds(output) == ["mcp_call", "message"]


@pytest.mark.parametrize("stateless", [False, True], ids=["stored", "sent again"])
def test_every_later_turn_begins_as_the_one_before(ask: Ask, model: ModelServer, stateless: bool) -> None:
    turns(ask, model, stateless=stateless)
    assert len(model.asked) == 7
    for before, after in zip(model.asked, model.asked[1:], strict=False):
        assert after.body["messages"][: len(before.body["messages"])] == before.body["messages"]
        assert after.body["tools"] == before.body["tools"]


def test_the_tools_are_told_once(ask: Ask, model: ModelServer) -> None:
    model.plays(said("One"), said("Two"))
    first = ask()
    assert kinds(first["output"]) == ["mcp_list_tools", "message"]
    assert kinds(ask("On", previous_response_id=first["id"])["output"]) == ["message"]


def test_a_model_is_shown_calls_and_results_in_its_own_way(ask: Ask, model: ModelServer) -> None:
    written = '<tool_call>\n{"name": "s__add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    model.plays(completion(written), completion("It is 3."), completion("Yes."))
    first = ask(model="raw-hermes-vllm")
    ask("Sure?", model="raw-hermes-vllm", previous_response_id=first["id"])
    prompts = [asked.body["prompt"] for asked in model.asked]
    assert '<tool_response>\n{"sum":3}\n</tool_response>' in prompts[1].replace('"sum": 3', '"sum":3')
    assert prompts[2].startswith(prompts[1])


@both
def test_a_call_of_the_client_beside_one_that_is_run_here_goes_out(url: str, model: ModelServer, stream: bool) -> None:
    model.plays(parallel(("get_weather", ARGUMENTS), ("s__add", SUM)), said("Done."))
    first = respond(url, stream=stream, **body(tools=[S, *FUNCTIONS]))
    assert kinds(first["output"]) == ["mcp_list_tools", "function_call", "mcp_call"]
    assert first["output"][2]["output"] == '{"sum":3}'
    assert len(model.asked) == 1
    output = {"type": "function_call_output", "call_id": first["output"][1]["call_id"], "output": "18 °C"}
    respond(url, stream=stream, **body(tools=[S, *FUNCTIONS], input=[output], previous_response_id=first["id"]))
    assert [message["content"] for message in shown(model)[-2:]] == ["18 °C", '{"sum":3}']


# --- approvals ---


def waiting(ask: Ask, model: ModelServer, *then: Answer, **fields: Any) -> tuple[Any, Any]:
    """A response that waits for a person, and the request for approval."""
    model.plays(calling("s__add", SUM), *then)
    response = ask(tools=[ASKS], **fields)
    asked = response["output"][-1]
    assert asked == {
        "id": asked["id"],
        "type": "mcp_approval_request",
        "server_label": "s",
        "name": "add",
        "arguments": SUM,
    }
    return response, asked


def test_without_a_word_about_it_a_person_must_approve(ask: Ask, model: ModelServer, folder: Path) -> None:
    before = len(heard(folder))
    response, asked = waiting(ask, model, said("3"))
    assert (response["status"], heard(folder)[before:]) == ("completed", [])
    answer = {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": True}
    call, message = ask([answer], tools=[ASKS], previous_response_id=response["id"])["output"]
    assert (call["output"], call["approval_request_id"], message["type"]) == ('{"sum":3}', asked["id"], "message")
    assert heard(folder)[before:] == ["add"]
    assert shown(model)[-1]["content"] == '{"sum":3}'


REFUSALS: dict[str, tuple[Any, str]] = {
    "no": ({"approve": False}, "The user did not approve this call; it was not run."),
    "no, with a reason": ({"approve": False, "reason": "Too high."}, "it was not run. Too high."),
    "no answer": (None, "The user did not approve this call; it was not run."),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_a_person_does_not_approve_is_not_run(ask: Ask, model: ModelServer, folder: Path, case: str) -> None:
    fields, words = REFUSALS[case]
    before = len(heard(folder))
    response, asked = waiting(ask, model, said("Then not."), said("Bye."))
    answer = {"type": "mcp_approval_response", "approval_request_id": asked["id"], **(fields or {})}
    given = [answer] if fields else []
    second = ask([*given, {"role": "user", "content": "Well?"}], tools=[ASKS], previous_response_id=response["id"])
    assert kinds(second["output"]) == ["message"]
    assert words in shown(model)[-2]["content"]
    ask("On", tools=[ASKS], previous_response_id=second["id"])
    assert words in shown(model)[-4]["content"]
    assert heard(folder)[before:] == []


def test_an_approval_counts_once_and_for_the_next_request_only(ask: Ask, model: ModelServer, folder: Path) -> None:
    response, asked = waiting(ask, model, said("Gone."), said("Back."))
    before = len(heard(folder))
    answer = {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": True}
    second = ask([answer], tools=[], previous_response_id=response["id"])
    assert "does not offer its server any more" in shown(model)[-1]["content"]
    ask("On", tools=[ASKS], previous_response_id=second["id"])
    assert heard(folder)[before:] == []


def test_an_approval_of_nothing_is_refused(url: str) -> None:
    answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    status, error = refused(url, input=[answer], tools=[ASKS])
    assert (status, error["param"]) == (400, "input[0].approval_request_id")


APPROVALS: dict[str, tuple[Any, list[str]]] = {
    "always": ("always", ["add", "nothing"]),
    "never": ("never", []),
    "never those that read": ({"never": {"read_only": True}}, ["nothing"]),
    "never by name": ({"never": {"tool_names": ["nothing"]}}, ["add"]),
    "always by name": ({"always": {"tool_names": ["nothing"]}}, ["nothing"]),
    "both": ({"always": {"tool_names": ["add"]}, "never": {"read_only": True}}, ["add", "nothing"]),
    "an empty filter": ({"never": {}}, ["add", "nothing"]),
}


@pytest.mark.parametrize("case", APPROVALS)
def test_a_request_says_which_calls_a_person_approves(ask: Ask, model: ModelServer, case: str) -> None:
    wanted, names = APPROVALS[case]
    model.plays(parallel(("s__add", SUM), ("s__nothing", "{}")), said("Done."))
    output = ask(tools=[{**ASKS, "require_approval": wanted}])["output"]
    assert sorted(item["name"] for item in output if item["type"] == "mcp_approval_request") == names
    assert len([item for item in output if item["type"] == "mcp_call"]) == 2 - len(names)


# --- which tools ---

ALLOWED: dict[str, tuple[Any, list[str]]] = {
    "names": (["say", "add"], ["add", "say"]),
    "a filter by name": ({"tool_names": ["add"]}, ["add"]),
    "a filter of those that read": ({"read_only": True, "tool_names": ["add", "nothing"]}, ["add"]),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_a_request_says_which_tools_are_offered(ask: Ask, model: ModelServer, case: str) -> None:
    wanted, names = ALLOWED[case]
    model.plays(said("Hi"))
    listed = ask(tools=[{**S, "allowed_tools": wanted}])["output"][0]
    assert [tool["name"] for tool in listed["tools"]] == names
    assert [tool["function"]["name"] for tool in model.body["tools"]] == [f"s__{name}" for name in names]


def test_the_configuration_says_which_tools_may_be_used(ask: Ask, url: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    listed = ask(tools=[{**S, "server_label": "little"}])["output"][0]
    assert [tool["name"] for tool in listed["tools"]] == ["add", "say", "wait"]
    status, error = refused(url, tools=[{**S, "server_label": "little", "allowed_tools": ["nothing"]}])
    assert (status, error["param"]) == (400, "tools[0].allowed_tools")
    assert "It has: add, say, wait." in error["message"]
    _, error = refused(url, tools=[{**S, "server_label": "little", "allowed_tools": ["wiat"]}])
    assert "Did you mean 'wait'?" in error["message"]


def test_the_description_of_a_server_stands_with_its_tools(ask: Ask, model: ModelServer) -> None:
    model.plays(said("Hi"))
    ask(tools=[{**S, "allowed_tools": ["add"], "server_description": "Sums."}])
    assert model.body["tools"][0]["function"]["description"] == "Add two numbers.\n\n(s: Sums.)"


CHOSEN: dict[str, tuple[Any, Any]] = {
    "one tool": ({"type": "mcp", "server_label": "s", "name": "add"}, "s__add"),
    "a server": ({"type": "mcp", "server_label": "s"}, "required"),
    "a set of tools": (
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "mcp", "server_label": "s", "name": "add"}]},
        "s__add",
    ),
}


@pytest.mark.parametrize("case", CHOSEN)
def test_a_choice_is_obeyed_in_the_first_turn(ask: Ask, model: ModelServer, case: str) -> None:
    choice, wanted = CHOSEN[case]
    model.plays(calling("s__add", SUM), said("3"))
    output = ask(tools=[S, *FUNCTIONS], tool_choice=choice)["output"]
    assert kinds(output) == ["mcp_list_tools", "mcp_call", "message"]
    first = model.asked[0].body["tool_choice"]
    assert (first if isinstance(first, str) else first["function"]["name"]) == wanted
    assert model.asked[1].body.get("tool_choice", "auto") == "auto"


def test_a_choice_of_a_tool_that_a_server_does_not_have_is_refused(url: str) -> None:
    choice = {"type": "mcp", "server_label": "s", "name": "ad"}
    status, error = refused(url, tools=[S], tool_choice=choice)
    assert (status, error["param"]) == (400, "tool_choice.name")
    assert "Did you mean 'add'?" in error["message"]


@pytest.mark.parametrize("way", ["server_url", "connector_id"])
def test_a_server_that_only_a_search_of_the_client_has_found_is_refused(url: str, way: str) -> None:
    search = {"type": "tool_search_call", "call_id": "s1", "execution": "client", "arguments": {"query": "sums"}}
    server = {"type": "mcp", "server_label": "elsewhere", way: "https://sums.example/mcp"}
    found = {"type": "tool_search_output", "call_id": "s1", "execution": "client", "tools": [server]}
    status, error = refused(url, input=[search, found], tools=[{"type": "tool_search", "execution": "client"}])
    assert (status, error["param"]) == (400, "input[1].tools[0].type")


def test_deferred_tools_are_searched_for(ask: Ask, model: ModelServer) -> None:
    search = '{"query": "add two numbers"}'
    model.plays(calling("tool_search", search), calling("s__add", SUM), said("3"), said("Yes"))
    tools = [{"type": "tool_search"}, {**S, "defer_loading": True}]
    first = ask(tools=tools)
    found = first["output"][2]
    assert kinds(first["output"][1:]) == ["tool_search_call", "tool_search_output", "mcp_call", "message"]
    assert {"type": "mcp", "server_label": "s", "allowed_tools": ["add"]} in found["tools"]
    names = [[tool["function"]["name"] for tool in asked.body["tools"]] for asked in model.asked]
    assert names[0] == ["tool_search"]
    assert "s__add" in names[1]
    ask("Sure?", tools=tools, previous_response_id=first["id"])
    assert model.asked[3].body["tools"] == model.asked[2].body["tools"]
    assert model.asked[3].body["messages"][: len(model.asked[2].body["messages"])] == model.asked[2].body["messages"]


@both
def test_labels_are_given_once(url: str, stream: bool) -> None:
    status, error = refused(url, tools=[S, S], stream=stream)
    assert (status, error["param"]) == (400, "tools[1].server_label")
    space = {"type": "namespace", "name": "s", "description": "d", "tools": [function("f")]}
    assert refused(url, tools=[S, space], stream=stream)[0] == 400


# --- limits ---


def test_no_more_calls_are_run_than_the_request_allows(ask: Ask, model: ModelServer) -> None:
    model.plays(parallel(("s__add", SUM), ("s__add", SUM), ("s__add", SUM)), said("Enough."))
    response = ask(max_tool_calls=2)
    assert [item["status"] for item in response["output"][1:-1]] == ["completed", "completed", "failed"]
    assert text_of(response) == "Enough."
    assert model.asked[1].body["tool_choice"] == "none"


def test_a_model_that_calls_without_end_is_stopped(url: str, model: ModelServer) -> None:
    model.plays(*(calling("s__add", f'{{"a": {number}, "b": 2}}') for number in range(40)))
    response = respond(url, stream=True, model="native", input="Hi", tools=[S])
    assert response["status"] == "completed"
    assert len(model.asked) == 25


def test_an_answer_that_is_cut_off_ends_with_what_was_called(ask: Ask, model: ModelServer) -> None:
    model.plays(chat(*call_deltas("s__add", SUM), {"content": "And th"}, finish="length"))
    response = ask()
    assert (response["status"], kinds(response["output"])) == ("incomplete", ["mcp_list_tools", "mcp_call", "message"])
    assert response["output"][1]["status"] == "completed"


# --- the end of a request ---


def test_a_client_that_leaves_cancels_the_call_in_the_server(url: str, model: ModelServer, folder: Path) -> None:
    before = len(heard(folder))
    model.plays(calling("s__wait", "{}"))
    asked = json.dumps({"model": "native", "input": "Hi", "tools": [S], "stream": True}).encode()
    with Live(url + RESPONSES, asked) as live:
        assert any(b"mcp_call_arguments.done" in piece for piece in live.pieces())
        until(lambda: "wait" in heard(folder)[before:])
    until(lambda: heard(folder)[before:] == ["wait", "wait", "was", "cancelled"])


def test_in_the_background_calls_are_run_and_cancelled(url: str, model: ModelServer, folder: Path) -> None:
    before = len(heard(folder))
    model.plays(calling("s__add", SUM), said("3"), calling("s__wait", "{}"))
    asked = {"model": "native", "input": "Hi", "tools": [S], "background": True}

    def begin() -> str:
        return f"{url}{RESPONSES}/{request(url + RESPONSES, asked).json['id']}"

    first = begin()
    until(lambda: fetch(first)[1]["status"] == "completed")
    assert kinds(fetch(first)[1]["output"]) == ["mcp_list_tools", "mcp_call", "message"]
    second = begin()
    until(lambda: "wait" in heard(folder)[before:])
    assert request(f"{second}/cancel", {}).json["status"] == "cancelled"
    until(lambda: "cancelled" in heard(folder)[before:])


# --- servers ---


def test_nothing_but_what_is_configured_is_contacted(url: str, model: ModelServer) -> None:
    model.plays(said("never"))
    for where in (model.url, f"{model.url}/mcp", "http://169.254.169.254/latest"):
        status, error = refused(url, tools=[{**S, "server_url": where}])
        assert (status, error["param"], error["code"]) == (400, "tools[0].server_url", "unsupported_value")
        assert "They are: s, little, hasty." in error["message"]
    _, error = refused(url, tools=[{**S, "server_label": "litle"}])
    assert "Did you mean 'little'?" in error["message"]
    assert model.asked == []


def test_a_request_brings_its_own_keys_only_where_it_may(url: str, model: ModelServer) -> None:
    for fields in ({"headers": {"authorization": "x"}}, {"authorization": "x"}):
        status, error = refused(url, tools=[{**S, **fields}])
        assert (status, error["code"]) == (400, "unsupported_parameter")


@contextmanager
def http_server(folder: Path) -> Iterator[HttpServer]:
    server = HttpServer(folder)
    try:
        yield server
    finally:
        server.end()


def test_keys_come_from_the_environment_or_the_request_and_are_told_to_nobody(
    serve: Served, model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", "ours")
    with http_server(tmp_path) as server:
        config = McpConfig(label="sums", url=server.url, api_key_env="SERVER_KEY", client_headers=True)
        gateway = Gateway(Config(models=scripted_models(model.url), mcp=(config,)))
        try:
            tool: dict[str, Any] = {**S, "server_label": "mine", "server_url": f"{server.url}/"}
            model.plays(calling("mine__add", SUM), said("3"))
            respond(gateway.url, stream=False, model="native", input="Hi", tools=[tool])
            assert set(heard(tmp_path)) == {"Bearer-ours", "add"}
            (tmp_path / "heard").unlink()
            model.plays(calling("mine__add", SUM), said("3"))
            tool |= {"authorization": "theirs", "headers": {"X-User": "7"}}
            response = respond(gateway.url, stream=False, model="native", input="Hi", tools=[tool])
            assert set(heard(tmp_path)) == {"Bearer-theirs", "add"}
            stored = fetch(f"{gateway.url}{RESPONSES}/{response['id']}")[1]
            for told in (response, stored):
                assert told["tools"][0]["headers"] == {"X-User": "<redacted>"}
                assert "theirs" not in json.dumps(told)
            for name in ("Host", "Mcp-Session-Id", "X\nY"):
                status, error = refused(gateway.url, tools=[{**tool, "headers": {name: "x"}}])
                assert (status, error["param"]) == (400, "tools[0].headers")
        finally:
            gateway.stop()


def test_a_server_that_cannot_be_reached_is_told_and_used_when_it_is_back(model: ModelServer, tmp_path: Path) -> None:
    with http_server(tmp_path) as server:
        server.end()
        config = McpConfig(label="s", url=server.url, connect_timeout_s=5)
        gateway = Gateway(Config(models=scripted_models(model.url), mcp=(config,)))
        try:
            for stream in (False, True):
                status, error = refused(gateway.url, tools=[S], stream=stream)
                assert (status, error["type"], error["code"]) == (424, "external_connector_error", "http_error")
                assert error["message"].startswith("Error retrieving tool list from MCP server: 's'. ")
            server.start()
            model.plays(calling("s__add", SUM), said("3"))
            respond(gateway.url, stream=True, model="native", input="Hi", tools=[S])
        finally:
            gateway.stop()


def test_a_server_that_was_started_anew_is_listed_anew_and_at_the_end_it_is_gone(
    model: ModelServer, tmp_path: Path
) -> None:
    config = McpConfig(label="s", command=[sys.executable, SERVER, "stdio", str(tmp_path)])
    gateway = Gateway(Config(models=scripted_models(model.url), mcp=(config,)))
    try:
        connect(gateway.url, S)
        model.plays(calling("s__die", "{}"), said("Oh."), calling("s__surroundings", "{}"), said("Hm."))
        first = respond(gateway.url, stream=True, model="native", input="Hi", tools=[S])
        (tmp_path / "changed").touch()
        second = respond(gateway.url, stream=True, model="native", input="Hi", tools=[S])
    finally:
        gateway.stop()
    told = [response["output"][0]["tools"][0]["description"] for response in (first, second)]
    assert told == ["Add two numbers.", "Add two numbers, badly."]
    with pytest.raises(ProcessLookupError):
        os.kill(int(second["output"][1]["output"].splitlines()[1]), 0)


def test_a_real_server_is_driven_by_the_simulated_model(serve: Served) -> None:
    pytest.importorskip("mcp_server_time", reason="mcp-server-time is not installed")
    url = serve(
        ModelConfig(name="native", upstream="simulated", mode="raw", dialect="harmony"),
        mcp=(McpConfig(label="time", command=[sys.executable, "-m", "mcp_server_time"]),),
    )
    question = 'What is the current time in timezone "Europe/Oslo"?'
    tool = {"type": "mcp", "server_label": "time", "require_approval": "never"}
    connect(url, tool)
    response = respond(url, stream=True, model="native", input=question, tools=[tool])
    (call,) = [item for item in response["output"] if item["type"] == "mcp_call"]
    assert (call["name"], json.loads(call["output"])["timezone"]) == ("get_current_time", "Europe/Oslo")
    assert "Europe/Oslo" in text_of(response)


def test_openais_types_hold_for_every_event(url: str, model: ModelServer) -> None:
    pytest.importorskip("openai", reason="the SDK of OpenAI is not installed")
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    types: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    model.plays(parallel(("s__refuse", "{}"), ("s__add", "{}"), ("s__add", SUM)))
    wanted = {"always": {"tool_names": ["add"]}}
    events = streamed(url, model="native", input="Hi", tools=[{**S, "require_approval": wanted}])
    read = [types.validate_python(event) for event in events]
    assert {event.type for event in read if "mcp" in event.type} == {
        "response.mcp_list_tools.in_progress",
        "response.mcp_list_tools.completed",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.failed",
    }
    output = [type(item).__name__ for item in read[-1].response.output]
    assert output == ["McpListTools", "McpCall", "McpCall", "McpApprovalRequest"]


# --- configurations ---

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({}, "either url = 'http://…' or command = '…', got neither."),
    "both": ({"url": "http://a/mcp", "command": "run"}, "got both: leave one of them out."),
    "a command with headers": ({"command": "run", "headers": {"a": "b"}}, "headers is for servers with a url"),
    "a command with keys of clients": ({"command": "run", "client_headers": True}, "client_headers is for servers"),
    "a URL with variables": ({"url": "http://a/mcp", "env": ["A"]}, "env is for servers with a command"),
    "a variable that is not set": ({"command": "run", "env": ["NOT_SET"]}, "variable NOT_SET is not set"),
    "a key that is not set": ({"url": "http://a/mcp", "api_key_env": "NOT_SET"}, "variable NOT_SET is not set"),
    "no URL": ({"url": "a/mcp"}, "expected one such as https://example.com/mcp, got no http"),
    "two keys": ({"url": "http://a/mcp", "api_key_env": "PATH", "headers": {"Authorization": "x"}}, "more than once"),
    "a header of two lines": ({"url": "http://a/mcp", "headers": {"a": "b\nc"}}, "headers.a: expected the value"),
    "a quote that is open": ({"command": "run 'it"}, "cannot be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_configuration_that_cannot_be_is_told_at_the_start(case: str) -> None:
    fields, words = BAD[case]
    with pytest.raises(ConfigError) as raised:
        McpServers([McpConfig(label="s", **fields)])
    assert str(raised.value).startswith("MCP server 's': ")
    assert words in str(raised.value)


def test_two_servers_of_one_label_and_a_missing_sdk_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    config = McpConfig(label="s", command="run")
    with pytest.raises(ConfigError, match="Two MCP servers are called 's'"):
        McpServers([config, config])
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ConfigError, match=r"mcp is missing\. Install it: .* -m pip install '.*\[mcp\]'"):
        McpServers([config])
    assert McpServers([])


def test_what_a_server_prints_is_for_who_runs_it(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUMS_KEY", "hunter2")
    program = "import os, sys; sys.exit('no luck with ' + os.environ['SUMS_KEY'])"
    config = McpConfig(label="s", command=[sys.executable, "-c", program], env=["SUMS_KEY"])
    gateway = Gateway(Config(models=scripted_models(model.url), mcp=(config,)))
    try:
        body = {"model": "native", "input": "Hi", "tools": [{"type": "mcp", "server_label": "s"}]}
        reply = request(f"{gateway.url}/v1/responses", body)
    finally:
        gateway.stop()
    assert reply.status == 424, reply.text
    assert "cannot be used" in reply.text
    assert "hunter2" not in reply.text
