"""What a server says beside text and calls: it reaches the client in both APIs, whole and streamed."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from msgspec import Struct

from tests.conftest import Served, scripted_models
from tests.support.http_client import CHAT, Reply, assembled, request
from tests.support.outputs import QUESTION, TOOLS
from tests.support.responses_client import body as responses_body
from tests.support.responses_client import respond
from tests.support.servers import Answer, ModelServer, call_deltas, chunk, sse, whole

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture
def patient(serve: Served, model: ModelServer) -> str:
    """A gateway that asks again."""
    return serve(*scripted_models(model.url, retries=2))


NO: Final = "I cannot help with that."
CITED: Final = {"start_index": 0, "end_index": 5, "title": "Paris", "url": "https://example.org/paris"}
CITATION: Final = {"type": "url_citation", "url_citation": CITED}
SECOND: Final = {"type": "url_citation", "url_citation": {**CITED, "title": "Weather"}}
TOKEN: Final = {"token": "I", "logprob": -0.5, "bytes": [73], "top_logprobs": []}
OF_REFUSAL: Final = {"content": None, "refusal": [TOKEN]}


class Case(Struct, frozen=True):
    """What a server sends: the deltas of its message, the fields of its chunks; and what comes of it.

    `message` is what a chat client finds in the message beside its role, `content` the content of the Responses API's
    message; None where there is no such message.
    """

    deltas: tuple[Mapping[str, Any], ...]
    message: Mapping[str, Any]
    content: list[Mapping[str, Any]] | None
    finish: str = "stop"
    fields: Mapping[str, Any] = {}
    logprobs: Mapping[str, Any] | None = None
    said: Mapping[str, Any] = {}


def text(said: str, *annotations: Mapping[str, Any]) -> dict[str, Any]:
    flat = [{"type": "url_citation", **one["url_citation"]} for one in annotations]
    return {"type": "output_text", "text": said, "annotations": flat, "logprobs": []}


def refusal(said: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": said}


CASES: Final[dict[str, Case]] = {
    "a refusal": Case(
        ({"refusal": NO[:9]}, {"refusal": NO[9:]}),
        {"content": None, "refusal": NO},
        [refusal(NO)],
    ),
    "a refusal that a filter ends": Case(
        ({"refusal": NO},), {"content": None, "refusal": NO}, [refusal(NO)], finish="content_filter"
    ),
    "a refusal behind text": Case(
        ({"content": "Well."}, {"refusal": NO}),
        {"content": "Well.", "refusal": NO},
        [text("Well."), refusal(NO)],
    ),
    "a refusal as a part of the content": Case(
        ({"content": [{"type": "refusal", "refusal": NO, "text": None}]},),
        {"content": None, "refusal": NO},
        [refusal(NO)],
    ),
    "a refusal with logprobs": Case(
        ({"refusal": NO},), {"content": None, "refusal": NO}, [refusal(NO)], logprobs=OF_REFUSAL
    ),
    "an empty refusal": Case(({"refusal": "", "content": "Hi"},), {"content": "Hi", "refusal": None}, [text("Hi")]),
    "annotations behind the text": Case(
        ({"content": "Sunny"}, {"content": "."}, {"annotations": [CITATION, SECOND]}),
        {"content": "Sunny.", "refusal": None, "annotations": [CITATION, SECOND]},
        [text("Sunny.", CITATION, SECOND)],
    ),
    "annotations with the text": Case(
        ({"content": "Sunny.", "annotations": [CITATION]},),
        {"content": "Sunny.", "refusal": None, "annotations": [CITATION]},
        [text("Sunny.", CITATION)],
    ),
    "annotations before the text": Case(
        ({"annotations": [CITATION]}, {"content": "Sunny."}),
        {"content": "Sunny.", "refusal": None, "annotations": [CITATION]},
        [text("Sunny.", CITATION)],
    ),
    "annotations of nothing": Case(
        ({"annotations": [CITATION]},),
        {"content": None, "refusal": None, "annotations": [CITATION]},
        [text("", CITATION)],
    ),
    "no annotations": Case(({"content": "Hi", "annotations": []},), {"content": "Hi", "refusal": None}, [text("Hi")]),
    "a fingerprint and a tier": Case(
        ({"content": "Hi"},),
        {"content": "Hi", "refusal": None},
        [text("Hi")],
        fields={"system_fingerprint": "fp_1\u2028", "service_tier": "priority"},
        said={"system_fingerprint": "fp_1\u2028", "service_tier": "priority"},
    ),
    "a fingerprint with a call": Case(
        tuple(call_deltas("get_weather", '{"city":', '"Paris"}')),
        {"content": None, "refusal": None},
        None,
        finish="tool_calls",
        fields={"system_fingerprint": "fp_%b", "service_tier": None},
        said={"system_fingerprint": "fp_%b"},
    ),
    "no text where one belongs": Case(
        ({"content": "Hi", "refusal": False, "annotations": "none"},),
        {"content": "Hi", "refusal": None},
        [text("Hi")],
        fields={"system_fingerprint": 7, "service_tier": {}},
    ),
}


def played(case: Case, *, stream: bool) -> Answer:
    """The answer of a server, in the form that it is asked for."""
    if not stream:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for delta in case.deltas:
            for key, value in delta.items():
                if key == "tool_calls":
                    begun = message.setdefault("tool_calls", [{**value[0], "function": {**value[0]["function"]}}])
                    if "id" not in value[0]:
                        begun[0]["function"]["arguments"] += value[0]["function"]["arguments"]
                else:
                    message[key] = message[key] + value if isinstance(message.get(key), str) else value
        choice = {"index": 0, "message": message, "finish_reason": case.finish, "logprobs": case.logprobs}
        return whole({"id": "x", "object": "chat.completion", "choices": [choice], **case.fields})
    chunks = [chunk({"role": "assistant"}), *map(chunk, case.deltas), chunk({}, case.finish)]
    for one in chunks:
        if case.logprobs and "refusal" in one["choices"][0]["delta"]:
            one["choices"][0]["logprobs"] = case.logprobs
    return Answer(sse(*({**one, **case.fields} for one in chunks), "[DONE]"))


def asked(gateway: str, way: str = "native", **fields: Any) -> Reply:
    return request(gateway + CHAT, {"model": way, "messages": [QUESTION], "tools": TOOLS, **fields})


@both
@pytest.mark.parametrize("name", CASES)
def test_it_comes_through_chat_completions(gateway: str, model: ModelServer, name: str, stream: bool) -> None:
    case = CASES[name]
    model.plays(played(case, stream=stream))
    reply = asked(gateway, stream=stream)
    if stream:
        answer = assembled(reply.events)
        message, reason = answer.message, answer.finish_reason
        tellers = reply.events
        logprobs = next((one["choices"][0]["logprobs"] for one in tellers if one["choices"][0]["logprobs"]), None)
    else:
        assert reply.status == 200, reply.text
        (choice,) = reply.json["choices"]
        message, reason, logprobs = choice["message"], choice["finish_reason"], choice["logprobs"]
        tellers = [reply.json]
    shown = {key: value for key, value in message.items() if key not in ("role", "tool_calls")}
    assert shown == dict(case.message)
    assert reason == case.finish
    assert logprobs == case.logprobs
    for one in tellers:
        assert {key: one[key] for key in ("system_fingerprint", "service_tier") if key in one} == case.said


@both
@pytest.mark.parametrize("name", CASES)
def test_it_comes_through_responses(gateway: str, model: ModelServer, name: str, stream: bool) -> None:
    case = CASES[name]
    model.plays(played(case, stream=stream))
    response = respond(gateway, stream=stream, **responses_body())
    messages = [item for item in response["output"] if item["type"] == "message"]
    if case.content is None:
        assert not messages
    else:
        (message,) = messages
        assert message["content"] == case.content
    assert response["service_tier"] == case.said.get("service_tier", "default")
    assert response["status"] == ("incomplete" if case.finish == "content_filter" else "completed")


@both
@pytest.mark.parametrize("way", ["prompt-json", "prompt-hermes", "prompt-harmony"])
def test_it_comes_in_mode_prompt_too(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    for name in ("a refusal", "annotations behind the text", "a fingerprint and a tier"):
        case = CASES[name]
        model.plays(played(case, stream=stream))
        reply = asked(gateway, way, stream=stream)
        message = assembled(reply.events).message if stream else reply.json["choices"][0]["message"]
        assert {key: value for key, value in message.items() if key != "role"} == dict(case.message)


@both
@pytest.mark.parametrize("way", ["raw-hermes-openai", "raw-hermes-vllm", "raw-hermes-sglang"])
def test_a_fingerprint_comes_in_mode_raw(gateway: str, model: ModelServer, way: str, stream: bool) -> None:
    said = {"system_fingerprint": "fp_2", "service_tier": "flex"}
    chunks = [
        {"choices": [{"index": 0, "text": "Hi"}]},
        {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]},
    ]
    joined = {"choices": [{"index": 0, "text": "Hi", "finish_reason": "stop"}], **said}
    model.plays(Answer(sse(*({**one, **said} for one in chunks), "[DONE]")) if stream else whole(joined))
    reply = asked(gateway, way, stream=stream)
    for one in reply.events if stream else [reply.json]:
        assert said.items() <= one.items()


@both
@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_weather"}}], ids=["required", "named"]
)
def test_a_refusal_is_an_answer_where_a_call_is_demanded(
    patient: str, model: ModelServer, choice: object, stream: bool
) -> None:
    model.plays(played(CASES["a refusal"], stream=stream))
    reply = asked(patient, stream=stream, tool_choice=choice)
    assert reply.status == 200, reply.text
    message = assembled(reply.events).message if stream else reply.json["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, NO)
    assert len(model.asked) == 1


# --- token counts ---


@pytest.mark.parametrize("way", ["native", "prompt-json", "raw-hermes-openai"])
def test_the_chunk_of_token_counts_comes_from_a_server_that_counts_none(
    gateway: str, model: ModelServer, way: str
) -> None:
    piece = {"text": "Hi"} if way.startswith("raw") else {"delta": {"content": "Hi"}}
    model.plays(Answer(sse({"choices": [{"index": 0, **piece, "finish_reason": "stop"}]}, "[DONE]")))
    *_, last = asked(gateway, way, stream=True, stream_options={"include_usage": True}).events
    assert last["choices"] == []
    assert (last["usage"]["prompt_tokens"], last["usage"]["total_tokens"]) == (0, 0)


@pytest.mark.parametrize("way", ["native", "prompt-json", "raw-hermes-openai"])
def test_an_error_has_no_token_counts_behind_it(gateway: str, model: ModelServer, way: str) -> None:
    piece = {"text": "Hi"} if way.startswith("raw") else {"delta": {"content": "Hi"}}
    model.plays(Answer((*sse({"choices": [{"index": 0, **piece}]}), "cut")))
    *said, last = asked(gateway, way, stream=True, stream_options={"include_usage": True}).events
    assert list(last) == ["error"]
    assert not [one for one in said if one["usage"]]
