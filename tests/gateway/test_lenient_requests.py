"""Models with `requests = "lenient"`: what OpenAI refuses only for its form is answered, on all three wires."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.gateway.config.config import ModelConfig
from callwright.openai_format.tool_names import ClientTool, ToolNames
from tests.conftest import Served
from tests.support.http_client import request
from tests.support.messages_client import message_of, named_events
from tests.support.outputs import block
from tests.support.servers import Answer, ModelServer, calling, completion, said

Wire: TypeAlias = Literal["chat", "responses", "messages"]
WIRES: Final[tuple[Wire, ...]] = ("chat", "responses", "messages")
PATHS: Final[Mapping[Wire, str]] = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
MODES: Final = ("native", "raw")
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
INPUT: Final = '{"city": "Lima"}'
DROPPED: Final = "x-callwright-dropped-fields"
TAKEN: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAMES: Final = (
    "weather.lookup",
    "weather/lookup",
    "weather lookup",
    "wetter_für_heute",
    "天気",
    "weather:lookup@2",
    "look_up_the_weather_" * 5,
)


def served(serve: Served, url: str, requests: Literal["strict", "lenient"] = "lenient") -> str:
    how: dict[str, Any] = {"upstream": url, "requests": requests, "retries": 0}
    raw = ModelConfig(name="raw", mode="raw", dialect="hermes", server="vllm", **how)
    return serve(ModelConfig(name="native", **how), raw)


def tool(wire: Wire, name: str, schema: Any = SCHEMA, **more: Any) -> dict[str, Any]:
    if wire == "chat":
        return {"type": "function", "function": {"name": name, "parameters": schema, **more}}
    if wire == "responses":
        return {"type": "function", "name": name, "parameters": schema, **more}
    return {"name": name, "input_schema": schema, **more}


def asked(wire: Wire, mode: str, tools: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    question = [{"role": "user", "content": "How is the weather in Lima?"}]
    body = {"model": mode, "tools": tools, "input" if wire == "responses" else "messages": question}
    return {**body, **({"max_tokens": 500} if wire == "messages" else {}), **more}


def calls_of(wire: Wire, gateway: str, body: dict[str, Any], *, stream: bool) -> list[tuple[str, Any]]:
    """The calls that the client gets: names and arguments."""
    if wire == "messages":
        content = message_of(gateway, body, stream=stream)["content"]
        return [(part["name"], part["input"]) for part in content if part["type"] == "tool_use"]
    reply = request(gateway + PATHS[wire], {**body, "stream": stream})
    assert reply.status == 200, reply.text
    if wire == "responses":
        response = reply.json if not stream else named_events(reply)[-1][1]["response"]
        calls = [item for item in response["output"] if item["type"] == "function_call"]
        return [(call["name"], json.loads(call["arguments"])) for call in calls]
    if not stream:
        calls = reply.json["choices"][0]["message"]["tool_calls"]
        return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
    chunks = [event for event in reply.events if isinstance(event, dict)]
    deltas = [one for event in chunks for each in event["choices"] for one in each["delta"].get("tool_calls", ())]
    names = [one["function"]["name"] for one in deltas if one["function"].get("name")]
    text = "".join(one["function"].get("arguments", "") for one in deltas)
    return [(name, json.loads(text)) for name in names]


def calls_first(mode: str, arguments: str = INPUT) -> Callable[[Any], Answer]:
    """The model calls the first tool that it is shown, as it is shown it."""

    def answer(body: Any) -> Answer:
        if mode == "native":
            return calling(body["tools"][0]["function"]["name"], arguments)
        return completion(block(shown(body), arguments) + "<|im_end|>")

    return answer


def shown(body: Any) -> str:
    found = re.search(r'"name": "([^"]*)"', body["prompt"])
    assert found is not None
    return found[1]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_of_any_name_is_known_to_the_model_by_an_alias_and_to_the_client_by_its_name(
    serve: Served, model: ModelServer, wire: Wire, mode: str, stream: bool
) -> None:
    gateway = served(serve, model.url)
    for name in NAMES:
        model.plays(calls_first(mode))
        body = asked(wire, mode, [tool(wire, name)])
        assert calls_of(wire, gateway, body, stream=stream) == [(name, {"city": "Lima"})]
        sent = model.body
        alias = sent["tools"][0]["function"]["name"] if mode == "native" else shown(sent)
        assert TAKEN.fullmatch(alias)
        assert name not in json.dumps(sent, ensure_ascii=False)


def history(wire: Wire, name: str) -> dict[str, Any]:
    """A request whose history has a call of this tool."""
    if wire == "messages":
        use: dict[str, Any] = {"type": "tool_use", "id": "toolu_7", "name": name, "input": {"city": "Lima"}}
        result = {"type": "tool_result", "tool_use_id": "toolu_7", "content": "fog"}
        said_ = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        return {"messages": [{"role": "user", "content": "And?"}, *said_]}
    if wire == "responses":
        call: dict[str, Any] = {"type": "function_call", "call_id": "c7", "name": name, "arguments": INPUT}
        return {"input": [call, {"type": "function_call_output", "call_id": "c7", "output": "fog"}]}
    call = {"id": "c7", "type": "function", "function": {"name": name, "arguments": INPUT}}
    return {
        "messages": [
            {"role": "user", "content": "And?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c7", "content": "fog"},
        ]
    }


def chosen(wire: Wire, name: str) -> dict[str, Any]:
    if wire == "messages":
        return {"type": "tool", "name": name}
    return {"type": "function", "function": {"name": name}} if wire == "chat" else {"type": "function", "name": name}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wire", WIRES)
def test_an_error_has_the_clients_name_of_a_tool(serve: Served, model: ModelServer, wire: Wire, mode: str) -> None:
    gateway = served(serve, model.url)
    name = "weather.now/celsius"
    model.plays(*[calls_first(mode, '{"city": ')] * 3)
    body = asked(wire, mode, [tool(wire, name)], tool_choice=chosen(wire, name))
    reply = request(gateway + PATHS[wire], body)
    assert reply.status in (500, 502)
    assert f"'{name}'" in reply.text
    assert "weather_now_celsius" not in reply.text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wire", WIRES)
def test_histories_and_choices_name_a_tool_as_the_client_does(
    serve: Served, model: ModelServer, wire: Wire, mode: str
) -> None:
    gateway = served(serve, model.url)
    name = "mail.send/now"
    model.plays(calls_first(mode))
    body = asked(wire, mode, [tool(wire, name)], tool_choice=chosen(wire, name)) | history(wire, name)
    assert calls_of(wire, gateway, body, stream=False) == [(name, {"city": "Lima"})]
    assert name not in json.dumps(model.body)


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_allowed_tools_are_named_as_the_client_does(serve: Served, model: ModelServer, wire: Wire) -> None:
    tools = [tool(wire, "a.b"), tool(wire, "c d")]
    within = {"mode": "auto", "tools": [chosen(wire, "c d")]}
    choice = {"type": "allowed_tools"} | ({"allowed_tools": within} if wire == "chat" else within)
    model.plays(lambda body: calling(body["tools"][1]["function"]["name"], INPUT))
    body = asked(wire, "native", tools, tool_choice=choice)
    assert calls_of(wire, served(serve, model.url), body, stream=False) == [("c d", {"city": "Lima"})]


@given(st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=12))
def test_distinct_names_have_distinct_aliases_and_come_back(names: list[str]) -> None:
    known = ToolNames(aliases=True)
    aliases = [known.add(ClientTool(name)) for name in names]
    assert len({*aliases}) == len(names)
    assert all(map(TAKEN.fullmatch, aliases))
    assert [known.client(alias).name for alias in aliases] == names
    assert [known.flat(name) for name in names] == aliases


@given(st.text(min_size=1, max_size=90))
def test_a_name_that_an_alias_takes_is_given_another(name: str) -> None:
    alias = ToolNames(aliases=True).add(ClientTool(name))
    for order in ((alias, name), (name, alias)):
        known = ToolNames(aliases=True)
        flats = [known.add(ClientTool(one)) for one in dict.fromkeys(order)]
        assert [known.client(flat).name for flat in flats] == [*dict.fromkeys(order)]


LOOSE: Final[Mapping[str, Any]] = {
    "a union at the root": {"anyOf": [SCHEMA, {"type": "object"}]},
    "a choice at the root": {"type": "object", "oneOf": [SCHEMA]},
    "all of several at the root": {"allOf": [SCHEMA]},
    "no type at the root": {"properties": SCHEMA["properties"]},
    "a word for a type": {"type": "object", "properties": {"city": {"type": "str"}, "days": {"type": "int"}}},
    "a word for the root": {"type": "dict", "properties": SCHEMA["properties"]},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("loose", LOOSE)
def test_a_schema_of_another_form_is_refused_by_strict_rules_only(
    serve: Served, model: ModelServer, loose: str, wire: Wire, mode: str
) -> None:
    body = asked(wire, mode, [tool(wire, "weather", LOOSE[loose])])
    refused = request(served(serve, model.url, "strict") + PATHS[wire], body)
    assert refused.status == 400, refused.text
    model.plays(calls_first(mode))
    assert calls_of(wire, served(serve, model.url), body, stream=False) == [("weather", {"city": "Lima"})]


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_tool_with_strict_may_have_any_schema_and_is_checked(serve: Served, model: ModelServer, wire: Wire) -> None:
    body = asked(wire, "native", [tool(wire, "weather", SCHEMA, strict=True)])
    assert request(served(serve, model.url, "strict") + PATHS[wire], body).status == 400
    gateway = served(serve, model.url)
    model.plays(calls_first("native"))
    assert calls_of(wire, gateway, body, stream=False) == [("weather", {"city": "Lima"})]
    model.plays(calls_first("native", '{"town": 5}'))
    refused = request(gateway + PATHS[wire], body)
    assert (refused.status, refused.error["code"]) == (502, "upstream_unmet")  # not what the schema asks for


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_no_schema_is_refused_by_lenient_rules_too(serve: Served, model: ModelServer, wire: Wire) -> None:
    gateway = served(serve, model.url)
    for broken in ({"type": "object", "properties": 5}, {"type": "strng"}):
        reply = request(gateway + PATHS[wire], asked(wire, "native", [tool(wire, "weather", broken)]))
        assert reply.status == 400, reply.text
    assert request(gateway + PATHS[wire], asked(wire, "native", [tool(wire, "")])).status == 400
    assert model.asked == []


@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_of_an_unknown_type_is_left_out_with_a_note(serve: Served, model: ModelServer, wire: Wire) -> None:
    gateway, strange = served(serve, model.url), {"type": "telepathy", "name": "read_minds"}
    assert request(served(serve, model.url, "strict") + PATHS[wire], asked(wire, "native", [strange])).status == 400
    for tools in ([strange, tool(wire, "weather")], [strange]):
        model.plays(said("Fog."))
        reply = request(gateway + PATHS[wire], asked(wire, "native", tools))
        assert reply.status == 200, reply.text
        assert "telepathy" in reply.headers[DROPPED]
        assert len(model.body.get("tools") or ()) == len(tools) - 1
    demanded = {"type": "any"} if wire == "messages" else "required"
    assert request(gateway + PATHS[wire], asked(wire, "native", [strange], tool_choice=demanded)).status == 400


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_a_choice_without_tools_is_no_fault(serve: Served, model: ModelServer, choice: str) -> None:
    body = {**asked("chat", "native", []), "tool_choice": choice, "parallel_tool_calls": False}
    assert request(served(serve, model.url, "strict") + PATHS["chat"], body).status == 400
    model.plays(said("Fog."))
    assert request(served(serve, model.url) + PATHS["chat"], body).status == 200


IMAGE: Final = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


@pytest.mark.parametrize("mode", MODES)
def test_an_image_in_an_output_is_handed_on_or_told(serve: Served, model: ModelServer, mode: str) -> None:
    body = asked("chat", mode, [tool("chat", "weather")]) | history("chat", "weather")
    body["messages"][-1]["content"] = [{"type": "text", "text": "fog"}, IMAGE]
    refused = request(served(serve, model.url, "strict") + PATHS["chat"], body)
    assert (refused.status, refused.error["param"]) == (400, "messages[2].content[1].type")
    model.plays(said("Fog.") if mode == "native" else completion("Fog.<|im_end|>"))
    assert request(served(serve, model.url) + PATHS["chat"], body).status == 200
    sent = json.dumps(model.body)
    assert ("iVBORw0KGgo=" in sent) == (mode == "native")
    assert ("not shown: image_url" in sent) == (mode == "raw")


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_ids_that_come_twice_and_calls_without_outputs_are_mended(
    serve: Served, model: ModelServer, wire: Wire
) -> None:
    turns = history(wire, "weather")
    field = next(iter(turns))
    body = asked(wire, "native", [tool(wire, "weather")]) | {field: [*turns[field], *turns[field][:-1]]}
    body[field].append({"role": "user", "content": "Go on."})
    assert request(served(serve, model.url, "strict") + PATHS[wire], body).status == 400
    model.plays(said("Fog."))
    assert request(served(serve, model.url) + PATHS[wire], body).status == 200
    ids = [call["id"] for message in model.body["messages"] for call in message.get("tool_calls") or ()]
    assert len({*ids}) == len(ids) == 2
