"""Chat servers: mode prompt constrains a demanded call, mode native puts a choice as the server heeds it."""

import json
import logging
from typing import Any

import pytest

import callwright
from callwright.constraints.shape import marks_answers
from callwright.dialects.base import dialect_names
from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import HISTORY, QUESTION, TOOLS
from tests.support.servers import Answer, ModelServer, calling, said, whole

SERVERS = ("vllm", "sglang", "llamacpp", "ollama", "lmstudio")
NAMED = {"type": "function", "function": {"name": "send_mail"}}
THIRD = {"type": "function", "function": {"name": "get_time"}}
MAIL = {"to": "a@b.c", "text": "Hi"}
TOLD = ("response_format", "structured_outputs", "grammar", "skip_special_tokens", "tools", "tool_choice")
CALLED = json.dumps({"name": "send_mail", "arguments": MAIL})


def allowed(mode: str, *names: str) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def gateway_of(serve: Served, model: ModelServer, server: Any, dialect: str | None = None, **how: Any) -> str:
    mode: Any = "prompt" if dialect else "native"
    config = ModelConfig(name="m", upstream=model.url, mode=mode, dialect=dialect, server=server, retries=0, **how)
    return serve(config)


def told(gateway: str, model: ModelServer, answer: Answer, **fields: Any) -> dict[str, Any]:
    """What the only request that came says of tools and constraints, beside its messages."""
    model.plays(answer)
    reply = request(gateway + CHAT, {"model": "m", "messages": [QUESTION], "tools": TOOLS, **fields})
    assert reply.status == 200, reply.text
    return {key: value for key, value in model.body.items() if key in TOLD}


# --- mode prompt ---


def schema_of(fields: dict[str, Any]) -> dict[str, Any]:
    """The schema that an answer is held to: as a tag, where that bounds its white space."""
    if "structured_outputs" in fields:
        fields = {"response_format": json.loads(fields["structured_outputs"]["structural_tag"])}
    assert fields.keys() == {"response_format"}
    format_ = fields["response_format"]
    if format_["type"] == "structural_tag":
        assert format_["format"]["max_whitespace_cnt"] == 1
        return dict(format_["format"]["json_schema"])
    assert format_["type"] == "json_schema"
    assert format_["json_schema"]["strict"] is True
    return dict(format_["json_schema"]["schema"])


@pytest.mark.parametrize("server", SERVERS)
def test_calls_in_plain_json_are_held_by_a_schema(serve: Served, model: ModelServer, server: str) -> None:
    gateway = gateway_of(serve, model, server, "json")
    several = schema_of(told(gateway, model, said(f'{{"tool_calls": [{CALLED}]}}'), tool_choice="required"))
    names = [one["properties"]["name"]["const"] for one in several["properties"]["tool_calls"]["items"]["anyOf"]]
    assert names == ["get_weather", "send_mail"]
    one = schema_of(told(gateway, model, said(CALLED), tool_choice=NAMED, parallel_tool_calls=False))
    assert one["properties"]["name"] == {"type": "string", "const": "send_mail"}
    assert one["properties"]["arguments"]["required"] == ["to", "text"]


@pytest.mark.parametrize(
    ("parameters", "closed"),
    [
        (None, True),
        ({"type": "object", "properties": {}}, True),
        ({"type": "object", "properties": {}, "required": []}, True),
        ({"type": "object"}, False),
        ({"type": "object", "properties": {}, "additionalProperties": True}, False),
        ({"type": "object", "properties": {}, "minProperties": 1}, False),
        ({"type": "object", "properties": {}, "required": ["sides"]}, False),
    ],
    ids=str,
)
def test_a_tool_with_an_empty_list_of_parameters_is_called_without(
    serve: Served, model: ModelServer, parameters: Any, closed: bool
) -> None:
    tool = {"type": "function", "function": {"name": "roll_dice", "parameters": parameters}}
    called = json.dumps({"name": "roll_dice", "arguments": {} if closed else {"sides": 6}})
    choice = {"tools": [tool], "tool_choice": "required", "parallel_tool_calls": False}
    one = schema_of(told(gateway_of(serve, model, "vllm", "json"), model, said(called), **choice))
    assert (one["properties"]["arguments"].get("additionalProperties") is False) == closed


@pytest.mark.parametrize("server", ["llamacpp", "ollama", "lmstudio"])
def test_other_formats_are_held_by_the_schema_where_there_is_no_more(
    serve: Served, model: ModelServer, server: str
) -> None:
    gateway = gateway_of(serve, model, server, "qwen3_coder")
    assert schema_of(told(gateway, model, said(CALLED), tool_choice="required", parallel_tool_calls=False))
    assert ask(gateway_playing(gateway, model, CALLED), ONE, stream=True).calls == [("send_mail", MAIL)]


