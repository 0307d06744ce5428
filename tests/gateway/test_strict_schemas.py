"""A strict schema that checks nothing is refused, on all APIs: for the arguments of a tool and for an answer. With any
other that checks nothing, the answer has a problem that says so.
"""

from typing import Any

import pytest

from callwright import strict_problems
from callwright.schema.strict import closed_problems
from tests.support.http_client import CHAT, Reply, request
from tests.support.messages_client import MESSAGES
from tests.support.outputs import QUESTION, spoken
from tests.support.responses_client import RESPONSES
from tests.support.servers import ModelServer, said

TEXT = {"type": "string"}


def closed(member: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"a": member},
        "required": ["a"],
        "additionalProperties": False,
        **more,
    }


def without(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}


BAD_PATTERN = {"type": "string", "pattern": "("}
# Each with words of its error.
REFUSED = {
    "a pattern that is none": (closed(BAD_PATTERN), "cannot be compiled"),
    "in a list": (closed({"type": "array", "items": BAD_PATTERN}), "cannot be compiled"),
    "in a union": (closed({"anyOf": [TEXT, BAD_PATTERN]}), "cannot be compiled"),
    "in a definition": (closed({"$ref": "#/$defs/b"}, **{"$defs": {"b": BAD_PATTERN}}), "cannot be compiled"),
    "in an object": (closed(closed(BAD_PATTERN)), "cannot be compiled"),
    "a reference to nothing": (closed({"$ref": "#/$defs/nothing"}), ""),
    "a reference to another host": (closed({"$ref": "https://host.invalid/x.json"}), ""),
    "a wrong reference in a definition": (
        closed({"$ref": "#/$defs/b"}, **{"$defs": {"b": closed({"$ref": "#/$defs/c"})}}),
        "",
    ),
    "an open object": (without(closed(TEXT), "additionalProperties"), "'additionalProperties' is required"),
    "an object that says it is open": (closed(TEXT, additionalProperties=True), "'additionalProperties' is required"),
    "an open object in it": (closed({"type": "object", "properties": {}}), "'additionalProperties' is required"),
    "an open object in a list": (
        closed({"type": "array", "items": {"type": "object", "properties": {}}}),
        "'additionalProperties' is required",
    ),
    "an open object in a definition": (
        closed({"$ref": "#/$defs/b"}, **{"$defs": {"b": {"type": "object", "properties": {}}}}),
        "'additionalProperties' is required",
    ),
}
TAKEN = {
    "a closed object": closed(TEXT),
    "a pattern": closed({"type": "string", "pattern": "^a+$"}),
    "a reference": closed({"$ref": "#/$defs/b"}, **{"$defs": {"b": closed(TEXT)}}),
    "itself": closed({"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
}
TOOL_PARAMS = {
    CHAT: "tools[0].function.parameters",
    RESPONSES: "tools[0].parameters",
    MESSAGES: "tools[0].input_schema",
}
each_api = pytest.mark.parametrize("path", TOOL_PARAMS, ids=["chat", "responses", "messages"])


def with_tool(path: str, schema: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    match path:
        case "/v1/chat/completions":
            function = {"name": "f", "parameters": schema, "strict": strict}
            return {"messages": [QUESTION], "tools": [{"type": "function", "function": function}]}
        case "/v1/responses":
            tool = {"type": "function", "name": "f", "parameters": schema, "strict": strict}
            return {"input": "hi", "tools": [tool]}
    tool = {"name": "f", "input_schema": schema, "strict": strict}
    return {"messages": [QUESTION], "max_tokens": 50, "tools": [tool]}


def with_answer(path: str, schema: dict[str, Any], *, strict: bool | None = True) -> dict[str, Any]:
    named = {"name": "f", "schema": schema, "strict": strict}
    match path:
        case "/v1/chat/completions":
            wanted = {"type": "json_schema", "json_schema": named}
            return {"messages": [QUESTION], "response_format": wanted}
        case "/v1/responses":
            return {"input": "hi", "text": {"format": {"type": "json_schema", **named}}}
    wanted = {"format": {"type": "json_schema", "schema": schema}}
    return {"messages": [QUESTION], "max_tokens": 50, "output_config": wanted}


def asked(url: str, path: str, body: dict[str, Any]) -> Reply:
    return request(url + path, {"model": "native", **body})


def check_refusal(reply: Reply, path: str, words: str) -> str | None:
    """The parameter that the error names, if its API does."""
    assert reply.status == 400, reply.text
    error: dict[str, Any] = reply.json["error"]
    assert error["type"] == "invalid_request_error"
    assert words in error["message"]
    if path == MESSAGES:
        assert (reply.json["type"], set(error)) == ("error", {"type", "message"})
        return None
    return str(error["param"])


@each_api
@pytest.mark.parametrize(("schema", "words"), REFUSED.values(), ids=REFUSED)
def test_a_strict_tool_that_checks_nothing_is_refused(
    simulated: str, path: str, schema: dict[str, Any], words: str
) -> None:
    reply = asked(simulated, path, with_tool(path, schema, strict=True))
    assert check_refusal(reply, path, words) in (TOOL_PARAMS[path], None)
    assert asked(simulated, path, with_tool(path, schema, strict=False)).status == 200


@each_api
@pytest.mark.parametrize(("schema", "words"), REFUSED.values(), ids=REFUSED)
def test_an_answer_that_checks_nothing_is_refused(
    simulated: str, path: str, schema: dict[str, Any], words: str
) -> None:
    check_refusal(asked(simulated, path, with_answer(path, schema)), path, words)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("strict", [None, False])
@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("way", ["native", "prompt-json", "raw-hermes-vllm", "raw-harmony-openai"])
def test_an_answer_that_need_not_be_strict_and_cannot_be_checked_says_so(
    gateway: str, model: ModelServer, way: str, path: str, strict: bool | None, stream: bool
) -> None:
    """`strict` is always on in Anthropic's API."""
    text = '{"a": 1}'
    final = f"<|channel|>final<|message|>{text}<|return|>" if "harmony" in way else text
    model.plays(said(text) if way == "native" else spoken(way, final))
    asked_ = with_answer(path, closed(BAD_PATTERN), strict=strict)
    reply = request(gateway + path, {"model": way, "stream": stream, **asked_})
    assert (reply.status, reply.problems) == (200, {"answer_unchecked": 1})
    assert len(model.asked) == 1


@each_api
@pytest.mark.parametrize("schema", TAKEN.values(), ids=TAKEN)
def test_a_schema_that_checks_is_taken(simulated: str, path: str, schema: dict[str, Any]) -> None:
    reply = asked(simulated, path, with_tool(path, schema, strict=True))
    assert reply.status == 200, reply.text


def test_only_messages_let_a_strict_member_be_optional(simulated: str) -> None:
    schema = closed(TEXT, required=[])
    statuses = {path: asked(simulated, path, with_tool(path, schema, strict=True)).status for path in TOOL_PARAMS}
    assert statuses == {CHAT: 400, RESPONSES: 400, MESSAGES: 200}


def test_a_typed_tool_may_be_strict(simulated: str) -> None:
    tool = {"type": "bash_20250124", "name": "bash", "strict": True}
    body = {"messages": [QUESTION], "max_tokens": 50, "tools": [tool]}
    assert asked(simulated, MESSAGES, body).status == 200


@pytest.mark.parametrize(("schema", "words"), REFUSED.values(), ids=REFUSED)
def test_the_library_says_the_same(schema: dict[str, Any], words: str) -> None:
    for problems in (strict_problems(schema), closed_problems(schema)):
        assert words in problems[0]
