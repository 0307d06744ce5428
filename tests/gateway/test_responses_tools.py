"""Tools of the Responses API over HTTP: namespaces, custom tools, built-in kinds, and searches for tools."""

import json
from typing import Any

import pytest

from tests.conftest import Served, scripted_models
from tests.support.outputs import ARGUMENTS, played
from tests.support.responses_client import BEGIN, FUNCTIONS, body, function, kinds, order, respond, streamed
from tests.support.servers import ModelServer, call_deltas, calling, chat, said

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
WHOLE_ITEM = ["output_item.added", "output_item.done"]


# --- kinds of tools ---

DEMO = {"type": "namespace", "name": "mcp__demo", "description": "Demo.", "tools": [function("look_up", "Looks up.")]}
LONG = {"type": "namespace", "name": "n" * 40, "tools": [function("f" * 40), function("f" * 39 + "g")]}


@pytest.mark.parametrize("written", ["mcp__demo__look_up", "mcp__demo.look_up", "look_up"])
@both
def test_a_call_of_a_namespaces_tool_carries_both_names(
    gateway: str, model: ModelServer, written: str, stream: bool
) -> None:
    model.plays(calling(written, ARGUMENTS))
    (call,) = respond(gateway, stream=stream, **body(tools=[DEMO]))["output"]
    assert (call["namespace"], call["name"], call["arguments"]) == ("mcp__demo", "look_up", ARGUMENTS)
    (tool,) = model.body["tools"]
    assert tool["function"]["name"] == "mcp__demo__look_up"
    assert "Demo." in tool["function"]["description"]


@both
def test_a_function_without_a_namespace_has_none(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(calling("get_weather", ARGUMENTS))
    (call,) = respond(gateway, stream=stream, **body())["output"]
    assert "namespace" not in call


def test_names_that_are_too_long_together_are_told_apart(gateway: str, model: ModelServer) -> None:
    model.plays(lambda asked: calling(asked["tools"][1]["function"]["name"], ARGUMENTS))
    (call,) = respond(gateway, stream=False, **body(tools=[LONG]))["output"]
    assert (call["namespace"], call["name"]) == ("n" * 40, "f" * 39 + "g")
    names = [tool["function"]["name"] for tool in model.body["tools"]]
    assert len(set(names)) == 2
    assert max(map(len, names)) <= 64


def test_a_namespace_and_a_function_of_its_flat_name_are_told_apart(gateway: str, model: ModelServer) -> None:
    tools = [function("mcp__demo__look_up"), DEMO]
    model.plays(
        lambda asked: calling(asked["tools"][0]["function"]["name"], ARGUMENTS),
        lambda asked: calling(asked["tools"][1]["function"]["name"], ARGUMENTS),
    )
    for expected in (None, "mcp__demo"):
        (call,) = respond(gateway, stream=False, **body(tools=tools))["output"]
        assert call.get("namespace") == expected


def test_a_call_and_its_namespace_come_back_under_the_name_that_the_model_knows(
    gateway: str, model: ModelServer
) -> None:
    call = {"type": "function_call", "call_id": "c1", "namespace": "mcp__demo", "name": "look_up", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "18 °C"}
    model.plays(said("Hi"), said("Hi"))
    for tools in ([DEMO], []):
        respond(gateway, stream=False, **body(tools=tools, input=[{"role": "user", "content": "Hi"}, call, output]))
    for asked in model.asked:
        assert asked.body["messages"][1]["tool_calls"][0]["function"]["name"] == "mcp__demo__look_up"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (('{"input": "a\\n', 'b\\u00e9"}'), "a\nbé"),
        (("plain ", "text"), "plain text"),
        (('{"input": ""}',), ""),
        (('{"input"', ': "{\\"x\\": 1}"}'), '{"x": 1}'),
        (('{"javascript"', ': "go();\\n"}'), "go();\n"),
        (('{"snippet": "a"', ', "lines": 1}'), '{"snippet": "a", "lines": 1}'),
    ],
    ids=["escapes", "no JSON", "nothing", "JSON in it", "one text under another key", "two keys"],
)
@both
def test_a_custom_call_is_the_bare_text(
    gateway: str, model: ModelServer, arguments: tuple[str, ...], text: str, stream: bool
) -> None:
    model.plays(calling("note", *arguments))
    (call,) = respond(gateway, stream=stream, **body(tools=[{"type": "custom", "name": "note"}]))["output"]
    assert call == {
        "id": call["id"],
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "call_up_0",
        "name": "note",
        "input": text,
    }
    assert call["id"].startswith("ctc_")


