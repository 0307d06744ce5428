"""Odd values where the answer is not: a side field, a label or a byte order mark costs no answer, and each is told."""

import json
import logging
from typing import Any

import pytest

from tests.support.http_client import CHAT, ask, request
from tests.support.messages_client import message_of
from tests.support.odd_answers import NAME, body
from tests.support.outputs import ARGUMENTS
from tests.support.responses_client import respond, text_of
from tests.support.servers import Answer, ModelServer, sse

both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
COUNTS = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": NAME, "arguments": ARGUMENTS}}


def answered(*, stream: bool, label: str | None = None, begin: bytes = b"", **odd: Any) -> Answer:
    """An answer of two words, or of a call, with odd values: `choice_…` in its choice, `message_…` in its message."""
    message: dict[str, Any] = {"role": "assistant", "content": "Calm sea."}
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    event: dict[str, Any] = {"id": "x", "created": 1, "model": "served", "usage": COUNTS}
    for name, value in odd.items():
        kind, _, rest = name.partition("_")
        {"choice": choice, "message": message}.get(kind, event)[rest if kind in ("choice", "message") else name] = value
    event["choices"] = [choice | {"delta" if stream else "message": message}]
    headers = {"content-type": label or ("text/event-stream" if stream else "application/json")}
    if label == "":
        headers = {}
    steps = sse(event, "[DONE]") if stream else (json.dumps(event).encode(),)
    return Answer((begin + steps[0], *steps[1:]), headers=headers)


SIDE: dict[str, tuple[dict[str, Any], str]] = {
    "counts as texts": ({"usage": {"prompt_tokens": "11", "completion_tokens": "7"}}, "usage.prompt_tokens"),
    "counts in words": ({"usage": {"prompt_tokens": "eleven", "completion_tokens": 7}}, "usage.prompt_tokens"),
    "a list for the counts": ({"usage": []}, "usage"),
    "a text for the counts": ({"usage": "none"}, "usage"),
    "details that are a number": ({"usage": {**COUNTS, "prompt_tokens_details": 4}}, "usage.prompt_tokens_details"),
    "a number that JSON does not have": ({"score": float("nan")}, "a number that JSON does not have"),
    "infinity among the counts": ({"usage": {**COUNTS, "prompt_tokens": float("inf")}}, "a number that JSON does not"),
    "an object without words for reasoning": ({"message_reasoning": {}}, "choices[0].%s.reasoning"),
    "a number for reasoning": ({"message_reasoning_content": 0}, "choices[0].%s.reasoning_content"),
    "a choice index as text": ({"choice_index": "0"}, "choices[0].index"),
    "a choice index as an object": ({"choice_index": {}}, "choices[0].index"),
    "log probabilities in a list": ({"choice_logprobs": [-0.5]}, "choices[0].logprobs"),
    "log probabilities as a number": ({"choice_logprobs": -0.5}, "choices[0].logprobs"),
    "calls in an empty object": ({"message_tool_calls": {}}, "choices[0].%s.tool_calls"),
    "an empty text for calls": ({"message_tool_calls": ""}, "choices[0].%s.tool_calls"),
    "nothing among the calls": ({"message_tool_calls": [None]}, "choices[0].%s.tool_calls[0]"),
    "no function call": ({"message_function_call": False}, "choices[0].%s.function_call"),
    "odd ids and times": ({"id": 5, "created": "now", "model": None, "object": [], "usage": []}, "usage"),
    "a byte order mark": ({"begin": b"\xef\xbb\xbf"}, ""),
    "plain text": ({"label": "text/plain"}, "an answer under a wrong label"),
    "bytes": ({"label": "application/octet-stream"}, "an answer under a wrong label"),
    "the label of a page": ({"label": "text/html; charset=utf-8"}, "an answer under a wrong label"),
    "no label": ({"label": ""}, "an answer under a wrong label"),
}