ONE = {"model": "m", "messages": [QUESTION], "tools": TOOLS, "tool_choice": "required"}


def gateway_playing(gateway: str, model: ModelServer, text: str) -> str:
    model.plays(said(text))
    return gateway


def test_a_format_of_its_own_is_held_by_a_tag(serve: Served, model: ModelServer) -> None:
    text = f'<tool_call>\n{{"name": "send_mail", "arguments": {json.dumps(MAIL)}}}\n</tool_call>'
    vllm = told(gateway_of(serve, model, "vllm", "hermes"), model, said(text), tool_choice="required")
    sglang = told(gateway_of(serve, model, "sglang", "hermes"), model, said(text), tool_choice="required")
    tag = json.loads(vllm["structured_outputs"]["structural_tag"])
    assert tag["type"] == "structural_tag"
    assert vllm == {"structured_outputs": vllm["structured_outputs"], "skip_special_tokens": False}
    assert sglang == {"response_format": tag, "skip_special_tokens": False}


@pytest.mark.parametrize("server", SERVERS)
def test_formats_that_mark_their_answers_are_left_to_the_chat_server(
    serve: Served, model: ModelServer, server: str
) -> None:
    assert marks_answers("harmony")
    gateway = gateway_of(serve, model, server, "harmony")
    text = f"<|channel|>commentary to=functions.send_mail<|message|>{json.dumps(MAIL)}<|call|>"
    assert told(gateway, model, said(text), tool_choice="required") == {}


@pytest.mark.parametrize("fields", [{}, {"tool_choice": "auto"}, {"tool_choice": "none"}], ids=str)
@pytest.mark.parametrize("dialect", ["json", "hermes"])
def test_where_text_is_an_answer_a_chat_server_is_told_nothing(
    serve: Served, model: ModelServer, dialect: str, fields: dict[str, Any]
) -> None:
    assert told(gateway_of(serve, model, "vllm", dialect), model, said("Sunny."), **fields) == {}


def test_allowed_tools_narrow_the_schema_and_leave_the_messages(serve: Served, model: ModelServer) -> None:
    gateway = gateway_of(serve, model, "ollama", "json")
    tools = [*TOOLS, THIRD]
    told(gateway, model, said(CALLED), tools=tools, tool_choice="required")
    system = model.body["messages"][0]["content"]
    choice = allowed("required", "send_mail", "get_time")
    narrowed = schema_of(told(gateway, model, said(CALLED), tools=tools, tool_choice=choice))
    assert "get_weather" not in json.dumps(narrowed)
    assert system[: system.index("# Tools") + 400] in model.body["messages"][0]["content"]