@both
def test_input_by_a_grammar_leaves_only_when_it_fits(serve: Served, model: ModelServer, stream: bool) -> None:
    gateway = serve(*scripted_models(model.url, retries=1))
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: NAME ":" /[0-9]+/\nNAME: /[a-z]+/'}
    tools = [{"type": "custom", "name": "order", "format": grammar}]
    model.plays(calling("order", '{"input": "milk: two"}'), calling("order", '{"input": "milk:2"}'))
    (call,) = respond(gateway, stream=stream, **body(tools=tools))["output"]
    assert call["input"] == "milk:2"
    assert len(model.asked) == 2


BUILT_IN = {
    "shell": ('{"commands": ["ls"], "timeout_ms": null, "max_output_length": 9}', "shell_call", "action"),
    "local_shell": (
        '{"command": ["ls", "-l"], "working_directory": "/", "timeout_ms": null}',
        "local_shell_call",
        "action",
    ),
    "apply_patch": ('{"type": "delete_file", "path": "a.txt", "diff": null}', "apply_patch_call", "operation"),
}
FIELDS: dict[str, dict[str, Any]] = {
    "shell": {"commands": ["ls"], "timeout_ms": None, "max_output_length": 9},
    "local_shell": {"type": "exec", "command": ["ls", "-l"], "env": {}, "working_directory": "/"},
    "apply_patch": {"type": "delete_file", "path": "a.txt"},
}


@pytest.mark.parametrize("kind", BUILT_IN)
@both
def test_a_call_of_a_built_in_tool_is_an_item_of_its_kind(
    gateway: str, model: ModelServer, kind: str, stream: bool
) -> None:
    arguments, item, field = BUILT_IN[kind]
    model.plays(calling(kind, arguments))
    (call,) = respond(gateway, stream=stream, **body(tools=[{"type": kind}], tool_choice={"type": kind}))["output"]
    expected: dict[str, Any] = {"type": item, "status": "completed", "call_id": "call_up_0", field: FIELDS[kind]}
    if kind == "shell":
        expected["environment"] = None
    assert {key: value for key, value in call.items() if key != "id"} == expected


@pytest.mark.parametrize("kind", BUILT_IN)
def test_a_call_of_a_built_in_tool_begins_with_all_that_the_document_requires(
    gateway: str, model: ModelServer, kind: str
) -> None:
    arguments, _, field = BUILT_IN[kind]
    model.plays(calling(kind, arguments[:9], arguments[9:]))
    events = streamed(gateway, **body(tools=[{"type": kind}]))
    assert order(events) == [*BEGIN, *WHOLE_ITEM, "completed"]
    assert (events[2]["item"][field], events[2]["item"]["status"]) == (FIELDS[kind], "in_progress")


@both
@pytest.mark.parametrize("kind", ["create_file", "update_file"])
def test_a_patch_without_its_lines_is_asked_about(serve: Served, model: ModelServer, kind: str, stream: bool) -> None:
    gateway = serve(*scripted_models(model.url, retries=1))
    patches = [f'{{"type": "{kind}", "path": "a.txt"{diff}}}' for diff in ("", ', "diff": "+a"')]
    model.plays(*[calling("apply_patch", patch) for patch in patches])
    (call,) = respond(gateway, stream=stream, **body(tools=[{"type": "apply_patch"}]))["output"]
    assert call["operation"] == {"type": kind, "path": "a.txt", "diff": "+a"}
    assert len(model.asked) == 2


@pytest.mark.parametrize("kind", BUILT_IN)
def test_a_call_of_a_built_in_tool_and_its_output_come_back(gateway: str, model: ModelServer, kind: str) -> None:
    _, item, field = BUILT_IN[kind]
    call = {"type": item, "call_id": "c1", field: FIELDS[kind], "status": "completed"}
    output = {"type": f"{item}_output", "call_id": "c1", "output": "all.txt", "status": "completed"}
    model.plays(said("Hi"))
    respond(
        gateway, stream=False, **body(tools=[{"type": kind}], input=[{"role": "user", "content": "Hi"}, call, output])
    )
    _, called, answered = model.body["messages"]
    function_ = called["tool_calls"][0]["function"]
    assert function_["name"] == kind
    assert json.loads(function_["arguments"]).items() <= FIELDS[kind].items()
    assert "all.txt" in answered["content"]