@both
@pytest.mark.parametrize("case", SIDE)
def test_an_odd_side_field_costs_no_answer_on_any_api_and_is_told(
    gateway: str, model: ModelServer, case: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    odd, told = SIDE[case]
    question = [{"role": "user", "content": "How is the sea?"}]
    model.plays(*[answered(stream=stream, **odd)] * 3)
    with caplog.at_level(logging.WARNING):
        assert ask(gateway, body(), stream=stream).message["content"] == "Calm sea."
        assert text_of(respond(gateway, stream=stream, model="native", input="How is the sea?")) == "Calm sea."
        message = message_of(gateway, {"model": "native", "messages": question, "max_tokens": 99}, stream=stream)
    assert [block["text"] for block in message["content"]] == ["Calm sea."]
    if told and not (told.startswith("an answer under") and not stream):
        place = "delta" if stream else "message"
        assert (told % place if "%s" in told else told) in caplog.text


@pytest.mark.parametrize("index", ["0", 0.0, " 0", None], ids=repr)
def test_the_index_of_a_call_may_be_of_any_type(gateway: str, model: ModelServer, index: Any) -> None:
    head = {**CALL, "index": index, "function": {"name": NAME, "arguments": ARGUMENTS[:5]}}
    tail = {"index": index, "function": {"arguments": ARGUMENTS[5:]}}
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in (head, tail)]
    model.plays(Answer(sse(*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]")))
    assert ask(gateway, body(), stream=True).calls == [(NAME, {"city": "Paris"})]


def test_what_is_no_object_among_the_events_is_left_out_and_told(
    gateway: str, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    first, *rest = answered(stream=True).steps
    assert isinstance(first, bytes)
    model.plays(Answer((b"data: null\n\n", first, *rest[:-1], b'data: ""\n\ndata: []\n\n', rest[-1])))
    assert ask(gateway, body(), stream=True).message["content"] == "Calm sea."
    assert "an event that is not an object, which is left out: None" in caplog.text


@both
def test_the_words_of_a_thought_in_an_object_are_kept(gateway: str, model: ModelServer, stream: bool) -> None:
    model.plays(answered(stream=stream, message_reasoning={"text": "Look out.", "score": 1}))
    message = ask(gateway, body(), stream=stream).message
    assert (message["reasoning"], message["content"]) == ("Look out.", "Calm sea.")


COUNTED: dict[str, dict[str, Any]] = {
    "in the choice": {"usage": None, "choice_usage": COUNTS},
    "in the words of the Responses API": {"usage": {"input_tokens": 11, "output_tokens": 7}},
    "in these, in the choice": {"usage": None, "choice_usage": {"input_tokens": 11, "output_tokens": 7}},
    "as texts": {"usage": {"prompt_tokens": "11", "completion_tokens": "7"}},
}


@both
@pytest.mark.parametrize("where", COUNTED)
def test_tokens_are_counted_wherever_their_numbers_stand(
    gateway: str, model: ModelServer, where: str, stream: bool
) -> None:
    model.plays(answered(stream=stream, **COUNTED[where]))
    usage = ask(gateway, body(), stream=stream).usage
    assert usage is not None
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (11, 7)


@both
def test_the_text_of_a_completion_from_a_chat_endpoint_is_content_and_told(
    gateway: str, model: ModelServer, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    event = {"object": "text_completion", "choices": [{"index": 0, "text": "Calm sea.", "finish_reason": "stop"}]}
    model.plays(Answer(sse(event, "[DONE]")))
    assert ask(gateway, body(), stream=stream).message["content"] == "Calm sea."
    assert "the text of a completion, read as content" in caplog.text


@both
def test_an_empty_finish_reason_is_an_end_where_the_answer_is_marked_as_over(
    gateway: str, model: ModelServer, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model.plays(answered(stream=stream, choice_finish_reason=""))
    got = ask(gateway, body(), stream=stream)
    assert (got.message["content"], got.finish_reason) == ("Calm sea.", "stop")
    assert "an empty finish_reason" in caplog.text


CARRYING: dict[str, dict[str, Any]] = {
    "content": {"message_content": {"said": "Calm sea."}},
    "calls": {"message_tool_calls": "get_weather"},
    "the reason of its end": {"choice_finish_reason": {"why": "stop"}},
    "a name": {"message_tool_calls": [{**CALL, "function": {"name": 7, "arguments": ARGUMENTS}}]},
}


@both
@pytest.mark.parametrize("what", CARRYING)
def test_what_carries_the_answer_is_still_read_strictly(
    gateway: str, model: ModelServer, what: str, stream: bool
) -> None:
    model.plays(answered(stream=stream, **CARRYING[what]))
    reply = request(gateway + CHAT, body(stream=stream))
    error = reply.events[-1]["error"] if stream and reply.status == 200 else reply.error
    assert "sent an event that its API does not know" in error["message"]
