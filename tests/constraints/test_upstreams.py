"""Constraints over HTTP: which server is told what, when, and what happens when it does not take it."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from callwright.constraints.constraint import Constraint
from callwright.constraints.limits import Limits
from callwright.conversation import FunctionTool
from callwright.errors import ConfigError
from callwright.gateway.config.build_models import build_models
from callwright.gateway.config.config import Config, ModelConfig
from callwright.turn.bounded_values import find_bounded_values
from callwright.upstreams import constrained
from tests.conftest import Served
from tests.support.http_client import CHAT, ask, request
from tests.support.outputs import QUESTION, TEXT, TOOLS, played, spoken
from tests.support.servers import Answer, ModelServer, completion, sse, whole
from tests.support.turns import wrote

FIELDS = {"structured_outputs", "response_format", "grammar", "grammar_lazy", "grammar_triggers", "json_schema", "ebnf"}
NAMED = {"type": "function", "function": {"name": "send_mail"}}
ONE = {"tools": TOOLS, "tool_choice": "required"}
STRICT = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]


def asked(gateway: str, model: ModelServer, way: str, **fields: Any) -> dict[str, Any]:
    """The body of the only request that came."""
    model.plays(played(way, "call"))
    request(gateway + CHAT, {"model": way, "messages": [QUESTION], **fields})
    return dict(model.body)


def constraining(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key in FIELDS}


@pytest.mark.parametrize("dialect", ["harmony", "hermes", "json"])
@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_each_server_is_told_in_its_own_field(gateway: str, model: ModelServer, dialect: str, choice: Any) -> None:
    told = {
        server: constraining(asked(gateway, model, f"raw-{dialect}-{server}", tools=TOOLS, tool_choice=choice))
        for server in ("openai", "vllm", "sglang", "llamacpp")
    }
    assert told["openai"] == {}
    assert told["vllm"].keys() == {"structured_outputs"}
    tag = json.loads(told["vllm"]["structured_outputs"].pop("structural_tag"))
    assert told["vllm"] == {"structured_outputs": {}}
    assert told["sglang"] == {"response_format": tag}
    assert tag["type"] == "structural_tag"
    assert "send_mail" in json.dumps(tag) or choice == NAMED
    assert told["llamacpp"].keys() == {"grammar"}
    assert told["llamacpp"]["grammar"].startswith("root ::= ")


@pytest.mark.parametrize("server", ["vllm", "sglang", "llamacpp"])
@pytest.mark.parametrize(
    "fields",
    [
        {"tools": TOOLS},
        {"tools": TOOLS, "tool_choice": "none"},
        {"tools": TOOLS, "tool_choice": "auto"},
        {"tools": [TOOLS[1], *STRICT]},
        {},
    ],
    ids=["left out", "none", "auto", "one of two is strict", "no tools"],
)
def test_no_constraint_where_text_is_an_answer(
    gateway: str, model: ModelServer, server: str, fields: dict[str, Any]
) -> None:
    assert constraining(asked(gateway, model, f"raw-hermes-{server}", **fields)) == {}


@pytest.mark.parametrize("way", ["native", "prompt-json", "prompt-hermes"])
def test_a_chat_server_without_a_name_is_told_nothing(gateway: str, model: ModelServer, way: str) -> None:
    assert constraining(asked(gateway, model, way, **ONE)) == {}


def test_where_every_tool_is_strict_calls_are_held_and_text_is_not(gateway: str, model: ModelServer) -> None:
    told = asked(gateway, model, "raw-hermes-vllm", tools=STRICT)["structured_outputs"]
    assert json.loads(told["structural_tag"])["format"]["type"] == "triggered_tags"
    lazy = asked(gateway, model, "raw-hermes-llamacpp", tools=STRICT)
    assert lazy["grammar_lazy"] is True
    assert lazy["grammar_triggers"] == [{"type": 1, "value": "<tool_call>"}]
    assert "<tool_call>" in lazy["preserved_tokens"]


@pytest.mark.parametrize("way", ["raw-harmony-vllm", "raw-hermes-vllm", "raw-hermes-llamacpp"])
def test_allowed_tools_narrow_the_grammar_and_leave_the_prompt(gateway: str, model: ModelServer, way: str) -> None:
    tools = [*TOOLS, {"type": "function", "function": {"name": "get_time"}}]
    names = [{"type": "function", "function": {"name": name}} for name in ("send_mail", "get_time")]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": names}}
    every = asked(gateway, model, way, tools=tools, tool_choice="required")
    allowed = asked(gateway, model, way, tools=tools, tool_choice=choice)
    assert every["prompt"] == allowed["prompt"]
    wide, narrow = json.dumps(constraining(every)), json.dumps(constraining(allowed))
    assert "get_weather" in wide
    assert "get_weather" not in narrow
    assert "send_mail" in narrow


def test_one_call_where_calls_are_not_parallel(gateway: str, model: ModelServer) -> None:
    several = asked(gateway, model, "raw-hermes-llamacpp", **ONE)["grammar"]
    one = asked(gateway, model, "raw-hermes-llamacpp", **ONE, parallel_tool_calls=False)["grammar"]
    assert "){0," in several.split("n0-")[0]
    assert len(one) < len(several)


@pytest.mark.parametrize(
    "own", [{"structured_outputs": {"regex": "a+"}}, {"grammar": 'root ::= "a"'}], ids=["vllm", "llama.cpp"]
)
def test_a_constraint_of_the_clients_own_is_not_touched(gateway: str, model: ModelServer, own: dict[str, Any]) -> None:
    assert constraining(asked(gateway, model, "raw-hermes-vllm", **ONE, **own)) == own


def test_it_can_be_switched_off(serve: Served, model: ModelServer) -> None:
    how: dict[str, Any] = {"upstream": model.url, "mode": "raw", "dialect": "hermes", "server": "vllm"}
    gateway = serve(ModelConfig(name="raw-hermes-vllm", constrain="off", retries=0, **how))
    assert constraining(asked(gateway, model, "raw-hermes-vllm", **ONE)) == {}


def test_a_request_waits_for_its_grammar_only_so_long(
    serve: Served, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = fresh(serve, model, "slow")
    good = completion('late", "arguments": {}}\n</tool_call><|im_end|>')
    tools = [{"type": "function", "function": {"name": "late"}}]
    model.plays(good, good)
    monkeypatch.setattr(constrained, "_WAIT_S", 0.0)
    assert called(gateway, "slow", tools=tools) == [("late", {})]
    monkeypatch.undo()
    assert called(gateway, "slow", tools=tools) == [("late", {})]
    assert [bool(constraining(asked.body)) for asked in model.asked] == [False, True]


def test_a_grammar_that_is_too_long_is_not_sent(serve: Served, model: ModelServer) -> None:
    gateway = fresh(serve, model, "long")
    word = "v" * 40
    model.plays(completion(f'long", "arguments": {{"one_of": "{word}7"}}}}\n</tool_call><|im_end|>'))
    many = {"one_of": {"enum": [f"{word}{number}" for number in range(19_000)]}}
    tools = [{"type": "function", "function": {"name": "long", "parameters": {"type": "object", "properties": many}}}]
    assert called(gateway, "long", tools=tools) == [("long", {"one_of": f"{word}7"})]
    assert constraining(model.body) == {}


# --- servers that do not take it ---

REFUSALS: dict[str, Answer] = {
    "vllm": whole(
        {"error": {"message": "Failed to compile structured outputs", "type": "BadRequestError", "code": 400}}, 400
    ),
    "an older vllm": whole(
        {"object": "error", "message": "[{'type': 'extra_forbidden', 'msg': 'Extra inputs are not permitted'}]"}, 422
    ),
    "llama.cpp": whole({"error": {"code": 400, "message": "failed to parse grammar", "type": "server_error"}}, 400),
    "a crash": whole({"error": {"message": "xgrammar: Unexpected empty grammar stack"}}, 500),
    "an event": Answer(sse({"error": {"message": "grammar error: no state", "code": 400}})),
}


def fresh(serve: Served, model: ModelServer, name: str, **how: Any) -> str:
    """A gateway that no other test has asked."""
    config = ModelConfig(name=name, upstream=model.url, mode="raw", dialect="hermes", server="vllm", retries=0, **how)
    return serve(config)


def called(gateway: str, name: str, **fields: Any) -> list[tuple[str, Any]]:
    return ask(gateway, {"model": name, "messages": [QUESTION], **ONE, **fields}, stream=False).calls


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_server_that_refuses_is_asked_without_it_from_then_on(
    serve: Served, model: ModelServer, caplog: pytest.LogCaptureFixture, refusal: str
) -> None:
    gateway = fresh(serve, model, f"refused by {refusal}")
    good = completion('get_weather", "arguments": {"city": "Rome"}}\n</tool_call><|im_end|>')
    model.plays(REFUSALS[refusal], good, good)
    with caplog.at_level(logging.WARNING, "callwright.upstreams"):
        for _ in range(2):
            assert called(gateway, f"refused by {refusal}") == [("get_weather", {"city": "Rome"})]
    first, *others = [asked.body for asked in model.asked]
    assert constraining(first)
    assert [constraining(body) for body in others] == [{}, {}]
    assert {**others[0], "structured_outputs": first["structured_outputs"]} == first
    (said,) = [record.getMessage() for record in caplog.records if record.name == "callwright.upstreams"]
    assert "refuses the grammar" in said
    assert model.url in said


def test_other_tools_are_constrained_though_some_were_refused(serve: Served, model: ModelServer) -> None:
    gateway = fresh(serve, model, "refused once")
    good = completion('get_weather", "arguments": {"city": "Rome"}}\n</tool_call><|im_end|>')
    model.plays(REFUSALS["vllm"], good, good)
    assert called(gateway, "refused once")
    assert called(gateway, "refused once", tools=STRICT)
    assert [bool(constraining(asked.body)) for asked in model.asked] == [True, False, True]


OTHERS: dict[str, Answer] = {
    "too long": whole({"error": {"message": "This model's maximum context length is 10 tokens."}}, 400),
    "overloaded": whole({"error": {"message": "Too many requests"}}, 429),
    "broken": whole({"error": {"message": "CUDA error"}}, 500),
}


@pytest.mark.parametrize("failure", OTHERS)
def test_a_server_that_fails_for_another_reason_is_not_asked_again(
    serve: Served, model: ModelServer, failure: str
) -> None:
    gateway = fresh(serve, model, "failing")
    model.plays(OTHERS[failure])
    reply = request(gateway + CHAT, {"model": "failing", "messages": [QUESTION], **ONE})
    assert reply.status >= 400
    assert len(model.asked) == 1


def test_what_a_server_makes_of_a_constraint_is_checked_all_the_same(gateway: str, model: ModelServer) -> None:
    way = "raw-hermes-vllm"
    model.plays(spoken(way, TEXT), spoken(way, TEXT))
    reply = request(gateway + CHAT, {"model": way, "messages": [QUESTION], **ONE})
    assert reply.status == 502


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("way", "text", "fields", "is_named"),
    [
        ("raw-hermes-vllm", "m" * 512, {"max_tokens": 400}, True),
        ("raw-hermes-vllm", "m" * 511, {"max_tokens": 400}, False),
        ("raw-hermes-vllm", "m" * 512, {}, False),
        ("raw-hermes-openai", "m" * 512, {"max_tokens": 400}, False),
    ],
    ids=["as long", "shorter", "without a limit", "without a grammar"],
)
def test_a_text_as_long_as_the_grammar_allows_is_named(
    gateway: str, model: ModelServer, way: str, text: str, fields: dict[str, Any], is_named: bool, stream: bool
) -> None:
    model.plays(wrote(way, "", [("get_weather", {"city": text})]))
    body = {"model": way, "messages": [QUESTION], "tools": STRICT, "tool_choice": "required", "stream": stream}
    reply = request(gateway + CHAT, {**body, **fields})
    assert text in reply.text
    assert reply.problems.get("value_bounded", 0) == is_named


def _items(of: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": of, **more}


_TEXT: dict[str, Any] = {"type": "string"}
_NULLS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "null"}}
BOUNDED: dict[str, tuple[dict[str, Any], Callable[[Limits], Any], str]] = {
    "a text": (_TEXT, lambda most: "a" * most.characters, "'v' has 512 characters"),
    "of two types": ({"type": ["string", "null"]}, lambda most: "a" * most.characters, "'v' has 512 characters"),
    "by a reference": ({"$ref": "#/$defs/a"}, lambda most: "a" * most.characters, "'v' has 512 characters"),
    "a shorter one": (_TEXT, lambda most: "a" * (most.characters - 1), ""),
    "its own bound": ({**_TEXT, "maxLength": 512}, lambda _: "a" * 512, ""),
    "a constant": ({"const": "a" * 512}, lambda _: "a" * 512, ""),
    "a list": (_items({"type": "boolean"}), lambda most: [True] * most.items, "'v' has 64 items"),
    "a list with its own bound": (_items({"type": "boolean"}, maxItems=64), lambda _: [True] * 64, ""),
    "a number": (_items({"type": "integer"}), lambda _: [1, 10**17], "'v[1]' has 18 digits"),
    "a short number": ({"type": "integer"}, lambda _: 10**16, ""),
    "a number with a bound": ({"type": "integer", "maximum": 10**17}, lambda _: 10**17, ""),
    "a map": (_NULLS, lambda most: dict.fromkeys(map(str, range(most.members))), "'v' has 8 undeclared members"),
    "a small map": (_NULLS, lambda most: dict.fromkeys(map(str, range(most.members - 1))), ""),
}


@pytest.mark.parametrize("what", BOUNDED)
def test_values_that_end_at_a_bound_of_the_grammar_are_named(what: str) -> None:
    schema, value, words = BOUNDED[what]
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"], "$defs": {"a": _TEXT}}
    constraint = Constraint("hermes", (FunctionTool("set", parameters=whole),), tokens=384)
    arguments = json.dumps({"v": value(constraint.limits)})
    found = find_bounded_values(constraint, [("set", arguments), ("other", '{"v": 1}'), ("set", "{")])
    assert [problem.kind for problem in found] == ["value_bounded"] * bool(words)
    assert not words or words in str(found[0].detail)


@pytest.mark.parametrize(
    ("tokens", "parallel", "number", "words"),
    [
        (None, True, 16, "16 calls, as many as the grammar allows (for a token limit of the default)"),
        (None, True, 15, ""),
        (None, False, 16, ""),
        (384, True, 7, "7 calls, as many as the grammar allows (for a token limit of about 384)"),
        (384, True, 16, ""),
        (8_192, True, 65, "65 calls"),
    ],
)
def test_as_many_calls_as_the_grammar_allows_are_named(
    tokens: int | None, parallel: bool, number: int, words: str
) -> None:
    constraint = Constraint("hermes", (FunctionTool("set"),), tokens=tokens, parallel=parallel)
    found = find_bounded_values(constraint, [("set", "{}")] * number)
    assert [problem.kind for problem in found] == ["value_bounded"] * bool(words)
    assert not words or words in str(found[0].detail)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "native": ({}, "modes 'raw' and 'prompt' only"),
    "a server that is not named": ({"mode": "prompt", "dialect": "json"}, "add server"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_switching_off_what_is_never_sent_is_a_mistake(mistake: str) -> None:
    how, words = MISTAKES[mistake]
    config = Config(models=(ModelConfig(name="m", upstream="http://localhost:1/v1", constrain="off", **how),))
    with pytest.raises(ConfigError, match=words):
        build_models(config)


@pytest.mark.parametrize("server", ["ollama", "lmstudio", "transformers"])
def test_a_server_that_is_asked_over_chat_is_no_raw_one(server: Any) -> None:
    how: dict[str, Any] = {"mode": "raw", "dialect": "hermes", "server": server}
    config = Config(models=(ModelConfig(name="m", upstream="http://localhost:1/v1", **how),))
    with pytest.raises(ConfigError, match="asked over its chat endpoint"):
        build_models(config)