@both
def test_calls_are_held_to_the_allowed_tools(gateway: str, model: ModelServer, stream: bool) -> None:
    tools = [{"type": "shell"}, DEMO, *FUNCTIONS]
    allowed = [{"type": "shell"}, {"type": "function", "namespace": "mcp__demo", "name": "look_up"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": allowed}
    deltas = [
        *call_deltas("get_weather", ARGUMENTS),
        *call_deltas("mcp__demo__look_up", ARGUMENTS, index=1, id_="call_up_1"),
        *call_deltas("shell", BUILT_IN["shell"][0], index=2, id_="call_up_2"),
    ]
    model.plays(chat(*deltas, finish="tool_calls"))
    response = respond(gateway, stream=stream, **body(tools=tools, tool_choice=choice))
    assert kinds(response["output"]) == ["function_call", "shell_call"]
    assert len(model.body["tools"]) == 4


@both
def test_one_call_at_most_leaves_where_they_may_not_be_parallel(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(played("native", "two_calls"))
    assert len(respond(gateway, stream=stream, **body(parallel_tool_calls=False))["output"]) == 1


@both
def test_under_the_choice_none_no_call_leaves(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(played("native", "text_and_call"))
    response = respond(gateway, stream=stream, **body(tool_choice="none"))
    assert kinds(response["output"]) == ["message"]


# --- searches for tools ---

SEARCH = '{"query": "latest news"}'
DEFERRED = [
    {"type": "tool_search"},
    function("plain", "Does something."),
    {
        "type": "namespace",
        "name": "press",
        "description": "About the press.",
        "tools": [
            function("get_paper", "Gets a paper.", defer_loading=True),
            function("get_news", "Gets the news of a city.", defer_loading=True),
        ],
    },
    function("send_mail", "Sends a mail.", defer_loading=True),
]


@both
def test_a_search_of_the_client_is_an_item_with_an_object(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(calling("tool_search", '{"query": "news"}'))
    tools = [
        {"type": "tool_search", "execution": "client", "description": "Finds tools."},
        function("f", defer_loading=True),
    ]
    (call,) = respond(gateway, stream=stream, **body(tools=tools))["output"]
    assert call == {
        "id": call["id"],
        "type": "tool_search_call",
        "status": "completed",
        "call_id": "call_up_0",
        "arguments": {"query": "news"},
        "execution": "client",
    }
    assert [tool["function"]["name"] for tool in model.body["tools"]] == ["tool_search"]


def test_a_search_of_the_client_begins_empty(gateway: str, model: ModelServer) -> None:
    model.plays(calling("tool_search", '{"query"', ': "news"}'))
    events = streamed(gateway, **body(tools=[{"type": "tool_search", "execution": "client"}]))
    assert order(events) == [*BEGIN, *WHOLE_ITEM, "completed"]
    assert (events[2]["item"]["arguments"], events[2]["item"]["status"]) == ({}, "in_progress")


def test_tools_that_a_client_found_can_be_called(gateway: str, model: ModelServer) -> None:
    search = {"type": "tool_search_call", "call_id": "s1", "execution": "client", "arguments": {"query": "news"}}
    found = {"type": "tool_search_output", "call_id": "s1", "execution": "client", "tools": [DEFERRED[2]]}
    model.plays(calling("press__get_news", ARGUMENTS))
    tools = [{"type": "tool_search", "execution": "client"}]
    items = [{"role": "user", "content": "News?"}, search, found]
    (call,) = respond(gateway, stream=True, **body(tools=tools, input=items))["output"]
    assert (call["namespace"], call["name"]) == ("press", "get_news")
    names = [tool["function"]["name"] for tool in model.body["tools"]]
    assert names == ["tool_search", "press__get_paper", "press__get_news"]


def test_tools_of_an_item_can_be_called_without_any_others(gateway: str, model: ModelServer) -> None:
    """A request of Codex's newest kind has no tools but those in its input."""
    item = {
        "type": "additional_tools",
        "id": "at_1",
        "role": "developer",
        "tools": [DEMO, {"type": "custom", "name": "exec"}],
    }
    model.plays(calling("exec", '{"input": "ls"}'))
    (call,) = respond(gateway, stream=True, model="native", input=[item, {"role": "user", "content": "Hi"}])["output"]
    assert (call["type"], call["input"]) == ("custom_tool_call", "ls")


def test_a_tool_that_an_item_changes_is_told_as_it_is_now(gateway: str, model: ModelServer) -> None:
    """Also where both are equal as Python compares."""
    before, now = (
        {"type": "function", "name": "water", "parameters": {"type": "object", "properties": {"on": {"enum": enum}}}}
        for enum in ([1, 0], [True, False])
    )
    model.plays(said("Done."))
    items = [{"type": "additional_tools", "role": "developer", "tools": [now]}, {"role": "user", "content": "Water."}]
    respond(gateway, stream=False, model="native", tools=[before], input=items)
    assert "true, false" in str(model.body["messages"])


@both
def test_a_search_is_run_here_and_the_model_goes_on_with_what_it_found(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    model.plays(calling("tool_search", SEARCH), calling("press__get_news", ARGUMENTS))
    response = respond(gateway, stream=stream, **body(tools=DEFERRED))
    search, found, call = response["output"]
    common = {"execution": "server", "call_id": None, "status": "completed"}
    assert search == {
        "id": search["id"],
        "type": "tool_search_call",
        **common,
        "arguments": {"query": "latest news"},
    }
    assert found == {"id": found["id"], "type": "tool_search_output", **common, "tools": found["tools"]}
    assert (search["id"][:4], found["id"][:4]) == ("tsc_", "tso_")
    (namespace,) = found["tools"]
    assert (namespace["name"], [tool["name"] for tool in namespace["tools"]]) == ("press", ["get_news"])
    assert (call["namespace"], call["name"]) == ("press", "get_news")
    assert response["usage"]["total_tokens"] == 36


def test_only_what_a_search_found_is_added_behind_the_tools_that_were_there(gateway: str, model: ModelServer) -> None:
    model.plays(calling("tool_search", SEARCH), calling("tool_search", '{"query": "mail"}'), said("Done."))
    respond(gateway, stream=True, **body(tools=DEFERRED))
    names = [[tool["function"]["name"] for tool in asked.body["tools"]] for asked in model.asked]
    assert names == [
        ["tool_search", "plain"],
        ["tool_search", "plain", "press__get_news"],
        ["tool_search", "plain", "press__get_news", "send_mail"],
    ]


def test_the_rounds_of_a_response_share_one_limit_of_tokens(gateway: str, model: ModelServer) -> None:
    """Each round uses 7 tokens."""
    searches = (calling("tool_search", json.dumps({"query": query})) for query in ("news", "mail", "paper"))
    model.plays(*searches)
    response = respond(gateway, stream=False, **body(tools=DEFERRED, max_output_tokens=21))
    assert [asked.body["max_tokens"] for asked in model.asked] == [21, 14, 7]
    assert response["usage"]["output_tokens"] == 21
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_search_leaves_the_begin_of_the_prompt_as_it_was_in_every_later_turn(
    gateway: str, model: ModelServer
) -> None:
    model.plays(
        chat(
            {"reasoning_content": "Hm."},
            {"content": "I look."},
            *call_deltas("tool_search", SEARCH),
            finish="tool_calls",
        ),
        chat(*call_deltas("tool_search", '{ "query" : "mail" }'), finish="tool_calls"),
        calling("press__get_news", ARGUMENTS),
        said("Done."),
    )
    first = respond(gateway, stream=True, **body(tools=DEFERRED))
    output = {"type": "function_call_output", "call_id": first["output"][-1]["call_id"], "output": "None."}
    respond(gateway, stream=True, **body(tools=DEFERRED, input=[output], previous_response_id=first["id"]))
    assert len(model.asked) == 4
    for before, after in zip(model.asked, model.asked[1:], strict=False):
        for field in ("messages", "tools"):
            shown = before.body[field]
            assert after.body[field][: len(shown)] == shown


@pytest.mark.parametrize("query", ['{"query": "zebra"}', '{"query": ""}', '{"query": "\\" OR 1=1; DROP TABLE x --"}'])
def test_a_search_that_finds_nothing_is_told_to_the_model(gateway: str, model: ModelServer, query: str) -> None:
    model.plays(calling("tool_search", query), said("I cannot."))
    response = respond(gateway, stream=True, **body(tools=DEFERRED))
    assert kinds(response["output"]) == ["tool_search_call", "tool_search_output", "message"]
    assert response["output"][1]["tools"] == []
    assert model.asked[1].body["messages"][-1]["content"] == "No tool was found."


@both
def test_a_search_behind_the_last_deferred_tool_is_still_run_here(
    gateway: str, model: ModelServer, stream: bool
) -> None:
    everything = '{"query": "paper news mail"}'
    model.plays(calling("tool_search", everything), calling("tool_search", everything), said("Done."))
    output = respond(gateway, stream=stream, **body(tools=DEFERRED))["output"]
    searches = ["tool_search_call", "tool_search_output"]
    assert kinds(output) == [*searches, *searches, "message"]
    assert {item["execution"] for item in output[:4]} == {"server"}


def test_text_before_a_search_is_commentary_that_the_model_sees_again(gateway: str, model: ModelServer) -> None:
    model.plays(
        chat({"content": "I look."}, *call_deltas("tool_search", SEARCH), finish="tool_calls"),
        said("There is none."),
    )
    output = respond(gateway, stream=True, **body(tools=DEFERRED))["output"]
    assert [item.get("phase") for item in output] == ["commentary", None, None, "final_answer"]
    assert model.asked[1].body["messages"][1]["content"] == "I look."


def test_a_call_beside_a_search_goes_to_the_client_first(gateway: str, model: ModelServer) -> None:
    deltas = [*call_deltas("tool_search", SEARCH), *call_deltas("plain", ARGUMENTS, index=1, id_="call_up_1")]
    model.plays(chat(*deltas, finish="tool_calls"), said("Done."))
    first = respond(gateway, stream=True, **body(tools=DEFERRED))
    assert sorted(kinds(first["output"])) == ["function_call", "tool_search_call", "tool_search_output"]
    assert len(model.asked) == 1
    output = {"type": "function_call_output", "call_id": "call_up_1", "output": "None."}
    respond(gateway, stream=True, **body(tools=DEFERRED, input=[output], previous_response_id=first["id"]))
    assert "press__get_news" in [tool["function"]["name"] for tool in model.asked[1].body["tools"]]


def test_a_model_that_searches_without_end_is_stopped(gateway: str, model: ModelServer) -> None:
    model.plays(*[calling("tool_search", SEARCH)] * 20)
    response = respond(gateway, stream=True, **body(tools=DEFERRED))
    assert response["status"] == "completed"
    assert 2 <= len(model.asked) <= 10


def test_a_deferred_tool_that_the_choice_names_is_offered_at_once(gateway: str, model: ModelServer) -> None:
    model.plays(calling("press__get_news", ARGUMENTS))
    choice = {"type": "function", "namespace": "press", "name": "get_news"}
    (call,) = respond(gateway, stream=True, **body(tools=DEFERRED, tool_choice=choice))["output"]
    assert call["name"] == "get_news"
    assert "press__get_news" in [tool["function"]["name"] for tool in model.body["tools"]]


def test_allowed_tools_that_are_deferred_can_be_searched_for(gateway: str, model: ModelServer) -> None:
    allowed = [{"type": "function", "namespace": "press", "name": "get_news"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": allowed}
    model.plays(
        calling("tool_search", '{"query": "news and mail"}'),
        chat(
            *call_deltas("send_mail", ARGUMENTS),
            *call_deltas("press__get_news", ARGUMENTS, index=1, id_="call_up_1"),
            finish="tool_calls",
        ),
    )
    output = respond(gateway, stream=True, **body(tools=DEFERRED, tool_choice=choice))["output"]
    assert kinds(output) == ["tool_search_call", "tool_search_output", "function_call"]
    assert output[-1]["name"] == "get_news"


def test_without_a_search_deferred_tools_are_offered_at_once(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    respond(gateway, stream=False, **body(tools=DEFERRED[1:]))
    assert len(model.body["tools"]) == 4
