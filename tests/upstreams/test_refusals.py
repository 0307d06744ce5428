"""Errors in the forms of many servers: their own words, the field that they name, and what came before is not lost."""

from typing import Any

import pytest
from msgspec import Struct

from callwright.gateway.config.config import ModelConfig
from tests.conftest import Served
from tests.support.http_client import CHAT, request
from tests.support.messages_client import MESSAGES
from tests.support.odd_answers import body
from tests.support.outputs import TOOLS
from tests.support.servers import Answer, ModelServer, chunk, said, sse, whole

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
MISSING = {"type": "missing", "loc": ["body", "messages", 0, "content"], "msg": "Field required", "input": {"a": 1}}
RANGE = {"type": "less_than", "loc": ["body", "temperature"], "msg": "Input should be less than 2", "input": 7}


class Refused(Struct, frozen=True):
    """The body of a 400, and what the client is told."""

    body: Any
    message: str
    param: str | None = None
    code: str | None = None


REFUSED: dict[str, Refused] = {
    "FastAPI": Refused({"detail": [MISSING]}, "messages[0].content: Field required", "messages"),
    "FastAPI, two places": Refused(
        {"detail": [RANGE, MISSING]},
        "temperature: Input should be less than 2; messages[0].content: Field required",
        "temperature",
    ),
    "FastAPI, the whole body": Refused(
        {"detail": [{"loc": ["body"], "msg": "Field required"}]}, "body: Field required", None
    ),
    "FastAPI, a place in the text": Refused(
        {"detail": [{"loc": ["body", 17], "msg": "JSON decode error"}]}, "[17]: JSON decode error"
    ),
    "FastAPI, a text": Refused({"detail": "It is too warm."}, "It is too warm"),
    "pydantic": Refused([{**MISSING, "loc": ["messages", 0]}], "messages[0]: Field required", "messages"),
    "pydantic under an error": Refused(
        {"error": {"message": [RANGE], "code": "bad_range"}},
        "temperature: Input should be less than 2",
        "temperature",
        "bad_range",
    ),
    "a param with its root": Refused(
        {"error": {"message": "No.", "param": "body.messages[0].content"}}, "No", "messages"
    ),
    "NestJS": Refused(
        {"statusCode": 400, "message": "it must be below 2", "error": "Bad Request"}, "Bad Request: it must be below 2"
    ),
    "NestJS, a list": Refused(
        {"statusCode": 400, "message": ["a is wrong", "b is wrong"], "error": "Bad Request"},
        "Bad Request: a is wrong; b is wrong",
    ),
    "the words under `error`": Refused({"message": "Failed", "error": "CUDA is out"}, "CUDA is out: Failed"),
    "words that hold the label": Refused({"message": "Bad Request: no", "error": "Bad Request"}, "Bad Request: no"),
    "RFC 9457": Refused({"title": "Bad Request", "status": 400, "detail": "It is too warm."}, "It is too warm"),
    "OAuth": Refused({"error": "invalid", "error_description": "It is too warm."}, "invalid: It is too warm"),
    "JSON:API": Refused({"errors": [{"title": "Too warm"}, {"detail": "Too long"}]}, "Too warm; Too long"),
    "Google, in a list": Refused(
        [{"error": {"code": 400, "message": "Too warm.", "status": "INVALID_ARGUMENT"}}], "Too warm"
    ),
    "error null": Refused({"error": None, "message": "Too warm."}, "Too warm"),
    "error true": Refused({"error": True, "message": "Too warm."}, "Too warm"),
    "error empty": Refused({"error": {}, "message": "Too warm."}, "Too warm"),
    "an empty text": Refused({"error": "", "message": "Too warm."}, "Too warm"),
    "msg alone": Refused({"msg": "Too warm."}, "Too warm"),
    "a code in an object of its own": Refused(
        {"error": {"message": "Too warm.", "code": "warm"}}, "Too warm", None, "warm"
    ),
    "a code that is a number": Refused({"error": {"message": "Too warm.", "code": 400}}, "Too warm"),
    "fields with lists, as Django writes": Refused(
        {"temperature": ["Too warm."], "seed": [7, True]}, '{"temperature":["Too warm."],"seed":[7,true]}'
    ),
    "no words": Refused({"error": {"kind": None}}, '{"error":{"kind":null}}'),
    "an empty list": Refused([], "(nothing)"),
    "an empty object": Refused({}, "(nothing)"),
    "null": Refused("null", "(nothing)"),
    "false": Refused("false", "false"),
    "a number": Refused({"message": 17}, "17"),
    "many levels": Refused("[" * 500 + "]" * 500, "…"),
}