def test_it_can_be_switched_off(serve: Served, model: ModelServer) -> None:
    gateway = gateway_of(serve, model, "ollama", "json", constrain="off")
    assert told(gateway, model, said(CALLED), tool_choice="required") == {}


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_server_that_refuses_is_asked_without_it_from_then_on(
    serve: Served, model: ModelServer, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    gateway = gateway_of(serve, model, "lmstudio", "json", idle_timeout_s=20.0 + stream)
    refusal = whole({"error": "'response_format.type' must be 'text'"}, 400)
    model.plays(refusal, said(CALLED), said(CALLED))
    with caplog.at_level(logging.WARNING, "callwright.upstreams"):
        for _ in range(2):
            assert ask(gateway, ONE, stream=stream).calls == [("send_mail", MAIL)]
    assert ["response_format" in asked.body for asked in model.asked] == [True, False, False]
    assert "refuses the grammar" in caplog.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_takes_no_tag_is_told_the_schema(serve: Served, model: ModelServer, stream: bool) -> None:
    gateway = gateway_of(serve, model, "vllm", "json", idle_timeout_s=21.0 + stream)
    refusal = whole({"error": {"message": "guidance does not support structural tags of this kind"}}, 400)
    model.plays(refusal, said(CALLED), said(CALLED))
    for _ in range(2):
        assert ask(gateway, ONE, stream=stream).calls == [("send_mail", MAIL)]
    told_in = [[field for field in TOLD if field in asked.body] for asked in model.asked]
    assert told_in == [["structured_outputs"], ["response_format"], ["response_format"]]
    assert schema_of({"response_format": model.asked[-1].body["response_format"]})


@pytest.mark.parametrize("dialect", [name for name in dialect_names() if not marks_answers(name)])
@pytest.mark.parametrize("text", [CALLED, f'{{"tool_calls": [{CALLED}, {CALLED.replace("Hi", "Ho")}]}}'])
def test_every_dialect_reads_what_the_schema_allows(dialect: str, text: str) -> None:
    turn = callwright.parse(text, dialect=dialect, tools=TOOLS, tool_choice="required", start="message")
    assert [call.name for call in turn.calls] == ["send_mail"] * (text.count("arguments"))
    assert json.loads(turn.calls[0].arguments) == MAIL


# --- mode native ---


def names(fields: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in fields.get("tools", ())]


BOTH = ["get_weather", "send_mail"]
CHOICES: dict[str, tuple[Any, dict[str, tuple[list[str], Any]]]] = {
    "required": ("required", dict.fromkeys(("openai", "vllm", "sglang", "llamacpp", "lmstudio"), (BOTH, "required"))),
    "named": (
        NAMED,
        {
            **dict.fromkeys(("openai", "vllm", "sglang"), (BOTH, NAMED)),
            **dict.fromkeys(("llamacpp", "lmstudio"), (["send_mail"], "required")),
        },
    ),
    "two of three are allowed, one has to be called": (
        allowed("required", "send_mail", "get_time"),
        {
            "openai": ([*BOTH, "get_time"], "required"),
            **dict.fromkeys(("vllm", "sglang", "llamacpp", "lmstudio"), (["send_mail", "get_time"], "required")),
        },
    ),
    "two of three are allowed": (
        allowed("auto", "send_mail", "get_time"),
        {
            "openai": ([*BOTH, "get_time"], None),
            **dict.fromkeys((*SERVERS, "transformers"), (["send_mail", "get_time"], None)),
        },
    ),
    "none": (
        "none",
        {
            **dict.fromkeys(("openai", "vllm", "llamacpp"), (BOTH, "none")),
            **dict.fromkeys(("ollama", "transformers"), ([], None)),
        },
    ),
    "auto": ("auto", dict.fromkeys(("openai", *SERVERS), (BOTH, None))),
}


@pytest.mark.parametrize(
    ("choice", "server"), [(choice, server) for choice, (_, ways) in CHOICES.items() for server in ways]
)
def test_a_choice_is_put_as_the_server_heeds_it(serve: Served, model: ModelServer, choice: str, server: str) -> None:
    given, ways = CHOICES[choice]
    tools = [*TOOLS, THIRD] if "three" in choice else TOOLS
    answer = said("Sunny.") if choice == "none" else calling("send_mail", json.dumps(MAIL))
    fields = told(gateway_of(serve, model, server), model, answer, tools=tools, tool_choice=given)
    assert (names(fields), fields.get("tool_choice")) == ways[server]


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_what_a_server_does_not_heed_is_asked_in_words_and_not_sent(
    serve: Served, model: ModelServer, choice: Any
) -> None:
    gateway = gateway_of(serve, model, "transformers")
    fields = told(gateway, model, said(CALLED), tool_choice=choice)
    assert not {"tools", "tool_choice", *TOLD} & fields.keys()
    said_first = model.asked[-1].body["messages"][0]
    assert said_first["role"] == "system"
    assert "For this answer call" in said_first["content"]


def test_strict_goes_to_the_server_as_it_is(serve: Served, model: ModelServer) -> None:
    parameters = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    tool = {"type": "function", "function": {"name": "get_time", "parameters": parameters, "strict": True}}
    fields = told(gateway_of(serve, model, "vllm"), model, calling("get_time", "{}"), tools=[tool])
    assert fields == {"tools": [tool]}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "choice", ["required", NAMED, allowed("required", *BOTH)], ids=["required", "named", "allowed"]
)
def test_ollama_is_asked_for_a_demanded_call_in_words_and_by_schema(
    serve: Served, model: ModelServer, choice: Any, stream: bool
) -> None:
    gateway = gateway_of(serve, model, "ollama")
    model.plays(said(CALLED[:9], CALLED[9:]))
    answer = ask(gateway, {**ONE, "messages": [*HISTORY, QUESTION], "tool_choice": choice}, stream=stream)
    assert answer.calls == [("send_mail", MAIL)]
    assert answer.finish_reason == "tool_calls"
    assert "tools" not in model.body
    assert "send_mail" in model.body["messages"][0]["content"]
    assert "18 °C, sunny" in json.dumps(model.body["messages"], ensure_ascii=False)
    assert model.body["response_format"]["type"] == "json_schema"


def test_ollama_reads_the_calls_that_nobody_demands(serve: Served, model: ModelServer) -> None:
    fields = told(gateway_of(serve, model, "ollama"), model, calling("send_mail", json.dumps(MAIL)))
    assert names(fields) == BOTH
    assert "response_format" not in fields
