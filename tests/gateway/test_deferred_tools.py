"""Too many tools: the model is offered a search in their place, and the client sees a turn as any other."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from callwright.gateway.config.config import Config
from tests.conftest import scripted_models
from tests.support.http_client import CHAT, request
from tests.support.servers import Answer, Gateway, ModelServer
from tests.support.turns import Written, shown, wrote

VERBS: Final = ("archive", "copy", "delete", "list", "move", "rename", "share", "update")
NOUNS: Final = ("album", "branch", "calendar", "folder", "invoice")
NAMES: Final = tuple(f"{verb}_{noun}" for verb in VERBS for noun in NOUNS)
SCHEMA: Final = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
FUNCTIONS: Final = [
    {"name": name, "description": f"{name.split('_')[0].title()}s one {name.split('_')[1]}.", "parameters": SCHEMA}
    for name in NAMES
]
QUESTION: Final = "Please archive my folder 7."
MODES: Final = ("native", "prompt-json", "prompt-hermes", "raw-hermes-vllm", "raw-harmony-vllm")
WIRES: Final = ("chat", "responses", "messages")


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    served = ModelServer()
    yield served
    served.stop()


@pytest.fixture(scope="module")
def deferring(server: ModelServer) -> Iterator[str]:
    models = tuple(msgspec.structs.replace(each, defer_tools_above=20) for each in scripted_models(server.url))
    served = Gateway(Config(models=models))
    yield served.url
    served.stop()


def body_of(wire: str, mode: str, question: str = QUESTION, **more: Any) -> tuple[str, dict[str, Any]]:
    """A path, and a request with all tools."""
    said = [{"role": "user", "content": question}]
    if wire == "chat":
        tools = [{"type": "function", "function": function} for function in FUNCTIONS]
        return CHAT, {"model": mode, "messages": said, "tools": tools, **more}
    if wire == "responses":
        tools = [{"type": "function", **function} for function in FUNCTIONS]
        return "/v1/responses", {"model": mode, "input": said, "tools": tools, **more}
    tools = [{"name": f["name"], "description": f["description"], "input_schema": SCHEMA} for f in FUNCTIONS]
    return "/v1/messages", {"model": mode, "max_tokens": 100, "messages": said, "tools": tools, **more}


def ask(url: str, wire: str, mode: str, question: str = QUESTION, **more: Any) -> Any:
    path, body = body_of(wire, mode, question, **more)
    reply = request(url + path, body)
    assert reply.status == 200, reply.text
    return reply


def searching(mode: str, query: str, text: str = "") -> Answer:
    return wrote(mode, text, [("tool_search", {"query": query})])


def listed(body: Any) -> str:
    """The tools in a request to a server, outside the conversation."""
    return json.dumps(body.get("tools")) if "tools" in body else shown(body).partition("Please")[0]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mode", MODES)
def test_the_words_of_the_user_find_the_tool(
    deferring: str, server: ModelServer, mode: str, wire: str, stream: bool
) -> None:
    server.plays(wrote(mode, calls=[("archive_folder", {"id": 7})]))
    reply = ask(deferring, wire, mode, stream=stream)
    assert "archive_folder" in reply.text
    assert "tool_search" not in reply.text
    assert "tool_search" in listed(server.body)
    assert "update_calendar" not in shown(server.body)
    assert "archive_folder" in shown(server.body)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mode", MODES)
def test_a_search_of_the_model_is_run_and_not_shown(
    deferring: str, server: ModelServer, mode: str, wire: str, stream: bool
) -> None:
    texts = ("", "") if "json" in mode else ("Let me look.", "Found.")  # after a text, JSON may be an example
    found = wrote(mode, texts[1], [("update_calendar", {"id": 3})])
    server.plays(searching(mode, "update calendar", texts[0]), found)
    reply = ask(deferring, wire, mode, "Hm?", stream=stream)
    assert len(server.asked) == 2
    assert "update_calendar" not in shown(server.asked[0].body)
    assert "update_calendar" in shown(server.asked[1].body)
    assert "tool_search" not in reply.text
    assert "update_calendar" in reply.text
    if not stream and wire == "chat":
        (choice,) = reply.json["choices"]
        assert choice["message"]["content"] == ("\n\n".join(texts) if all(texts) else None)
        assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["update_calendar"]
        assert choice["finish_reason"] == "tool_calls"
        assert reply.json["usage"]["completion_tokens"] == 14  # of both rounds


# What the model writes before a search, if it searches, and the text after it.
SEARCHES: Final = {"none": None, "bare": ("", ""), "behind text": ("Let me look.", ""), "between texts": ("Hm.", "So.")}


@pytest.mark.parametrize("how", SEARCHES)
@pytest.mark.parametrize("mode", MODES)
def test_the_next_prompt_begins_as_the_last_one(deferring: str, server: ModelServer, mode: str, how: str) -> None:
    """But for the texts around a search, which are one text in the client's history."""
    texts = SEARCHES[how]
    if texts and "json" in mode:  # after a text, JSON may be an example
        texts = "", ""
    name = "archive_folder" if texts is None else "update_calendar"
    found = wrote(mode, texts[1] if texts else "", [(name, {"id": 7})])
    server.plays(*([] if texts is None else [searching(mode, "update my calendars", texts[0])]), found)
    path, body = body_of("chat", mode, QUESTION if texts is None else "Hm?")
    answer = request(deferring + path, body).json["choices"][0]["message"]
    (call,) = answer["tool_calls"]
    assert call["function"]["name"] == name
    body["messages"] += [answer, {"role": "tool", "tool_call_id": call["id"], "content": "Done."}]
    first, last = server.asked[0].body, server.asked[-1].body
    server.plays(wrote(mode, "Well."))
    request(deferring + path, body)
    after = server.body
    same = first if texts and texts[1] else last
    if "prompt" in first:
        assert after["prompt"].startswith(same["prompt"].rpartition("<|im_start|>")[0] or same["prompt"][:-20])
    else:
        assert after["messages"][: len(same["messages"])] == same["messages"]
        assert after.get("tools") == last.get("tools")