@both
@pytest.mark.parametrize("form", REFUSED)
def test_a_refusal_has_the_words_of_the_server(gateway: str, model: ModelServer, form: str, stream: bool) -> None:
    case = REFUSED[form]
    model.plays(whole(case.body, 400))
    reply = request(gateway + CHAT, body(temperature=1, stream=stream))
    assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
    assert (reply.error["message"], reply.error["param"], reply.error["code"]) == (case.message, case.param, case.code)


def test_a_refusal_in_the_messages_api_begins_with_the_place(gateway: str, model: ModelServer) -> None:
    model.plays(whole({"detail": [MISSING]}, 422))
    asked = {"model": "native", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
    reply = request(gateway + MESSAGES, asked)
    assert reply.status == 400
    assert reply.json["error"]["message"] == "messages[0].content: Field required"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_that_is_longer_than_what_is_read_is_the_clients(
    gateway: str, model: ModelServer, status: int
) -> None:
    model.plays(whole({"detail": [{**MISSING, "input": "a" * 1_200_000}]}, status))
    reply = request(gateway + CHAT, body())
    assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
    assert '"msg": "Field required"' in reply.error["message"]


def test_what_is_no_json_is_no_refusal(gateway: str, model: ModelServer) -> None:
    model.plays(whole("{no", 400, "text/plain"), whole("<p>no</p>", 400))
    assert [request(gateway + CHAT, body()).status for _ in range(2)] == [502, 502]


@pytest.mark.parametrize(
    "words",
    [
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
        "`inputs` must have less than 4096 tokens. Given: 5000",
    ],
)
def test_a_conversation_that_is_too_long_for_tgi_is_named_as_such(gateway: str, model: ModelServer, words: str) -> None:
    model.plays(*[whole({"error": f"Input validation error: {words}", "error_type": "validation"}, 422)] * 2)
    assert request(gateway + CHAT, body()).error["code"] == "context_length_exceeded"
    asked = {"model": "native", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
    message = request(gateway + MESSAGES, asked).json["error"]["message"]
    assert message == "prompt is too long: 5000 tokens > 4096 maximum"


CUDA = "CUDA out of memory"
REPORTED: dict[str, dict[str, Any]] = {
    "detail": {"detail": CUDA},
    "message": {"message": CUDA},
    "msg": {"code": 500, "msg": CUDA},
    "errors": {"errors": [{"detail": CUDA}]},
    "error and its message": {"error": True, "message": CUDA},
    "a choice": {
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"message": CUDA}}]
    },
    "beside choices": {"choices": [], "error": {"message": CUDA}},
}


@both
@pytest.mark.parametrize("way", ["native", "raw-hermes-openai", "raw-hermes-llamacpp"])
@pytest.mark.parametrize("as_event", [False, True], ids=["body", "event"])
@pytest.mark.parametrize("form", REPORTED)
def test_an_error_in_place_of_an_answer_is_told(
    gateway: str, model: ModelServer, form: str, as_event: bool, way: str, stream: bool
) -> None:
    model.plays(Answer(sse(REPORTED[form], "[DONE]")) if as_event else whole(REPORTED[form]))
    reply = request(gateway + CHAT, body(way, stream=stream))
    assert reply.status == 502
    assert reply.error["message"] == f"The upstream at {model_url(model, way)} reports an error: {CUDA}."


def model_url(model: ModelServer, way: str) -> str:
    return model.url.removesuffix("/v1") if way.endswith("llamacpp") else model.url


