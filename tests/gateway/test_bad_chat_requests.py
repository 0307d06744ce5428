"""Wrong requests over HTTP: each is told by OpenAI's status, type, code and param, in OpenAI's words where known."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.bad_requests import BAD, STRICT, Bad
from tests.support.http_client import CHAT, Reply, request
from tests.support.outputs import HISTORY, QUESTION, played
from tests.support.servers import ModelServer, said

LIMIT = 16_777_216


def holds(reply: Reply, bad: Bad) -> None:
    error = reply.error
    assert reply.status == bad.status, reply.text
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", bad.param, bad.code), error
    if "…" not in bad.message:
        assert error["message"] == bad.message
        return
    rest = error["message"]
    for words in bad.message.split("…"):
        assert words in rest, error["message"]
        rest = rest[rest.index(words) + len(words) :]


def body_of(given: Mapping[str, Any], stream: bool) -> dict[str, Any]:
    body = {"model": "native", "messages": [QUESTION], "stream": stream, **given}
    return {key: value for key, value in body.items() if not (key in ("model", "messages") and value is None)}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.title)
def test_a_wrong_request_is_told_what_is_wrong(gateway: str, model: ModelServer, bad: Bad, stream: bool) -> None:
    holds(request(gateway + CHAT, body_of(bad.given, stream)), bad)
    assert model.asked == []


@pytest.mark.parametrize("bad", STRICT, ids=lambda bad: bad.title)
def test_a_strict_tool_may_not_have(gateway: str, model: ModelServer, bad: Bad) -> None:
    model.plays(said("Hi"))
    holds(request(gateway + CHAT, body_of(bad.given, False)), bad)
    assert model.asked == []


def test_the_schema_of_a_tool_that_is_not_strict_may_have_all_of_that(gateway: str, model: ModelServer) -> None:
    for bad in STRICT:
        (tool,) = bad.given["tools"]
        loose = {**tool, "function": {**tool["function"], "strict": False}}
        model.plays(said("Hi"))
        assert request(gateway + CHAT, body_of({"tools": [loose]}, False)).status == 200


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        inner = {"type": "object", "properties": {"a": inner}}
    return inner


ODD_SCHEMAS: dict[str, Any] = {
    "an unknown type": {"type": "object", "properties": {"city": {"type": "strng"}}},
    "a reference to nothing": {"type": "object", "properties": {"city": {"$ref": "#/$defs/nothing"}}},
    "a reference to itself": {"type": "object", "properties": {"city": {"$ref": "#/properties/city"}}},
    "a reference to another host": {"type": "object", "properties": {"city": {"$ref": "https://host.invalid/x.json"}}},
    "a pattern that is none": {"type": "object", "properties": {"city": {"type": "string", "pattern": "("}}},
    "properties that are a number": {"type": "object", "properties": 5},
    "properties that are a list": {"type": "object", "properties": []},
    "properties that are null": {"type": "object", "properties": None},
    "a property that is a number": {"type": "object", "properties": {"city": 5}},
    "a property that is null": {"type": "object", "properties": {"city": None}},
    "a property that may be anything": {"type": "object", "properties": {"city": True}},
    "required that is a text": {"type": "object", "properties": {"city": {"type": "string"}}, "required": "city"},
    "required that is null": {"type": "object", "properties": {"city": {"type": "string"}}, "required": None},
    "an enumeration that is a number": {"type": "object", "properties": {"city": {"enum": 5}}},
    "a union that is a number": {"type": "object", "properties": {"city": {"anyOf": 5}}},
    "a description that is a number": {"type": "object", "properties": {"city": {"type": "string", "description": 5}}},
    "an unknown draft": {"$schema": "https://host.invalid/draft", "type": "object", "properties": {"city": {}}},
    "300 levels": {"type": "object", "properties": {"city": {}, "deep": nested(300)}},
}


@pytest.mark.parametrize("odd", ODD_SCHEMAS)
@pytest.mark.parametrize("way", ["native", "prompt-json", "prompt-hermes", "raw-hermes-vllm", "raw-harmony-vllm"])
def test_no_schema_makes_the_gateway_fail(gateway: str, model: ModelServer, way: str, odd: str) -> None:
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": ODD_SCHEMAS[odd]}}]
    model.plays(played(way, "call"))
    reply = request(gateway + CHAT, {"model": way, "messages": HISTORY, "tools": tools})
    if reply.status == 200:
        assert "get_weather" in reply.text
        return
    assert reply.status == 400
    assert reply.error["type"] == "invalid_request_error"
    assert (reply.error["param"] or "").startswith("tools[0]")


def test_stream_options_are_for_streams(gateway: str) -> None:
    body = {"model": "native", "messages": [QUESTION], "stream_options": {"include_usage": True}}
    message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    holds(request(gateway + CHAT, body), Bad("", None, message, "stream_options"))
    holds(request(gateway + CHAT, {**body, "stream": False}), Bad("", None, message, "stream_options"))


NOT_JSON: dict[bytes, str] = {
    b"": "It is empty.",
    b" \n": "It is empty.",
    b"hello": "It is not valid JSON: Expecting value at line 1, column 1.",
    b'{"model": "native", ': "line 1, column 21.",
    b'{"model": "native",\n "messages": [],}': "line 2, column 1",
    b'{"model": "native"} {}': "line 1, column 21.",
    b'{"temperature": NaN}': "It is not valid JSON: …byte 16",
    b"\xff\xfe{}": "It is not UTF-8: byte 0xff at position 0.",
    b'{"model": "\xff"}': "It is not UTF-8: byte 0xff at position 11.",
    b'{"model": "\xed\xa0\x80"}': "It is not UTF-8: byte 0xed at position 11.",
    b"[" * 100_000: "It is nested too deeply.",
    b'{"a":' * 100_000: "It is nested too deeply.",
    b'{"messages": "\\ud800"}': "It contains an unpaired surrogate, \\ud800, …at line 1, column 15.",
    b'["\\\\ud800 \\ud83d\\ude00",\n"\\uDE00"]': "surrogate, \\uDE00, …at line 2, column 2.",
}


@pytest.mark.parametrize("body", NOT_JSON, ids=lambda body: repr(body[:24]))
def test_a_body_that_is_no_json_is_told_what_is_wrong_and_where(gateway: str, body: bytes) -> None:
    told = f"We could not parse the JSON body of your request. (…{NOT_JSON[body]}"
    holds(request(gateway + CHAT, body), Bad("", None, told))


@pytest.mark.parametrize(("body", "got"), [([], "array"), ("Hi", "string"), (5, "integer"), (None, "null")])
def test_a_body_that_is_no_object_is_told_so(gateway: str, body: Any, got: str) -> None:
    error = request(gateway + CHAT, b"null" if body is None else body).error
    assert error["type"] == "invalid_request_error"
    assert error["param"] is None
    assert "''" not in error["message"]
    assert "object" in error["message"]
    assert got in error["message"]


@pytest.mark.parametrize("headers", [{}, {"transfer-encoding": "chunked"}], ids=["its length told", "chunked"])
def test_a_body_over_the_limit_is_refused_in_a_way_that_can_be_read(gateway: str, headers: dict[str, str]) -> None:
    text = b'{"model": "native", "messages": [{"role": "user", "content": "' + b"x" * 20_000_000 + b'"}]}'
    if headers:
        text = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (text[:LIMIT], text[LIMIT:], b""))
    reply = request(gateway + CHAT, text, headers=headers)
    assert reply.status == 413
    assert reply.error["type"] == "invalid_request_error"
    assert str(LIMIT) in reply.error["message"]


def test_a_body_at_the_limit_is_not_refused(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    head, tail = b'{"model": "native", "messages": [{"role": "user", "content": "', b'"}]}'
    text = head + b"x" * (LIMIT - len(head) - len(tail)) + tail
    assert len(text) == LIMIT
    assert request(gateway + CHAT, text).status == 200


EVERY = (
    "This gateway serves POST /v1/chat/completions, POST /v1/messages, POST /v1/messages/count_tokens, "
    "POST /v1/completions, POST /v1/embeddings, POST /v1/rerank, POST /rerank, POST /v2/rerank, POST /v1/score, "
    "POST /v1/responses, POST /v1/responses/compact, POST /v1/responses/input_tokens, POST /v1/conversations, "
    "GET /v1/models, GET /healthz, GET /readyz, GET /openapi.json, GET /metrics."
)
WRONG_URLS = {
    "/v1/x": EVERY,
    "/v1/chat": EVERY,
    "/v1/chat/completions/x": EVERY,
    "/chat/completions": "Expected POST /v1/chat/completions.",
    "/chat/completions/": "Expected POST /v1/chat/completions.",
    "/v1/v1/chat/completions": "Expected POST /v1/chat/completions.",
    "/v1//chat/completions": "Expected POST /v1/chat/completions.",
    "/completions": "Expected POST /v1/completions.",
    "/v1/v1/embeddings": "Expected POST /v1/embeddings.",
    "/models": "Expected GET /v1/models.",
    "/v1/healthz": "Expected GET /healthz.",
}


@pytest.mark.parametrize(
    ("method", "path", "way_out"),
    [
        *((method, path, out) for method in ("GET", "POST", "DELETE") for path, out in WRONG_URLS.items()),
        ("POST", "/", EVERY),
        ("POST", "/ui", EVERY),
        ("GET", "/ui/nothing", EVERY),
        ("GET", "/ui/api/nothing", EVERY),
    ],
)
def test_an_unknown_path_is_told_the_way_out(gateway: str, method: str, path: str, way_out: str) -> None:
    reply = request(gateway + path, b"{}", method=method)
    holds(reply, Bad("", None, f"Invalid URL ({method} {path}). {way_out}", status=404))


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", CHAT, f"POST {CHAT}"),
        ("PUT", f"{CHAT}/", f"POST {CHAT}"),
        ("DELETE", "/v1/models", "GET /v1/models"),
        ("POST", "/healthz", "GET /healthz"),
    ],
)
def test_a_wrong_method_is_told_the_right_one(gateway: str, method: str, path: str, expected: str) -> None:
    reply = request(gateway + path, method=method)
    holds(reply, Bad("", None, f"Invalid URL ({method} {path}). Expected {expected}.", status=404))


def test_a_slash_at_the_end_changes_nothing(gateway: str, model: ModelServer) -> None:
    model.plays(said("Hi"))
    assert request(f"{gateway}{CHAT}/", body_of({}, False)).json["choices"][0]["message"]["content"] == "Hi"
    for path in ("/v1/models", "/v1/models/native", "/healthz"):
        plain, slashed = (request(gateway + path + end, method="GET").text for end in ("", "/"))
        assert plain == slashed


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", CHAT, body_of({}, False), 200),
        ("POST", CHAT, body_of({}, True), 200),
        ("POST", CHAT, b"{", 400),
        ("POST", CHAT, body_of({"model": "nobody"}, False), 404),
        ("POST", "/v1/x", {}, 404),
        ("GET", "/v1/models", None, 200),
        ("GET", "/v1/models/native", None, 200),
        ("GET", "/healthz", None, 200),
    ],
    ids=["whole", "streamed", "refused", "no model", "no path", "models", "a model", "health"],
)
def test_every_answer_has_an_id_of_its_own(
    gateway: str, model: ModelServer, method: str, path: str, body: Any, status: int
) -> None:
    model.plays(said("Hi"), said("Hi"))
    replies = [request(gateway + path, body, method=method) for _ in range(2)]
    assert [reply.status for reply in replies] == [status, status]
    first, second = (reply.headers.get("x-request-id", "") for reply in replies)
    assert first.startswith("req_")
    assert first != second


def test_an_unknown_model_has_no_description(gateway: str) -> None:
    reply = request(f"{gateway}/v1/models/nativ", method="GET")
    holds(reply, Bad("", None, "…'nativ'…", "model", "model_not_found", 404))


def test_a_wrong_request_leaves_the_gateway_whole(gateway: str, model: ModelServer) -> None:
    request(gateway + CHAT, b"[" * 100_000)
    model.plays(said("Hi"))
    assert request(gateway + CHAT, body_of({}, False)).status == 200