def test_a_chosen_tool_is_shown_without_a_search(deferring: str, server: ModelServer) -> None:
    server.plays(wrote("native", calls=[("list_album", {"id": 1})]))
    ask(deferring, "chat", "native", "Hm?", tool_choice={"type": "function", "function": {"name": "list_album"}})
    assert "list_album" in listed(server.body)
    assert server.body["tool_choice"] == {"type": "function", "function": {"name": "list_album"}}


def test_a_required_call_is_one_of_the_clients_tools(deferring: str, server: ModelServer) -> None:
    server.plays(
        searching("native", "zebra"), searching("native", "yak"), wrote("native", calls=[("list_album", {"id": 1})])
    )
    reply = ask(deferring, "chat", "native", "Hm?", tool_choice="required")
    assert [asked.body["tool_choice"] for asked in server.asked] == ["required"] * 3
    assert len(server.asked[-1].body["tools"]) == len(NAMES)  # no search has found any
    assert reply.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "list_album"


@pytest.mark.parametrize(
    ("queries", "choice"),
    [(["zebra", "yak"], "none"), (["zebra", "zebra"], "none"), (["copy album", "copy album"], "auto")],
)
def test_a_model_that_searches_in_vain_has_to_answer(
    deferring: str, server: ModelServer, queries: list[str], choice: str
) -> None:
    """It may call the tools found, and no others."""
    server.plays(*(searching("native", query) for query in queries), wrote("native", "I have no such tool."))
    reply = ask(deferring, "chat", "native", "Hm?")
    assert [asked.body.get("tool_choice", "auto") for asked in server.asked] == ["auto", "auto", choice]
    assert reply.json["choices"][0]["message"]["content"] == "I have no such tool."


def test_other_words_may_find_what_the_first_did_not(deferring: str, server: ModelServer) -> None:
    found = wrote("native", calls=[("copy_album", {"id": 1})])
    server.plays(searching("native", "zebra"), searching("native", "album"), found)
    reply = ask(deferring, "chat", "native", "Hm?")
    assert reply.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "copy_album"


def test_searches_are_bounded(deferring: str, server: ModelServer) -> None:
    server.plays(*(searching("native", noun) for noun in (*NOUNS, VERBS[0], VERBS[1])), wrote("native", "Well."))
    reply = ask(deferring, "chat", "native", "Hm?")
    assert len(server.asked) <= 7
    assert "tool_search" not in reply.text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wire", WIRES)
def test_all_rounds_share_one_limit_of_tokens(deferring: str, server: ModelServer, wire: str, mode: str) -> None:
    """Each round uses 7 tokens."""
    limit = "max_output_tokens" if wire == "responses" else "max_tokens"
    found = wrote(mode, calls=[("copy_album", {"id": 3})])
    server.plays(searching(mode, "update calendar"), searching(mode, "copy album"), found)
    reply = ask(deferring, wire, mode, "Hm?", **{limit: 16})
    sent = [asked.body.get("max_tokens", asked.body.get("max_completion_tokens")) for asked in server.asked]
    assert sent == [16, 9, 2]
    assert "copy_album" in reply.text
    if wire != "responses":  # where 16 is the least
        server.plays(searching(mode, "update calendar"))
        reply = ask(deferring, wire, mode, "Hm?", **{limit: 7})
        assert len(server.asked) == 1
        assert '"length"' in reply.text or '"max_tokens"' in reply.text