@both
def test_an_answer_of_another_api_is_quoted(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(Answer(sse({"message": {"role": "assistant", "content": "Hi"}, "done": True})))
    reply = request(gateway + CHAT, body(stream=stream))
    assert reply.status == 502
    assert 'sent an event that its API does not know: {"message": {"role": "assistant"' in reply.error["message"]


def told(model: ModelServer, gateway: str, *events: Any) -> tuple[str, str]:
    """The text of a stream, and the words of the error that ends it."""
    model.plays(Answer(sse(*events)))
    reply = request(gateway + CHAT, body(stream=True))
    assert reply.status == 200
    *pieces, last = reply.events
    texts = [choice["delta"].get("content") or "" for piece in pieces for choice in piece["choices"]]
    return "".join(texts), last["error"]["message"]


def test_text_beside_an_error_is_read_first(gateway: str, model: ModelServer) -> None:
    for error in ({"error": {"message": CUDA}}, {"choices": [{**choice("lo", "error"), "error": {"message": CUDA}}]}):
        text, words = told(model, gateway, chunk({"content": "Hel"}), {"choices": [choice("lo")], **error})
        assert text == "Hello"
        assert words.endswith(f"reports an error: {CUDA}.")


def choice(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": {"content": text}, "finish_reason": finish}


@pytest.mark.parametrize("words", [CUDA, "This model's maximum context length is 4096 tokens."])
def test_text_that_is_held_goes_out_before_an_error(gateway: str, model: ModelServer, words: str) -> None:
    begun = 'Hello\n{"name": "get_weather", "arg'
    text, _ = told(model, gateway, chunk({"content": begun}), {"error": {"message": words}})
    assert text == begun


def test_chunks_without_choices_that_are_no_error_are_passed_over(gateway: str, model: ModelServer) -> None:
    model.plays(Answer((*sse({"type": "ping"}, {"id": "x", "message": None, "error": False}), *said("Hi").steps)))
    assert request(gateway + CHAT, body()).json["choices"][0]["message"]["content"] == "Hi"


def test_an_error_of_a_choice_is_handed_on_with_the_rest_where_answers_are(gateway: str, model: ModelServer) -> None:
    given = {"choices": [{"index": 0, "text": "Hi", "finish_reason": "stop", "error": {"message": CUDA}}]}
    model.plays(whole(given))
    assert request(gateway + "/v1/completions", {"model": "native", "prompt": "Hi"}).json["choices"] == given["choices"]


# --- tools whose schemas a server cannot compile ---

GRAMMAR = "Failed to initialize samplers: failed to parse grammar"
UNCOMPILED: dict[str, Answer] = {
    "llama.cpp": whole({"error": {"code": 400, "message": GRAMMAR, "type": "invalid_request_error"}}, 400),
    "LM Studio": Answer(sse({"error": {"message": GRAMMAR}})),
    "vLLM": whole({"error": {"message": "The JSON schema has features that xgrammar lacks.", "code": 500}}, 500),
}
PLAIN_TO: dict[str, Any] = {"type": "string", "description": "A pattern."}
TO = {**PLAIN_TO, "pattern": "^(?!\\.)[^@]+@[^@]+$", "maxLength": 320}


def mail(to: dict[str, Any], **bounds: int) -> list[dict[str, Any]]:
    """A tool with a parameter of the name of a bound, and bounds at three depths."""
    properties = {"pattern": {"type": "string"}, "to": {"type": "array", "items": {"anyOf": [to]}, **bounds}}
    parameters = {"type": "object", "properties": properties, "required": ["to"]}
    return [{"type": "function", "function": {"name": "mail", "parameters": parameters}}, TOOLS[0]]


@both
@pytest.mark.parametrize("form", UNCOMPILED)
def test_tools_that_a_server_cannot_compile_are_sent_without_bounds_from_then_on(
    serve: Served, model: ModelServer, form: str, stream: bool
) -> None:
    gateway = serve(ModelConfig(name=f"{form} {stream}", upstream=model.url))
    model.plays(UNCOMPILED[form], said("Sent."), said("Sent."))
    for _ in range(2):
        asked = body(f"{form} {stream}", tools=mail(TO, minItems=1, maxItems=50), stream=stream)
        assert request(gateway + CHAT, asked).status == 200
    assert [asked.body["tools"] for asked in model.asked] == [
        mail(TO, minItems=1, maxItems=50),
        mail(PLAIN_TO),
        mail(PLAIN_TO),
    ]


def test_tools_that_are_refused_without_bounds_too_are_sent_as_they_are(serve: Served, model: ModelServer) -> None:
    gateway = serve(ModelConfig(name="refusing", upstream=model.url))
    model.plays(*[UNCOMPILED["llama.cpp"]] * 2, said("Sent."))
    asked = body("refusing", tools=mail(TO))
    assert request(gateway + CHAT, asked).error["message"] == GRAMMAR
    assert request(gateway + CHAT, asked).status == 200
    assert [asked.body["tools"] for asked in model.asked] == [mail(TO), mail(PLAIN_TO), mail(TO)]


def test_tools_without_bounds_are_not_sent_twice(gateway: str, model: ModelServer) -> None:
    model.plays(UNCOMPILED["llama.cpp"])
    assert request(gateway + CHAT, body(tools=mail(PLAIN_TO))).error["message"] == GRAMMAR
    assert len(model.asked) == 1