def test_calls_beside_a_search_go_out_with_their_own_numbers(deferring: str, server: ModelServer) -> None:
    calls: list[Written] = [
        ("archive_folder", {"id": 7}),
        ("tool_search", {"query": "album"}),
        ("copy_folder", {"id": 7}),
    ]
    server.plays(wrote("native", calls=calls))
    reply = ask(deferring, "chat", "native", "Archive my folder 7, and copy it.", stream=True)
    chunks = [json.loads(line[6:]) for line in reply.text.split("\n") if line.startswith("data: {")]
    begun = [
        (call["index"], call["function"]["name"])
        for chunk in chunks
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", ())
        if call["function"].get("name")
    ]
    assert begun == [(0, "archive_folder"), (1, "copy_folder")]


@pytest.mark.parametrize("names", [NAMES[:20], (*NAMES[:30], "tool_search")], ids=["few", "own search"])
def test_other_requests_are_left_as_they_are(deferring: str, server: ModelServer, names: tuple[str, ...]) -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names]
    server.plays(wrote("native", "Yes."))
    ask(deferring, "chat", "native", tools=tools)
    assert len(server.body["tools"]) == len(names)
    assert len(server.body["messages"]) == 1


# --- counted ---


@pytest.fixture(scope="module")
def listing(server: ModelServer) -> Iterator[str]:
    """A gateway that lists all tools."""
    served = Gateway(Config(models=scripted_models(server.url)))
    yield served.url
    served.stop()


COUNTS: Final = {"responses": "/input_tokens", "messages": "/count_tokens"}
# What else a request has, and whether its tools are deferred.
COUNTED: Final[dict[str, tuple[dict[str, Any], bool]]] = {
    "a search": ({}, True),
    "no call": ({"tool_choice": "none"}, True),
    "few tools": ({"tools": 3}, False),
    "a tool that is demanded": ({"named": "share_branch"}, True),
}


def count(url: str, wire: str, mode: str, title: str) -> tuple[int, dict[str, Any]]:
    """The number of tokens, and the body of the request."""
    more = dict(COUNTED[title][0])
    path, body = body_of(wire, mode)
    body["tools"] = body["tools"][: more.pop("tools", None)]
    if (name := more.pop("named", None)) is not None:
        more["tool_choice"] = {"type": "function" if wire == "responses" else "tool", "name": name}
    elif "tool_choice" in more and wire == "messages":
        more["tool_choice"] = {"type": more["tool_choice"]}
    body |= more
    counted = {key: value for key, value in body.items() if key != "max_tokens"}
    reply = request(url + path + COUNTS[wire], counted)
    assert reply.status == 200, reply.text
    return reply.json["input_tokens"], body


@pytest.mark.parametrize("title", COUNTED)
@pytest.mark.parametrize("wire", COUNTS)
@pytest.mark.parametrize("mode", MODES)
def test_the_prompt_that_is_sent_is_counted(
    deferring: str, listing: str, server: ModelServer, mode: str, wire: str, title: str
) -> None:
    counts = []
    for url in (deferring, listing):
        tokens, body = count(url, wire, mode, title)
        counts.append(tokens)
        server.plays(wrote(mode, "Fine."))
        request(url + body_of(wire, mode)[0], body)
        asked = server.asked[0].body
        sent = len(json.dumps([asked.get("messages"), asked.get("prompt"), asked.get("tools")]))
        if url == deferring:
            assert 0.5 < tokens / (sent / 4) < 1.05  # an estimate has no marks around messages
    assert (counts[0] != counts[1]) == COUNTED[title][1]


def test_the_first_event_of_a_stream_has_the_same_count(deferring: str, server: ModelServer) -> None:
    tokens, body = count(deferring, "messages", "native", "a search")
    server.plays(wrote("native", calls=[("archive_folder", {"id": 7})]))
    reply = request(f"{deferring}/v1/messages", {**body, "stream": True})
    first = next(json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {"))
    assert first["message"]["usage"]["input_tokens"] == tokens


@pytest.mark.parametrize("defers", [True, False])
def test_tools_that_are_deferred_do_not_compact_a_conversation(
    deferring: str, listing: str, server: ModelServer, defers: bool
) -> None:
    server.plays(wrote("native", "A summary."), wrote("native", "Fine."))
    path, body = body_of("responses", "native")
    history = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}, *body["input"]]
    compaction = [{"type": "compaction", "compact_threshold": 1_500}]
    url = deferring if defers else listing
    reply = request(url + path, {**body, "input": history, "context_management": compaction})
    assert reply.status == 200, reply.text
    assert ("compaction" in [item["type"] for item in reply.json["output"]]) != defers
